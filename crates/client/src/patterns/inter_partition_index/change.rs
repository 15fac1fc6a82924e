//! Changing an entity, with a message for those who keep its indexes.

use std::time::Duration;

use super::InterPartitionIndex;
use super::entry::{Entries, Notice, are_same};
use crate::patterns::{Races, Row, is_conflict};
use crate::queue::{MessageReceipt, MessageUpdate, SendMessageOptions, TimeToLive, is_lost};
use crate::{CallOptions, Entity, ErrorExt, IfMatch, Result, Stored, TableEntity, UpdateMode};

impl InterPartitionIndex {
    /// Writes an entity over whatever version there is, and has its indexes follow.
    ///
    /// # Errors
    /// Those of a write and of sending a message: `RequestBodyTooLarge` for an entity with hundreds of entries. A value that
    /// cannot be a key. An entity that others change all the time.
    pub async fn save<T: TableEntity>(&self, entity: &T) -> Result<()> {
        let row = Row::of(entity)?;
        let wanted = self.entries(&row)?;
        let (partition_key, id) = (row.partition_key().to_owned(), row.row_key().to_owned());
        self.change(&partition_key, &id, Some((row, wanted)), None).await.map(|_| ())
    }

    /// Writes an entity if it is still the version that [`InterPartitionIndex::get`] gave, and has its indexes follow.
    ///
    /// # Errors
    /// `UpdateConditionNotSatisfied` when somebody changed the entity, `ResourceNotFound` when it is gone; else as
    /// [`InterPartitionIndex::save`]. A version that came from an index is no version of the entity.
    pub async fn update<T: TableEntity>(&self, entity: &Stored<T>) -> Result<()> {
        let row = Row::of(&entity.value)?;
        let wanted = self.entries(&row)?;
        let (partition_key, id) = (row.partition_key().to_owned(), row.row_key().to_owned());
        let version = IfMatch::from(entity);
        self.change(&partition_key, &id, Some((row, wanted)), Some(version)).await.map(|_| ())
    }

    /// Deletes an entity, and has its indexes follow; tells whether there was one.
    ///
    /// # Errors
    /// As [`InterPartitionIndex::save`].
    pub async fn delete(&self, partition_key: &str, id: &str) -> Result<bool> {
        self.change(partition_key, id, None, None).await
    }

    /// Changes an entity of whatever version, or of this one; tells whether there was one.
    async fn change(
        &self,
        partition_key: &str,
        id: &str,
        wanted: Option<(Row, Entries)>,
        version: Option<IfMatch>,
    ) -> Result<bool> {
        let mut races = Races::default();
        loop {
            let stored = self.stored(partition_key, id).await?;
            if stored.is_none() && wanted.is_none() {
                return Ok(false);
            }
            let present = self.entries_of(stored.as_ref())?;
            let none = Entries::new();
            let entries = wanted.as_ref().map_or(&none, |(_, entries)| entries);
            let row = wanted.as_ref().map(|(row, _)| row);
            let notice = match are_same(&present, entries) {
                true => None,
                false => {
                    let entries = present.keys().chain(entries.keys()).cloned().collect();
                    let notice = self.notice(partition_key, id, entries);
                    let receipt = self.announce(&notice, self.settle_after).await?;
                    Some((notice, receipt))
                }
            };
            // The entries that are concerned follow from the stored version: another one fails the condition.
            let condition = version.clone().or_else(|| stored.as_ref().map(IfMatch::from));
            let keys = (partition_key, id);
            match self.write(keys, row, condition).await {
                Ok(()) => {
                    self.show(notice, Duration::ZERO).await?;
                    return Ok(stored.is_some());
                }
                Err(error) if self.is_made(keys, row, &error).await => {
                    tracing::debug!(%error, "the change was made, and its answer lost");
                    self.show(notice, Duration::ZERO).await?;
                    return Ok(stored.is_some());
                }
                Err(error) if error.may_have_been_applied() => {
                    // The worker makes the indexes what the entity says, whichever it is; but not before a request that is
                    // still under way has arrived.
                    self.show(notice, self.settle_after).await?;
                    return Err(error);
                }
                Err(error) => {
                    self.withdraw(notice).await;
                    match version.is_none() && is_conflict(&error) {
                        true => races.lost().await?,
                        false => return Err(error),
                    }
                }
            }
        }
    }

    /// Writes or deletes the entity itself.
    async fn write(
        &self,
        (partition_key, id): (&str, &str),
        row: Option<&Row>,
        condition: Option<IfMatch>,
    ) -> Result<()> {
        let partition = self.partition(partition_key);
        // Before the message appears, this has succeeded or failed.
        let deadline = Some(self.settle_after / 2);
        let options = Some(CallOptions { deadline, ..Default::default() });
        let Some(row) = row else {
            let condition = condition.unwrap_or(IfMatch::Any);
            return self.table.delete_entity(&partition, id, condition, options).await.map(|_| ());
        };
        let mut entity: Entity = row.entity.clone();
        entity.set_keys(partition, id);
        let row = Row { entity, encrypted: row.encrypted };
        let written = match condition {
            Some(condition) => {
                self.table.update_entity(&row, UpdateMode::Replace, condition, options).await
            }
            None => self.table.insert_entity(&row, options).await,
        };
        written.map(|_| ())
    }

    /// Whether a change that was sent again, because its answer was lost, found itself: the entity is what it was to be.
    async fn is_made(
        &self,
        (partition_key, id): (&str, &str),
        row: Option<&Row>,
        error: &azure_core::Error,
    ) -> bool {
        if !error.may_have_been_applied() || !is_conflict(error) {
            return false;
        }
        match (self.stored(partition_key, id).await, row) {
            (Ok(None), None) => true,
            (Ok(Some(stored)), Some(row)) => row.is_same(&stored),
            _ => false,
        }
    }

    /// Sends the message, hidden until the entity is changed or its writer is given up.
    async fn announce(&self, notice: &Notice, pause: Duration) -> Result<MessageReceipt> {
        let options = SendMessageOptions {
            visibility_timeout: Some(pause),
            time_to_live: Some(TimeToLive::Forever),
            ..Default::default()
        };
        Ok(self.queue.send_json(notice, Some(options)).await?.receipt)
    }

    /// Shows the message to the workers after a pause: the entity is changed, or may be.
    async fn show(&self, notice: Option<(Notice, MessageReceipt)>, pause: Duration) -> Result<()> {
        let Some((notice, mut receipt)) = notice else { return Ok(()) };
        let update = MessageUpdate::visible_after(pause);
        match self.queue.update_message(&mut receipt, update, None).await {
            Ok(_) => Ok(()),
            // A worker has seen it too early, because this writer was stopped for too long: it gets another.
            Err(error) if is_lost(&error) => {
                match self.announce(&notice, pause).await {
                    Ok(_) => Ok(()),
                    Err(error) => Err(error
                        .with_context("the entity may be changed, and its indexes need a repair")),
                }
            }
            // It appears by itself, later.
            Err(error) => {
                tracing::warn!(%error, "cannot show the message about a changed entity");
                Ok(())
            }
        }
    }

    /// Deletes the message: nothing was changed. One that stays does no harm.
    async fn withdraw(&self, notice: Option<(Notice, MessageReceipt)>) {
        if let Some((_, receipt)) = notice
            && let Err(error) = self.queue.delete_message_if_exists(&receipt, None).await
        {
            tracing::debug!(%error, "cannot withdraw the message about an entity");
        }
    }
}
