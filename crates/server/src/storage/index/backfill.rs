//! Adding to an index what was written before it was declared: chunk by chunk, each one transition.
//!
//! A chunk reads the entities again inside the transition, so that it is one point in the order of all changes: those
//! before it are in what it reads, those after it know the index and keep it. The place that the build has come to is
//! written with the rows, so that a crash loses one chunk at most.

use std::collections::HashMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use tavola_engine::{Decision, KeyRange, Transition, Visitor, WriteSet, successor};
use tavola_wire::table::index::value_line::split_value;
use tavola_wire::table::index::{IndexDefinition, RowMaker, RowRef, RowScratch};
use tavola_wire::table::stored::EntityRef;

use super::sketch::hash;
use crate::storage::layout::{
    BuildRecord, EntityKeys, IndexKeys, IndexState, Key, Record, TableId, TableRecord,
    entity_key_of, parts_and_suffix_of,
};
use crate::storage::{Error, Result};

/// Entities of a chunk: what others wait for at most, when they meet one.
pub(crate) const CHUNK_ROWS: usize = 64;
/// Bytes of a chunk, likewise.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Collects the keys of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkKeys {
    pub keys: Vec<Bytes>,
    bytes: usize,
    /// Whether there may be more behind them.
    pub has_more: bool,
}

impl Visitor for ChunkKeys {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        if self.keys.len() == CHUNK_ROWS || self.bytes >= CHUNK_BYTES {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        self.bytes += key.len() + value.len();
        self.keys.push(Bytes::copy_from_slice(key));
        ControlFlow::Continue(())
    }
}

/// The entities that come after a place of a build.
pub(crate) fn rows_behind(table: TableId, position: &[u8]) -> KeyRange {
    let keys = EntityKeys::of(table);
    if position.is_empty() { keys.all() } else { keys.range(&successor(position), None) }
}

/// Those of them up to the last one that there was when the build began. Whatever came behind it was written by writers who
/// keep the index: a build that went on to it would never end where entities are appended faster than it gets on.
pub(crate) fn rows_up_to(table: TableId, position: &[u8], last: &[u8]) -> KeyRange {
    let start = if position.is_empty() { Vec::new() } else { successor(position) };
    EntityKeys::of(table).range(&start, Some(&successor(last).max(start.clone())))
}

/// Counts the entities of a table, some at a time.
#[derive(Debug)]
pub(crate) struct RowCount {
    pub rows: u64,
    /// The key of the last of them.
    pub last: Vec<u8>,
    /// Whether there may be more behind it.
    pub has_more: bool,
    rows_max: u64,
}

impl RowCount {
    pub(crate) fn up_to(rows_max: u64) -> Self {
        Self { rows: 0, last: Vec::new(), has_more: false, rows_max }
    }
}

