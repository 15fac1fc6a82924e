//! Intra-partition secondary index: copies of an entity under other row keys of its partition.
//!
//! The service has one index, the keys. An entity that is to be found by its mail address too is stored twice, once under
//! its id and once under the address, in the same partition; one transaction keeps the copies equal, always.
//!
//! **Use it** to find an entity by two or three other values, within its partition and with full consistency. **Do not use
//! it** when the other value is asked for without the partition key (that needs an inter-partition index), or when the entity
//! is large and has many copies. If many entities share a value, use [`index_entities`](super::index_entities).
//!
//! **Cost**: a look-up by any of the values is one point query with full copies, two with partial ones. A write is one point
//! query and one transaction over the entity and its copies, changed ones twice; storage grows with every full copy.
//! **Half-done**: nothing; the copies change together. A partial copy points to an entity that may be newer than the copy by the
//! time it is read, never older.
//!
//! [`IntraPartitionIndex`] shows it.

use super::Races;
use super::compound_key::KeyPart;
use crate::clients::{IfMatch, TableClient, UpdateMode};
use crate::entity::{Entity, Stored};
use crate::error::{ErrorExt, Result, refused};
use crate::transaction::Transaction;
use crate::value::EdmValue;

/// Names the entity's own id in each of its copies.
const PRIMARY: &str = "PrimaryRowKey";

/// Entities with copies under other row keys.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::intra_partition_index::IntraPartitionIndex;
///
/// let employees = IntraPartitionIndex::new(table, "empid_").with_full_copy("email_", "Email");
/// employees.save(&Entity::new("Sales", "000223").with("Email", "jonesj@contoso.com")).await?;
/// let found = employees.find("Sales", "email_", "jonesj@contoso.com").await?;
/// let by_id = employees.get("Sales", "000223").await?;
/// employees.delete("Sales", "000223").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IntraPartitionIndex {
    table: TableClient,
    prefix: String,
    copies: Vec<Copy>,
}

#[derive(Clone, Debug)]
struct Copy {
    prefix: String,
    property: String,
    /// The properties to copy; `None` for all.
    select: Option<Vec<String>>,
}

impl IntraPartitionIndex {
    /// Keeps entities under this prefix and their ids.
    pub fn new(table: TableClient, prefix: impl Into<String>) -> Self {
        Self { table, prefix: prefix.into(), copies: Vec::new() }
    }

    /// Keeps a full copy of each entity under this prefix and the value of a property.
    #[must_use]
    pub fn with_full_copy(self, prefix: impl Into<String>, property: impl Into<String>) -> Self {
        self.with_copy(Copy { prefix: prefix.into(), property: property.into(), select: None })
    }

