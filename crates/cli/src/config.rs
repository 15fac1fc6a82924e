//! From what was typed to what it means: flag over environment over file over default, checked once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use tavola_server::SERVICES;
use tavola_server::config::{
    AccessLogConfig, AccessLogTarget, AccountConfig, AccountKey, BearerConfig, Config,
    DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, KEEP_ALIVE, KeySource, Limits, Service, ServiceConfig,
    Storage, TlsFiles,
};

use crate::options::{BearerOptions, ListenOptions, Secret, ServeOptions};

/// The data folder, in the location.
const DATA_FOLDER: &str = "tavola-data";
const CACHE_MB: u64 = 128;
/// Two write buffers and a journal.
const DISK_RESERVE_MB: u64 = 128;
const CACHED_FILES: usize = 900;
/// File descriptors that are not for connections: a third of all, within these bounds.
const OWN_FILES_MIN: usize = 32;
const OWN_FILES_MAX: usize = 1024;
/// Of these, what is always open: standard streams, runtime, listeners, locks and journal.
const ALWAYS_OPEN_FILES: usize = 16;
/// And what is opened now and then, by a flush or a compaction; half of what is left where that is less.
const SPARE_FILES: usize = 64;
/// Each connection counts for this many quarters of a descriptor: those that are being refused, and those of the admin
/// port, may be an eighth as many each.
const QUARTERS_PER_CONNECTION: usize = 5;
const SLOW_QUERY: Duration = Duration::from_secs(1);
/// What orchestrators usually grant before they kill.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the file that the flags name, and lays the flags over it.
pub(crate) fn with_file(flags: ServeOptions) -> anyhow::Result<ServeOptions> {
    let Some(path) = &flags.config else { return Ok(flags) };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration file {}", path.display()))?;
    let file: ServeOptions = toml::from_str(&text).map_err(|error| invalid(path, &text, &error))?;
    Ok(overlay(flags, file))
}

/// Where and why, without the line itself: someone may have put a key there.
fn invalid(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let reason = match error.message() {
        // A value of a wrong type is quoted in the message.
        message if message.starts_with("invalid type") => "a value has the wrong type",
        message => message,
    };
    anyhow!("the configuration file {} is not valid: line {line}: {reason}", path.display())
}

fn overlay(flags: ServeOptions, file: ServeOptions) -> ServeOptions {
    ServeOptions {
        location: flags.location.or(file.location),
        data: flags.data.or(file.data),
        host: flags.host.or(file.host),
        services: flags.services.or(file.services),
        table_host: flags.table_host.or(file.table_host),
        queue_host: flags.queue_host.or(file.queue_host),
        queue_port: flags.queue_port.or(file.queue_port),
        queue_keep_alive: flags.queue_keep_alive.or(file.queue_keep_alive),
        port: flags.port.or(file.port),
        keep_alive: flags.keep_alive.or(file.keep_alive),
        admin_port: flags.admin_port.or(file.admin_port),
        admin_host: flags.admin_host.or(file.admin_host),
        in_memory: flags.in_memory || file.in_memory,
        accounts_text: flags.accounts_text.or(file.accounts_text),
        accounts_file: flags.accounts_file.or(file.accounts_file),
        cert: flags.cert.or(file.cert),
        key: flags.key.or(file.key),
        loose: flags.loose || file.loose,
        disable_product_style_url: flags.disable_product_style_url
            || file.disable_product_style_url,
        cache_mb: flags.cache_mb.or(file.cache_mb),
        disk_reserve_mb: flags.disk_reserve_mb.or(file.disk_reserve_mb),
        connections_max: flags.connections_max.or(file.connections_max),
        transfer_timeout: flags.transfer_timeout.or(file.transfer_timeout),
        message_memory_mb: flags.message_memory_mb.or(file.message_memory_mb),
        http2_requests_max: flags.http2_requests_max.or(file.http2_requests_max),
        slow_query_ms: flags.slow_query_ms.or(file.slow_query_ms),
        page_time_ms: flags.page_time_ms.or(file.page_time_ms),
        stop_timeout: flags.stop_timeout.or(file.stop_timeout),
        silent: flags.silent || file.silent,
        debug: flags.debug.or(file.debug),
        access_log: flags.access_log.or(file.access_log),
        log_format: flags.log_format.or(file.log_format),
        bearer: flags.bearer.or(file.bearer),
        azurite: flags.azurite,
        config: flags.config,
    }
}

