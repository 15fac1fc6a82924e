//! Index entities: lists of keys under a value that many entities share.
//!
//! To find all employees of a department by their last name, an index entity `lastname_Jones` in the department's partition
//! holds the ids of all that are called so. One look-up gives the list, and a point query each entity.
//!
//! **Use it** when many entities share a value and are found by it often. **Do not use it** for values that are unique (an
//! [intra-partition index](super::intra_partition_index) is simpler), or for values under which thousands of keys come and go
//! each second: all writers of a value change the same entity.
//!
//! **Cost**: reading a list is one query, over as many index entities as the list needs; then a point query for each entity,
//! in parallel. A change is one such query and one conditional write, or one transaction with the entity itself. A list
//! above the size of an entity goes on in the next one. **Half-done**: [`IndexEntities::insert`] and
//! [`IndexEntities::delete`] change the entity and the list in one transaction. [`IndexEntities::add`] and
//! [`IndexEntities::remove`] change the list alone: between that and your change of the entity, a reader can find a key
//! without its entity, or the other way round.
//!
//! [`IndexEntities`] shows it.

use futures::{StreamExt, TryStreamExt, stream};

use super::Races;
use super::compound_key::KeyPart;
use crate::clients::{IfMatch, QueryOptions, TableClient, UpdateMode};
use crate::entity::{Entity, Stored, TableEntity};
use crate::error::{ErrorExt, Result};
use crate::filter::{Filter, ROW_KEY};
use crate::transaction::{Operation, Transaction};

/// Between the keys of a list: no key has one.
const LINE: char = '\n';
/// UTF-16 units of a list in one property, below the 32,768 that a string may have.
const UNITS_PER_PROPERTY: usize = 30_000;
/// Properties of an index entity, below the 1 MiB that an entity may have.
const PROPERTIES_PER_ENTITY: usize = 16;
/// Entities of a list that are read in parallel.
const LOOK_UPS: usize = 8;

/// Lists of keys in the partitions of a table.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::index_entities::IndexEntities;
///
/// let by_name = IndexEntities::new(table, "lastname_");
/// by_name.insert(&Entity::new("Sales", "000152").with("FirstName", "Jens"), "Jones").await?;
/// assert_eq!(by_name.keys("Sales", "Jones").await?, ["000152"]);
/// let everyone = by_name.entities::<Entity>("Sales", "Jones").await?;
/// by_name.delete("Sales", "000152", "Jones").await?;
///
/// // The list alone, when the entity is there already or changes elsewhere.
/// by_name.add("Sales", "Jones", "000153").await?;
/// by_name.remove("Sales", "Jones", "000153").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IndexEntities {
    table: TableClient,
    prefix: String,
    units_per_entity: usize,
}

/// One entity of a list.
struct Shelf {
    stored: Stored<Entity>,
    keys: Vec<String>,
}

impl IndexEntities {
    /// Keeps lists under this prefix, which no other row key in the table may start with.
    pub fn new(table: TableClient, prefix: impl Into<String>) -> Self {
        let units_per_entity = UNITS_PER_PROPERTY * PROPERTIES_PER_ENTITY;
        Self { table, prefix: prefix.into(), units_per_entity }
    }

