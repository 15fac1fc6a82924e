//! Starting and stopping the whole service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tavola_engine::{AnyEngine, EmbeddedEngine, EmbeddedOptions, MemoryEngine, OpenError, Status};
use tavola_wire::Service;
use tavola_wire::uri::AddressRules;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::auth::bearer::{BearerError, BearerVerifier};
use crate::background::Background;
use crate::background::index_builder::IndexBuilder;
use crate::background::sweeper::Sweeper;
use crate::background::workload_merge::WorkloadMerge;
use crate::config::{Config, ServiceConfig, Storage};
use crate::error::storage_failure;
use crate::listener::Server;
use crate::net::tls::{self, TlsError};
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
    #[error("cannot check bearer tokens")]
    Bearer(#[from] BearerError),
}

/// A service that is listening.
#[derive(Debug)]
pub struct RunningServer {
    service_addresses: Vec<(Service, SocketAddr)>,
    admin_address: Option<SocketAddr>,
    state: Arc<ServerState>,
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
    let acceptor = config.tls.as_ref().map(tls::acceptor).transpose()?;
    let bearer = match config.bearer {
        Some(bearer) => Some(BearerVerifier::new(bearer).await?),
        None => None,
    };
    let engine = match config.storage {
        Storage::Memory => AnyEngine::Memory(MemoryEngine::new()),
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
            engine
        }
    };
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
    let operations = services::operations();
    let state = ServerState::open(engine, features, config.accounts, bearer, settings, &operations)
        .await
        .map_err(StartError::Accounts)?;
    services::prepare(&state).await.map_err(StartError::Accounts)?;

    let started = state.clock.now();
    let server =
        Server::bind(state.clone(), &config.services, config.admin, acceptor, config.limits)
            .map_err(|(address, source)| StartError::Listen { address, source })?;
    let (stop, stopped) = watch::channel(false);
    let mut background = Background::new(stopped.clone());
    let (clock, drop_signal) = (state.clock.clone(), state.drop_signal.clone());
    background.start(Sweeper::new(state.engine.clone(), clock.clone(), drop_signal, started));
    background.start(IndexBuilder::new(state.engine.clone(), state.catalogue.clone(), clock));
    background.start(WorkloadMerge::new(state.workload.clone()));
    Ok(RunningServer {
        service_addresses: server.service_addresses(),
        admin_address: server.admin_address(),
        server: tokio::spawn(server.run(stopped)),
        background,
        state,
        stop,
    })
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

    /// Stops in order: no new connections, what was accepted is answered, then the engine is closed.
    pub async fn stop(mut self) {
        self.state.set_stopping();
        let _ = self.stop.send(true);
        let _ = self.server.await;
        let _ = tokio::time::timeout(STEP_GRACE, self.background.ended()).await;
        let engine = self.state.engine.clone();
        let _ = tokio::task::spawn_blocking(move || engine.close()).await;
        // A step that took longer finds the engine closed, and the next start does it again.
        self.background.ended().await;
    }
}