    /// Keeps a copy of some properties, or of none: then it is a pointer, and finding takes a second look-up.
    ///
    /// ```no_run
    /// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::patterns::intra_partition_index::IntraPartitionIndex;
    ///
    /// let employees = IntraPartitionIndex::new(table, "empid_")
    ///     // Names for a list, and a mere pointer.
    ///     .with_partial_copy("email_", "Email", ["FirstName", "LastName"])
    ///     .with_partial_copy("badge_", "Badge", [""; 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_partial_copy(
        self,
        prefix: impl Into<String>,
        property: impl Into<String>,
        select: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let select = Some(select.into_iter().map(Into::into).collect());
        self.with_copy(Copy { prefix: prefix.into(), property: property.into(), select })
    }

    fn with_copy(mut self, copy: Copy) -> Self {
        self.copies.push(copy);
        self
    }

    /// Writes an entity, whose row key is its id, and all of its copies; copies under values that it no longer has go.
    ///
    /// # Errors
    /// `EntityAlreadyExists` when another entity has one of the values: they are unique within a partition. A partition where
    /// others win every time.
    pub async fn save(&self, entity: &Entity) -> Result<()> {
        let wanted = self.rows(entity);
        let mut races = Races::default();
        loop {
            let primary = self.stored(entity.partition_key(), entity.row_key()).await?;
            let present: Vec<_> = primary.iter().flat_map(|old| self.row_keys(old)).collect();
            let transaction = change(primary.as_ref(), &present, &wanted)?;
            match self.table.submit_transaction(&transaction, None).await {
                Ok(_) => return Ok(()),
                Err(error) if self.lost_race(&error, primary.is_some()) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes an entity with its copies; tells whether there was one.
    ///
    /// # Errors
    /// Those of a transaction; a partition where others win every time.
    pub async fn delete(&self, partition_key: &str, id: &str) -> Result<bool> {
        let mut races = Races::default();
        loop {
            let Some(primary) = self.stored(partition_key, id).await? else { return Ok(false) };
            let present: Vec<_> = self.row_keys(&primary).collect();
            let transaction = change(Some(&primary), &present, &[])?;
            match self.table.submit_transaction(&transaction, None).await {
                Ok(_) => return Ok(true),
                Err(error) if error.is_precondition_failed() || error.is_not_found() => {
                    races.lost().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads an entity by its id; its row key is the id again.
    ///
    /// # Errors
    /// Those of a point query.
    pub async fn get(&self, partition_key: &str, id: &str) -> Result<Option<Stored<Entity>>> {
        let stored = self.stored(partition_key, id).await?;
        Ok(stored.map(|stored| stored.map(|entity| plain(entity, id))))
    }

    /// Finds an entity by the value of a copy: with a full copy one look-up, with a partial one two.
    ///
    /// # Errors
    /// A prefix that no copy has, and those of point queries.
    pub async fn find(
        &self,
        partition_key: &str,
        prefix: &str,
        value: &str,
    ) -> Result<Option<Stored<Entity>>> {
        let copy = self.copies.iter().find(|copy| copy.prefix == prefix);
        let copy =
            copy.ok_or_else(|| refused(format!("there is no such index: prefix={prefix}")))?;
        let row_key = row_key(prefix, value);
        let found =
            self.table.get_entity_if_exists::<Entity>(partition_key, &row_key, None).await?;
        let Some(found) = found else { return Ok(None) };
        let id: String = found.get(PRIMARY)?;
        match copy.select {
            None => Ok(Some(found.map(|entity| plain(entity, &id)))),
            Some(_) => self.get(partition_key, &id).await,
        }
    }

    async fn stored(&self, partition_key: &str, id: &str) -> Result<Option<Stored<Entity>>> {
        let row_key = row_key(&self.prefix, id);
        self.table.get_entity_if_exists(partition_key, &row_key, None).await
    }

    /// The entity and its copies, as rows.
    fn rows(&self, entity: &Entity) -> Vec<Entity> {
        let id = entity.row_key();
        let mut primary = entity.clone();
        primary.set_keys(entity.partition_key(), row_key(&self.prefix, id));
        let mut rows = vec![primary.with(PRIMARY, id)];
        for copy in &self.copies {
            let Some(key) = copy.row_key(entity) else { continue };
            let mut row = Entity::new(entity.partition_key(), key).with(PRIMARY, id);
            for (name, value) in entity.properties() {
                if copy.select.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
                {
                    row.set(name, value.clone());
                }
            }
            rows.push(row);
        }
        rows
    }

    /// The row keys that a stored entity has, its own first.
    fn row_keys<'a>(&'a self, stored: &'a Stored<Entity>) -> impl Iterator<Item = String> + 'a {
        let copies = self.copies.iter().filter_map(move |copy| copy.row_key(stored));
        std::iter::once(stored.row_key().to_owned()).chain(copies)
    }

    /// The first operation of a transaction is about the entity itself: if that fails, somebody was faster. A copy that is
    /// there already belongs to another entity, and trying again does not help.
    fn lost_race(&self, error: &azure_core::Error, was_there: bool) -> bool {
        error.is_precondition_failed()
            || error.is_not_found() && was_there
            || error.is_already_there() && error.failed_operation() == Some(0)
    }
}

impl Copy {
    fn row_key(&self, entity: &Entity) -> Option<String> {
        match entity.value(&self.property)? {
            EdmValue::String(text) => Some(row_key(&self.prefix, text)),
            EdmValue::Guid(guid) => Some(row_key(&self.prefix, &guid.to_string())),
            EdmValue::Int32(number) => Some(row_key(&self.prefix, &number.to_string())),
            EdmValue::Int64(number) => Some(row_key(&self.prefix, &number.to_string())),
            _ => None,
        }
    }
}

/// Turns the rows that are there into those that are wanted, in one transaction; the entity's own row comes first.
fn change(
    primary: Option<&Stored<Entity>>,
    present: &[String],
    wanted: &[Entity],
) -> Result<Transaction> {
    let mut transaction = Transaction::new();
    for row in wanted {
        let is_present = present.iter().any(|key| key == row.row_key());
        match primary.filter(|primary| primary.row_key() == row.row_key()) {
            Some(primary) => transaction.update(row, UpdateMode::Replace, primary)?,
            None if is_present => transaction.update(row, UpdateMode::Replace, IfMatch::Any)?,
            None => transaction.insert(row)?,
        };
    }
    for key in present {
        if wanted.iter().any(|row| row.row_key() == key) {
            continue;
        }
        let primary = primary.expect("what is present is that of a stored entity");
        let if_match = if key == primary.row_key() { primary.into() } else { IfMatch::Any };
        transaction.delete(primary.partition_key(), key.as_str(), if_match)?;
    }
    Ok(transaction)
}

/// The prefix and the value, with the characters that no key can have written otherwise.
fn row_key(prefix: &str, value: &str) -> String {
    let mut key = prefix.to_owned();
    value.to_owned().write_part(&mut key);
    key
}

/// The entity as its owner knows it.
fn plain(mut entity: Entity, id: &str) -> Entity {
    entity.remove(PRIMARY);
    let partition_key = entity.take_partition_key();
    entity.set_keys(partition_key, id);
    entity
}
