//! Index entities: lists of keys under a value that many entities share.
//!
//! To find all employees of a department by their last name, an index entity `Jones` in the department's partition holds
//! the ids of all that are called so, in the property `EmployeeIDs`. One look-up gives the list, and a point query each
//! entity. Lists that other programs keep in this layout are used as they are.
//!
//! **Use it** when many entities share a value and are found by it often, and the lists are wanted as such. **Do not use it**
//! for values that are unique, or for values under which thousands of keys come and go each second: all writers of a value
//! change the same entity. An [intra-partition index](super::intra_partition_index) of
//! [many](super::index::Index::many) has neither limit, and answers with the entities at once.
//!
//! **Cost**: reading a list is one point query, and one query more if it is longer than an entity; then a point query for
//! each entity, in parallel. A change reads the entity and its lists and writes one transaction, again if somebody else
//! changed one of them meanwhile. **Half-done**: nothing; [`IndexEntities::insert`], [`IndexEntities::save`] and
//! [`IndexEntities::delete`] change the entity and its lists together, also when the value changes: the entity, the list that it
//! leaves and the list that it joins. [`IndexEntities::add`] and [`IndexEntities::remove`] change a list alone, for entities
//! that lie elsewhere: add before the entity is written and remove after, so that a reader may find a key too many, which is
//! left out, and never one too few. [`IndexEntities::repair`] makes the lists of a partition right again.
//!
//! [`IndexEntities`] shows it.

mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use futures::{StreamExt, TryStreamExt, stream};

use super::index::{Index, IndexValue, Parts};
pub use super::intra_partition_index::Repaired;
use super::{Races, Row, is_conflict};
use crate::error::refused;
use crate::{
    Entity, ErrorExt, Filter, Operation, ROW_KEY, Result, Stored, TableClient, TableEntity,
    Transaction, UpdateMode, prefix_end,
};
use list::{List, ListOptions};

/// Entities of a list that are read in parallel.
const LOOK_UPS: usize = 8;

/// Lists of keys in the partitions of a table.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::index_entities::IndexEntities;
///
/// let by_name = IndexEntities::new(table, "LastName", "EmployeeIDs")?;
/// // Writes the employee `000152`, and its id into `EmployeeIDs` of the index entity `Jones`.
/// let jones = Entity::new("Sales", "000152").with("LastName", "Jones");
/// by_name.insert(&jones).await?;
/// assert_eq!(by_name.keys("Sales", "Jones").await?, ["000152"]);
/// let everyone = by_name.entities::<Entity>("Sales", "Jones").await?;
///
/// // A new name: the employee, the list of the old name and that of the new one, together.
/// by_name.save(&jones.with("LastName", "Smith")).await?;
/// let j_to_s = by_name.keys_between("Sales", "J".."T").await?;
/// by_name.delete("Sales", "000152").await?;
///
/// // A list alone, when the entity lies elsewhere; and all lists, after something else wrote entities.
/// by_name.add("Sales", "Jones", "000153").await?;
/// by_name.remove("Sales", "Jones", "000153").await?;
/// by_name.repair("Sales").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IndexEntities {
    table: TableClient,
    index: Index,
    options: ListOptions,
}

impl IndexEntities {
    /// Keeps lists of the entities with the same value of a property, or of several, in index entities whose row key is the value and whose
    /// property `list` holds the row keys.
    ///
    /// # Errors
    /// A property that can have no keys.
    pub fn new(
        table: TableClient,
        property: impl Into<Parts>,
        list: impl Into<String>,
    ) -> Result<Self> {
        let index = Index::unique("", property);
        index.check()?;
        if index.is_over_lists() {
            return Err(refused("an entity is in one list of each kind"));
        }
        Ok(Self { table, index, options: ListOptions::new(list.into()) })
    }

