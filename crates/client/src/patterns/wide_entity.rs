//! Wide entities: more properties, or more bytes, than one entity takes, as several rows that are one.
//!
//! The properties are dealt out over rows `key_000`, `key_001`, ... of one partition, which are written in one transaction
//! and read with one query over a range of row keys.
//!
//! **Use it** when an entity needs more than 252 properties or more than 1 MiB, and still must change as a whole: a count
//! for each of the 365 days of a year. **Do not use it** when a part is enough for most readers (use entities of their own),
//! or for large contents such as pictures, which belong into blobs.
//!
//! **Cost**: a write is one query for the rows that are there and one transaction; a merge of known properties one query
//! for the versions of the rows and one transaction over the rows that hold them; a read is one query over as many rows as
//! were needed. At most 99 rows and 4 MiB fit. **Half-done**: writers replace all rows at once. A reader whose answer comes
//! in several pages can see pages of two versions; every row carries the version, and the read is done again if they differ.
//!
//! [`WideEntities`] shows it.

use futures::TryStreamExt;
use tavola_wire::table::stored::{ENTITY_BYTES_MAX, PROPERTIES_MAX};

use super::{Races, Row, is_conflict};
use crate::error::refused;
use crate::{
    EdmValue, Entity, Filter, IfMatch, QueryOptions, ROW_KEY, Result, Stored,
    TRANSACTION_OPERATIONS_MAX, TableClient, TableEntity, Transaction, UpdateMode, Uuid,
};

/// Marks every row of a version.
const VERSION: &str = "WideVersion";
/// The number of rows, in each.
const ROWS: &str = "WideRows";
/// Room for the marks.
const MARK_BYTES: usize = 128;
/// Digits of a row's number.
const ROW_DIGITS: usize = 3;
/// Properties that a merge asks for by name; with more, the whole entity is read.
const SELECTED_MAX: usize = 200;

/// A table of entities that may be wider than one.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::wide_entity::WideEntities;
///
/// let mut messages = Entity::new("Sales", "000123_2026");
/// for day in 1..=365 {
///     messages.set(format!("Day{day:03}"), 0);
/// }
/// let years = WideEntities::new(table);
/// years.upsert(&messages).await?;
/// // One day: changes the row that holds it, and no other.
/// years.merge(&Entity::new("Sales", "000123_2026").with("Day319", 12)).await?;
/// let year = years.get::<Entity>("Sales", "000123_2026").await?;
/// assert!(years.delete("Sales", "000123_2026").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WideEntities {
    table: TableClient,
}

impl WideEntities {
    /// Keeps wide entities in this table.
    pub fn new(table: TableClient) -> Self {
        Self { table }
    }

    /// Writes an entity whole, over whatever version there is.
    ///
    /// # Errors
    /// An entity that does not fit into a transaction; a partition where others win every time.
    pub async fn upsert<T: TableEntity>(&self, entity: &T) -> Result<()> {
        let parts = split(&Row::of(entity)?)?;
        let (partition_key, row_key) = keys_of(&parts[0]);
        let mut races = Races::default();
        loop {
            let present = self.rows(partition_key, row_key, Some(vec![VERSION.into()])).await?;
            if self.submitted(&replace(&present, &parts)?, &mut races).await? {
                return Ok(());
            }
        }
    }

    /// Writes the properties that this entity has, and leaves the others as they are; makes an entity if there is none.
    ///
    /// # Errors
    /// As [`WideEntities::upsert`].
    pub async fn merge<T: TableEntity>(&self, entity: &T) -> Result<()> {
        let change = Row::of(entity)?;
        let (partition_key, row_key) = (change.partition_key(), change.row_key());
        let mut names: Vec<_> = change.properties().map(|(name, _)| name.to_owned()).collect();
        names.push(VERSION.to_owned());
        let is_selected = names.len() <= SELECTED_MAX;
        let mut races = Races::default();
        loop {
            let select = is_selected.then(|| names.clone());
            let present = self.rows(partition_key, row_key, select).await?;
            let transaction = match merged(&present, &change)? {
                Some(transaction) => transaction,
                // A property that no row has needs room, which only the whole tells.
                None => self.widened(partition_key, row_key, &change, &mut races).await?,
            };
            if self.submitted(&transaction, &mut races).await? {
                return Ok(());
            }
        }
    }

    /// The whole entity with the change in it.
    async fn widened(
        &self,
        partition_key: &str,
        row_key: &str,
        change: &Row,
        races: &mut Races,
    ) -> Result<Transaction> {
        loop {
            let present = self.rows(partition_key, row_key, None).await?;
            let mut whole = match join(partition_key, row_key, &present)? {
                Joined::Nothing => Entity::new(partition_key, row_key),
                Joined::Whole(entity) => entity,
                Joined::Torn => {
                    races.lost().await?;
                    continue;
                }
            };
            for (name, value) in change.properties() {
                whole.set(name, value.clone());
            }
            let parts = split(&Row { entity: whole, encrypted: change.encrypted })?;
            return replace(&present, &parts);
        }
    }

