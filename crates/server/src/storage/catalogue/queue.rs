//! Queues in the catalogue.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use tavola_wire::Ticks;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::queue::QueueName;
use tavola_wire::queue::metadata::Metadata;
use tavola_wire::xml::acl;

use super::{Catalogue, Resource};
use crate::storage::layout::{AccountId, QueueRecord, StoreId};
use crate::storage::{Error, Result};

/// A queue as requests for its messages see it. Its metadata are read when they are asked for: they may be large.
#[derive(Debug)]
pub(crate) struct Queue {
    pub store: StoreId,
    /// Shared with requests whose signature refers to one.
    pub policies: Arc<[SignedIdentifier]>,
}

impl Resource for Queue {
    type Name<'a> = QueueName<'a>;
    type Record = QueueRecord;

    fn key_name<'a>(name: &'a QueueName<'_>) -> Cow<'a, str> {
        name.as_str().into()
    }

    fn from_record(record: QueueRecord) -> Result<Self> {
        match acl::parse_queue(&record.policies) {
            Ok(policies) => Ok(Self { store: record.store, policies: policies.into() }),
            Err(_) => Err(Error::Corrupt("the access policies of a queue".into())),
        }
    }
}

impl Catalogue<Queue> {
    /// Creates a queue and answers where its messages will be.
    ///
    /// # Errors
    /// [`Error::Exists`].
    pub(crate) async fn create_queue(
        self: &Arc<Self>,
        account: AccountId,
        name: &QueueName<'_>,
        metadata: Metadata,
        created: Ticks,
    ) -> Result<StoreId> {
        let record = move |id| {
            let (store, metadata) = (StoreId::from(id), metadata.clone());
            QueueRecord { store, created, metadata, policies: Bytes::new() }
        };
        self.create(account, name, record).await.map(StoreId::from)
    }

    /// Replaces the metadata of a queue.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn set_metadata(
        self: &Arc<Self>,
        account: AccountId,
        name: &QueueName<'_>,
        metadata: Metadata,
    ) -> Result<()> {
        self.update(account, name, move |record| record.metadata = metadata.clone()).await
    }

    /// Replaces the access policies of a queue.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn set_policies(
        self: &Arc<Self>,
        account: AccountId,
        name: &QueueName<'_>,
        policies: &[SignedIdentifier],
    ) -> Result<()> {
        let policies =
            if policies.is_empty() { Bytes::new() } else { acl::write_queue(policies).into() };
        self.update(account, name, move |record| record.policies = policies.clone()).await
    }

    /// Gives a queue another place for its messages: those that it has are gone.
    ///
    /// # Errors
    /// [`Error::NotFound`], also if its messages are elsewhere by now.
    pub(crate) async fn renew_store(
        self: &Arc<Self>,
        account: AccountId,
        name: &QueueName<'_>,
        old: StoreId,
        now: Ticks,
    ) -> Result<StoreId> {
        let change = |record: &mut QueueRecord, id| record.store = StoreId::from(id);
        self.renew(account, name, old.into(), now, change).await.map(StoreId::from)
    }
}