    /// Puts a text before the values, so that index entities and others can be told by their row keys.
    ///
    /// ```no_run
    /// # fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::patterns::index_entities::IndexEntities;
    ///
    /// // `lastname_Jones` instead of `Jones`.
    /// let by_name = IndexEntities::new(table, "LastName", "EmployeeIDs")?.prefix("lastname_");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.index = self.index.with_prefix(prefix.into());
        self
    }

    /// Separates the keys of a list by this character instead of a comma. No key has a line feed.
    ///
    /// ```no_run
    /// # fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::patterns::index_entities::IndexEntities;
    ///
    /// // Ids may have commas.
    /// let by_name =
    ///     IndexEntities::new(table, "LastName", "EmployeeIDs")?.list_separator('\n');
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn list_separator(mut self, separator: char) -> Self {
        self.options.separator = separator;
        self
    }

    /// Starts another index entity after that many UTF-16 units, instead of at the size of an entity.
    ///
    /// ```no_run
    /// # fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::patterns::index_entities::IndexEntities;
    ///
    /// // Smaller entities: less is sent for each change of a long list, and more is read for the whole.
    /// let by_name = IndexEntities::new(table, "LastName", "EmployeeIDs")?.units_per_entity(8_000);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn units_per_entity(mut self, units: usize) -> Self {
        self.options.units_per_entity = units.clamp(1, self.options.units_per_entity);
        self
    }

    /// The row keys under a value, sorted.
    ///
    /// # Errors
    /// Those of a query.
    pub async fn keys(
        &self,
        partition_key: &str,
        value: impl Into<IndexValue>,
    ) -> Result<Vec<String>> {
        let row_key = self.index.whole_key(&value.into())?;
        let list = List::read(&self.table, partition_key, &row_key, &self.options).await?;
        Ok(list.keys().into_iter().collect())
    }

    /// The row keys under the values of a range, in the order of the values.
    ///
    /// # Errors
    /// Those of a query.
    pub async fn keys_between<V: Into<IndexValue> + Clone>(
        &self,
        partition_key: &str,
        values: impl RangeBounds<V>,
    ) -> Result<Vec<String>> {
        let row_key = |value: &V| self.index.whole_key(&value.clone().into());
        let from = match values.start_bound() {
            Bound::Included(value) => ROW_KEY.ge(row_key(value)?),
            Bound::Excluded(value) => ROW_KEY.gt(row_key(value)?),
            Bound::Unbounded => ROW_KEY.ge(self.index.prefix()),
        };
        let to = match values.end_bound() {
            Bound::Included(value) => ROW_KEY.le(row_key(value)?),
            Bound::Excluded(value) => ROW_KEY.lt(row_key(value)?),
            Bound::Unbounded => {
                prefix_end(self.index.prefix()).map_or(Filter::ALL, |end| ROW_KEY.lt(end))
            }
        };
        let filter = Filter::partition(partition_key) & from & to;
        let mut rows = self.table.query_entities::<Entity>(filter);
        let mut keys = Vec::new();
        while let Some(row) = rows.try_next().await? {
            let list = list::first_row_key(row.row_key());
            match self.options.keys_of(&row) {
                // What a list has in further entities is read with its first one.
                Some(_) if list != row.row_key() => {}
                Some(_) if self.options.is_long(&row) => {
                    let list = List::read(&self.table, partition_key, list, &self.options).await?;
                    keys.extend(list.keys());
                }
                Some(found) => keys.extend(found),
                None => {}
            }
        }
        Ok(keys)
    }

    /// The entities under a value, in the order of their keys. Those that are gone or have another value by now are left out.
    ///
    /// # Errors
    /// Those of the query and the look-ups.
    pub async fn entities<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        value: impl Into<IndexValue>,
    ) -> Result<Vec<Stored<T>>> {
        let value = value.into();
        let row_key = self.index.whole_key(&value)?;
        let keys = self.keys(partition_key, value).await?;
        let look_ups = keys.into_iter().map(|key| async move {
            self.table.get_entity_if_exists::<Entity>(partition_key, &key, None).await
        });
        let found: Vec<_> = stream::iter(look_ups).buffered(LOOK_UPS).try_collect().await?;
        let mut entities = Vec::new();
        for stored in found.into_iter().flatten() {
            if self.list_of(&stored)?.as_deref() == Some(&row_key) {
                entities.push(stored.try_map(T::from_entity)?);
            }
        }
        Ok(entities)
    }

    /// Adds an entity, and its key to the list of its value, together.
    ///
    /// # Errors
    /// `EntityAlreadyExists`; a value that cannot be a key; a list that others change in every attempt.
    pub async fn insert<T: TableEntity>(&self, entity: &T) -> Result<()> {
        let row = Row::of(entity)?;
        let joined = self.list_of_row(&row)?;
        let insert = Operation::insert(entity)?;
        let mut races = Races::default();
        loop {
            let lists = self.moved(&row, None, joined.as_deref()).await?;
            if self.submitted(insert.clone(), lists, &mut races).await? {
                return Ok(());
            }
        }
    }

    /// Writes an entity over whatever version there is, and moves its key from the list of its old value to that of its
    /// new one, together.
    ///
    /// # Errors
    /// A value that cannot be a key; an entity or a list that others change in every attempt.
    pub async fn save<T: TableEntity>(&self, entity: &T) -> Result<()> {
        let row = Row::of(entity)?;
        let joined = self.list_of_row(&row)?;
        let mut races = Races::default();
        loop {
            let stored = self.stored(row.partition_key(), row.row_key()).await?;
            let left = stored.as_ref().map(|stored| self.list_of(stored)).transpose()?.flatten();
            let write = match &stored {
                Some(stored) => Operation::update(&row, UpdateMode::Replace, stored)?,
                None => Operation::insert(&row)?,
            };
            let lists = self.moved(&row, left.as_deref(), joined.as_deref()).await?;
            match self.submitted(write, lists, &mut races).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // Somebody changed the entity since it was read.
                Err(error) if is_conflict(&error) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes an entity and takes its key from the list of its value, together; tells whether there was one.
    ///
    /// # Errors
    /// An entity or a list that others change in every attempt.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        let mut races = Races::default();
        loop {
            let Some(stored) = self.stored(partition_key, row_key).await? else { return Ok(false) };
            let left = self.list_of(&stored)?;
            let delete = Operation::delete(partition_key, row_key, &stored)?;
            let lists = self.moved(&stored, left.as_deref(), None).await?;
            match self.submitted(delete, lists, &mut races).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if is_conflict(&error) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds a key to the list of a value; nothing happens if it is there.
    ///
    /// # Errors
    /// A list that others change in every attempt.
    pub async fn add(
        &self,
        partition_key: &str,
        value: impl Into<IndexValue>,
        row_key: &str,
    ) -> Result<()> {
        let list = self.index.whole_key(&value.into())?;
        self.change_list(partition_key, &list, |list| list.add(row_key)).await.map(|_| ())
    }

    /// Takes a key from the list of a value; nothing happens if it is not there.
    ///
    /// # Errors
    /// A list that others change in every attempt.
    pub async fn remove(
        &self,
        partition_key: &str,
        value: impl Into<IndexValue>,
        row_key: &str,
    ) -> Result<()> {
        let list = self.index.whole_key(&value.into())?;
        self.change_list(partition_key, &list, |list| list.remove(row_key)).await.map(|_| ())
    }

    /// Makes the lists of a partition those of its entities, after something else wrote entities or a list was changed
    /// alone. Reads the whole partition.
    ///
    /// # Errors
    /// Those of the query and the changes.
    pub async fn repair(&self, partition_key: &str) -> Result<Repaired> {
        let rows = self.table.query_entities::<Entity>(Filter::partition(partition_key));
        let (mut wanted, mut present) = (BTreeMap::new(), BTreeMap::new());
        let mut rows = rows;
        while let Some(row) = rows.try_next().await? {
            let key = row.row_key().to_owned();
            match self.options.keys_of(&row).filter(|_| key.starts_with(self.index.prefix())) {
                Some(keys) => list_entry(&mut present, list::first_row_key(&key)).extend(keys),
                None => {
                    if let Some(list) = self.list_of(&row)? {
                        list_entry(&mut wanted, &list).insert(key);
                    }
                }
            }
        }
        let mut repaired = Repaired::default();
        let lists: BTreeSet<_> = wanted.keys().chain(present.keys()).cloned().collect();
        let none = BTreeSet::new();
        for list in lists {
            let wanted = wanted.get(&list).unwrap_or(&none);
            let present = present.get(&list).unwrap_or(&none);
            for key in wanted.difference(present) {
                let added = self.change_list(partition_key, &list, |list| list.add(key)).await?;
                repaired.written += usize::from(added);
            }
            for key in present.difference(wanted) {
                // Asked again: its entity may have come meanwhile.
                let stored = self.stored(partition_key, key).await?;
                let is_in = stored.map(|stored| self.list_of(&stored)).transpose()?.flatten();
                if is_in.as_ref() != Some(&list) {
                    let change = |list: &List| list.remove(key);
                    let removed = self.change_list(partition_key, &list, change).await?;
                    repaired.removed += usize::from(removed);
                }
            }
        }
        Ok(repaired)
    }

    /// Changes a list alone; tells whether there was something to change.
    async fn change_list(
        &self,
        partition_key: &str,
        row_key: &str,
        change: impl Fn(&List) -> Result<Vec<Operation>>,
    ) -> Result<bool> {
        let mut races = Races::default();
        loop {
            let list = List::read(&self.table, partition_key, row_key, &self.options).await?;
            let operations = change(&list)?;
            if operations.is_empty() {
                return Ok(false);
            }
            match self.submit(operations).await {
                Ok(()) => return Ok(true),
                Err(error) if is_conflict(&error) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// The operations that take an entity from one list to another.
    async fn moved(
        &self,
        entity: &Entity,
        left: Option<&str>,
        joined: Option<&str>,
    ) -> Result<Vec<Operation>> {
        let (partition_key, id) = (entity.partition_key(), entity.row_key());
        let mut operations = Vec::new();
        if let Some(left) = left.filter(|left| Some(*left) != joined) {
            let list = List::read(&self.table, partition_key, left, &self.options).await?;
            operations.extend(list.remove(id)?);
        }
        if let Some(joined) = joined {
            let list = List::read(&self.table, partition_key, joined, &self.options).await?;
            operations.extend(list.add(id)?);
        }
        Ok(operations)
    }

    /// Changes an entity and its lists; `false` when a list was changed by somebody else, after a pause.
    async fn submitted(
        &self,
        entity: Operation,
        lists: Vec<Operation>,
        races: &mut Races,
    ) -> Result<bool> {
        // The entity comes first, so that its failure is told from that of a list.
        let operations = std::iter::once(entity).chain(lists).collect();
        match self.submit(operations).await {
            Ok(()) => Ok(true),
            Err(error)
                if is_conflict(&error) && error.failed_operation().is_some_and(|at| at > 0) =>
            {
                races.lost().await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn submit(&self, operations: Vec<Operation>) -> Result<()> {
        let mut transaction = Transaction::new();
        for operation in operations {
            transaction.push(operation)?;
        }
        self.table.submit_transaction(&transaction, None).await.map(|_| ())
    }

    async fn stored(&self, partition_key: &str, row_key: &str) -> Result<Option<Stored<Entity>>> {
        self.table.get_entity_if_exists(partition_key, row_key, None).await
    }

    fn list_of_row(&self, row: &Row) -> Result<Option<String>> {
        row.check_plain(self.index.properties())?;
        self.list_of(row)
    }

    /// The row key of the list that an entity belongs to.
    fn list_of(&self, entity: &Entity) -> Result<Option<String>> {
        Ok(self.index.keys_of(entity, entity.row_key())?.pop())
    }
}

fn list_entry<'m>(
    lists: &'m mut BTreeMap<String, BTreeSet<String>>,
    row_key: &str,
) -> &'m mut BTreeSet<String> {
    lists.entry(row_key.to_owned()).or_default()
}
