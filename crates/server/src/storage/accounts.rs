//! The rows of accounts: the id of each, and the properties of its services.

use bytes::Bytes;
use tavola_engine::{AnyEngine, Decision, Engine, Reader, Transition, WriteSet};
use tavola_wire::Service;
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};

use super::layout::{AccountId, Key, account, properties};
use super::{Error, Result, next_id};

/// The id of an account; one that has none yet gets the next.
pub(crate) async fn open(engine: &AnyEngine, name: &str) -> Result<AccountId> {
    let keys = [Key::Sequence.encode(), Key::Account { name }.encode()];
    engine.transact(OpenAccount { keys }).await?
}

/// The stored properties of a service, or those of a new account.
pub(crate) async fn properties(
    engine: &AnyEngine,
    account: AccountId,
    service: Service,
) -> Result<ServiceProperties> {
    let stored = engine.get(&Key::Properties { account, service }.encode()).await?;
    current_properties(stored.as_deref())
}

/// Makes a change to the properties as they are stored, and answers what they are then.
pub(crate) async fn update_properties(
    engine: &AnyEngine,
    account: AccountId,
    service: Service,
    update: ServicePropertiesUpdate,
) -> Result<ServiceProperties> {
    let keys = [Key::Properties { account, service }.encode()];
    engine.transact(UpdateProperties { keys, update }).await?
}

fn current_properties(stored: Option<&[u8]>) -> Result<ServiceProperties> {
    let Some(stored) = stored else { return Ok(ServiceProperties::default()) };
    let corrupt = || Error::Corrupt("the service properties of an account".into());
    properties::decode(stored).ok_or_else(corrupt)
}

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
            let corrupt = || Error::Corrupt("an account row".into());
            return Decision::Abort(account::decode(stored).ok_or_else(corrupt));
        }
        let (id, next) = match next_id(values[0].as_deref()) {
            Ok(allocated) => allocated,
            Err(error) => return Decision::Abort(Err(error)),
        };
        writes.put(self.keys[0].clone(), next);
        writes.put(self.keys[1].clone(), account::encode(AccountId(id)));
        Decision::Commit(Ok(AccountId(id)))
    }
}

struct UpdateProperties {
    keys: [Bytes; 1],
    update: ServicePropertiesUpdate,
}

impl Transition for UpdateProperties {
    type Verdict = Result<ServiceProperties>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Self::Verdict> {
        match current_properties(values[0].as_deref()) {
            Ok(current) => {
                let changed = self.update.clone().apply(&current);
                writes.put(self.keys[0].clone(), properties::encode(&changed));
                Decision::Commit(Ok(changed))
            }
            Err(error) => Decision::Abort(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tavola_engine::MemoryEngine;
    use tavola_wire::xml::service_properties::{Logging, Metrics};

    use super::*;

    #[tokio::test]
    async fn an_account_keeps_its_id() {
        let engine = AnyEngine::Memory(MemoryEngine::new());
        assert_eq!(open(&engine, "first").await.unwrap(), AccountId(1));
        assert_eq!(open(&engine, "second").await.unwrap(), AccountId(2));
        assert_eq!(open(&engine, "first").await.unwrap(), AccountId(1));
    }

    /// Each change is made to what is stored, whatever the one who makes it has seen.
    #[tokio::test]
    async fn changes_of_properties_add_up_and_services_have_their_own() {
        let engine = AnyEngine::Memory(MemoryEngine::new());
        let account = open(&engine, "account").await.unwrap();
        let logging = Logging { read: true, ..Logging::default() };
        let minutes = Metrics { include_apis: Some(false), ..Metrics::default() };
        let updates = [
            ServicePropertiesUpdate { logging: Some(logging.clone()), ..Default::default() },
            ServicePropertiesUpdate { minute_metrics: Some(minutes.clone()), ..Default::default() },
        ];
        let mut answered = ServiceProperties::default();
        for update in updates {
            answered = update_properties(&engine, account, Service::Table, update).await.unwrap();
        }
        let stored = properties(&engine, account, Service::Table).await.unwrap();
        assert_eq!(stored, answered);
        assert_eq!((stored.logging, stored.minute_metrics), (logging, minutes));
        let others = properties(&engine, account, Service::Queue).await.unwrap();
        assert_eq!(others, ServiceProperties::default());
    }
}
