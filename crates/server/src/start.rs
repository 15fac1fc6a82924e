//! Starting and stopping the whole service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tavola_engine::{AnyEngine, EmbeddedEngine, EmbeddedOptions, MemoryEngine, OpenError, Status};
use tavola_wire::uri::AddressRules;
use tavola_wire::{Service, Ticks};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::auth::accounts::ReloadedAccounts;
use crate::auth::bearer::{BearerError, BearerVerifier};
use crate::background::Background;
use crate::background::index_builder::IndexBuilder;
use crate::background::queue_sweeper::QueueSweeper;
use crate::background::sweeper::Sweeper;
use crate::background::workload_merge::WorkloadMerge;
use crate::config::{AccountConfig, Config, ServiceConfig, Storage};
use crate::error::storage_failure;
use crate::listener::Server;
use crate::logs::access::{AccessLog, AccessLogError};
use crate::net::tls::{ServerCertificate, TlsError};
use crate::services::{self, SERVICES};
use crate::state::{ServerState, Settings};
use crate::storage;
use crate::storage::features::Features;

/// How long a stop waits for a step of background work. The sweeping of a large table may take minutes.
const STEP_GRACE: Duration = Duration::from_secs(2);

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(
        "the data uses `{0}`, which this version does not know; use the version that wrote it, or a newer one"
    )]
    UnknownFeature(String),
    #[error("cannot open the accounts: {0}")]
    Accounts(tavola_wire::StorageError),
    #[error("there is no {} service in this server", .0.name())]
    NotServed(Service),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("cannot use the certificate")]
    Tls(#[from] TlsError),
    #[error(transparent)]
    AccessLog(#[from] AccessLogError),
    #[error("cannot check bearer tokens")]
    Bearer(#[from] BearerError),
}

/// A service that is listening.
#[derive(Debug)]
pub struct RunningServer {
    service_addresses: Vec<(Service, SocketAddr)>,
    admin_address: Option<SocketAddr>,
    state: Arc<ServerState>,
    certificate: Option<Arc<ServerCertificate>>,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
    background: Background,
}

/// Opens the data, binds the ports and begins to serve.
pub async fn start(config: Config) -> Result<RunningServer, StartError> {
    let is_unknown = |service: &&ServiceConfig| !SERVICES.contains(&service.service);
    if let Some(unknown) = config.services.iter().find(is_unknown) {
        return Err(StartError::NotServed(unknown.service));
    }
    let certificate = config.tls.map(ServerCertificate::load).transpose()?;
    let acceptor = certificate.as_ref().map(ServerCertificate::acceptor).transpose()?;
    let bearer = match config.bearer {
        Some(bearer) => Some(BearerVerifier::new(bearer).await?),
        None => None,
    };
    let access_log = config.access_log.as_ref().map(AccessLog::open).transpose()?;
    let engine = open_engine(config.storage)?;
    // ORDER: nothing is written to a store that is not known whole.
    let features = Features::open(&engine).await.map_err(|error| match error {
        storage::Error::UnknownFeature(name) => StartError::UnknownFeature(name),
        error => StartError::Accounts(storage_failure(error)),
    })?;
    let settings = Settings {
        limits: config.limits.clone(),
        loose: config.loose,
        address_rules: AddressRules { disable_product_style_url: config.path_style_only },
        slow_query: config.slow_query,
    };
    let state = ServerState::open(
        engine,
        features,
        config.accounts,
        bearer,
        settings,
        access_log,
        &services::operations(),
    )
    .await
    .map_err(StartError::Accounts)?;
    services::prepare(&state).await.map_err(StartError::Accounts)?;

    let started = state.clock.now();
    let server =
        Server::bind(state.clone(), &config.services, config.admin, acceptor, config.limits)
            .map_err(|(address, source)| StartError::Listen { address, source })?;
    let (stop, stopped) = watch::channel(false);
    let background = start_background(&state, started, stopped.clone());
    Ok(RunningServer {
        service_addresses: server.service_addresses(),
        admin_address: server.admin_address(),
        server: tokio::spawn(server.run(stopped)),
        background,
        state,
        certificate,
        stop,
    })
}

fn open_engine(storage: Storage) -> Result<AnyEngine, OpenError> {
    match storage {
        Storage::Memory => Ok(AnyEngine::Memory(MemoryEngine::new())),
        Storage::Folder { path, cache_bytes, disk_reserve_bytes, cached_files_max } => {
            let options = EmbeddedOptions {
                cache_bytes,
                disk_reserve_bytes,
                cached_files_max,
                ..EmbeddedOptions::default()
            };
            let engine = EmbeddedEngine::open(path, options)?;
            #[cfg(feature = "test-hooks")]
            let engine = crate::test_hooks::any_engine(engine);
            #[cfg(not(feature = "test-hooks"))]
            let engine = AnyEngine::Embedded(engine);
            Ok(engine)
        }
    }
}

/// Starts what no request waits for. What was dropped before `started` is swept without delay.
fn start_background(
    state: &ServerState,
    started: Ticks,
    stopped: watch::Receiver<bool>,
) -> Background {
    let mut background = Background::new(stopped);
    let (clock, drop_signal) = (state.clock.clone(), state.drop_signal.clone());
    background.start(Sweeper::new(state.engine.clone(), clock.clone(), drop_signal, started));
    background.start(IndexBuilder::new(state.engine.clone(), state.catalogue.clone(), clock));
    background.start(WorkloadMerge::new(state.workload.clone()));
    background.start(QueueSweeper::new(state.queues.clone(), state.features.clone()));
    background
}

impl RunningServer {
    /// Where each service listens, also when port 0 was asked for.
    pub fn service_addresses(&self) -> &[(Service, SocketAddr)] {
        &self.service_addresses
    }

    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Resolves with the reason when the engine has failed: the process must stop, it never serves on.
    pub async fn failed(&self) -> String {
        self.state.engine.failed().await
    }

    /// Serves these accounts from the next request on, and no others. What accounts have stored stays.
    ///
    /// # Errors
    /// When a new account cannot be stored; nothing has changed then.
    pub async fn reload_accounts(
        &self,
        accounts: Vec<AccountConfig>,
    ) -> Result<ReloadedAccounts, StartError> {
        let ServerState { auth, engine, .. } = &*self.state;
        let reloaded = auth.accounts.reload(engine, accounts).await;
        reloaded.map_err(|error| StartError::Accounts(storage_failure(error)))
    }

    /// Reads certificate and key again, for connections to come. Does nothing without TLS.
    ///
    /// # Errors
    /// When they cannot be used; the old ones stay then.
    pub fn reload_certificate(&self) -> Result<(), TlsError> {
        self.certificate.as_ref().map_or(Ok(()), |certificate| certificate.reload())
    }

    /// Begins a new access log where the old one was renamed.
    pub fn reopen_logs(&self) {
        if let Some(log) = &self.state.access_log {
            log.reopen();
        }
    }

    /// Stops in order: no new connections, what was accepted is answered, then the engine is closed.
    pub async fn stop(mut self) {
        self.state.set_stopping();
        let _ = self.stop.send(true);
        let _ = self.server.await;
        let _ = tokio::time::timeout(STEP_GRACE, self.background.ended()).await;
        let _ = tokio::time::timeout(STEP_GRACE, self.state.catalogue.keep_statistics()).await;
        self.state.queues.close().await;
        let engine = self.state.engine.clone();
        let _ = tokio::task::spawn_blocking(move || engine.close()).await;
        // A step that took longer finds the engine closed, and the next start does it again.
        self.background.ended().await;
        let state = Arc::clone(&self.state);
        let flush = move || state.access_log.as_ref().map(AccessLog::flush);
        let _ = tokio::task::spawn_blocking(flush).await;
    }
}
