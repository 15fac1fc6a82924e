//! What every request works with: the engine, the accounts, the catalogue, the clock and the counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tavola_engine::{AnyEngine, Fullness, Status};
use tavola_wire::Service;
use tavola_wire::uri::AddressRules;
use tokio::sync::Notify;

use crate::auth::Authenticator;
use crate::auth::accounts::Accounts;
use crate::auth::bearer::BearerVerifier;
use crate::clock::Clock;
use crate::clock::hybrid::SystemTime;
use crate::config::{AccountConfig, Limits};
use crate::error::{Result, storage_failure};
use crate::logs::access::AccessLog;
use crate::logs::refusals::RefusalLog;
use crate::metrics::Metrics;
use crate::net::memory_budget::MemoryBudget;
use crate::operations::OperationSpec;
use crate::request::ids::IdSource;
use crate::storage::catalogue::{Catalogue, Queue, Table};
use crate::storage::features::{Feature, Features};
use crate::storage::queues::Queues;
use crate::workload::Workload;

#[derive(Debug)]
pub(crate) struct ServerState {
    pub engine: AnyEngine,
    /// What is in use that not every version of this server knows.
    pub features: Arc<Features>,
    pub auth: Authenticator,
    pub catalogue: Arc<Catalogue<Table>>,
    pub queue_catalogue: Arc<Catalogue<Queue>>,
    pub queues: Arc<Queues>,
    /// Told of everything that is dropped.
    pub drop_signal: Arc<Notify>,
    pub clock: Arc<Clock>,
    pub ids: IdSource,
    pub metrics: Metrics,
    pub workload: Arc<Workload>,
    pub memory_budget: Arc<MemoryBudget>,
    pub refusal_log: RefusalLog,
    pub access_log: Option<AccessLog>,
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
        access_log: Option<AccessLog>,
        operations: &[(Service, &'static [OperationSpec])],
    ) -> Result<Arc<Self>> {
        let accounts = Accounts::open(&engine, accounts).await.map_err(storage_failure)?;
        let drop_signal = Arc::<Notify>::default();
        let memory_budget = Arc::new(MemoryBudget::new(settings.limits.message_bytes_max));
        let clock = Arc::new(Clock::default());
        let mut metrics = Metrics::new(operations, &memory_budget);
        metrics.register(|registry| crate::metrics::engine::register(registry, &engine));
        let dropped = access_log.as_ref().map(|log| log.dropped.clone()).unwrap_or_default();
        metrics.register(|registry| {
            registry.register("access_log_dropped", "Lines of the access log left out", dropped);
        });
        let started = clock.now().unix_seconds();
        metrics.register_process(started);
        let catalogue = Arc::new(Catalogue::new(engine.clone(), drop_signal.clone()));
        let builds = &catalogue.indexes().builds;
        metrics.register(|registry| crate::metrics::indexes::register_builds(registry, builds));
        if features.is_in_use(Feature::Index) {
            catalogue.load_indexes().await.map_err(storage_failure)?;
        }
        let queue_catalogue = Arc::new(Catalogue::new(engine.clone(), drop_signal.clone()));
        let time = Arc::new(SystemTime::new(clock.clone()));
        let queues = Queues::open(engine.clone(), queue_catalogue.clone(), time).await;
        let queues = Arc::new(queues.map_err(storage_failure)?);
        metrics.register(|registry| crate::metrics::queues::register(registry, &queues, &clock));
        let auth = Authenticator { accounts, bearer, clock: clock.clone() };
        Ok(Arc::new(Self {
            catalogue,
            queue_catalogue,
            queues,
            drop_signal,
            engine,
            features: Arc::new(features),
            auth,
            clock,
            ids: IdSource::new(),
            metrics,
            workload: Arc::default(),
            memory_budget,
            refusal_log: RefusalLog::new(),
            access_log,
            settings,
            stopping: AtomicBool::new(false),
        }))
    }

    /// Why requests, or writes among them, are not taken now; `None` if they are.
    pub(crate) fn obstacle(&self) -> Option<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some("the service is stopping".to_owned());
        }
        if let Some(failure) = self.engine.failure() {
            return Some(format!("the storage engine has failed: {failure}"));
        }
        let Fullness { takes_writes, free_bytes } = self.engine.fullness();
        let free =
            free_bytes.map_or(String::new(), |bytes| format!(", {} MB are free", bytes >> 20));
        let full = || format!("writes are refused for lack of room on the disk{free}");
        (!takes_writes).then(full)
    }

    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
