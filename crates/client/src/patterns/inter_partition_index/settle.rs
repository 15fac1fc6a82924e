//! Making the entries of an entity what the entity says, by workers and by repair.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};

use super::entry::{Entries, Entry, Notice, Placed, is_of, owner};
use super::{InterPartitionIndex, PARTITION_PROPERTY, Repaired};
use crate::core::task::uncancelled;
use crate::error::refused;
use crate::patterns::queue_worker::{JobError, JobResult};
use crate::patterns::{Races, Row, is_conflict};
use crate::queue::{MessageHandle, PeekedMessage};
use crate::{
    Column, Entity, ErrorExt, Filter, IfMatch, Result, Stored, TableClient, TableEntity, UpdateMode,
};

impl InterPartitionIndex {
    /// Does what a message says: what a worker calls. The type tells which properties are encrypted; [`Entity`] if none are.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     employees: tavola_client::patterns::inter_partition_index::InterPartitionIndex,
    /// #     queue: tavola_client::queue::QueueClient,
    /// # ) -> tavola_client::Result<()> {
    /// use tavola_client::Entity;
    ///
    /// for message in queue.receive_messages(None).await? {
    ///     if employees.apply::<Entity>(&message).await.is_ok() {
    ///         queue.delete_message(&message.receipt, None).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of reads and writes; two entities that share a unique value. An error of one entry does not stop the others,
    /// unless the service does not answer: they are done, and the first error is told. A message about entities in another
    /// table or under another prefix changes nothing; one that names an index which is not kept here is done for the others.
    /// Both are [poison](JobError::is_poison).
    pub async fn apply<T: TableEntity>(&self, message: &PeekedMessage) -> JobResult {
        let notice: Notice = message.json().map_err(JobError::poison)?;
        if !self.is_about_ours(&notice) {
            let Notice { table, prefix, .. } = &notice;
            let other = format!("it is about other entities: table={table} prefix={prefix}");
            return Err(JobError::poison(other));
        }
        let unknown = self.unknown_index(&notice).map(|(index, table)| {
            JobError::poison(format!("it names an unknown index: index={index} table={table}"))
        });
        self.settle::<T>(&notice.partition, &notice.id, notice.entries.clone()).await?;
        unknown.map_or(Ok(()), Err)
    }

