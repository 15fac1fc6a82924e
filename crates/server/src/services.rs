//! What every request works with: the engine, the accounts, the catalogue, the clock and the counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tavola_engine::AnyEngine;
use tavola_wire::uri::AddressRules;

use crate::auth::accounts::Accounts;
use crate::auth::bearer::BearerVerifier;
use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::config::{AccountConfig, Limits};
use crate::error::Result;
use crate::ids::IdSource;
use crate::message_memory::MessageMemory;
use crate::metrics::Metrics;
use crate::solitude::Solitude;

#[derive(Debug)]
pub struct Services {
    pub engine: AnyEngine,
    pub accounts: Accounts,
    pub bearer: Option<BearerVerifier>,
    pub catalogue: Arc<Catalogue>,
    pub clock: Clock,
    pub ids: IdSource,
    pub metrics: Metrics,
    pub message_memory: Arc<MessageMemory>,
    pub solitude: Solitude,
    pub settings: Settings,
    stopping: AtomicBool,
}

/// What of the configuration the operations ask for.
#[derive(Clone, Debug)]
pub struct Settings {
    pub limits: Limits,
    pub loose: bool,
    pub address_rules: AddressRules,
    pub slow_query: Duration,
}

impl Services {
    /// Opens the accounts in the engine: each gets its id, or finds it again.
    pub async fn open(
        engine: AnyEngine,
        accounts: Vec<AccountConfig>,
        bearer: Option<BearerVerifier>,
        settings: Settings,
    ) -> Result<Arc<Self>> {
        let accounts = Accounts::open(&engine, accounts).await?;
        let message_memory = Arc::new(MessageMemory::new(settings.limits.message_bytes_max));
        let mut metrics = Metrics::new(&message_memory);
        metrics.register(|registry| crate::engine_metrics::register(registry, &engine));
        Ok(Arc::new(Self {
            catalogue: Arc::new(Catalogue::new(engine.clone())),
            engine,
            accounts,
            bearer,
            clock: Clock::default(),
            ids: IdSource::new(),
            metrics,
            message_memory,
            solitude: Solitude::default(),
            settings,
            stopping: AtomicBool::new(false),
        }))
    }

    /// Whether requests are taken: not while stopping, and not with a failed engine.
    pub fn is_ready(&self) -> bool {
        !self.stopping.load(Ordering::Relaxed)
    }

    pub fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
