//! The accounts that are served, their keys and their service properties.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::{AnyEngine, Decision, Engine, Reader, Transition, WriteSet};
use tavola_wire::ErrorCode;
use tavola_wire::auth::AccountKey;
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};

use super::sas_cache::SasCache;
use crate::config::AccountConfig;
use crate::error::{Result, corrupt, engine_error};
use crate::storage::catalogue::next_id;
use crate::storage::detached::detached;
use crate::storage::layout::{self, AccountId};

/// The version byte of stored service properties; an XML document follows.
const PROPERTIES_VERSION: u8 = 1;

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
    properties: RwLock<Arc<ServiceProperties>>,
    /// What every request asks of the properties, and nearly always finds false.
    has_cors_rules: AtomicBool,
    /// Held while the properties are changed: each change is made to the one before it.
    changing: tokio::sync::Mutex<()>,
}

impl Accounts {
    pub(crate) async fn open(engine: &AnyEngine, configured: Vec<AccountConfig>) -> Result<Self> {
        let mut by_name = BTreeMap::new();
        for AccountConfig { name, keys } in configured {
            let id = account_id(engine, &name).await?;
            let account = Account {
                id,
                name: name.clone(),
                keys,
                tokens: SasCache::default(),
                properties: RwLock::default(),
                has_cors_rules: AtomicBool::default(),
                changing: tokio::sync::Mutex::default(),
            };
            account.set_properties(load_properties(engine, id).await?);
            by_name.insert(name, Arc::new(account));
        }
        Ok(Self { by_name })
    }

    /// The account of that name.
    ///
    /// # Errors
    /// 404 `ResourceNotFound`, as Azurite answers; the live service has no name to resolve then.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Account>> {
        self.by_name.get(name).ok_or_else(|| ErrorCode::ResourceNotFound.into())
    }
}

impl Account {
    pub(crate) fn properties(&self) -> Arc<ServiceProperties> {
        self.properties.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_cors_rules(&self) -> bool {
        self.has_cors_rules.load(Ordering::Acquire)
    }

    fn set_properties(&self, properties: ServiceProperties) {
        let has_cors_rules = !properties.cors.is_empty();
        *self.properties.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(properties);
        self.has_cors_rules.store(has_cors_rules, Ordering::Release);
    }

    /// Changes the service properties; they count from the next request on.
    pub(crate) async fn update_properties(
        self: &Arc<Self>,
        engine: &AnyEngine,
        update: ServicePropertiesUpdate,
    ) -> Result<()> {
        let (account, engine) = (Arc::clone(self), engine.clone());
        detached(async move {
            let _changing = account.changing.lock().await;
            let properties = update.apply(&account.properties());
            account.store_properties(&engine, properties).await
        })
        .await
    }

    async fn store_properties(
        &self,
        engine: &AnyEngine,
        properties: ServiceProperties,
    ) -> Result<()> {
        let document = properties.to_xml();
        let mut value = BytesMut::with_capacity(1 + document.len());
        value.put_u8(PROPERTIES_VERSION);
        value.put_slice(document.as_bytes());
        let keys = [layout::properties_key(self.id)];
        engine.transact(Put { keys, value: value.freeze() }).await.map_err(engine_error)?;
        self.set_properties(properties);
        Ok(())
    }
}

async fn load_properties(engine: &AnyEngine, id: AccountId) -> Result<ServiceProperties> {
    let stored = engine.get(&layout::properties_key(id)).await.map_err(engine_error)?;
    stored.map_or_else(|| Ok(ServiceProperties::default()), |stored| decode_properties(&stored))
}

/// The stored form of service properties.
pub(crate) fn decode_properties(stored: &[u8]) -> Result<ServiceProperties> {
    match stored.split_first() {
        Some((&PROPERTIES_VERSION, document)) => ServicePropertiesUpdate::parse(document)
            .map(|update| update.apply(&ServiceProperties::default()))
            .map_err(|_| corrupt("the service properties of an account")),
        _ => Err(corrupt("the service properties of an account")),
    }
}

async fn account_id(engine: &AnyEngine, name: &str) -> Result<AccountId> {
    let keys = [layout::sequence_key(), layout::account_key(name)];
    engine.transact(OpenAccount { keys }).await.map_err(engine_error)?
}

/// Finds the id of an account, or gives it the next one.
struct OpenAccount {
    keys: [Bytes; 2],
}

impl Transition for OpenAccount {
    type Verdict = Result<AccountId>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Self::Verdict> {
        if let Some(stored) = &values[1] {
            let id = layout::decode_id(stored).map(AccountId);
            return Decision::Abort(id.ok_or_else(|| corrupt("an account row")));
        }
        let Some(id) = next_id(values[0].as_deref()) else {
            return Decision::Abort(Err(corrupt("the id sequence")));
        };
        writes.put(self.keys[0].clone(), layout::encode_id(id + 1));
        writes.put(self.keys[1].clone(), layout::encode_id(id));
        Decision::Commit(Ok(AccountId(id)))
    }
}

struct Put {
    keys: [Bytes; 1],
    value: Bytes,
}

impl Transition for Put {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(&mut self, _: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        writes.put(self.keys[0].clone(), self.value.clone());
        Decision::Commit(())
    }
}