    /// [`apply`](InterPartitionIndex::apply) as a job for a [`QueueWorker`](crate::patterns::queue_worker::QueueWorker). A
    /// message that was begun upon is brought to its end, also if it is lost meanwhile or the worker does not wait for it: only
    /// so does it notice that an entry that it wrote is not true any more.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     employees: tavola_client::patterns::inter_partition_index::InterPartitionIndex,
    /// #     queue: tavola_client::queue::QueueClient,
    /// # ) -> tavola_client::Result<()> {
    /// use tavola_client::Entity;
    /// use tavola_client::patterns::queue_worker::QueueWorker;
    ///
    /// QueueWorker::new(queue).run(employees.job::<Entity>()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn job<T: TableEntity + 'static>(
        &self,
    ) -> impl Fn(MessageHandle) -> BoxFuture<'static, JobResult> + Send + Sync + use<T> {
        let index = self.clone();
        move |message| {
            let index = index.clone();
            let apply = async move { index.apply::<T>(&message).await };
            async move { uncancelled(apply).await? }.boxed()
        }
    }

    /// Makes the entries of the entities of a partition what the entities say, and removes those that belong to none: after an
    /// index was added, or after something else wrote there. Reads the whole partition, and what lies of it in the indexes.
    ///
    /// # Errors
    /// Two entities with the same unique value; those of the queries and writes. An error of one entity does not stop the
    /// others, unless the service does not answer: they are repaired, and the first error is told in the end.
    pub async fn repair<T: TableEntity>(&self, partition_key: &str) -> Result<Repaired> {
        let mut failure = FirstFailure::default();
        let written = self.write_missing::<T>(partition_key, &mut failure).await?;
        let mut removed = 0;
        for placed in self.indexes.iter() {
            removed += self.remove_stale::<T>(placed, partition_key, &mut failure).await?;
        }
        failure.or(Repaired { written, removed })
    }

    /// Writes the entries of the entities of a partition; tells how many were not right.
    async fn write_missing<T: TableEntity>(
        &self,
        partition_key: &str,
        failure: &mut FirstFailure,
    ) -> Result<usize> {
        let mut written = 0;
        let entities = Filter::partition(&self.partition(partition_key));
        let mut entities = self.table.query_entities::<Entity>(entities);
        while let Some(entity) = entities.try_next().await? {
            let done = self.settle::<T>(partition_key, entity.row_key(), BTreeSet::new()).await;
            written += failure.note(done)?.map_or(0, |done| done.written);
        }
        Ok(written)
    }

    /// Removes what lies of a partition in an index and belongs to no entity; tells how many.
    async fn remove_stale<T: TableEntity>(
        &self,
        placed: &Placed,
        partition_key: &str,
        failure: &mut FirstFailure,
    ) -> Result<usize> {
        let mut removed = 0;
        let owned = Column::<String>::new(PARTITION_PROPERTY).eq(partition_key);
        let rows = match placed.is_whole {
            true => Filter::partition(&placed.name) & owned,
            false => Filter::partition(&format!("{}{partition_key}", placed.name)),
        };
        let mut copies = placed.table.query_entities::<Entity>(rows);
        while let Some(copy) = copies.try_next().await? {
            let done = self.settle_copy::<T>(placed, &copy).await;
            removed += failure.note(done)?.map_or(0, |done| done.removed);
        }
        Ok(removed)
    }

    /// Settles the entity of an entry that it is not to have.
    async fn settle_copy<T: TableEntity>(
        &self,
        placed: &Placed,
        copy: &Entity,
    ) -> Result<Repaired> {
        let (partition, id) = owner(copy)?;
        let entry = Entry {
            index: placed.name.clone(),
            partition: copy.partition_key().to_owned(),
            row: copy.row_key().to_owned(),
        };
        match self.is_wanted(&entry, &partition, &id).await? {
            true => Ok(Repaired::default()),
            false => self.settle::<T>(&partition, &id, BTreeSet::from([entry])).await,
        }
    }

    /// Makes these entries and those that the entity has now what it says. Whoever writes an entry looks at the entity
    /// afterwards: if it was changed in between, somebody else may have written the entry before, and it is written again.
    async fn settle<T: TableEntity>(
        &self,
        partition_key: &str,
        id: &str,
        mut concerned: BTreeSet<Entry>,
    ) -> Result<Repaired> {
        let (mut races, mut done) = (Races::default(), Repaired::default());
        let mut stored = self.stored(partition_key, id).await?;
        loop {
            // What failed for an entity that was changed since may be right now.
            let mut failure = FirstFailure::default();
            let wanted = self.typed_entries::<T>(stored.as_ref())?;
            concerned.extend(wanted.keys().cloned());
            for entry in &concerned {
                let Some(table) = self.table_of(entry) else { continue };
                match wanted.get(entry) {
                    Some(row) => {
                        let written = self.write_entry(table, entry, row, (partition_key, id));
                        done.written += usize::from(failure.note(written.await)? == Some(true));
                    }
                    None => {
                        let removed = remove_entry(table, entry, (partition_key, id));
                        done.removed += usize::from(failure.note(removed.await)? == Some(true));
                    }
                }
            }
            let after = self.stored(partition_key, id).await?;
            if after.as_ref().map(|it| &it.etag) == stored.as_ref().map(|it| &it.etag) {
                return failure.or(done);
            }
            stored = after;
            races.lost().await?;
        }
    }

    /// The entries of an entity, encrypted as its type says.
    fn typed_entries<T: TableEntity>(&self, stored: Option<&Stored<Entity>>) -> Result<Entries> {
        let Some(stored) = stored else { return Ok(Entries::new()) };
        let encrypted = T::from_entity(stored.value.clone())?.encrypted_properties();
        self.entries(&Row { entity: stored.value.clone(), encrypted })
    }

    /// Writes an entry unless it is right; tells whether it was not.
    async fn write_entry(
        &self,
        table: &TableClient,
        entry: &Entry,
        row: &Row,
        (partition_key, id): (&str, &str),
    ) -> Result<bool> {
        let mut races = Races::default();
        loop {
            let present = table.get_entity_if_exists(&entry.partition, &entry.row, None).await?;
            let present: Option<Stored<Entity>> = present;
            let written = match &present {
                None => table.insert_entity(row, None).await,
                Some(present) if row.is_same(present) => return Ok(false),
                Some(present) => {
                    self.check_free(entry, present, (partition_key, id)).await?;
                    table.update_entity(row, UpdateMode::Replace, present, None).await
                }
            };
            match written {
                Ok(_) => return Ok(true),
                Err(error) if is_conflict(&error) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// An entry of another entity is free if that one does not have the value any more.
    async fn check_free(
        &self,
        entry: &Entry,
        present: &Entity,
        (partition_key, id): (&str, &str),
    ) -> Result<()> {
        if is_of(present, partition_key, id) {
            return Ok(());
        }
        let (other_partition, other_id) = owner(present)?;
        match self.is_wanted(entry, &other_partition, &other_id).await? {
            false => Ok(()),
            true => Err(refused(format!(
                "two entities share a unique value: index={} partition_key={partition_key} \
                 row_key={id} other_partition_key={other_partition} other_row_key={other_id}",
                entry.index
            ))),
        }
    }

    /// Whether the entity with these keys is to have this entry.
    async fn is_wanted(&self, entry: &Entry, partition_key: &str, id: &str) -> Result<bool> {
        let stored = self.stored(partition_key, id).await?;
        Ok(self.entries_of(stored.as_ref())?.contains_key(entry))
    }
}

/// The first failure of several changes, which does not stop those after it.
#[derive(Default)]
struct FirstFailure(Option<azure_core::Error>);

impl FirstFailure {
    /// What came of a change, unless it failed. A service that does not answer would fail those after it as well, each
    /// with all its retries: that ends them.
    fn note<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                self.0.get_or_insert(error);
                Ok(None)
            }
        }
    }

    /// The failure, or this if there was none.
    fn or<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// Removes an entry if it belongs to this entity; tells whether it did.
async fn remove_entry(
    table: &TableClient,
    entry: &Entry,
    (partition_key, id): (&str, &str),
) -> Result<bool> {
    let mut races = Races::default();
    loop {
        let present = table.get_entity_if_exists(&entry.partition, &entry.row, None).await?;
        let present: Option<Stored<Entity>> = present;
        let Some(present) = present.filter(|present| is_of(present, partition_key, id)) else {
            return Ok(false);
        };
        let condition = IfMatch::from(&present);
        match table.delete_entity(&entry.partition, &entry.row, condition, None).await {
            Ok(_) => return Ok(true),
            Err(error) if is_conflict(&error) => races.lost().await?,
            Err(error) => return Err(error),
        }
    }
}
