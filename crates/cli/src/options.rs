//! What was typed: flags and environment. What it means is [`crate::config`]'s business.
//!
//! Every flag of Azurite is here, under Azurite's name, so that a script which starts `azurite-table` works
//! after a change of name. Those that mean nothing here are accepted and warned about.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use tavola_server::config::Service;

/// Every setting of `serve`. A flag wins over the environment, that over the file, that over the default.
#[derive(Args, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct ServeOptions {
    /// TOML file with the same settings, by their long names
    #[arg(long, env = "TAVOLA_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Folder that the data folder `tavola-data` is made in [default: .]
    #[arg(short = 'l', long, env = "TAVOLA_LOCATION", value_name = "DIR")]
    pub location: Option<PathBuf>,

    /// The data folder itself, instead of `tavola-data` in the location
    #[arg(long, env = "TAVOLA_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Address that all services listen on [default: 127.0.0.1]
    #[arg(long, env = "TAVOLA_HOST", value_name = "IP")]
    pub host: Option<String>,

    /// Services to run: table, queue [default: all]
    #[arg(long, env = "TAVOLA_SERVICES", value_name = "NAMES", value_delimiter = ',')]
    pub services: Option<Vec<String>>,

    /// Address that the table service listens on [default: that of all]
    #[arg(long = "tableHost", env = "TAVOLA_TABLE_HOST", value_name = "IP")]
    pub table_host: Option<String>,

    /// Port of the table service; 0 picks a free one and prints it [default: 10002]
    #[arg(long = "tablePort", visible_alias = "port", env = "TAVOLA_PORT", value_name = "PORT")]
    pub port: Option<u16>,

    /// Seconds that an idle connection, or one slow to send a request's headers, is kept [default: 60]
    #[arg(long = "tableKeepAliveTimeout", env = "TAVOLA_KEEP_ALIVE", value_name = "SECONDS")]
    pub keep_alive: Option<u64>,

    /// Address that the queue service listens on [default: that of all]
    #[arg(long = "queueHost", env = "TAVOLA_QUEUE_HOST", value_name = "IP")]
    pub queue_host: Option<String>,

    /// Port of the queue service; 0 picks a free one and prints it [default: 10001]
    #[arg(long = "queuePort", env = "TAVOLA_QUEUE_PORT", value_name = "PORT")]
    pub queue_port: Option<u16>,

    /// The same seconds for connections of the queue service [default: 60]
    #[arg(long = "queueKeepAliveTimeout", env = "TAVOLA_QUEUE_KEEP_ALIVE", value_name = "SECONDS")]
    pub queue_keep_alive: Option<u64>,

    /// Serve /health, /ready and /metrics on this port (0 picks one) [default: off]
    #[arg(long, env = "TAVOLA_ADMIN_PORT", value_name = "PORT")]
    pub admin_port: Option<u16>,

    /// Address of the admin port [default: 127.0.0.1]
    #[arg(long, env = "TAVOLA_ADMIN_HOST", value_name = "IP")]
    pub admin_host: Option<IpAddr>,

    /// Keep everything in memory and nothing on disk
    #[arg(long = "inMemoryPersistence", visible_alias = "in-memory", env = "TAVOLA_IN_MEMORY")]
    pub in_memory: bool,

    /// Accounts as `name:key1[:key2];...`, in place of the development account (environment only)
    #[arg(skip)]
    #[serde(skip)]
    pub accounts_text: Option<Secret>,

    /// File with one `name:key1[:key2]` a line, in place of the development account
    #[arg(long, env = "TAVOLA_ACCOUNTS_FILE", value_name = "FILE")]
    pub accounts_file: Option<PathBuf>,

    /// Certificate chain for TLS (PEM)
    #[arg(long, env = "TAVOLA_CERT", value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// Private key for TLS (PEM)
    #[arg(long, env = "TAVOLA_KEY", value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Ignore query options and headers that the service does not support
    #[arg(short = 'L', long, env = "TAVOLA_LOOSE")]
    pub loose: bool,

    /// Take the account from the path alone, never from the host name
    #[arg(long = "disableProductStyleUrl", env = "TAVOLA_DISABLE_PRODUCT_STYLE_URL")]
    pub disable_product_style_url: bool,

    /// Megabytes of memory for stored data [default: 128]
    #[arg(long, env = "TAVOLA_CACHE_MB", value_name = "MB")]
    pub cache_mb: Option<u64>,

    /// Megabytes of disk below which writes are refused, at most a quarter of the disk; 0 is none [default: 128]
    #[arg(long, env = "TAVOLA_DISK_RESERVE_MB", value_name = "MB")]
    pub disk_reserve_mb: Option<u64>,

    /// Connections at a time, as far as the limit of open files allows; more are answered 503 [default: 20000]
    #[arg(long, env = "TAVOLA_CONNECTIONS_MAX", value_name = "COUNT")]
    pub connections_max: Option<usize>,

    /// Seconds that a client may hold up a body or a reply; bytes that move at 16 KiB/s renew them [default: 30]
    #[arg(long, env = "TAVOLA_TRANSFER_TIMEOUT", value_name = "SECONDS")]
    pub transfer_timeout: Option<u64>,

    /// Megabytes that requests and replies may hold; more are answered 503, pages end earlier [default: 256]
    #[arg(long, env = "TAVOLA_MESSAGE_MEMORY_MB", value_name = "MB")]
    pub message_memory_mb: Option<usize>,

    /// HTTP/2 requests at a time over all connections; more are answered 503 [default: 20000]
    #[arg(long, env = "TAVOLA_HTTP2_REQUESTS_MAX", value_name = "COUNT")]
    pub http2_requests_max: Option<usize>,

    /// Queries that take longer are logged [default: 1000]
    #[arg(long, env = "TAVOLA_SLOW_QUERY_MS", value_name = "MS")]
    pub slow_query_ms: Option<u64>,

    /// Server time after which a page of a query ends with a token to go on [default: 5000]
    #[arg(long, env = "TAVOLA_PAGE_TIME_MS", value_name = "MS")]
    pub page_time_ms: Option<u64>,

    /// Do not log requests (they are logged at level debug only)
    #[arg(short = 's', long, env = "TAVOLA_SILENT")]
    pub silent: bool,

    /// Write a debug log, with every request, to this file
    #[arg(short = 'd', long, env = "TAVOLA_DEBUG", value_name = "FILE")]
    pub debug: Option<PathBuf>,

    /// Form of the log on standard error [default: text]
    #[arg(long, env = "TAVOLA_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Bearer tokens: whose are taken, and what their roles allow (file only)
    #[arg(skip)]
    pub bearer: Option<BearerOptions>,

    #[command(flatten)]
    #[serde(skip)]
    pub azurite: AzuriteOptions,
}

