//! The accounts that are served, their keys and the properties of their services.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tavola_engine::AnyEngine;
use tavola_wire::Service;
use tavola_wire::auth::AccountKey;
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};

use super::sas_cache::SasCache;
use super::service_settings::ServiceSettings;
use crate::config::AccountConfig;
use crate::request::signed_query::KeysId;
use crate::storage;
use crate::storage::accounts;
use crate::storage::detached::detached;
use crate::storage::layout::AccountId;

#[derive(Debug)]
pub(crate) struct Accounts {
    /// Few: comparing them takes less than hashing a name. Replaced as a whole by a reload.
    by_name: RwLock<Arc<AccountMap>>,
    /// Locked by a reload, so that the last one to begin is the last one to count.
    reloading: tokio::sync::Mutex<()>,
}

type AccountMap = BTreeMap<String, Arc<Account>>;

#[derive(Debug)]
pub(crate) struct Account {
    pub id: AccountId,
    pub name: String,
    pub keys: Vec<AccountKey>,
    /// Another one whenever the keys are others: what was verified with the old ones is forgotten.
    pub keys_id: KeysId,
    pub tokens: SasCache,
    settings: Arc<AccountSettings>,
}

/// The properties of an account's services, which outlive its keys.
#[derive(Debug)]
struct AccountSettings {
    table: ServiceSettings,
    queue: ServiceSettings,
    blob: ServiceSettings,
}

/// What a reload of the accounts has changed: their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReloadedAccounts {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Those with other keys than before.
    pub changed: Vec<String>,
}

impl Accounts {
    /// Opens the accounts in the engine: each gets its id, or finds it again.
    pub(crate) async fn open(
        engine: &AnyEngine,
        configured: Vec<AccountConfig>,
    ) -> storage::Result<Self> {
        let mut by_name = BTreeMap::new();
        for account in configured {
            let opened = Account::open(engine, account).await?;
            by_name.insert(opened.name.clone(), Arc::new(opened));
        }
        Ok(Self {
            by_name: RwLock::new(Arc::new(by_name)),
            reloading: tokio::sync::Mutex::default(),
        })
    }

    /// Those that are served now.
    pub(crate) fn all(&self) -> Vec<Arc<Account>> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        by_name.values().cloned().collect()
    }

    /// The account of that name, if it is served.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Account>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Serves these accounts from the next request on, and no others. What an account stores stays whatever happens to
    /// it here. Requests that have begun come to their end with the keys that they came with.
    pub(crate) async fn reload(
        &self,
        engine: &AnyEngine,
        configured: Vec<AccountConfig>,
    ) -> storage::Result<ReloadedAccounts> {
        let _reloading = self.reloading.lock().await;
        let before = Arc::clone(&self.by_name.read().unwrap_or_else(PoisonError::into_inner));
        let (mut after, mut result) = (BTreeMap::new(), ReloadedAccounts::default());
        for account in configured {
            let name = account.name.clone();
            let served = match before.get(&name) {
                Some(known) if has_same_keys(&known.keys, &account.keys) => Arc::clone(known),
                Some(known) => {
                    result.changed.push(name.clone());
                    Arc::new(known.with_keys(account.keys))
                }
                None => {
                    result.added.push(name.clone());
                    Arc::new(Account::open(engine, account).await?)
                }
            };
            after.insert(name, served);
        }
        result.removed = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
        *self.by_name.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(after);
        Ok(result)
    }
}

/// Whether these are the same keys, in the same order. Keys are not compared otherwise, so that nobody does it lightly.
fn has_same_keys(one: &[AccountKey], other: &[AccountKey]) -> bool {
    let is_same = |(one, other): (&AccountKey, &AccountKey)| {
        AccountKey::any_signed(std::slice::from_ref(one), "same", &other.sign("same"))
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

impl Account {
    async fn open(
        engine: &AnyEngine,
        AccountConfig { name, keys }: AccountConfig,
    ) -> storage::Result<Self> {
        let id = accounts::open(engine, &name).await?;
        let settings = Arc::new(AccountSettings {
            table: ServiceSettings::open(engine, id, Service::Table).await?,
            queue: ServiceSettings::open(engine, id, Service::Queue).await?,
            blob: ServiceSettings::open(engine, id, Service::Blob).await?,
        });
        Ok(Self { id, name, keys, keys_id: next_keys_id(), tokens: SasCache::default(), settings })
    }

    fn with_keys(&self, keys: Vec<AccountKey>) -> Self {
        let (id, name, settings) = (self.id, self.name.clone(), Arc::clone(&self.settings));
        Self { id, name, keys, keys_id: next_keys_id(), tokens: SasCache::default(), settings }
    }

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
            Service::Table => &self.settings.table,
            Service::Queue => &self.settings.queue,
            Service::Blob => &self.settings.blob,
        }
    }
}

/// Unique in this process.
fn next_keys_id() -> KeysId {
    static LAST: AtomicU64 = AtomicU64::new(0);
    KeysId(LAST.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use tavola_engine::MemoryEngine;

    use super::*;

    fn account(name: &str, keys: &[&str]) -> AccountConfig {
        let keys = keys.iter().map(|key| AccountKey::from_bytes(key.as_bytes())).collect();
        AccountConfig { name: name.into(), keys }
    }

    #[tokio::test]
    async fn a_reload_adds_removes_and_changes_and_leaves_the_rest_alone() {
        let engine = AnyEngine::Memory(MemoryEngine::new());
        let before = ["a", "b", "c"].map(|name| account(name, &["old"])).into();
        let accounts = Accounts::open(&engine, before).await.unwrap();
        let of = |name: &str| accounts.find(name);
        let (a, b) = (of("a").unwrap(), of("b").unwrap());
        let after =
            vec![account("a", &["old"]), account("b", &["new", "old"]), account("d", &["old"])];
        let reloaded = accounts.reload(&engine, after).await.unwrap();
        let expected = ReloadedAccounts {
            added: vec!["d".into()],
            removed: vec!["c".into()],
            changed: vec!["b".into()],
        };
        assert_eq!(reloaded, expected);
        assert!(Arc::ptr_eq(&a, &of("a").unwrap()));
        let changed = of("b").unwrap();
        assert_eq!(changed.id, b.id, "its data is still its own");
        assert_ne!(changed.keys_id, b.keys_id, "what the old keys signed is forgotten");
        assert!(Arc::ptr_eq(&changed.settings, &b.settings));
        assert!(of("c").is_none() && of("d").is_some());
    }
}