/// The validated configuration.
pub(crate) fn resolve(options: &ServeOptions) -> anyhow::Result<Config> {
    let admin_host = options.admin_host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Ok(Config {
        services: services(options)?
            .into_iter()
            .map(|service| self::service(options, service))
            .collect::<Result<_, _>>()?,
        admin: options.admin_port.map(|port| SocketAddr::new(admin_host, port)),
        storage: storage(options),
        accounts: accounts(options)?,
        tls: tls(options)?,
        bearer: options.bearer.as_ref().map(bearer).transpose()?,
        loose: options.loose,
        path_style_only: options.disable_product_style_url,
        limits: limits(options)?,
        slow_query: options.slow_query_ms.map_or(SLOW_QUERY, Duration::from_millis),
        access_log: access_log(options),
    })
}

fn limits(options: &ServeOptions) -> anyhow::Result<Limits> {
    let mut limits = Limits::default();
    if let Some(seconds) = options.transfer_timeout {
        ensure!(seconds > 0, "the transfer timeout must be at least a second");
        limits.transfer_timeout = Duration::from_secs(seconds);
    }
    if let Some(count) = options.connections_max {
        ensure!(count > 0, "at least one connection must be allowed");
        limits.connections_max = count;
    }
    if let Some(count) = options.http2_requests_max {
        ensure!(count > 0, "at least one HTTP/2 request must be allowed");
        limits.http2_requests_max = count;
    }
    if let Some(mb) = options.message_memory_mb {
        // A quarter is kept for small messages, and one of the largest size has to fit in the rest.
        ensure!(mb >= 8, "the memory for messages must be at least 8 MB");
        limits.message_bytes_max = mb.saturating_mul(1024 * 1024);
    }
    // The rest is for the store.
    limits.drain_timeout = stop_timeout(options)? * 2 / 3;
    if let Some(ms) = options.page_time_ms {
        limits.page_time = Duration::from_millis(ms);
    }
    Ok(limits)
}

/// How long a stop may take.
pub(crate) fn stop_timeout(options: &ServeOptions) -> anyhow::Result<Duration> {
    ensure!(options.stop_timeout != Some(0), "the stop timeout must be at least a second");
    Ok(options.stop_timeout.map_or(STOP_TIMEOUT, Duration::from_secs))
}

/// Shares out the file descriptors that the process may have. Connections beyond their share are refused, so that
/// the engine can always open its files: a flush that cannot is the end of the service.
pub(crate) fn fit_files(config: &mut Config, files_max: u64) {
    let files_max = usize::try_from(files_max).unwrap_or(usize::MAX);
    let own = (files_max / 3).clamp(OWN_FILES_MIN, OWN_FILES_MAX);
    let for_store = own - ALWAYS_OPEN_FILES;
    let for_tables = (for_store - SPARE_FILES.min(for_store / 2)).min(CACHED_FILES);
    if let Storage::Folder { cached_files_max, .. } = &mut config.storage {
        *cached_files_max = for_tables;
    }
    let for_connections = (files_max.saturating_sub(own) / QUARTERS_PER_CONNECTION * 4).max(1);
    let connections_max = &mut config.limits.connections_max;
    if *connections_max > for_connections {
        tracing::warn!(
            wanted = *connections_max,
            allowed = for_connections,
            files_max,
            "fewer connections than wanted: the limit of open files is too low"
        );
        *connections_max = for_connections;
    }
}