impl Visitor for RowCount {
    fn visit(&mut self, key: &[u8], _: &[u8]) -> ControlFlow<()> {
        self.rows += 1;
        self.last.clear();
        self.last.extend_from_slice(entity_key_of(key));
        self.has_more = self.rows == self.rows_max;
        if self.has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// One chunk of a build.
pub(crate) struct Chunk {
    /// The table's record, the build's, and the entities.
    keys: Vec<Bytes>,
    table: TableId,
    number: u16,
    definition: IndexDefinition,
    row_maker: RowMaker,
    /// Where the chunk begins: the build must be there.
    position: Bytes,
    is_last: bool,
}

/// What a chunk came to.
#[derive(Debug)]
pub(crate) enum ChunkOutcome {
    /// The build is at this place now; hashes of the first part of each row.
    Written(BuildRecord, Vec<u64>),
    /// The index is not to be built any more, or the build is elsewhere.
    Stopped,
    /// Two entities have the same values in a unique index.
    Violation,
}

impl Chunk {
    pub(crate) fn new(
        table_key: Bytes,
        table: TableId,
        number: u16,
        definition: &IndexDefinition,
        position: Bytes,
        found: ChunkKeys,
    ) -> Self {
        let is_last = !found.has_more;
        let mut keys = vec![table_key, Key::IndexBuild { table, number }.encode()];
        keys.extend(found.keys);
        let row_maker = RowMaker::new([definition]);
        let definition = definition.clone();
        Self { keys, table, number, definition, row_maker, position, is_last }
    }

    fn is_wanted(&self, record: Option<&Bytes>) -> bool {
        let record = record.and_then(|stored| TableRecord::decode(stored));
        record.is_some_and(|record| {
            record.id == self.table
                && record
                    .indexes
                    .indexes
                    .iter()
                    .any(|index| index.number == self.number && index.state == IndexState::Building)
        })
    }

    /// The rows of the entities that there are.
    fn rows(&self, entities: &[Option<Bytes>], build: &mut BuildRecord) -> Result<Vec<Row>> {
        let (mut rows, mut scratch) = (Vec::new(), RowScratch::default());
        let keys = IndexKeys::of(self.table, self.number);
        for (key, value) in self.keys[FIXED_KEYS..].iter().zip(entities) {
            let Some(value) = value else { continue };
            let entity_key = entity_key_of(key);
            let corrupt = |error| Error::Corrupt(format!("an entity: {error:?}"));
            let entity = EntityRef::parse(value).map_err(corrupt)?;
            build.rows += 1;
            let before = rows.len();
            let add = |_: usize, row: tavola_wire::table::index::IndexRow<'_>| {
                rows.push(Row {
                    key: keys.key(row.parts_and_suffix),
                    value: Bytes::copy_from_slice(row.value),
                    entity_key: Bytes::copy_from_slice(entity_key),
                    first_part: split_value(row.parts_and_suffix).map_or(0, |part| hash(part.0)),
                });
            };
            self.row_maker.rows(entity_key, entity, &mut scratch, add).map_err(corrupt)?;
            if rows.len() > before {
                build.off_type += off_type(&self.definition, entity);
            }
        }
        Ok(rows)
    }
}

/// Keys in front of the entities.
const FIXED_KEYS: usize = 2;

struct Row {
    key: Bytes,
    value: Bytes,
    entity_key: Bytes,
    first_part: u64,
}

impl Transition for Chunk {
    type Verdict = Result<ChunkOutcome>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Self::Verdict> {
        let stored = values[1].as_deref().map_or(Some(BuildRecord::default()), BuildRecord::decode);
        let Some(mut build) = stored else {
            return Decision::Abort(Err(Error::Corrupt("the state of an index build".into())));
        };
        if !self.is_wanted(values[0].as_ref()) || build.position != self.position || build.is_done {
            return Decision::Abort(Ok(ChunkOutcome::Stopped));
        }
        let (entities, read) = values[FIXED_KEYS..].split_at(self.keys.len() - FIXED_KEYS);
        let rows = match self.rows(entities, &mut build) {
            Ok(rows) => rows,
            Err(error) => return Decision::Abort(Err(error)),
        };
        if self.definition.unique && !rows.is_empty() {
            if read.is_empty() {
                return Decision::Read(rows.iter().map(|row| row.key.clone()).collect());
            }
            if has_violation(&self.definition, &rows, read) {
                return Decision::Abort(Ok(ChunkOutcome::Violation));
            }
        }
        let mut first_parts = Vec::with_capacity(rows.len());
        for Row { key, value, first_part, .. } in rows {
            build.entries += 1;
            build.bytes += (key.len() + value.len()) as u64;
            first_parts.push(first_part);
            writes.put(key, value);
        }
        if let Some(last) = self.keys.get(FIXED_KEYS..).and_then(<[_]>::last) {
            build.position = Bytes::copy_from_slice(entity_key_of(last));
        }
        build.is_done = self.is_last;
        writes.put(self.keys[1].clone(), build.encode());
        Decision::Commit(Ok(ChunkOutcome::Written(build, first_parts)))
    }
}

/// Whether a row is somebody else's already, or two of these are the same.
fn has_violation(definition: &IndexDefinition, rows: &[Row], stored: &[Option<Bytes>]) -> bool {
    let mut seen = HashMap::new();
    rows.iter().zip(stored).any(|(row, stored)| {
        let is_others = stored.as_ref().is_some_and(|stored| {
            let holder = RowRef::read(definition, parts_and_suffix_of(&row.key), stored);
            holder.is_none_or(|holder| holder.entity_key[..] != row.entity_key[..])
        });
        is_others || seen.insert(&row.key, ()).is_some()
    })
}

/// Values of other types than the declared ones.
fn off_type(definition: &IndexDefinition, entity: EntityRef<'_>) -> u64 {
    if definition.keys.iter().all(|part| part.declared_type.is_none()) {
        return 0;
    }
    let is_off = |property: &tavola_wire::table::stored::Property<'_>| {
        let mut parts = definition.keys.iter();
        let part = parts.find(|part| part.property.as_bytes() == property.name);
        let declared = part.and_then(|part| part.declared_type);
        declared.is_some_and(|declared| declared != property.edm_type)
    };
    entity.properties().filter_map(Result::ok).filter(is_off).count() as u64
}
