//! Intra-partition secondary index: copies of an entity under other row keys of its partition.
//!
//! The service has one index, the keys. An entity that is to be found by its mail address too is stored twice in its
//! partition, as `empid_000223` and as `email_jonesj@contoso.com`; one transaction keeps the copies equal, always. An
//! [`Index`] says by which values a copy is found and what it holds.
//!
//! **Use it** to find entities by two or three other values, or to list them in another order, within their partition and
//! with full consistency. **Do not use it** when the other value is asked for without the partition key (that needs an
//! [inter-partition index](super::inter_partition_index)), or when the entity is large and has many copies.
//!
//! **Cost**: a look-up by any of the values is one point query if the copy holds what is asked for, else two; lists and
//! ranges are one query over the copies, and a point query for each entity that has to be fetched. A write is one point
//! query and one transaction over the entity and its copies; storage grows with every copy. At most 99 copies.
//! **Half-done**: nothing; the copies change together. An entity that a copy points to may be newer than the copy by the time
//! it is read, never older. Programs that write the entity alone leave copies behind: [`IntraPartitionIndex::repair`].
//!
//! [`IntraPartitionIndex`] shows it.

use std::collections::{HashMap, HashSet};

use futures::TryStreamExt;

use super::compound_key::KeyStyle;
use super::index::{Index, IndexQuery, Primaries};
use super::{Races, Row, is_conflict};
use crate::error::refused;
use crate::{
    Entity, ErrorExt, Filter, IfMatch, ROW_KEY, Result, Stored, TableClient, TableEntity,
    Transaction, UpdateMode,
};

/// Names the entity in each of its copies.
const ID_PROPERTY: &str = "PrimaryRowKey";

/// Entities with copies under other row keys.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::TableEntity;
/// use tavola_client::patterns::index::Index;
/// use tavola_client::patterns::intra_partition_index::IntraPartitionIndex;
///
/// #[derive(TableEntity)]
/// #[table(rename_all = "PascalCase", columns)]
/// struct Employee {
///     #[table(partition_key)]
///     department: String,
///     #[table(row_key)]
///     id: String,
///     email: String,
/// }
///
/// let employees = IntraPartitionIndex::new(table, "empid_")
///     .with(Index::unique("email_", Employee::EMAIL))?;
/// let jones = Employee {
///     department: "Sales".into(),
///     id: "000223".into(),
///     email: "jonesj@contoso.com".into(),
/// };
/// // Writes `empid_000223` and `email_jonesj@contoso.com`.
/// employees.save(&jones).await?;
/// let found = employees.by("email_")?.find::<Employee>("Sales", "jonesj@contoso.com").await?;
///
/// // A change of the version that was read, and of no other.
/// if let Some(mut jones) = employees.get::<Employee>("Sales", "000223").await? {
///     jones.email = "jonesj1@contoso.com".into();
///     employees.update(&jones).await?;
/// }
/// employees.delete("Sales", "000223").await?;
/// // After something else wrote employees, or an index was added.
/// employees.repair::<Employee>("Sales").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IntraPartitionIndex {
    primaries: Primaries,
    indexes: Vec<Index>,
}

/// The changes of a repair.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::index::Index;
/// use tavola_client::patterns::intra_partition_index::{IntraPartitionIndex, Repaired};
///
/// // An index that is new: the entities are there, the copies are not.
/// let employees =
///     IntraPartitionIndex::new(table, "empid_").with(Index::many("lastname_", "LastName"))?;
/// let Repaired { written, removed } = employees.repair::<Entity>("Sales").await?;
/// println!("{written} copies written, {removed} removed");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Copies or entries that were missing or out of date.
    pub written: usize,
    /// Copies or entries that belonged to nothing.
    pub removed: usize,
}

impl IntraPartitionIndex {
    /// Keeps entities under this prefix and their ids, which are their row keys for everybody else.
    pub fn new(table: TableClient, prefix: impl Into<String>) -> Self {
        let (prefix, id_property) = (prefix.into(), ID_PROPERTY.to_owned());
        let primaries = Primaries { table, prefix, id_property, elsewhere: None };
        Self { primaries, indexes: Vec::new() }
    }

