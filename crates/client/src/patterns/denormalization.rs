//! Denormalization: what is read together is stored together, and changed together.
//!
//! A department that shows its manager's name and address reads two entities, unless it keeps a copy of both properties. In
//! one partition, one transaction changes the manager and every copy, so that they never differ.
//!
//! **Use it** for values that are read much more often than they change, with copies in the same partition. **Do not use it**
//! for copies across partitions (no transaction reaches there), for more than 99 copies, or for values that change often.
//!
//! **Cost**: reading is one point query instead of two; a change is one transaction over the source and its copies.
//! **Half-done**: nothing; the copies change with the source.
//!
//! [`Denormalization`] shows it.

use super::Row;
use crate::{
    Entity, Etag, IfMatch, Result, Stored, TableClient, TableEntity, Transaction, UpdateMode,
};

/// Which properties are copied, and under which names.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::denormalization::Denormalization;
///
/// let copies = Denormalization::new().copy("Name", "ManagerName").copy("Email", "ManagerEmail");
/// let mut manager = table.get_entity::<Entity>("Sales", "00010", None).await?;
/// manager.set("Email", "jens@contoso.com");
/// copies.update(&table, &manager, ["Department"]).await?;
/// // A new target starts with the copies.
/// let team = copies.copies_of(&manager.value, "Team7")?.with("Name", "Team 7");
/// table.insert_entity(&team, None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Denormalization {
    properties: Vec<(String, String)>,
}

impl Denormalization {
    /// Copies nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies a property of the source into a property of each target.
    #[must_use]
    pub fn copy(mut self, source: impl Into<String>, target: impl Into<String>) -> Self {
        self.properties.push((source.into(), target.into()));
        self
    }

    /// The copied properties as they stand in a target: to merge, or to write a new target with.
    ///
    /// # Errors
    /// A source that is no entity.
    pub fn copies_of<T: TableEntity>(&self, source: &T, row_key: &str) -> Result<Entity> {
        let row = Row::of(source)?;
        row.check_plain(self.properties.iter().map(|(from, _)| from.as_str()))?;
        let mut target = Entity::new(row.partition_key(), row_key);
        for (from, to) in &self.properties {
            if let Some(value) = row.value(from) {
                target.set(to.as_str(), value.clone());
            }
        }
        Ok(target)
    }

    /// Replaces the source, if it is still the version that was read, and merges the copies into the targets, all or
    /// nothing. A property that the source no longer has stays in the targets: a merge removes nothing.
    ///
    /// # Errors
    /// `UpdateConditionNotSatisfied` when somebody changed the source, `ResourceNotFound` when a target is gone; more than
    /// 99 targets.
    pub async fn update<T: TableEntity>(
        &self,
        table: &TableClient,
        source: &Stored<T>,
        targets: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Option<Etag>> {
        let mut transaction = Transaction::new();
        transaction.update(&source.value, UpdateMode::Replace, source)?;
        for target in targets {
            let copies = self.copies_of(&source.value, target.as_ref())?;
            transaction.update(&copies, UpdateMode::Merge, IfMatch::Any)?;
        }
        Ok(table.submit_transaction(&transaction, None).await?.into_etags().swap_remove(0))
    }
}
