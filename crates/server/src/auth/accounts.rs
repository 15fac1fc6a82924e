//! The accounts that are served, their keys and the properties of their services.

use std::collections::BTreeMap;
use std::sync::Arc;

use tavola_engine::AnyEngine;
use tavola_wire::Service;
use tavola_wire::auth::AccountKey;
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};

use super::sas_cache::SasCache;
use super::service_settings::ServiceSettings;
use crate::config::AccountConfig;
use crate::storage;
use crate::storage::accounts;
use crate::storage::detached::detached;
use crate::storage::layout::AccountId;

#[derive(Debug)]
pub(crate) struct Accounts {
    /// Few: comparing them takes less than hashing a name.
    by_name: BTreeMap<String, Arc<Account>>,
}

#[derive(Debug)]
pub(crate) struct Account {
    pub id: AccountId,
    pub name: String,
    pub keys: Vec<AccountKey>,
    pub tokens: SasCache,
    table: ServiceSettings,
    queue: ServiceSettings,
    blob: ServiceSettings,
}

impl Accounts {
    /// Opens the accounts in the engine: each gets its id, or finds it again.
    pub(crate) async fn open(
        engine: &AnyEngine,
        configured: Vec<AccountConfig>,
    ) -> storage::Result<Self> {
        let mut by_name = BTreeMap::new();
        for AccountConfig { name, keys } in configured {
            let id = accounts::open(engine, &name).await?;
            let account = Account {
                id,
                name: name.clone(),
                keys,
                tokens: SasCache::default(),
                table: ServiceSettings::open(engine, id, Service::Table).await?,
                queue: ServiceSettings::open(engine, id, Service::Queue).await?,
                blob: ServiceSettings::open(engine, id, Service::Blob).await?,
            };
            by_name.insert(name, Arc::new(account));
        }
        Ok(Self { by_name })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.by_name.values()
    }

    /// The account of that name, if it is served.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Account>> {
        self.by_name.get(name)
    }
}

impl Account {
    pub(crate) fn properties(&self, service: Service) -> Arc<ServiceProperties> {
        self.settings(service).properties()
    }

    /// Asked by every request, and nearly always false.
    pub(crate) fn has_cors_rules(&self, service: Service) -> bool {
        self.settings(service).has_cors_rules()
    }

    /// Changes the properties of a service; they count from the next request on.
    pub(crate) async fn update_properties(
        self: &Arc<Self>,
        engine: &AnyEngine,
        service: Service,
        update: ServicePropertiesUpdate,
    ) -> storage::Result<()> {
        let (account, engine) = (Arc::clone(self), engine.clone());
        detached(async move {
            account.settings(service).update(&engine, account.id, service, update).await
        })
        .await
    }

    fn settings(&self, service: Service) -> &ServiceSettings {
        match service {
            Service::Table => &self.table,
            Service::Queue => &self.queue,
            Service::Blob => &self.blob,
        }
    }
}
