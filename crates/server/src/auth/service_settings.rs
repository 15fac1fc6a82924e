//! The properties of one service of an account, in memory as every request asks for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tavola_engine::AnyEngine;
use tavola_wire::Service;
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};

use crate::storage::Result;
use crate::storage::accounts;
use crate::storage::layout::AccountId;

#[derive(Debug, Default)]
pub(super) struct ServiceSettings {
    properties: RwLock<Arc<ServiceProperties>>,
    has_cors_rules: AtomicBool,
    /// Locked during a change, so that the last one to be stored is the last one to be seen.
    changing: tokio::sync::Mutex<()>,
}

impl ServiceSettings {
    pub(super) async fn open(
        engine: &AnyEngine,
        account: AccountId,
        service: Service,
    ) -> Result<Self> {
        let settings = Self::default();
        settings.set(accounts::properties(engine, account, service).await?);
        Ok(settings)
    }

    pub(super) fn properties(&self) -> Arc<ServiceProperties> {
        self.properties.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn has_cors_rules(&self) -> bool {
        self.has_cors_rules.load(Ordering::Acquire)
    }

    pub(super) async fn update(
        &self,
        engine: &AnyEngine,
        account: AccountId,
        service: Service,
        update: ServicePropertiesUpdate,
    ) -> Result<()> {
        let _changing = self.changing.lock().await;
        self.set(accounts::update_properties(engine, account, service, update).await?);
        Ok(())
    }

    fn set(&self, properties: ServiceProperties) {
        let has_cors_rules = !properties.cors.is_empty();
        *self.properties.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(properties);
        self.has_cors_rules.store(has_cors_rules, Ordering::Release);
    }
}
