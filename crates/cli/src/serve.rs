//! `tavola serve`: start, say where, and run until told to stop.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use tavola_server::config::{
    AccountConfig, AccountKey, Config, DEVELOPMENT_KEY, ServiceConfig, Storage,
};
use tavola_server::{RunningServer, start};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;

use crate::options::{LogFormat, Secret, ServeOptions};
use crate::reload::Reloader;
use crate::{config, logging, private, reload};

/// What is assumed when the limit of open files cannot be asked for.
const USUAL_FILE_LIMIT: u64 = 1024;
/// How long those are served who wait for an answer when the engine fails: they are told that it did.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

pub(crate) fn run(mut options: ServeOptions) -> anyhow::Result<()> {
    // Not flags: a key on the command line is everyone's to read.
    options.accounts_text = ["TAVOLA_ACCOUNTS", "AZURITE_ACCOUNTS"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|text| !text.trim().is_empty()))
        .map(Secret);
    // The file may say another one, and may not be readable.
    if let Some(format) = options.log_format {
        logging::set_format(format);
    }
    let options = config::with_file(options)?;
    logging::set_format(options.log_format.unwrap_or_default());
    // ORDER: before the files are read, so that no change of them is missed.
    let reloader = Reloader::new(&options);
    let stop_timeout = config::stop_timeout(&options)?;
    let mut config = config::resolve(&options)?;
    logging::start(options.log_format.unwrap_or_default(), options.debug.as_deref())?;
    for warning in options.azurite.warnings() {
        tracing::warn!("{warning}");
    }
    for file in [&options.accounts_file, &options.key].into_iter().flatten() {
        private::warn_if_readable_by_others(file);
    }
    config::fit_files(&mut config, raise_file_limit());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let format = options.log_format.unwrap_or_default();
    runtime.block_on(serve(config, reloader, format, stop_timeout))
}

async fn serve(
    config: Config,
    mut reloader: Reloader,
    format: LogFormat,
    stop_timeout: Duration,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    warn_of_development_key(&config);
    let notice = Notice::of(&config);
    let server = start(config).await?;
    notice.print(&server, format).context("cannot write to standard output")?;
    let mut looks = tokio::time::interval(reload::LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => reloader.reload(&server).await,
            _ = looks.tick() => reloader.look(&server).await,
            reason = server.failed() => {
                // Nothing more is acknowledged: what was not committed must not look as if it were. An orderly stop
                // would wait for an engine that may never answer.
                tracing::error!(reason, "the storage engine has failed, stopping");
                tokio::time::sleep(LAST_ANSWERS).await;
                std::process::exit(1);
            }
        }
    }
    tracing::info!(timeout_seconds = stop_timeout.as_secs(), "stopping");
    tokio::select! {
        stopped = tokio::time::timeout(stop_timeout, server.stop()) => if stopped.is_err() {
            // A compaction may be running, which can be neither hurried nor interrupted. The journal has everything that
            // was acknowledged, and the next start reads it.
            tracing::warn!("not everything ended in time; nothing acknowledged is lost");
        },
        _ = terminate.recv() => tracing::warn!("told again to stop; nothing acknowledged is lost"),
        _ = interrupt.recv() => tracing::warn!("told again to stop; nothing acknowledged is lost"),
    }
    tracing::info!("stopped");
    // Not by the runtime, which would wait for what did not end in time.
    std::process::exit(0);
}

/// Under whatever name: this key is printed in every manual.
fn warn_of_development_key(config: &Config) {
    let is_beyond = |service: &&ServiceConfig| !service.address.ip().is_loopback();
    for ServiceConfig { service, address, .. } in config.services.iter().filter(is_beyond) {
        for account in config.accounts.iter().filter(|account| has_development_key(account)) {
            tracing::warn!(
                service = service.name(),
                %address,
                account = account.name,
                "the development key is served beyond this machine, and everyone knows it"
            );
        }
    }
}

fn has_development_key(account: &AccountConfig) -> bool {
    let development = AccountKey::from_base64(DEVELOPMENT_KEY).expect("a valid key");
    AccountKey::any_signed(&account.keys, "a text", &development.sign("a text"))
}

/// What is told at the start, gathered before the configuration is used up.
struct Notice {
    scheme: &'static str,
    /// Names, and the key to show.
    accounts: Vec<(String, &'static str)>,
    storage: String,
}

impl Notice {
    fn of(config: &Config) -> Self {
        Self {
            scheme: if config.tls.is_some() { "https" } else { "http" },
            accounts: config.accounts.iter().map(Self::account).collect(),
            storage: match &config.storage {
                Storage::Memory => "memory, gone when the service stops".to_owned(),
                Storage::Folder { path, .. } => path.display().to_string(),
            },
        }
    }

    fn account(account: &AccountConfig) -> (String, &'static str) {
        let key = if has_development_key(account) { DEVELOPMENT_KEY } else { "<key>" };
        (account.name.clone(), key)
    }

    /// The line that test tools wait for, and connection strings ready to paste. In a log for machines each line is an
    /// object like those of the log.
    fn print(&self, server: &RunningServer, format: LogFormat) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        for line in self.lines(server) {
            match format {
                LogFormat::Text => writeln!(stdout, "{line}")?,
                LogFormat::Json => write!(stdout, "{}", logging::json_line("INFO", &line))?,
            }
        }
        stdout.flush()
    }

    /// Only the well-known key is shown: others are secrets.
    fn lines(&self, server: &RunningServer) -> Vec<String> {
        let (scheme, services) = (self.scheme, server.service_addresses());
        let version = env!("CARGO_PKG_VERSION");
        let mut lines = vec![format!("Tavola {version} keeps its data in {}", self.storage)];
        for (account, key) in &self.accounts {
            let mut line = format!(
                "Connection string: DefaultEndpointsProtocol={scheme};AccountName={account};\
                 AccountKey={key};"
            );
            for (service, address) in services {
                line += &format!("{}Endpoint={scheme}://{address}/{account};", service.title());
            }
            lines.push(line);
        }
        if let Some(admin) = server.admin_address() {
            lines.push(format!("Health and metrics at http://{admin}/health, /ready and /metrics"));
        }
        // Tables last: whoever waits for that line finds everything ready.
        for (service, address) in services.iter().rev() {
            let service = service.title();
            lines.push(format!(
                "Tavola {service} service is successfully listening at {scheme}://{address}"
            ));
        }
        lines
    }
}

/// Every connection is a file descriptor; the usual soft limit of 1024 is too low for a server. Answers the limit.
fn raise_file_limit() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot raise the limit of open files");
        USUAL_FILE_LIMIT
    })
}
