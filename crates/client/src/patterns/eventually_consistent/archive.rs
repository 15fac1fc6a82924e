//! Archiving: an entity goes from one table or partition to another.

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::EventualTransaction;
use crate::error::refused;
use crate::patterns::queue_worker::JobResult;
use crate::patterns::{Races, Row};
use crate::queue::{Message, QueueClient, SentMessage};
use crate::{
    Entity, ErrorExt, Etag, IfMatch, Result, Stored, TableClient, TableEntity, UpdateMode,
    WriteResponse,
};

/// Archives entities: each is inserted into another table, or another partition, and then deleted where it was.
///
/// A reader can find an entity in both places while it is under way, and never in none. An entity that is
/// changed before goes as it is then, unless a version was named; one that is changed while it is copied is copied again.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient, queue: tavola_client::queue::QueueClient)
/// # -> tavola_client::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::eventually_consistent::Archive;
/// use tavola_client::patterns::queue_worker::QueueWorker;
///
/// let (current, archive) = (service.table_client("Current")?, service.table_client("Archive")?);
/// let leavers = Archive::<Entity>::new(current.clone(), archive, queue.clone());
/// // Employee 456 has left.
/// leavers.begin("Sales", "000456").await?;
/// // This version of 457 and no other: who changes it meanwhile keeps it.
/// let stored = current.get_entity::<Entity>("Sales", "000457", None).await?;
/// leavers.begin_version(&stored).await?;
///
/// // The worker, here or elsewhere; with another prefix, partitions of the same table are the archive.
/// QueueWorker::new(queue.clone()).run(leavers.job()).await?;
/// let in_partitions =
///     Archive::<Entity>::new(current.clone(), current, queue).partition_prefix("archived_");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Archive<T> {
    transaction: EventualTransaction<Order>,
    current: TableClient,
    archive: TableClient,
    partition_prefix: String,
    entity: PhantomData<fn() -> T>,
}

/// Which entity is to be archived.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    partition: String,
    row: String,
    /// Of this version alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

impl<T: TableEntity + 'static> Archive<T> {
    /// Archives entities from one table to another by messages in this queue. The type tells which properties are encrypted;
    /// [`Entity`] if none are.
    pub fn new(current: TableClient, archive: TableClient, queue: QueueClient) -> Self {
        let partition_prefix = String::new();
        let transaction = EventualTransaction::new("archive", queue);
        Self { transaction, current, archive, partition_prefix, entity: PhantomData }
    }

    /// Puts this before the partition keys in the archive, which may then be the same table, and may not otherwise.
    #[must_use]
    pub fn partition_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.partition_prefix = prefix.into();
        self
    }

    /// Begins to archive an entity. One that is not there is none to archive, which is no error: it may be archived already.
    ///
    /// Whoever makes an entity with the same keys anew may find it archived as well, if a worker died and the message came a
    /// second time; [`begin_version`](Archive::begin_version) does not touch it.
    ///
    /// # Errors
    /// Those of sending a message, and an archive that is the same table without a [prefix](Archive::partition_prefix).
    pub async fn begin(&self, partition_key: &str, row_key: &str) -> Result<SentMessage> {
        self.check_place()?;
        let (partition, row) = (partition_key.to_owned(), row_key.to_owned());
        self.transaction.begin(&Order { partition, row, version: None }).await
    }

    /// Begins to archive this version of an entity. If somebody changes it first, it stays; a worker that dies in the very
    /// moment of such a change leaves a copy of this version in the archive.
    ///
    /// # Errors
    /// As [`Archive::begin`], and an entity that is none.
    pub async fn begin_version(&self, entity: &Stored<T>) -> Result<SentMessage> {
        self.check_place()?;
        let keys = entity.value.to_entity()?;
        let (partition, row) = (keys.partition_key().to_owned(), keys.row_key().to_owned());
        let version = Some(entity.etag.to_string());
        self.transaction.begin(&Order { partition, row, version }).await
    }

    /// What a worker does for each message: steps 3 to 5 of the guide.
    pub fn job(
        &self,
    ) -> impl Fn(Arc<Message>) -> BoxFuture<'static, JobResult> + Send + Sync + use<T> {
        let steps = self.clone();
        let move_entity = move |order: Arc<Order>| {
            let steps = steps.clone();
            async move { Ok(steps.move_entity(&order).await?) }
        };
        self.transaction.clone().step("move", move_entity).job()
    }

    async fn move_entity(&self, order: &Order) -> Result<()> {
        self.check_place()?;
        let mut races = Races::default();
        loop {
            let (partition, row) = (&order.partition, &order.row);
            let stored = self.current.get_entity_if_exists::<Entity>(partition, row, None).await?;
            let Some(stored) = stored.filter(|stored| order.is_for(&stored.etag)) else {
                return Ok(());
            };
            let copy = self.copy(&stored)?;
            let written = self.archive.upsert_entity(&copy, UpdateMode::Replace, None).await?;
            let version = IfMatch::from(&stored);
            match self.current.delete_entity_if_exists(partition, row, version, None).await {
                Ok(_) => return Ok(()),
                Err(error) if !error.is_precondition_failed() => return Err(error),
                // A change since it was read is not lost: it goes to the archive, too.
                Err(_) if order.version.is_none() => races.lost().await?,
                Err(_) => return self.take_back(&copy, &written).await,
            }
        }
    }

    /// Somebody changed the entity after it was copied, and it was not to be archived then.
    async fn take_back(&self, copy: &Row, written: &WriteResponse) -> Result<()> {
        let (partition, row) = (copy.partition_key(), copy.row_key());
        match self.archive.delete_entity_if_exists(partition, row, written, None).await {
            Err(error) if !error.is_precondition_failed() => Err(error),
            _ => Ok(()),
        }
    }

    /// An entity that was copied onto itself would be deleted as if it were its copy.
    fn check_place(&self) -> Result<()> {
        if self.partition_prefix.is_empty() && self.current.is_same_table(&self.archive) {
            let table = self.current.name();
            return Err(refused(format!("the archive is where the entities are: table={table}")));
        }
        Ok(())
    }

    fn copy(&self, stored: &Entity) -> Result<Row> {
        let encrypted = T::from_entity(stored.clone())?.encrypted_properties();
        let mut entity = stored.clone();
        let (partition, row) = (entity.take_partition_key(), entity.take_row_key());
        entity.set_keys(format!("{}{partition}", self.partition_prefix), row);
        Ok(Row { entity, encrypted })
    }
}

impl Order {
    fn is_for(&self, etag: &Etag) -> bool {
        self.version.as_ref().is_none_or(|version| *version == etag.to_string())
    }
}

impl<T> Clone for Archive<T> {
    fn clone(&self) -> Self {
        Self {
            transaction: self.transaction.clone(),
            current: self.current.clone(),
            archive: self.archive.clone(),
            partition_prefix: self.partition_prefix.clone(),
            entity: PhantomData,
        }
    }
}
