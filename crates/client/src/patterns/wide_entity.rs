//! Wide entities: more properties, or more bytes, than one entity takes, as several rows that are one.
//!
//! The properties are dealt out over rows `key 000`, `key 001`, ... of one partition, which are written in one transaction
//! and read with one query over a range of row keys.
//!
//! **Use it** when an entity needs more than 252 properties or more than 1 MiB, and still must change as a whole. **Do not
//! use it** when a part is enough for most readers (use entities of their own), or for large contents such as pictures, which
//! belong into blobs.
//!
//! **Cost**: a write is one query for the rows that are there and one transaction; a read is one query over as many rows as
//! were needed. At most 99 rows and 4 MiB fit. **Half-done**: writers replace all rows at once. A reader whose answer comes
//! in several pages can see pages of two versions; every row carries the version, and the read is done again if they differ.
//!
//! [`WideEntities`] shows it.

use azure_core::Uuid;
use futures::TryStreamExt;
use tavola_wire::table::stored::{ENTITY_BYTES_MAX, PROPERTIES_MAX};

use super::Races;
use crate::clients::{IfMatch, QueryOptions, TableClient, UpdateMode};
use crate::entity::{Entity, Stored};
use crate::error::{ErrorExt, Result, refused};
use crate::filter::{Filter, ROW_KEY};
use crate::transaction::{TRANSACTION_OPERATIONS_MAX, Transaction};

/// Marks every row of a version.
const VERSION: &str = "WideVersion";
/// The number of rows, in each.
const ROWS: &str = "WideRows";
/// Room for the marks.
const MARK_BYTES: usize = 128;

/// A table of entities that may be wider than one.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::wide_entity::WideEntities;
///
/// let mut survey = Entity::new("surveys", "2026");
/// for question in 0..600 {
///     survey.set(format!("Answer{question}"), question % 5);
/// }
/// let surveys = WideEntities::new(table);
/// surveys.upsert(&survey).await?;
/// assert_eq!(surveys.get("surveys", "2026").await?, Some(survey));
/// assert!(surveys.delete("surveys", "2026").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WideEntities {
    table: TableClient,
}

impl WideEntities {
    /// Keeps wide entities in this table. Their row keys must not contain blanks followed by three digits of their own.
    pub fn new(table: TableClient) -> Self {
        Self { table }
    }

    /// Writes an entity whole, over whatever version there is.
    ///
    /// # Errors
    /// An entity that does not fit into a transaction; a partition where others win every time.
    pub async fn upsert(&self, entity: &Entity) -> Result<()> {
        let parts = split(entity)?;
        let mut races = Races::default();
        loop {
            let present = self.rows(entity.partition_key(), entity.row_key(), true).await?;
            let transaction = replace(&present, &parts)?;
            match self.table.submit_transaction(&transaction, None).await {
                Ok(_) => return Ok(()),
                Err(error) if is_conflict(&error) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads an entity whole.
    ///
    /// # Errors
    /// Those of a query; an entity that others change faster than it can be read.
    pub async fn get(&self, partition_key: &str, row_key: &str) -> Result<Option<Entity>> {
        let mut races = Races::default();
        loop {
            let rows = self.rows(partition_key, row_key, false).await?;
            match join(partition_key, row_key, rows)? {
                Joined::Nothing => return Ok(None),
                Joined::Whole(entity) => return Ok(Some(entity)),
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
            let present = self.rows(partition_key, row_key, true).await?;
            if present.is_empty() {
                return Ok(false);
            }
            match self.table.submit_transaction(&replace(&present, &[])?, None).await {
                Ok(_) => return Ok(true),
                Err(error) if is_conflict(&error) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn rows(
        &self,
        partition_key: &str,
        row_key: &str,
        keys_only: bool,
    ) -> Result<Vec<Stored<Entity>>> {
        let filter = Filter::partition(partition_key) & ROW_KEY.starts_with(&format!("{row_key} "));
        let select = keys_only.then(|| vec![VERSION.to_owned()]);
        let options = QueryOptions { filter: Some(filter), select, ..Default::default() };
        self.table.query_entities::<Entity>(options).try_collect().await
    }
}

fn is_conflict(error: &azure_core::Error) -> bool {
    error.is_precondition_failed() || error.is_not_found() || error.is_already_there()
}

/// Deals the properties out over rows that each fit.
fn split(entity: &Entity) -> Result<Vec<Entity>> {
    let version = Uuid::new_v4();
    let row = |index: usize| {
        Entity::new(entity.partition_key(), format!("{} {index:03}", entity.row_key()))
            .with(VERSION, version)
    };
    let mut parts = vec![row(0)];
    for (name, value) in entity.properties() {
        let last = parts.last_mut().expect("there is a first row");
        let bytes = 8 + 2 * name.encode_utf16().count() + value.stored_bytes();
        let is_full = last.properties().len() + 2 > PROPERTIES_MAX
            || last.stored_bytes() + bytes + MARK_BYTES > ENTITY_BYTES_MAX;
        if is_full {
            parts.push(row(parts.len()));
        }
        parts.last_mut().expect("there is a last row").set(name, value.clone());
    }
    // One place in the transaction is left, so that a version with one row more can be replaced too.
    if parts.len() >= TRANSACTION_OPERATIONS_MAX {
        return Err(refused(format!("a wide entity has at most 99 rows: rows={}", parts.len())));
    }
    let count = i32::try_from(parts.len()).expect("less than a hundred");
    Ok(parts.into_iter().map(|part| part.with(ROWS, count)).collect())
}

/// Replaces the rows that are there by the parts: each change is conditional, so that two writers cannot mix.
fn replace(present: &[Stored<Entity>], parts: &[Entity]) -> Result<Transaction> {
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

enum Joined {
    Nothing,
    Whole(Entity),
    Torn,
}

fn join(partition_key: &str, row_key: &str, rows: Vec<Stored<Entity>>) -> Result<Joined> {
    let Some(first) = rows.first() else { return Ok(Joined::Nothing) };
    let (version, count): (Uuid, i32) = (first.get(VERSION)?, first.get(ROWS)?);
    let mut whole = Entity::new(partition_key, row_key);
    if usize::try_from(count) != Ok(rows.len()) {
        return Ok(Joined::Torn);
    }
    for row in rows {
        let mut row = row.into_value();
        if row.take::<Uuid>(VERSION)? != version {
            return Ok(Joined::Torn);
        }
        row.remove(ROWS);
        for (name, value) in row.into_properties() {
            whole.set(name, value);
        }
    }
    Ok(Joined::Whole(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(entity: Entity) -> Stored<Entity> {
        Stored::new(entity, "e")
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
        let rows = parts.into_iter().map(stored).collect();
        let Joined::Whole(joined) = join("p", "r", rows).unwrap() else { panic!("not whole") };
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
        assert!(matches!(join("p", "r", mixed).unwrap(), Joined::Torn));
        assert!(matches!(join("p", "r", vec![stored(old[0].clone())]).unwrap(), Joined::Torn));
        assert!(matches!(join("p", "r", Vec::new()).unwrap(), Joined::Nothing));
    }
}