/// The services that are to run.
fn services(options: &ServeOptions) -> anyhow::Result<Vec<Service>> {
    let Some(names) = &options.services else { return Ok(SERVICES.to_vec()) };
    let known = || SERVICES.map(Service::name).join(", ");
    let named: Vec<_> = names.iter().map(|name| name.trim()).collect();
    for name in &named {
        let is_known = SERVICES.iter().any(|service| service.name() == *name);
        ensure!(is_known, "there is no {name:?} service in this version, only {}", known());
    }
    let is_named = |service: &Service| named.contains(&service.name());
    let services: Vec<_> = SERVICES.into_iter().filter(is_named).collect();
    ensure!(!services.is_empty(), "no service is to run; there are {}", known());
    Ok(services)
}

/// Where a service listens, and for how long it keeps an idle connection.
fn service(options: &ServeOptions, service: Service) -> anyhow::Result<ServiceConfig> {
    let ListenOptions { host, port, keep_alive } = options.listen(service);
    let host = host.unwrap_or("127.0.0.1");
    let address = (host, port.unwrap_or(service.default_port()))
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .with_context(|| format!("{host} is not an address to listen on"))?;
    ensure!(keep_alive != Some(0), "the keep-alive timeout must be at least a second");
    let keep_alive = keep_alive.map_or(KEEP_ALIVE, Duration::from_secs);
    // Whoever gives the port of one service may know nothing of the others, whose port may be somebody else's.
    let is_optional = port.is_none() && options.services.is_none() && options.names_a_port();
    Ok(ServiceConfig { service, address, keep_alive, is_optional })
}

fn storage(options: &ServeOptions) -> Storage {
    if options.in_memory {
        return Storage::Memory;
    }
    let location = options.location.clone().unwrap_or_else(|| PathBuf::from("."));
    let path = options.data.clone().unwrap_or_else(|| location.join(DATA_FOLDER));
    Storage::Folder {
        path,
        cache_bytes: options.cache_mb.unwrap_or(CACHE_MB) << 20,
        disk_reserve_bytes: options.disk_reserve_mb.unwrap_or(DISK_RESERVE_MB) << 20,
        cached_files_max: CACHED_FILES,
    }
}

fn access_log(options: &ServeOptions) -> Option<AccessLogConfig> {
    let path = options.access_log.as_ref()?;
    let target = match path.to_str() {
        Some("-") => AccessLogTarget::Stdout,
        _ => AccessLogTarget::File(path.clone()),
    };
    Some(AccessLogConfig { target, format: options.log_format.unwrap_or_default().into() })
}

fn tls(options: &ServeOptions) -> anyhow::Result<Option<TlsFiles>> {
    let is_pfx = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "pfx");
    match (&options.cert, &options.key) {
        (None, None) => Ok(None),
        // It would come without a key: it holds one.
        (Some(certificate), _) if is_pfx(certificate) => {
            bail!("a PFX file is not supported: give certificate and key as PEM files")
        }
        (Some(certificate), Some(key)) => {
            Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }))
        }
        _ => bail!("TLS needs both a certificate and a key"),
    }
}

fn bearer(options: &BearerOptions) -> anyhow::Result<BearerConfig> {
    let keys = match (&options.jwks_file, &options.jwks_url) {
        (Some(file), None) => KeySource::File(file.clone()),
        (None, Some(url)) => KeySource::Url(url.clone()),
        _ => bail!("[bearer] needs either jwks-file or jwks-url"),
    };
    ensure!(!options.audiences.is_empty(), "[bearer] needs at least one audience");
    Ok(BearerConfig {
        issuer: options.issuer.clone(),
        audiences: options.audiences.clone(),
        keys,
        roles: options.roles.clone(),
        allow_http: options.allow_http,
    })
}

fn accounts(options: &ServeOptions) -> anyhow::Result<Vec<AccountConfig>> {
    match (&options.accounts_file, &options.accounts_text) {
        (Some(path), _) => read_accounts(path),
        (None, Some(Secret(text))) => parse_accounts(text),
        (None, None) => parse_accounts(&format!("{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}")),
    }
}

/// The accounts of a file.
pub(crate) fn read_accounts(path: &Path) -> anyhow::Result<Vec<AccountConfig>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the accounts file {}", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    parse_accounts(&lines.collect::<Vec<_>>().join(";"))
        .with_context(|| format!("the accounts file {} is not valid", path.display()))
}

