//! Indexes with rows, without a server.

use std::sync::Arc;

use bytes::Bytes;
use tavola_engine::conformance::commit;
use tavola_engine::{MemoryEngine, Write};
use tavola_wire::Ticks;
use tavola_wire::table::filter::{Plan, parse};
use tavola_wire::table::index::{IndexDefinition, RowScratch};
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::negotiate::MetadataLevel;
use tavola_wire::table::stored::EntityRef;

use super::candidate::{Candidate, Candidates, Hint, Wanted};
use crate::storage::index::Schema;
use crate::storage::layout::{
    DefinitionTexts, IndexKeys, IndexList, IndexRecord, IndexState, TableId,
};

pub(super) const TABLE: TableId = TableId(1);

/// Readable indexes by their keys and what they include.
pub(super) fn schema(indexes: &[(&str, &str)]) -> Arc<Schema> {
    let definition = |(keys, include): &(&str, &str)| {
        IndexDefinition::parse(keys, include, "", false).expect("a definition")
    };
    schema_of(&indexes.iter().map(definition).collect::<Vec<_>>())
}

/// Readable indexes, which have their keys for names.
pub(super) fn schema_of(definitions: &[IndexDefinition]) -> Arc<Schema> {
    let record = |(number, definition): (u16, &IndexDefinition)| IndexRecord {
        number,
        name: definition.keys_text(),
        definition: DefinitionTexts::of(definition),
        state: IndexState::Readable,
        browse_as: None,
        replaces: None,
        changed: Ticks(1),
        error: String::new(),
    };
    let indexes = (1..).zip(definitions).map(record).collect();
    Arc::new(Schema::read(&IndexList { indexes, ..IndexList::default() }).unwrap())
}

/// What can serve a whole filter, without metadata.
pub(super) fn candidates(
    schema: &Arc<Schema>,
    filter: &str,
    select: Option<&str>,
) -> Vec<Candidate> {
    found(schema, filter, select).whole
}

/// All that is found for a filter.
pub(super) fn found(schema: &Arc<Schema>, filter: &str, select: Option<&str>) -> Candidates {
    let format = EntityFormat::new(MetadataLevel::None, "", "", "t", select).unwrap();
    let filter = parse(filter).unwrap();
    let kind = Plan::new(&filter).kind;
    let (hint, is_restricted) = (Hint::Any, false);
    let wanted = Wanted { filter: &filter, kind, format: &format, hint, is_restricted };
    Candidates::find(schema, wanted)
}

/// An engine with the rows that entities have in the indexes.
pub(super) async fn engine_with_rows(
    schema: &Schema,
    entities: impl IntoIterator<Item = (String, Vec<u8>)>,
) -> MemoryEngine {
    let engine = MemoryEngine::new();
    for (row_key, entity) in entities {
        let mut rows = Vec::new();
        let entity_key = format!("p\0{row_key}");
        let add = |place: usize, row: tavola_wire::table::index::IndexRow<'_>| {
            let keys = IndexKeys::of(TABLE, schema.indexes()[place].number);
            let value = Bytes::copy_from_slice(row.value);
            rows.push(Write::Put(keys.key(row.parts_and_suffix), value));
        };
        let entity = EntityRef::parse(&entity).unwrap();
        let scratch = &mut RowScratch::default();
        schema.row_maker().rows(entity_key.as_bytes(), entity, scratch, add).unwrap();
        commit(&engine, rows).await;
    }
    engine
}