    /// Reads an entity whole.
    ///
    /// # Errors
    /// Those of a query; an entity that others change faster than it can be read.
    pub async fn get<T: TableEntity>(
        &self,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<T>> {
        let mut races = Races::default();
        loop {
            let rows = self.rows(partition_key, row_key, None).await?;
            match join(partition_key, row_key, &rows)? {
                Joined::Nothing => return Ok(None),
                Joined::Whole(entity) => return T::from_entity(entity).map(Some),
                Joined::Torn => races.lost().await?,
            }
        }
    }

    /// Deletes an entity whole; tells whether there was one.
    ///
    /// # Errors
    /// Those of a query and a transaction.
    pub async fn delete(&self, partition_key: &str, row_key: &str) -> Result<bool> {
        let mut races = Races::default();
        loop {
            let present = self.rows(partition_key, row_key, Some(vec![VERSION.into()])).await?;
            if present.is_empty() {
                return Ok(false);
            }
            if self.submitted(&replace(&present, &[])?, &mut races).await? {
                return Ok(true);
            }
        }
    }

    /// The rows of an entity. Rows of others may lie between, whose keys go on in another way.
    async fn rows(
        &self,
        partition_key: &str,
        row_key: &str,
        select: Option<Vec<String>>,
    ) -> Result<Vec<Stored<Entity>>> {
        let rows = ROW_KEY.between(&part_key(row_key, 0), &format!("{row_key}_:"));
        let filter = Some(Filter::partition(partition_key) & rows);
        let found: Vec<_> = self
            .table
            .query_entities::<Entity>(QueryOptions { filter, select, ..Default::default() })
            .try_collect()
            .await?;
        Ok(found.into_iter().filter(|row| is_part(row.row_key(), row_key)).collect())
    }

    /// Submits a change; `false` when somebody else was faster, after a pause.
    async fn submitted(&self, transaction: &Transaction, races: &mut Races) -> Result<bool> {
        match self.table.submit_transaction(transaction, None).await {
            Ok(_) => Ok(true),
            Err(error) if is_conflict(&error) => races.lost().await.map(|()| false),
            Err(error) => Err(error),
        }
    }
}

fn part_key(row_key: &str, number: usize) -> String {
    format!("{row_key}_{number:0ROW_DIGITS$}")
}

fn is_part(part: &str, row_key: &str) -> bool {
    let number = part.strip_prefix(row_key).and_then(|rest| rest.strip_prefix('_'));
    number.is_some_and(|number| {
        number.len() == ROW_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The keys of the entity that a row is part of.
fn keys_of(part: &Row) -> (&str, &str) {
    let key = part.row_key();
    (part.partition_key(), &key[..key.len() - ROW_DIGITS - 1])
}

/// Deals the properties out over rows that each fit.
fn split(entity: &Row) -> Result<Vec<Row>> {
    let version = Uuid::new_v4();
    let row = |number: usize| Row {
        entity: Entity::new(entity.partition_key(), part_key(entity.row_key(), number))
            .with(VERSION, version),
        encrypted: entity.encrypted,
    };
    let mut parts = vec![row(0)];
    for (name, value) in entity.properties() {
        let last = parts.last().expect("there is a first row");
        let bytes = 8 + 2 * name.encode_utf16().count() + value.stored_bytes();
        let is_full = last.properties().len() + 2 > PROPERTIES_MAX
            || last.stored_bytes() + bytes + MARK_BYTES > ENTITY_BYTES_MAX;
        if is_full {
            parts.push(row(parts.len()));
        }
        parts.last_mut().expect("there is a last row").entity.set(name, value.clone());
    }
    // One place in the transaction is left, so that a version with one row more can be replaced too.
    if parts.len() >= TRANSACTION_OPERATIONS_MAX {
        return Err(refused(format!("a wide entity has at most 99 rows: rows={}", parts.len())));
    }
    let count = i32::try_from(parts.len()).expect("less than a hundred");
    for part in &mut parts {
        part.entity.set(ROWS, count);
    }
    Ok(parts)
}

/// Replaces the rows that are there by the parts: each change is conditional, so that two writers cannot mix.
fn replace(present: &[Stored<Entity>], parts: &[Row]) -> Result<Transaction> {
    let mut transaction = Transaction::new();
    for part in parts {
        match present.iter().find(|row| row.row_key() == part.row_key()) {
            Some(row) => transaction.update(part, UpdateMode::Replace, IfMatch::from(row))?,
            None => transaction.insert(part)?,
        };
    }
    for row in present {
        if !parts.iter().any(|part| part.row_key() == row.row_key()) {
            transaction.delete(row.partition_key(), row.row_key(), IfMatch::from(row))?;
        }
    }
    Ok(transaction)
}

/// Merges each property into the row that has it; `None` if one has none yet. A change of several rows gives all of them a
/// new version, so that a reader who saw one of them before and another after begins again.
fn merged(present: &[Stored<Entity>], change: &Row) -> Result<Option<Transaction>> {
    let mut rows: Vec<_> =
        present.iter().map(|row| (row, Entity::new(row.partition_key(), row.row_key()))).collect();
    for (name, value) in change.properties() {
        let holder = rows.iter_mut().find(|(row, _)| row.value(name).is_some());
        let Some((row, part)) = holder else { return Ok(None) };
        // A longer text may not fit where the old one did.
        if row.value(name).map_or(0, EdmValue::stored_bytes) < value.stored_bytes() {
            return Ok(None);
        }
        part.set(name, value.clone());
    }
    let changed = rows.iter().filter(|(_, part)| part.properties().len() > 0).count();
    let version = (changed > 1).then(Uuid::new_v4);
    let mut transaction = Transaction::new();
    for (row, mut part) in rows {
        if let Some(version) = version {
            part.set(VERSION, version);
        }
        if part.properties().len() > 0 {
            let part = Row { entity: part, encrypted: change.encrypted };
            transaction.update(&part, UpdateMode::Merge, row)?;
        }
    }
    Ok(Some(transaction))
}

enum Joined {
    Nothing,
    Whole(Entity),
    Torn,
}

fn join(partition_key: &str, row_key: &str, rows: &[Stored<Entity>]) -> Result<Joined> {
    let Some(first) = rows.first() else { return Ok(Joined::Nothing) };
    let (version, count): (Uuid, i32) = (first.get(VERSION)?, first.get(ROWS)?);
    if usize::try_from(count) != Ok(rows.len()) {
        return Ok(Joined::Torn);
    }
    let mut whole = Entity::new(partition_key, row_key);
    for row in rows {
        if row.get::<Uuid>(VERSION)? != version {
            return Ok(Joined::Torn);
        }
        for (name, value) in row.properties().filter(|(name, _)| ![VERSION, ROWS].contains(name)) {
            whole.set(name, value.clone());
        }
    }
    Ok(Joined::Whole(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(row: Row) -> Stored<Entity> {
        Stored::new(row.entity, "e")
    }

    fn split(entity: &Entity) -> Result<Vec<Row>> {
        super::split(&Row { entity: entity.clone(), encrypted: &[] })
    }

    #[test]
    fn what_is_split_is_joined_again() {
        let mut entity = Entity::new("p", "r");
        for index in 0..600 {
            entity.set(format!("P{index}"), index);
        }
        let parts = split(&entity).unwrap();
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.properties().len() <= PROPERTIES_MAX));
        let rows: Vec<_> = parts.into_iter().map(stored).collect();
        let Joined::Whole(joined) = join("p", "r", &rows).unwrap() else { panic!("not whole") };
        assert_eq!(joined, entity);
    }

    #[test]
    fn large_values_are_dealt_out_by_bytes() {
        let mut entity = Entity::new("p", "r");
        for index in 0..40 {
            entity.set(format!("P{index}"), "x".repeat(32 * 1024));
        }
        let parts = split(&entity).unwrap();
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.stored_bytes() <= ENTITY_BYTES_MAX));
    }

    #[test]
    fn rows_of_two_versions_are_torn() {
        let mut entity = Entity::new("p", "r");
        for index in 0..300 {
            entity.set(format!("P{index}"), index);
        }
        let (old, new) = (split(&entity).unwrap(), split(&entity).unwrap());
        let mixed = vec![stored(old[0].clone()), stored(new[1].clone())];
        assert!(matches!(join("p", "r", &mixed).unwrap(), Joined::Torn));
        assert!(matches!(join("p", "r", &[stored(old[0].clone())]).unwrap(), Joined::Torn));
        assert!(matches!(join("p", "r", &[]).unwrap(), Joined::Nothing));
    }

    #[test]
    fn a_merge_changes_the_rows_that_hold_its_properties() {
        let mut entity = Entity::new("p", "r");
        for index in 0..600 {
            entity.set(format!("P{index:03}"), index);
        }
        let rows: Vec<_> = split(&entity).unwrap().into_iter().map(stored).collect();
        let change = |names: &[&str]| {
            let mut entity = Entity::new("p", "r");
            for name in names {
                entity.set(*name, 7);
            }
            merged(&rows, &Row { entity, encrypted: &[] }).unwrap()
        };
        let one = change(&["P300"]).unwrap();
        assert_eq!(one.operations()[0].row_key(), "r_001");
        assert_eq!(one.len(), 1);
        assert_eq!(change(&["P001", "P300"]).unwrap().len(), 3, "all rows get the version");
        assert!(change(&["Q"]).is_none(), "a new one needs room");
    }

    #[test]
    fn rows_of_entities_with_longer_keys_are_told_apart() {
        assert!(is_part("000123_000", "000123"));
        for other in ["000123_2012_000", "000123", "000123_00", "000123_00a", "0001234_000"] {
            assert!(!is_part(other, "000123"), "{other}");
        }
    }
}