    /// Names the property in which a copy holds the id of its entity, instead of `PrimaryRowKey`.
    ///
    /// ```no_run
    /// # fn run(table: tavola_client::TableClient) {
    /// use tavola_client::patterns::intra_partition_index::IntraPartitionIndex;
    ///
    /// let employees = IntraPartitionIndex::new(table, "empid_").id_property("EmployeeId");
    /// # }
    /// ```
    #[must_use]
    pub fn id_property(mut self, name: impl Into<String>) -> Self {
        self.primaries.id_property = name.into();
        self
    }

    /// Keeps copies of each entity in an index.
    ///
    /// # Errors
    /// An index that can have no keys, or whose prefix cannot be told from that of another.
    pub fn with(mut self, index: Index) -> Result<Self> {
        index.check()?;
        let new = index.prefix();
        let is_mixed = |old: &str| new.starts_with(old) || old.starts_with(new);
        let is_taken = self.indexes.iter().any(|old| is_mixed(old.prefix()))
            || new.is_empty()
            || self.primaries.prefix.starts_with(new)
            || !self.primaries.prefix.is_empty() && new.starts_with(&self.primaries.prefix);
        if is_taken {
            return Err(refused(format!("the prefix starts other keys too: prefix={new}")));
        }
        self.indexes.push(index);
        Ok(self)
    }

    /// An index, by its prefix, to find entities with.
    ///
    /// # Errors
    /// A prefix that no index has.
    pub fn by(&self, prefix: &str) -> Result<IndexQuery> {
        let index = self.indexes.iter().find(|index| index.prefix() == prefix);
        let index =
            index.ok_or_else(|| refused(format!("there is no such index: prefix={prefix}")))?;
        Ok(IndexQuery::new(index.clone(), self.primaries.clone()))
    }

    /// Writes an entity and all of its copies, over whatever version there is; copies under values that it no longer has go.
    ///
    /// # Errors
    /// `EntityAlreadyExists` when another entity has one of the unique values. A value that cannot be a key. A partition
    /// where others win every time.
    pub async fn save<T: TableEntity>(&self, entity: &T) -> Result<()> {
        let entity = Row::of(entity)?;
        let wanted = self.rows(&entity)?;
        self.replace(entity.partition_key(), entity.row_key(), &wanted, None).await.map(|_| ())
    }

    /// Writes an entity and all of its copies, if it is still the version that [`IntraPartitionIndex::get`] gave.
    ///
    /// # Errors
    /// `UpdateConditionNotSatisfied` when somebody changed the entity, `ResourceNotFound` when it is gone; else as
    /// [`IntraPartitionIndex::save`]. A version that came from a copy is no version of the entity.
    pub async fn update<T: TableEntity>(&self, entity: &Stored<T>) -> Result<()> {
        let row = Row::of(&entity.value)?;
        let wanted = self.rows(&row)?;
        let version = IfMatch::from(entity);
        self.replace(row.partition_key(), row.row_key(), &wanted, Some(&version)).await.map(|_| ())
    }

    /// Deletes an entity with its copies; tells whether there was one.
    ///
    /// # Errors
    /// Those of a transaction; a partition where others win every time.
    pub async fn delete(&self, partition_key: &str, id: &str) -> Result<bool> {
        self.replace(partition_key, id, &[], None).await
    }

    /// Replaces the rows of an entity by those that are wanted, of whatever version or of this one; tells whether there
    /// were any.
    async fn replace(
        &self,
        partition_key: &str,
        id: &str,
        wanted: &[Row],
        version: Option<&IfMatch>,
    ) -> Result<bool> {
        let (mut races, mut gone) = (Races::default(), HashSet::new());
        loop {
            let stored = self.stored(partition_key, id).await?;
            if stored.is_none() && wanted.is_empty() {
                return Ok(false);
            }
            // The copies that there are follow from the stored version: if another one is wanted, the condition fails.
            let transaction = self.change(stored.as_ref(), wanted, version, &gone)?;
            let Err(error) = self.primaries.table.submit_transaction(&transaction, None).await
            else {
                return Ok(stored.is_some());
            };
            let failed = error.failed_operation().unwrap_or(0);
            match failed {
                // A copy that should be there is not: something else wrote the entity.
                1.. if error.is_not_found() => {
                    gone.insert(transaction.operations()[failed].row_key().to_owned());
                }
                // The entity itself: somebody was faster. A copy that is there already belongs to another entity.
                0 if version.is_none() && is_conflict(&error) => races.lost().await?,
                _ => return Err(error),
            }
        }
    }

