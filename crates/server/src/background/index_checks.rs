//! Looks at indexes that somebody doubts, each in one state of the store: an operator who asks for a verification, or
//! a query that found a row without its entity.

use std::ops::ControlFlow;

use tavola_engine::{AnyEngine, Engine, Reader, Visitor};
use tavola_wire::table::index::{IndexDefinition, RowRef};

use crate::storage::Result;
use crate::storage::index::verify::{DIFFERENCES_MAX, Verified, verify};
use crate::storage::index::{IndexRegistry, TableKey, definitions};
use crate::storage::layout::{
    EntityKeys, IndexKeys, IndexRecord, Record, TableId, TableRecord, parts_and_suffix_of,
};

/// Compares an index with its entities, and tells what it has found.
pub(super) async fn verify_index(
    engine: &AnyEngine,
    registry: &IndexRegistry,
    table: &TableKey,
    name: &str,
) -> Result<()> {
    // The record and the rows must be of one moment.
    let snapshot = engine.snapshot().await?;
    let Some(record) = record(&snapshot, table).await? else { return Ok(()) };
    let Some(index) = definitions::latest(&record.indexes, name) else { return Ok(()) };
    let words = match index.definition.parse() {
        Err(error) => format!("failed: {error}"),
        Ok(_) if index.state.has_failed() => format!("failed: {}", index.error),
        Ok(_) if !index.state.is_read() => "not readable yet".to_owned(),
        Ok(definition) => match verify(&snapshot, record.id, index.number, &definition).await {
            Ok(verified) => words(&verified),
            Err(error) => format!("failed: {error}"),
        },
    };
    registry.statistics.of(record.id, index.number).set_verification(words);
    // It may have been asked for before the index was declared anew, and it may become again what it was.
    let earlier = |it: &&IndexRecord| it.name == name && it.number != index.number;
    for earlier in record.indexes.indexes.iter().filter(earlier) {
        let statistics = registry.statistics.of(record.id, earlier.number);
        if statistics.is_being_verified() {
            statistics.set_verification("not verified: the index was declared anew");
        }
    }
    Ok(())
}

/// The table in which an index that queries use has a row for an entity that does not exist; `None` if it has not.
pub(super) async fn orphaned_in(
    engine: &AnyEngine,
    table: &TableKey,
    number: u16,
    entity_key: &[u8],
) -> Result<Option<TableId>> {
    let snapshot = engine.snapshot().await?;
    // A table that is being swept has rows of one kind and none of the other, and is no table any more.
    let Some(record) = record(&snapshot, table).await? else { return Ok(None) };
    let is_used = |index: &&IndexRecord| index.number == number && index.state.is_read();
    let Some(index) = record.indexes.indexes.iter().find(is_used) else { return Ok(None) };
    let Ok(definition) = index.definition.parse() else { return Ok(None) };
    if snapshot.get(&EntityKeys::of(record.id).raw(entity_key)).await?.is_some() {
        return Ok(None);
    }
    let search = RowOf { definition, entity_key: entity_key.to_vec(), is_found: false };
    let search = snapshot.scan(IndexKeys::of(record.id, number).all(), search).await?;
    Ok(search.is_found.then_some(record.id))
}

async fn record(reader: &impl Reader, table: &TableKey) -> Result<Option<TableRecord>> {
    let stored = reader.get(&TableRecord::key(table.0, &table.1)).await?;
    Ok(stored.as_deref().and_then(TableRecord::decode))
}

/// Counts alone. Whoever may read about indexes may read this, and keys and values are the table's own.
fn words(verified: &Verified) -> String {
    let Verified { expected, found, differences } = verified;
    match differences.len() {
        0 => format!("sound: {found} entries"),
        count => {
            let more = if count < DIFFERENCES_MAX { "" } else { " or more" };
            format!(
                "{count}{more} differences, {expected} entries expected, {found} found; `tavola check` of \
                 the folder names the rows"
            )
        }
    }
}

/// Looks for a row of an entity, in an index whose order does not tell where it is.
struct RowOf {
    definition: IndexDefinition,
    entity_key: Vec<u8>,
    is_found: bool,
}

impl Visitor for RowOf {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let row = RowRef::read(&self.definition, parts_and_suffix_of(key), value);
        self.is_found = row.is_some_and(|row| *row.entity_key == *self.entity_key);
        if self.is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
