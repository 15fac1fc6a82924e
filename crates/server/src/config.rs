//! What the service runs with, validated: nothing in here can turn out wrong later.
//!
//! Flags, environment and file are the command line's business; this is what they become.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use tavola_wire::Service;
pub use tavola_wire::auth::{AccountKey, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};

#[derive(Debug)]
pub struct Config {
    /// The services to serve, each of [`SERVICES`](crate::SERVICES) at most once.
    pub services: Vec<ServiceConfig>,
    /// Health and metrics; off unless asked for.
    pub admin: Option<SocketAddr>,
    pub storage: Storage,
    pub accounts: Vec<AccountConfig>,
    pub tls: Option<TlsFiles>,
    pub bearer: Option<BearerConfig>,
    /// Ignore query options and headers that the service does not support, instead of refusing them.
    pub loose: bool,
    /// Take the account from the path alone, never from the host name.
    pub path_style_only: bool,
    pub limits: Limits,
    /// Queries that take longer are logged.
    pub slow_query: Duration,
    /// A line for every request; off unless asked for.
    pub access_log: Option<AccessLogConfig>,
}

/// Where the access log goes, and in which form.
#[derive(Clone, Debug)]
pub struct AccessLogConfig {
    pub target: AccessLogTarget,
    pub format: LogFormat,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogTarget {
    Stdout,
    File(PathBuf),
}

impl AccessLogTarget {
    /// As messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "on standard output".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// How a line of a log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// `name=value`, for people.
    #[default]
    Text,
    /// An object per line, for machines.
    Json,
}

/// A service and where it listens.
#[derive(Clone, Debug)]
pub struct ServiceConfig {
    pub service: Service,
    pub address: SocketAddr,
    /// A client that takes longer to send a request's headers is cut off, and so is an idle one.
    pub keep_alive: Duration,
    /// Left out, with a warning, if somebody else has its port.
    pub is_optional: bool,
}

/// Where the data is.
#[derive(Debug)]
pub enum Storage {
    Folder {
        path: PathBuf,
        cache_bytes: u64,
        /// Room on the disk below which writes are refused.
        disk_reserve_bytes: u64,
        /// Files of tables that are kept open.
        cached_files_max: usize,
    },
    Memory,
}

/// An account and its keys (one or two).
#[derive(Debug)]
pub struct AccountConfig {
    pub name: String,
    pub keys: Vec<AccountKey>,
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// PEM, the chain with the server's certificate first.
    pub certificate: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

/// Whose bearer tokens are taken, and what their roles allow.
#[derive(Clone, Debug)]
pub struct BearerConfig {
    pub issuer: String,
    /// Any of these must be the token's audience, with or without a slash at its end. `https://storage.azure.com` stands
    /// for every service of every account as well.
    pub audiences: Vec<String>,
    pub keys: KeySource,
    /// Permission letters by role, for every service, as in an account SAS: `r`ead, `a`dd, `u`pdate and `d`elete entities or
    /// messages, `p`rocess messages, `l`ist, `c`reate and `d`elete tables or queues; `r` and `w` also read and write the
    /// service properties. [Azure's own roles](default_roles) count beside them.
    pub roles: BTreeMap<String, String>,
    /// Take tokens over plain HTTP, for a server behind a proxy that ends TLS.
    pub allow_http: bool,
}

/// Where the issuer's signing keys (JWKS) come from.
#[derive(Clone, Debug)]
pub enum KeySource {
    File(PathBuf),
    Url(String),
}

/// [`ServiceConfig::keep_alive`] unless told otherwise.
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Everything that a stranger sends has a limit.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time; more are answered 503 and closed.
    pub connections_max: usize,
    /// HTTP/2 requests at a time over all connections, until their replies have been taken; more are answered 503.
    pub http2_requests_max: usize,
    /// Request line and headers together. Filters are long: 64 KiB URLs must fit.
    pub head_bytes_max: usize,
    /// What requests and replies hold together, on their way and in the making; more are answered 503, and pages end.
    pub message_bytes_max: usize,
    /// A client that takes longer to send a request's headers is cut off, and so is an idle one. Each service has its own:
    /// [`ServiceConfig::keep_alive`].
    pub head_timeout: Duration,
    /// A client that holds up a body or a reply for longer is cut off. Bytes that move renew it: see
    /// `stall_timeout.rs`.
    pub transfer_timeout: Duration,
    /// A page of a query ends after this much server time, with a token to go on.
    pub page_time: Duration,
    /// How long a stop waits for requests that were accepted.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            http2_requests_max: 20_000,
            head_bytes_max: 128 * 1024,
            message_bytes_max: 256 * 1024 * 1024,
            head_timeout: KEEP_ALIVE,
            transfer_timeout: Duration::from_secs(30),
            page_time: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(20),
        }
    }
}

/// The roles of Azure's own that are understood without being configured, by service: those of one say nothing of another.
pub fn default_roles(service: Service) -> &'static [(&'static str, &'static str)] {
    match service {
        Service::Blob => &[],
        Service::Queue => &[
            ("Storage Queue Data Contributor", "rwdlacup"),
            ("Storage Queue Data Message Processor", "rp"),
            ("Storage Queue Data Message Sender", "a"),
            ("Storage Queue Data Reader", "rl"),
        ],
        Service::Table => &[
            ("Storage Table Data Contributor", "raudlc"),
            ("Storage Table Data Owner", "raudlc"),
            ("Storage Table Data Reader", "rl"),
        ],
    }
}
