//! `tavola serve`: start, say where, and run until told to stop.

use std::io::Write;

use anyhow::Context;
use tavola_server::config::{AccountConfig, AccountKey, Config, DEVELOPMENT_KEY, Storage};
use tavola_server::{RunningServer, start};
use tokio::signal::unix::{SignalKind, signal};

use crate::options::{Secret, ServeOptions};
use crate::{config, logging, private};

pub fn run(mut options: ServeOptions) -> anyhow::Result<()> {
    // Not flags: a key on the command line is everyone's to read.
    options.accounts_text = ["TAVOLA_ACCOUNTS", "AZURITE_ACCOUNTS"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|text| !text.trim().is_empty()))
        .map(Secret);
    let options = config::with_file(options)?;
    let mut config = config::resolve(&options)?;
    logging::start(options.log_format.unwrap_or_default(), options.debug.as_deref())?;
    for warning in options.azurite.warnings() {
        tracing::warn!("{warning}");
    }
    for file in [&options.accounts_file, &options.key].into_iter().flatten() {
        private::warn_if_readable_by_others(file);
    }
    let asked_for = options.connections_max.is_some();
    fit_to_file_limit(&mut config.limits.connections_max, raise_file_limit(), asked_for);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    warn_of_development_key(&config);
    let notice = Notice::of(&config);
    let server = start(config).await?;
    notice.print(&server).context("cannot write to standard output")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        reason = server.failed() => {
            // Nothing more is acknowledged: what was not committed must not look as if it were. An orderly stop
            // would wait for an engine that may never answer.
            tracing::error!(reason, "the storage engine has failed, stopping at once");
            std::process::exit(1);
        }
    }
    tracing::info!("stopping");
    server.stop().await;
    Ok(())
}

/// Whoever has this key, under whatever name: it is printed in every manual.
fn warn_of_development_key(config: &Config) {
    if config.listen.ip().is_loopback() {
        return;
    }
    for account in config.accounts.iter().filter(|account| has_development_key(account)) {
        tracing::warn!(
            address = %config.listen,
            account = account.name,
            "the development key is served beyond this machine, and everyone knows it"
        );
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

    /// The line that test tools wait for, and connection strings ready to paste. Only the well-known key is
    /// shown: others are secrets.
    fn print(&self, server: &RunningServer) -> std::io::Result<()> {
        let (scheme, address) = (self.scheme, server.table_address());
        let mut stdout = std::io::stdout().lock();
        writeln!(
            stdout,
            "Tavola {} keeps its data in {}",
            env!("CARGO_PKG_VERSION"),
            self.storage
        )?;
        for (account, key) in &self.accounts {
            writeln!(
                stdout,
                "Connection string: DefaultEndpointsProtocol={scheme};AccountName={account};\
                 AccountKey={key};TableEndpoint={scheme}://{address}/{account};"
            )?;
        }
        if let Some(admin) = server.admin_address() {
            writeln!(stdout, "Health and metrics at http://{admin}/health, /ready and /metrics")?;
        }
        writeln!(stdout, "Tavola Table service is successfully listening at {scheme}://{address}")?;
        stdout.flush()
    }
}

/// File descriptors that are kept from connections: the engine has up to 900 tables open, and its journals, the
/// log and the admin port want some too.
const FILES_RESERVED: u64 = 1024;

/// Every connection is a file descriptor; the usual soft limit of 1024 is too low for a server. Answers what the
/// limit is now.
fn raise_file_limit() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot raise the limit of open files");
        rlimit::getrlimit(rlimit::Resource::NOFILE).map_or(FILES_RESERVED, |(soft, _)| soft)
    })
}

/// Fewer connections rather than a store that cannot open its files.
fn fit_to_file_limit(connections_max: &mut usize, files_max: u64, is_asked_for: bool) {
    let reserved = FILES_RESERVED.min(files_max / 2);
    let fitting = usize::try_from(files_max - reserved).unwrap_or(usize::MAX);
    if fitting >= *connections_max {
        return;
    }
    if is_asked_for {
        tracing::warn!(
            asked_for = *connections_max,
            connections_max = fitting,
            files_max,
            "fewer connections than asked for: the limit of open files is too low"
        );
    } else {
        tracing::info!(
            connections_max = fitting,
            files_max,
            "the limit of open files bounds connections"
        );
    }
    *connections_max = fitting;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_the_store() {
        for (asked, files, allowed) in
            [(20_000, 1 << 20, 20_000), (20_000, 20_000, 18_976), (20_000, 1024, 512), (10, 64, 10)]
        {
            let mut connections_max = asked;
            fit_to_file_limit(&mut connections_max, files, false);
            assert_eq!(connections_max, allowed, "{files} files");
        }
    }
}