    /// Reads an entity by its id.
    ///
    /// # Errors
    /// Those of a point query.
    pub async fn get<T: TableEntity>(
        &self,
        partition_key: &str,
        id: &str,
    ) -> Result<Option<Stored<T>>> {
        let stored = self.primaries.get(partition_key, id, None).await?;
        stored.map(|stored| stored.try_map(T::from_entity)).transpose()
    }

    /// Makes the copies in a partition those of its entities: after an index was added, or after something else wrote
    /// there. Reads the whole partition. Entities that change meanwhile keep the copies that their writers gave them.
    ///
    /// # Errors
    /// Two entities with the same unique value; those of the query and the transactions.
    pub async fn repair<T: TableEntity>(&self, partition_key: &str) -> Result<Repaired> {
        let rows = Filter::partition(partition_key) & self.all_rows();
        let rows = self.primaries.table.query_entities::<Entity>(rows);
        let (mut copies, mut entities) = (HashMap::new(), Vec::new());
        let mut rows = rows.try_filter(|row| std::future::ready(self.is_ours(row.row_key())));
        while let Some(row) = rows.try_next().await? {
            match self.is_copy(row.row_key()) {
                true => drop(copies.insert(row.row_key().to_owned(), row)),
                false => entities.push(row),
            }
        }
        let (mut repaired, mut owners) = (Repaired::default(), HashSet::new());
        for stored in entities {
            let mut entity = Row::of(&T::from_entity(self.plain(&stored)?)?)?;
            entity.entity = self.plain(&stored)?;
            let missing = self.missing(&entity, &mut copies, &mut owners)?;
            repaired.written += self.write_copies(&stored, &entity, &missing).await?;
        }
        // The copies that are left belong to nothing.
        for copy in copies.into_values() {
            let (row, table) = (copy.row_key(), &self.primaries.table);
            match table.delete_entity(partition_key, row, IfMatch::from(&copy), None).await {
                Ok(_) => repaired.removed += 1,
                // Its entity came just now, or it is gone.
                Err(error) if error.is_precondition_failed() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(repaired)
    }

    /// The copies of an entity that are missing or differ; all of its copies are taken from the others.
    fn missing(
        &self,
        entity: &Row,
        copies: &mut HashMap<String, Stored<Entity>>,
        owners: &mut HashSet<String>,
    ) -> Result<Vec<Row>> {
        let mut missing = Vec::new();
        for row in self.rows(entity)?.into_iter().skip(1) {
            if !owners.insert(row.row_key().to_owned()) {
                let key = row.row_key();
                return Err(refused(format!("two entities share a unique value: row_key={key}")));
            }
            let found = copies.remove(row.row_key());
            if !found.is_some_and(|found| row.is_same(&found)) {
                missing.push(row);
            }
        }
        Ok(missing)
    }

    async fn write_copies(
        &self,
        stored: &Stored<Entity>,
        entity: &Row,
        copies: &[Row],
    ) -> Result<usize> {
        if copies.is_empty() {
            return Ok(0);
        }
        // The entity is written as it is, so that copies of an older version never replace newer ones.
        let unchanged = Row { entity: stored.value.clone(), encrypted: entity.encrypted };
        let mut transaction = Transaction::new();
        transaction.update(&unchanged, UpdateMode::Replace, stored)?;
        for copy in copies {
            transaction.upsert(copy, UpdateMode::Replace)?;
        }
        match self.primaries.table.submit_transaction(&transaction, None).await {
            Ok(_) => Ok(copies.len()),
            Err(error) if error.is_precondition_failed() || error.is_not_found() => Ok(0),
            Err(error) => Err(error),
        }
    }

    async fn stored(&self, partition_key: &str, id: &str) -> Result<Option<Stored<Entity>>> {
        let row_key = self.primaries.row_key(id);
        self.primaries.table.get_entity_if_exists(partition_key, &row_key, None).await
    }

    /// The entity and its copies, as rows.
    fn rows(&self, entity: &Row) -> Result<Vec<Row>> {
        let (partition_key, id) = (entity.partition_key(), entity.row_key());
        if entity.value(&self.primaries.id_property).is_some() {
            return Err(refused(format!(
                "the copies hold the id in this property: property={}",
                self.primaries.id_property
            )));
        }
        let row = |mut row: Entity, key: String| {
            row.set_keys(partition_key, key);
            Row { entity: row, encrypted: entity.encrypted }
        };
        let mut rows = vec![row(entity.entity.clone(), self.primaries.row_key(id))];
        for index in &self.indexes {
            entity.check_plain(index.properties())?;
            for key in index.keys_of(entity, id)? {
                let copy = index.copy_of(entity).with(self.primaries.id_property.as_str(), id);
                rows.push(row(copy, key));
            }
        }
        Ok(rows)
    }

    /// The row keys that a stored entity and its copies have, its own first.
    fn row_keys(&self, stored: &Stored<Entity>) -> Result<Vec<String>> {
        let rows = self.rows(&Row { entity: self.plain(stored)?, encrypted: &[] })?;
        Ok(rows.into_iter().map(|mut row| row.entity.take_row_key()).collect())
    }

    /// The entity as its owner knows it.
    fn plain(&self, stored: &Entity) -> Result<Entity> {
        let mut entity = stored.clone();
        let key = stored.row_key();
        let id = key.strip_prefix(&self.primaries.prefix).unwrap_or(key);
        entity.set_keys(stored.partition_key(), KeyStyle::WHOLE.read_text(id)?);
        Ok(entity)
    }

    fn all_rows(&self) -> Filter {
        if self.primaries.prefix.is_empty() {
            return Filter::ALL;
        }
        let entities = ROW_KEY.starts_with(&self.primaries.prefix);
        self.indexes.iter().fold(entities, |rows, index| rows | ROW_KEY.starts_with(index.prefix()))
    }

    fn is_ours(&self, row_key: &str) -> bool {
        self.is_copy(row_key) || row_key.starts_with(&self.primaries.prefix)
    }

    fn is_copy(&self, row_key: &str) -> bool {
        self.indexes.iter().any(|index| row_key.starts_with(index.prefix()))
    }

    /// Turns the rows that are there into those that are wanted, in one transaction; the entity's own row comes first.
    fn change(
        &self,
        stored: Option<&Stored<Entity>>,
        wanted: &[Row],
        if_match: Option<&IfMatch>,
        gone: &HashSet<String>,
    ) -> Result<Transaction> {
        let present = stored.map_or(Ok(Vec::new()), |stored| self.row_keys(stored))?;
        let mut transaction = Transaction::new();
        for (number, row) in wanted.iter().enumerate() {
            let version = if_match.cloned().or_else(|| stored.map(IfMatch::from));
            match (number, version) {
                (0, Some(version)) => transaction.update(row, UpdateMode::Replace, version)?,
                // Replaced without a condition, and written anew if something else took it away.
                _ if present.iter().any(|key| key == row.row_key()) => {
                    transaction.upsert(row, UpdateMode::Replace)?
                }
                _ => transaction.insert(row)?,
            };
        }
        let Some(stored) = stored else { return Ok(transaction) };
        for (number, key) in present.iter().enumerate() {
            if wanted.iter().any(|row| row.row_key() == key) || gone.contains(key) {
                continue;
            }
            let version = if number == 0 { stored.into() } else { IfMatch::Any };
            transaction.delete(stored.partition_key(), key.as_str(), version)?;
        }
        Ok(transaction)
    }
}
