//! What every request works with: the engine, the accounts, the catalogue, the clock and the counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tavola_engine::AnyEngine;
use tavola_wire::Service;
use tavola_wire::uri::AddressRules;
use tokio::sync::Notify;

use crate::auth::Authenticator;
use crate::auth::accounts::Accounts;
use crate::auth::bearer::BearerVerifier;
use crate::clock::Clock;
use crate::config::{AccountConfig, Limits};
use crate::error::{Result, storage_failure};
use crate::metrics::Metrics;
use crate::net::memory_budget::MemoryBudget;
use crate::operations::OperationSpec;
use crate::request::ids::IdSource;
use crate::storage::catalogue::{Catalogue, Table};
use crate::storage::features::{Feature, Features};
use crate::storage::index::WideRanges;
use crate::workload::Workload;

#[derive(Debug)]
pub(crate) struct ServerState {
    pub engine: AnyEngine,
    /// What is in use that not every version of this server knows.
    #[allow(dead_code, reason = "queues are the first to use it")]
    pub features: Features,
    pub auth: Authenticator,
    pub catalogue: Arc<Catalogue<Table>>,
    /// Told of everything that is dropped.
    pub drop_signal: Arc<Notify>,
    pub clock: Arc<Clock>,
    /// Index ranges that queries gave up.
    pub wide_ranges: WideRanges,
    pub ids: IdSource,
    pub metrics: Metrics,
    pub workload: Arc<Workload>,
    pub memory_budget: Arc<MemoryBudget>,
    pub settings: Settings,
    stopping: AtomicBool,
}

/// What of the configuration the operations ask for.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub limits: Limits,
    pub loose: bool,
    pub address_rules: AddressRules,
    pub slow_query: Duration,
}

impl ServerState {
    /// Opens the accounts in the engine: each gets its id, or finds it again.
    pub(crate) async fn open(
        engine: AnyEngine,
        features: Features,
        accounts: Vec<AccountConfig>,
        bearer: Option<BearerVerifier>,
        settings: Settings,
        operations: &[(Service, &'static [OperationSpec])],
    ) -> Result<Arc<Self>> {
        let accounts = Accounts::open(&engine, accounts).await.map_err(storage_failure)?;
        let drop_signal = Arc::<Notify>::default();
        let memory_budget = Arc::new(MemoryBudget::new(settings.limits.message_bytes_max));
        let mut metrics = Metrics::new(operations, &memory_budget);
        metrics.register(|registry| crate::metrics::engine::register(registry, &engine));
        let catalogue = Arc::new(Catalogue::new(engine.clone(), drop_signal.clone()));
        if features.is_in_use(Feature::Index) {
            catalogue.load_indexes().await.map_err(storage_failure)?;
        }
        let clock = Arc::new(Clock::default());
        let auth = Authenticator { accounts, bearer, clock: clock.clone() };
        Ok(Arc::new(Self {
            catalogue,
            drop_signal,
            engine,
            features,
            auth,
            clock,
            wide_ranges: WideRanges::default(),
            ids: IdSource::new(),
            metrics,
            workload: Arc::default(),
            memory_budget,
            settings,
            stopping: AtomicBool::new(false),
        }))
    }

    /// Whether requests are taken: not while stopping, and not with a failed engine.
    pub(crate) fn is_ready(&self) -> bool {
        !self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
