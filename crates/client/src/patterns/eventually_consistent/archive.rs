//! Archiving: an entity goes from one table or partition to another.

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::EventualTransaction;
use super::revocable::{take_back, write_copy};
use crate::core::task::uncancelled;
use crate::error::refused;
use crate::patterns::queue_worker::{JobError, JobResult};
use crate::patterns::{Races, Row};
use crate::queue::{MessageHandle, QueueClient, SentMessage};
use crate::{Entity, ErrorExt, IfMatch, Result, Stored, TableClient, TableEntity, UpdateMode};

/// Archives entities: each is inserted into another table, or another partition, and then deleted where it was.
///
/// A reader can find an entity in both places while it is under way, and never in none. An entity that is
/// changed before goes as it is then, unless a version was named; one that is changed while it is copied is copied again.
/// What the archive had under the same keys is replaced. An archive of the same name, in another account, is read as well, to
/// make sure that it is another table: its signature needs the permission for that.
///
/// Each archive has a queue of its own, so that its orders come to its workers. An order names the account and the table
/// that it is from, those that it goes to, and the prefix; a worker of another archive applies none of it, and the order goes
/// to the [dead letters](crate::patterns::queue_worker::QueueWorker::dead_letters) at once.
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

/// From where an archive takes entities, and to where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Route {
    from: String,
    to: String,
    prefix: String,
}

/// Which entity is to be archived.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    route: Route,
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
        self.transaction.begin(&Order { route: self.route(), partition, row, version: None }).await
    }

    /// Begins to archive this version of an entity. If somebody changes it first, it stays, and the archive is what it was
    /// before. A copy of this version can stay in the archive if the entity is changed or deleted between the copy and its
    /// deletion: if the worker dies then, so that the message comes again, or the answer to one of its changes is lost.
    ///
    /// # Errors
    /// As [`Archive::begin`], and an entity that is none.
    pub async fn begin_version(&self, entity: &Stored<T>) -> Result<SentMessage> {
        self.check_place()?;
        let keys = entity.value.to_entity()?;
        let (partition, row) = (keys.partition_key().to_owned(), keys.row_key().to_owned());
        let version = Some(entity.etag.to_string());
        let order = Order { route: self.route(), partition, row, version };
        self.transaction.begin(&order).await
    }

    /// What a worker does for each message: steps 3 to 5 of the guide. An order that was begun upon is brought to its end,
    /// also if the message is lost meanwhile or the worker does not wait for it.
    pub fn job(
        &self,
    ) -> impl Fn(MessageHandle) -> BoxFuture<'static, JobResult> + Send + Sync + use<T> {
        let steps = self.clone();
        let move_entity = move |order: Arc<Order>| {
            let steps = steps.clone();
            async move { uncancelled(async move { steps.move_entity(&order).await }).await? }
        };
        self.transaction.clone().step("move", move_entity).job()
    }

    async fn move_entity(&self, order: &Order) -> JobResult {
        if order.route != self.route() {
            let Route { from, to, prefix } = &order.route;
            let other = format!("it is for another archive: from={from} to={to} prefix={prefix}");
            return Err(JobError::poison(other));
        }
        self.check_place()?;
        match order.version {
            None => self.move_any(order).await,
            Some(_) => self.move_version(order).await,
        }
    }

    /// A change since it was read is not lost: it goes to the archive, too.
    async fn move_any(&self, order: &Order) -> JobResult {
        let mut races = Races::default();
        while let Some(stored) = self.ordered(order).await? {
            let copy = self.copy(&stored)?;
            self.archive.upsert_entity(&copy, UpdateMode::Replace, None).await?;
            match self.delete(order, &stored).await {
                Err(error) if error.is_precondition_failed() => races.lost().await?,
                ended => return Ok(ended?),
            }
        }
        Ok(())
    }

    /// An entity that somebody changed after it was copied was not to be archived then.
    async fn move_version(&self, order: &Order) -> JobResult {
        let Some(stored) = self.ordered(order).await? else { return Ok(()) };
        let written = write_copy(&self.archive, &self.copy(&stored)?).await?;
        match self.delete(order, &stored).await {
            Err(error) if error.is_precondition_failed() => {
                // An attempt before this one may have deleted the version, and what is there now is another entity.
                if !error.may_have_been_applied() {
                    take_back(&self.archive, written).await?;
                }
                Ok(())
            }
            ended => Ok(ended?),
        }
    }

    /// The entity, if it is still there and the version that is meant.
    async fn ordered(&self, order: &Order) -> Result<Option<Stored<Entity>>, JobError> {
        let is_meant = |stored: &Stored<Entity>| {
            order.version.as_ref().is_none_or(|version| *version == stored.etag.to_string())
        };
        let mut races = Races::default();
        while let Some(stored) = self.stored(order).await?.filter(is_meant) {
            if self.is_elsewhere(order, &stored).await? {
                return Ok(Some(stored));
            }
            races.lost().await?;
        }
        Ok(None)
    }

    async fn stored(&self, order: &Order) -> Result<Option<Stored<Entity>>> {
        self.current.get_entity_if_exists(&order.partition, &order.row, None).await
    }

    async fn delete(&self, order: &Order, stored: &Stored<Entity>) -> Result<()> {
        let version = IfMatch::from(stored);
        let deleted =
            self.current.delete_entity_if_exists(&order.partition, &order.row, version, None);
        deleted.await.map(|_| ())
    }

    fn route(&self) -> Route {
        let (from, to) = (self.current.qualified_name(), self.archive.qualified_name());
        Route { from, to, prefix: self.partition_prefix.clone() }
    }

    /// An entity that was copied onto itself would be deleted as if it were its copy.
    fn check_place(&self) -> Result<()> {
        match self.partition_prefix.is_empty() && self.current.is_same_table(&self.archive) {
            true => Err(self.same_place()),
            false => Ok(()),
        }
    }

    /// Whether the archive is another table than that of this entity; `false` if somebody changed it meanwhile, so that it
    /// cannot be told.
    ///
    /// One table has several addresses, which nothing here can tell from those of two. But what the archive has under the same
    /// keys is the entity itself if it is the same version, and is not if it differs from what is still here. An archive that
    /// has another record of the same moment is refused as well; nothing is lost by that.
    async fn is_elsewhere(&self, order: &Order, stored: &Stored<Entity>) -> Result<bool, JobError> {
        let (table, archive) = (self.current.name(), self.archive.name());
        if !self.partition_prefix.is_empty() || !table.eq_ignore_ascii_case(archive) {
            return Ok(true);
        }
        let archive = self.archive.without_encryption();
        let there = archive.get_entity_if_exists::<Entity>(&order.partition, &order.row, None);
        if there.await?.is_some_and(|there| there.etag == stored.etag) {
            return Err(JobError::poison(self.same_place()));
        }
        Ok(self.stored(order).await?.is_some_and(|here| here.etag == stored.etag))
    }

    fn same_place(&self) -> azure_core::Error {
        let table = self.current.name();
        refused(format!("the archive is where the entities are: table={table}"))
    }

    fn copy(&self, stored: &Entity) -> Result<Row> {
        let encrypted = T::from_entity(stored.clone())?.encrypted_properties();
        let mut entity = stored.clone();
        let (partition, row) = (entity.take_partition_key(), entity.take_row_key());
        entity.set_keys(format!("{}{partition}", self.partition_prefix), row);
        Ok(Row { entity, encrypted })
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