/// Where one service is to listen, as far as it was said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListenOptions<'a> {
    pub host: Option<&'a str>,
    pub port: Option<u16>,
    /// Seconds.
    pub keep_alive: Option<u64>,
}

impl ServeOptions {
    /// What was said of one service. A host counts for all of them.
    pub(crate) fn listen(&self, service: Service) -> ListenOptions<'_> {
        let (host, port, keep_alive) = match service {
            Service::Table => (&self.table_host, self.port, self.keep_alive),
            Service::Queue => (&self.queue_host, self.queue_port, self.queue_keep_alive),
            Service::Blob => (&None, None, None),
        };
        ListenOptions { host: host.as_deref().or(self.host.as_deref()), port, keep_alive }
    }

    /// Whether the port of any service was said.
    pub(crate) fn names_a_port(&self) -> bool {
        Service::ALL.iter().any(|service| self.listen(*service).port.is_some())
    }
}

/// Text that holds keys: it is used, never shown.
#[derive(Clone)]
pub(crate) struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// The `[bearer]` section of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct BearerOptions {
    pub issuer: String,
    pub audiences: Vec<String>,
    pub jwks_file: Option<PathBuf>,
    pub jwks_url: Option<String>,
    /// Permission letters by role, added to the built-in roles.
    #[serde(default)]
    pub roles: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    pub allow_http: bool,
}

/// Flags of Azurite that mean nothing here.
#[derive(Args, Debug, Default)]
pub(crate) struct AzuriteOptions {
    #[arg(long = "skipApiVersionCheck", hide = true)]
    pub skip_api_version_check: bool,
    #[arg(long = "disableTelemetry", hide = true)]
    pub disable_telemetry: bool,
    #[arg(long = "extentMemoryLimit", hide = true, value_name = "MB")]
    pub extent_memory_limit: Option<String>,
    #[arg(long = "oauth", hide = true, value_name = "LEVEL")]
    pub oauth: Option<String>,
    #[arg(long = "pwd", hide = true, value_name = "PASSWORD")]
    pub pwd: Option<String>,
    #[arg(long = "blobHost", hide = true, value_name = "IP")]
    pub blob_host: Option<String>,
    #[arg(long = "blobPort", hide = true, value_name = "PORT")]
    pub blob_port: Option<String>,
    #[arg(long = "blobKeepAliveTimeout", hide = true, value_name = "SECONDS")]
    pub blob_keep_alive_timeout: Option<String>,
}

impl AzuriteOptions {
    /// What to tell someone who gave these flags.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |given: bool, flag: &str, reason: &str| {
            if given {
                warnings.push(format!("{flag} has no effect: {reason}"));
            }
        };
        warn(self.skip_api_version_check, "--skipApiVersionCheck", "every version is served");
        warn(self.disable_telemetry, "--disableTelemetry", "there is no telemetry");
        warn(self.extent_memory_limit.is_some(), "--extentMemoryLimit", "there are no extents");
        warn(
            self.oauth.is_some(),
            "--oauth",
            "tokens are verified, and need a [bearer] section in the configuration file",
        );
        warn(self.pwd.is_some(), "--pwd", "certificate and key are PEM files without a password");
        let blob = [&self.blob_host, &self.blob_port, &self.blob_keep_alive_timeout];
        warn(blob.iter().any(|option| option.is_some()), "--blob...", "there is no blob service");
        warnings
    }
}