/// `name:key1[:key2];name:key1...`, the form of `AZURITE_ACCOUNTS`. No error ever shows a key.
fn parse_accounts(text: &str) -> anyhow::Result<Vec<AccountConfig>> {
    let mut accounts: Vec<AccountConfig> = Vec::new();
    for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let mut parts = entry.split(':');
        let name = parts.next().unwrap_or_default();
        ensure!(
            (1..=63).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
            "an account needs a name of lower-case letters and digits before its key"
        );
        ensure!(
            accounts.iter().all(|account| account.name != name),
            "the account {name} is given twice"
        );
        let keys = parts
            .map(AccountKey::from_base64)
            .collect::<Result<Vec<_>, _>>()
            .with_context(|| format!("a key of the account {name} is not base64"))?;
        ensure!((1..=2).contains(&keys.len()), "the account {name} needs one or two keys");
        accounts.push(AccountConfig { name: name.to_owned(), keys });
    }
    ensure!(!accounts.is_empty(), "no accounts are given");
    Ok(accounts)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        serve: ServeOptions,
    }

    fn parse(arguments: &[&str]) -> ServeOptions {
        let command_line = std::iter::once("tavola").chain(arguments.iter().copied());
        Cli::try_parse_from(command_line).unwrap_or_else(|error| panic!("{error}")).serve
    }

    #[test]
    fn defaults_are_those_of_the_documents() {
        let config = resolve(&parse(&[])).unwrap();
        let addresses: Vec<_> =
            config.services.iter().map(|service| service.address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1:10002", "127.0.0.1:10001"]);
        assert!(config.services.iter().all(|service| !service.is_optional));
        assert_eq!(config.admin, None);
        assert_eq!(config.accounts[0].name, "devstoreaccount1");
        assert!(
            matches!(config.storage, Storage::Folder { path, .. } if path.ends_with("tavola-data"))
        );
    }

    #[test]
    fn every_flag_of_azurite_is_accepted() {
        let options = parse(&[
            "-l",
            "dir",
            "-d",
            "debug.log",
            "-s",
            "-L",
            "--skipApiVersionCheck",
            "--disableProductStyleUrl",
            "--disableTelemetry",
            "--oauth",
            "basic",
            "--pwd",
            "x",
            "--inMemoryPersistence",
            "--extentMemoryLimit",
            "100",
            "--blobHost",
            "0.0.0.0",
            "--blobPort",
            "0",
            "--blobKeepAliveTimeout",
            "5",
            "--queueHost",
            "0.0.0.0",
            "--queuePort",
            "0",
            "--queueKeepAliveTimeout",
            "5",
            "--tableHost",
            "0.0.0.0",
            "--tablePort",
            "0",
            "--tableKeepAliveTimeout",
            "5",
        ]);
        let config = resolve(&options).unwrap();
        for service in &config.services {
            assert_eq!(service.address.to_string(), "0.0.0.0:0");
            assert_eq!(service.keep_alive, Duration::from_secs(5));
            assert!(!service.is_optional);
        }
        assert!(config.loose && config.path_style_only);
        assert!(matches!(config.storage, Storage::Memory));
        assert_eq!(options.azurite.warnings().len(), 6);
    }

    #[test]
    fn file_descriptors_are_shared_out() {
        for (files_max, connections, tables) in
            [(u64::MAX, 20_000, 900), (1024, 544, 261), (128, 68, 13), (64, 24, 8), (10, 1, 8)]
        {
            let mut config = resolve(&parse(&[])).unwrap();
            fit_files(&mut config, files_max);
            assert_eq!(config.limits.connections_max, connections);
            let Storage::Folder { cached_files_max, .. } = config.storage else { panic!() };
            assert_eq!(cached_files_max, tables);
        }
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let file: ServeOptions = toml::from_str("port = 1\nhost = \"127.0.0.2\"\n").unwrap();
        let config = resolve(&overlay(parse(&["--port", "2"]), file)).unwrap();
        assert_eq!(table(&config).address.to_string(), "127.0.0.2:2");
    }

    fn table(config: &Config) -> &ServiceConfig {
        config.services.iter().find(|service| service.service == Service::Table).unwrap()
    }

    /// Whoever knows of tables alone has never said what queues may do.
    #[test]
    fn a_port_that_is_given_makes_the_other_services_optional() {
        for (arguments, expected) in [
            (&["--tablePort", "0"][..], &[(Service::Table, false), (Service::Queue, true)][..]),
            (&["--port", "0"], &[(Service::Table, false), (Service::Queue, true)]),
            (&["--queuePort", "0"], &[(Service::Table, true), (Service::Queue, false)]),
            (
                &["--tablePort", "0", "--services", "table,queue"],
                &[(Service::Table, false), (Service::Queue, false)],
            ),
            (&["--services", "queue"], &[(Service::Queue, false)]),
            (&["--tableHost", "0.0.0.0"], &[(Service::Table, false), (Service::Queue, false)]),
        ] {
            let config = resolve(&parse(arguments)).unwrap();
            let services: Vec<_> =
                config.services.iter().map(|each| (each.service, each.is_optional)).collect();
            assert_eq!(services, expected, "{arguments:?}");
        }
    }

    #[test]
    fn hosts_are_those_of_all_services_or_of_one() {
        let hosts = |arguments: &[&str]| {
            let config = resolve(&parse(arguments)).unwrap();
            config.services.iter().map(|each| each.address.ip().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(hosts(&["--host", "0.0.0.0"]), ["0.0.0.0", "0.0.0.0"]);
        assert_eq!(hosts(&["--tableHost", "0.0.0.0"]), ["0.0.0.0", "127.0.0.1"]);
        let both = ["--host", "0.0.0.0", "--queueHost", "127.0.0.2"];
        assert_eq!(hosts(&both), ["0.0.0.0", "127.0.0.2"]);
    }

    #[test]
    fn a_service_that_is_not_there_is_told() {
        for services in ["blob", "table,blob", "tables", ""] {
            let error = resolve(&parse(&["--services", services])).unwrap_err();
            assert!(format!("{error:#}").contains("table, queue"), "{error:#}");
        }
    }

    #[test]
    fn unknown_keys_of_the_file_are_refused() {
        assert!(toml::from_str::<ServeOptions>("prot = 1").is_err());
    }

    #[test]
    fn an_invalid_file_is_not_quoted() {
        for (text, reason) in [
            ("port = 1\naccounts = \"a:c2VjcmV0\"\n", "line 2: unknown field `accounts`"),
            ("port = \"c2VjcmV0\"\n", "line 1: a value has the wrong type"),
            ("\n\naccounts-file = \"c2VjcmV0\nport = 1", "line 3: "),
        ] {
            let error = toml::from_str::<ServeOptions>(text).unwrap_err();
            let told = format!("{:#}", invalid(Path::new("tavola.toml"), text, &error));
            assert!(told.contains(reason), "{told}");
            assert!(!told.contains("c2VjcmV0"), "{told}");
        }
    }

    #[test]
    fn keys_of_the_environment_are_not_printed() {
        let options = ServeOptions { accounts_text: Some(Secret("a:a2V5".into())), ..parse(&[]) };
        assert!(!format!("{options:?}").contains("a2V5"));
    }

    #[test]
    fn accounts_are_read_in_azurites_form() {
        let accounts = parse_accounts("acc1:a2V5MQ==:a2V5Mg==;acc2:a2V5MQ==").unwrap();
        assert_eq!(accounts.len(), 2);
        assert_eq!((accounts[0].name.as_str(), accounts[0].keys.len()), ("acc1", 2));
        for wrong in ["", "acc1", "acc1:***", "Acc:a2V5", "a:a2V5;a:a2V5", "a:a2V5:a2V5:a2V5"] {
            let error = parse_accounts(wrong).unwrap_err();
            assert!(!format!("{error:#}").contains("a2V5"), "{error:#}");
        }
    }
}