    /// Starts another index entity after so many UTF-16 units, instead of at the size of an entity.
    ///
    /// ```no_run
    /// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::patterns::index_entities::IndexEntities;
    ///
    /// // Smaller entities: less is sent for each change of a long list, and more is read for the whole.
    /// let by_name = IndexEntities::new(table, "lastname_").with_units_per_entity(8_000);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_units_per_entity(mut self, units: usize) -> Self {
        self.units_per_entity = units.clamp(1, self.units_per_entity);
        self
    }

    /// The row keys under a value, sorted.
    ///
    /// # Errors
    /// Those of a query.
    pub async fn keys(&self, partition_key: &str, value: &str) -> Result<Vec<String>> {
        let shelves = self.shelves(partition_key, value).await?;
        let mut keys: Vec<_> = shelves.into_iter().flat_map(|shelf| shelf.keys).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// The entities under a value, in the order of their keys; those that are gone are left out.
    ///
    /// # Errors
    /// Those of the query and the look-ups.
    pub async fn entities<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        value: &str,
    ) -> Result<Vec<Stored<T>>> {
        let keys = self.keys(partition_key, value).await?;
        let look_ups = keys.into_iter().map(|key| async move {
            self.table.get_entity_if_exists::<T>(partition_key, &key, None).await
        });
        let found: Vec<_> = stream::iter(look_ups).buffered(LOOK_UPS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Adds an entity and its key to the list of a value, together.
    ///
    /// # Errors
    /// `EntityAlreadyExists`; a list that others change in every attempt.
    pub async fn insert<T: TableEntity>(&self, entity: &T, value: &str) -> Result<()> {
        let insert = Operation::insert(entity)?;
        let (partition_key, row_key) =
            (insert.partition_key().to_owned(), insert.row_key().to_owned());
        self.change(&partition_key, value, Some(insert), |shelves| {
            self.added(&partition_key, value, &row_key, shelves)
        })
        .await
    }

    /// Deletes an entity and takes its key from the list of a value, together.
    ///
    /// # Errors
    /// `ResourceNotFound` when there is no such entity; a list that others change in every attempt.
    pub async fn delete(&self, partition_key: &str, row_key: &str, value: &str) -> Result<()> {
        let delete = Operation::delete(partition_key, row_key, IfMatch::Any)?;
        self.change(partition_key, value, Some(delete), |shelves| removed(row_key, shelves)).await
    }

    /// Adds a key to the list of a value; nothing happens if it is there.
    ///
    /// # Errors
    /// A list that others change in every attempt.
    pub async fn add(&self, partition_key: &str, value: &str, row_key: &str) -> Result<()> {
        self.change(partition_key, value, None, |shelves| {
            self.added(partition_key, value, row_key, shelves)
        })
        .await
    }

    /// Takes a key from the list of a value; nothing happens if it is not there.
    ///
    /// # Errors
    /// A list that others change in every attempt.
    pub async fn remove(&self, partition_key: &str, value: &str, row_key: &str) -> Result<()> {
        self.change(partition_key, value, None, |shelves| removed(row_key, shelves)).await
    }

    /// Reads the list, changes it, and writes it if nobody else did meanwhile; else does it all again.
    async fn change(
        &self,
        partition_key: &str,
        value: &str,
        with: Option<Operation>,
        change: impl Fn(&[Shelf]) -> Result<Option<Operation>>,
    ) -> Result<()> {
        let mut races = Races::default();
        loop {
            let shelves = self.shelves(partition_key, value).await?;
            let mut transaction = Transaction::new();
            // The entity comes first, so that its failure is told from that of the list.
            for operation in with.iter().cloned().chain(change(&shelves)?) {
                transaction.push(operation)?;
            }
            match self.table.submit_transaction(&transaction, None).await {
                Ok(_) => return Ok(()),
                Err(error) if with.is_some() && error.failed_operation() == Some(0) => {
                    return Err(error);
                }
                Err(error) if error.is_precondition_failed() || error.is_already_there() => {
                    races.lost().await?;
                }
                Err(error) if error.is_not_found() && error.failed_operation().is_some() => {
                    races.lost().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn shelves(&self, partition_key: &str, value: &str) -> Result<Vec<Shelf>> {
        let start = format!("{} ", self.base(value));
        let filter = Filter::partition(partition_key) & ROW_KEY.starts_with(&start);
        let options = QueryOptions::from(filter);
        let found = self.table.query_entities::<Entity>(options);
        found.map_ok(Shelf::read).try_collect().await
    }

    fn added(
        &self,
        partition_key: &str,
        value: &str,
        row_key: &str,
        shelves: &[Shelf],
    ) -> Result<Option<Operation>> {
        if shelves.iter().any(|shelf| shelf.keys.iter().any(|key| key == row_key)) {
            return Ok(None);
        }
        let room = self.units_per_entity.saturating_sub(units(row_key) + 1);
        match shelves.iter().find(|shelf| shelf.units() <= room) {
            Some(shelf) => {
                let mut keys = shelf.keys.clone();
                let at = keys.partition_point(|key| key.as_str() < row_key);
                keys.insert(at, row_key.to_owned());
                let changed = write(partition_key, shelf.stored.row_key(), &keys);
                Operation::update(&changed, UpdateMode::Replace, &shelf.stored).map(Some)
            }
            None => {
                let taken = |row: &str| shelves.iter().any(|shelf| shelf.stored.row_key() == row);
                let row = (0..)
                    .map(|number: usize| format!("{} {number:04}", self.base(value)))
                    .find(|row| !taken(row))
                    .expect("there are more numbers than shelves");
                Operation::insert(&write(partition_key, &row, &[row_key.to_owned()])).map(Some)
            }
        }
    }

    fn base(&self, value: &str) -> String {
        let mut base = self.prefix.clone();
        value.to_owned().write_part(&mut base);
        base
    }
}

fn removed(row_key: &str, shelves: &[Shelf]) -> Result<Option<Operation>> {
    let Some(shelf) = shelves.iter().find(|shelf| shelf.keys.iter().any(|key| key == row_key))
    else {
        return Ok(None);
    };
    let (partition_key, shelf_key) = (shelf.stored.partition_key(), shelf.stored.row_key());
    let keys: Vec<_> = shelf.keys.iter().filter(|key| *key != row_key).cloned().collect();
    match keys.is_empty() {
        true => Operation::delete(partition_key, shelf_key, &shelf.stored).map(Some),
        false => {
            let changed = write(partition_key, shelf_key, &keys);
            Operation::update(&changed, UpdateMode::Replace, &shelf.stored).map(Some)
        }
    }
}

impl Shelf {
    fn read(stored: Stored<Entity>) -> Self {
        let keys = (0..)
            .map_while(|number| stored.get::<String>(&property(number)).ok())
            .flat_map(|list| list.split(LINE).map(str::to_owned).collect::<Vec<_>>())
            .collect();
        Self { stored, keys }
    }

    fn units(&self) -> usize {
        self.keys.iter().map(|key| units(key) + 1).sum()
    }
}

/// Writes a list into as many properties as it needs.
fn write(partition_key: &str, row_key: &str, keys: &[String]) -> Entity {
    let mut entity = Entity::new(partition_key, row_key);
    let (mut list, mut list_units, mut number) = (String::new(), 0, 0);
    for key in keys {
        if list_units > 0 && list_units + units(key) + 1 > UNITS_PER_PROPERTY {
            entity.set(property(number), std::mem::take(&mut list));
            (list_units, number) = (0, number + 1);
        }
        if list_units > 0 {
            list.push(LINE);
        }
        list.push_str(key);
        // An empty key counts too, so that it gets its line.
        list_units += units(key) + 1;
    }
    entity.with(property(number), list)
}

fn property(number: usize) -> String {
    format!("Keys{number:02}")
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_takes_several_properties() {
        let keys: Vec<_> = (0..10_000).map(|index| format!("{index:08}")).collect();
        let entity = write("p", "r", &keys);
        assert_eq!(entity.properties().len(), 4);
        for (_, value) in entity.properties() {
            assert!(value.stored_bytes() < 64 * 1024);
        }
        let shelf = Shelf::read(Stored::new(entity, "e"));
        assert_eq!(shelf.keys, keys);
        assert_eq!(shelf.units(), 90_000);
    }

    #[test]
    fn the_largest_list_fits_into_an_entity() {
        let keys: Vec<_> = (0..PROPERTIES_PER_ENTITY)
            .map(|index| format!("{index:03}{}", "x".repeat(UNITS_PER_PROPERTY - 4)))
            .collect();
        let entity = write("p", "r", &keys);
        assert_eq!(entity.properties().len(), PROPERTIES_PER_ENTITY);
        assert!(entity.stored_bytes() <= tavola_wire::table::stored::ENTITY_BYTES_MAX);
    }
}
