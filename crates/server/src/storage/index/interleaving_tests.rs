//! Every order in which an index is declared, built and dropped while requests are under way.
//!
//! A request is two steps: it finds the table, and with it a schema, and later makes its change or reads. In between,
//! anything may happen, as far as fences allow it. All orders are tried; in none may a row be missing or left over where a
//! query trusts the index. Leaving out a state must be found: the test has teeth.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tavola_engine::{Decision, Transition, Write, WriteSet};
use tavola_wire::Ticks;
use tavola_wire::table::index::{IndexDefinition, RowMaker, RowScratch};
use tavola_wire::table::stored::{EntityRef, EntityWriter, Value, set_timestamp};

use super::backfill::{Chunk, ChunkKeys, ChunkOutcome};
use super::row_changes::{Finished, RowChanges};
use super::{IndexState, Schema, definitions};
use crate::storage::layout::{
    AccountId, EntityKeys, IndexKeys, Record, TableId, TableRecord, entity_key_of,
};

const TABLE: TableId = TableId(2);
const NOW: Ticks = Ticks(5);
const NUMBER: u16 = 1;

/// The entities that there may be. At first there is one.
const ONE: &str = "1";
const OTHER: &str = "2";

/// A request.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// Gives an entity this value.
    Put(&'static str, i32),
    Delete(&'static str),
    /// Compares the index with the entities, if its schema lets it.
    Read,
}

/// One step of the operator and the builder.
#[derive(Clone, Copy, Debug)]
enum Step {
    Declare,
    /// To the next state, when nobody works with an older record.
    Advance,
    Chunk,
    Finish,
    Drop,
    /// A mistake: the state is changed without a fence.
    Force(IndexState),
}

use Step::*;

const BUILD: [Step; 5] = [Declare, Advance, Advance, Chunk, Finish];
const BUILD_WITHOUT_DELETE_ONLY: [Step; 5] =
    [Declare, Force(IndexState::WriteOnly), Advance, Chunk, Finish];
const BUILD_WITHOUT_FENCES: [Step; 5] =
    [Declare, Force(IndexState::WriteOnly), Force(IndexState::Building), Chunk, Finish];
const REMOVE: [Step; 3] = [Drop, Advance, Advance];
const REMOVE_WITHOUT_RETIRING: [Step; 3] = [Force(IndexState::Dropped), Advance, Advance];

/// The rows, and what each request has found.
#[derive(Clone)]
struct World {
    rows: BTreeMap<Bytes, Bytes>,
    record: TableRecord,
    /// What is found now.
    schema: Arc<Schema>,
    /// The schema of each request that has found the table and is not done, with the generation that it found.
    found: Vec<Option<(usize, Arc<Schema>)>>,
    /// How many times the record was changed.
    generation: usize,
    /// How far each request is: 0, 1 and 2 for done.
    progress: Vec<u8>,
    step: usize,
    /// Whether the build has found a value twice.
    has_failed: bool,
}

fn entity(value: i32) -> Bytes {
    let mut writer = EntityWriter::new();
    writer.push("Value", Value::Int32(value));
    let mut entity = writer.finish();
    set_timestamp(&mut entity, NOW);
    entity.into()
}

fn entity_key(row: &str) -> Bytes {
    EntityKeys::of(TABLE).key("p", row)
}

fn definition(unique: bool) -> IndexDefinition {
    IndexDefinition::parse("Value", "", "", unique).unwrap()
}

impl World {
    fn new(requests: usize) -> Self {
        let record = TableRecord::new(TABLE, NOW, "People".into());
        Self {
            rows: BTreeMap::from([(entity_key(ONE), entity(0))]),
            schema: Arc::new(Schema::read(&record.indexes).unwrap()),
            record,
            found: vec![None; requests],
            generation: 0,
            progress: vec![0; requests],
            step: 0,
            has_failed: false,
        }
    }

    fn write(&mut self, writes: &mut WriteSet) {
        for write in writes.drain() {
            match write {
                Write::Put(key, value) => self.rows.insert(key, value),
                Write::Delete(key) => self.rows.remove(&key),
            };
        }
    }

    /// Whether everybody works with the latest record.
    fn is_fenced(&self) -> bool {
        self.found.iter().flatten().all(|(generation, _)| *generation == self.generation)
    }

    /// Takes a step, unless it has to wait.
    fn take(&mut self, step: Step, definition: &IndexDefinition) -> bool {
        match step {
            Advance if !self.is_fenced() => return false,
            Declare => {
                definitions::declare(&mut self.record.indexes, "Index", definition, None, NOW)
                    .unwrap();
            }
            Advance => {
                let seen = self.record.indexes.clone();
                for number in definitions::swept(&seen) {
                    let range = IndexKeys::of(TABLE, number).all();
                    self.rows.retain(|key, _| *key < range.start || *key >= range.end);
                }
                definitions::advance(&mut self.record.indexes, &seen, NOW);
            }
            Chunk => self.build(definition),
            Finish if self.has_failed => {}
            Finish => definitions::finish_build(&mut self.record.indexes, NUMBER, NOW),
            Drop => definitions::drop_index(&mut self.record.indexes, "Index", NOW),
            Force(state) => self.record.indexes.indexes[0].state = state,
        }
        let key = TableRecord::key(AccountId(1), "people");
        self.rows.insert(key, self.record.encode());
        self.schema = Arc::new(Schema::read(&self.record.indexes).unwrap());
        self.generation += usize::from(!matches!(step, Chunk));
        true
    }

    fn build(&mut self, definition: &IndexDefinition) {
        let key = TableRecord::key(AccountId(1), "people");
        let mut found = ChunkKeys::default();
        let there = [ONE, OTHER].map(entity_key);
        found.keys.extend(there.into_iter().filter(|key| self.rows.contains_key(key)));
        let mut chunk = Chunk::new(key, TABLE, NUMBER, definition, Bytes::new(), found);
        let mut values: Vec<_> =
            chunk.keys().iter().map(|key| self.rows.get(key).cloned()).collect();
        let mut writes = WriteSet::default();
        let mut decision = chunk.apply(&values, &mut writes);
        if let Decision::Read(keys) = &decision {
            values.extend(keys.iter().map(|key| self.rows.get(key).cloned()));
            decision = chunk.apply(&values, &mut writes);
        }
        match decision {
            Decision::Commit(Ok(ChunkOutcome::Written(..))) => self.write(&mut writes),
            Decision::Abort(Ok(ChunkOutcome::Violation)) => {
                assert_eq!(self.value_of(ONE), self.value_of(OTHER));
                definitions::fail(&mut self.record.indexes, NUMBER, "twice", NOW);
                self.has_failed = true;
            }
            _ => panic!("nobody else builds"),
        }
    }

    fn value_of(&self, row: &str) -> Option<&Bytes> {
        self.rows.get(&entity_key(row))
    }

    fn find(&mut self, request: usize) {
        self.found[request] = Some((self.generation, self.schema.clone()));
        self.progress[request] = 1;
    }

    /// Does what a request came for; false if it sees something wrong.
    fn finish(&mut self, index: usize, request: Request) -> bool {
        let (_, schema) = self.found[index].take().unwrap();
        self.progress[index] = 2;
        let (row, new) = match request {
            Request::Read => {
                let is_read = schema.indexes().iter().any(|index| index.state.is_read());
                return !is_read || self.is_sound();
            }
            Request::Put(row, value) => (row, Some(entity(value))),
            Request::Delete(row) => (row, None),
        };
        let key = entity_key(row);
        let old = self.rows.get(&key).cloned();
        let (mut writes, mut read) = (WriteSet::default(), Vec::new());
        loop {
            let mut changes = RowChanges::new(&schema, TABLE);
            changes.add(0, entity_key_of(&key), old.as_deref(), new.as_deref()).unwrap();
            match changes.finish(&read, &mut writes) {
                Finished::Read(keys) => {
                    read = keys.iter().map(|key| self.rows.get(key).cloned()).collect();
                }
                Finished::Written(_) => break,
                // It is refused: not without another one that has the value.
                Finished::Violation { .. } => {
                    let other = if row == ONE { OTHER } else { ONE };
                    assert_eq!(self.value_of(other), new.as_ref());
                    return true;
                }
            }
        }
        match new {
            Some(entity) => writes.put(key, entity),
            None => writes.delete(key),
        }
        self.write(&mut writes);
        true
    }

    /// Whether the rows of the index are those of the entities, and of a unique one each has its own.
    fn is_sound(&self) -> bool {
        let (mut expected, mut has_duplicates) = (BTreeMap::new(), false);
        let range = IndexKeys::of(TABLE, NUMBER).all();
        let definition =
            self.record.indexes.indexes.first().map(|index| index.definition.parse().unwrap());
        let maker = RowMaker::new(&definition);
        for key in [ONE, OTHER].map(entity_key) {
            let Some(entity) = self.rows.get(&key) else { continue };
            let entity = EntityRef::parse(entity).unwrap();
            let add = |_: usize, row: tavola_wire::table::index::IndexRow<'_>| {
                let key = IndexKeys::of(TABLE, NUMBER).key(row.parts_and_suffix);
                let value = Bytes::copy_from_slice(row.value);
                has_duplicates |= expected.insert(key, value).is_some();
            };
            maker.rows(entity_key_of(&key), entity, &mut RowScratch::default(), add).unwrap();
        }
        let found = self.rows.range(range.start..range.end);
        !has_duplicates && found.map(|(key, value)| (key.clone(), value.clone())).eq(expected)
    }
}

/// What all orders came to.
#[derive(Debug, Default)]
struct Orders {
    tried: usize,
    /// A query that trusted the index was told something wrong.
    misled: usize,
    /// At the end something was missing or left over.
    unsound: usize,
    /// The build found the same value twice.
    failed: usize,
}

fn try_all(
    world: &World,
    steps: &[Step],
    requests: &[Request],
    definition: &IndexDefinition,
    orders: &mut Orders,
) {
    let mut is_over = true;
    if let Some(step) = steps.get(world.step) {
        let mut next = world.clone();
        if next.take(*step, definition) {
            next.step += 1;
            is_over = false;
            try_all(&next, steps, requests, definition, orders);
        }
    }
    for (index, request) in requests.iter().enumerate() {
        let mut next = world.clone();
        match world.progress[index] {
            0 => next.find(index),
            1 => orders.misled += usize::from(!next.finish(index, *request)),
            _ => continue,
        }
        is_over = false;
        try_all(&next, steps, requests, definition, orders);
    }
    if is_over {
        assert_eq!(world.step, steps.len(), "somebody waits for ever");
        orders.tried += 1;
        let list = &world.record.indexes;
        let is_sound = match definitions::latest(list, "Index") {
            Some(_) if world.has_failed => true,
            Some(index) => index.state == IndexState::Readable && world.is_sound(),
            None => {
                let range = IndexKeys::of(TABLE, NUMBER).all();
                world.rows.range(range.start..range.end).next().is_none()
            }
        };
        orders.unsound += usize::from(!is_sound);
        orders.failed += usize::from(world.has_failed);
    }
}

fn orders(steps: &[Step], requests: &[Request], unique: bool) -> Orders {
    let mut orders = Orders::default();
    try_all(&World::new(requests.len()), steps, requests, &definition(unique), &mut orders);
    orders
}

const WRITERS: [&[Request]; 4] = [
    &[Request::Put(ONE, 1), Request::Put(ONE, 2)],
    &[Request::Put(ONE, 1), Request::Delete(ONE)],
    &[Request::Put(ONE, 1), Request::Put(ONE, 0), Request::Read],
    &[Request::Delete(ONE), Request::Put(ONE, 2), Request::Read],
];

/// Two entities that want the same value, at the same time or one after the other.
const RIVALS: [&[Request]; 4] = [
    &[Request::Put(ONE, 1), Request::Put(OTHER, 1), Request::Read],
    &[Request::Put(ONE, 1), Request::Put(OTHER, 0), Request::Read],
    &[Request::Delete(ONE), Request::Put(OTHER, 0), Request::Read],
    &[Request::Put(OTHER, 0), Request::Put(OTHER, 1), Request::Put(ONE, 1)],
];

#[test]
fn an_index_is_complete_in_whatever_order_it_is_built() {
    for unique in [false, true] {
        for requests in WRITERS {
            let orders = orders(&BUILD, requests, unique);
            assert!(orders.tried > 100, "{orders:?}");
            assert_eq!((orders.misled, orders.unsound), (0, 0), "{requests:?} {orders:?}");
        }
    }
}

/// Whoever does not know a unique index yet may give two entities the same value. Then the build fails, or it has not begun to
/// refuse; no query trusts it, and what it refuses is another entity's.
#[test]
fn a_unique_value_is_of_one_entity_in_whatever_order_the_index_is_built() {
    let mut failed = 0;
    for requests in RIVALS {
        let orders = orders(&BUILD, requests, true);
        assert!(orders.tried > 100, "{orders:?}");
        assert_eq!((orders.misled, orders.unsound), (0, 0), "{requests:?} {orders:?}");
        failed += orders.failed;
        assert!(orders.failed < orders.tried, "{requests:?} {orders:?}");
    }
    assert!(failed > 0, "no build has met a value twice");
}

/// Without a time in which rows are only removed, a writer that does not know the index leaves a row behind.
#[test]
fn leaving_out_delete_only_leaves_an_orphan() {
    for unique in [false, true] {
        let found = |steps: &[Step]| orders(steps, WRITERS[0], unique).unsound;
        assert!(found(&BUILD_WITHOUT_DELETE_ONLY) > 0);
        assert!(found(&BUILD_WITHOUT_FENCES) > 0);
    }
}

#[test]
fn an_index_is_dropped_without_a_trace_and_misleads_nobody() {
    for unique in [false, true] {
        for requests in WRITERS {
            let mut world = World::new(requests.len());
            for step in BUILD {
                assert!(world.take(step, &definition(unique)));
            }
            let count = |steps: &[Step]| {
                let mut orders = Orders::default();
                try_all(&world, steps, requests, &definition(unique), &mut orders);
                orders
            };
            let orders = count(&REMOVE);
            assert_eq!((orders.misled, orders.unsound), (0, 0), "{requests:?} {orders:?}");
            if requests.len() == 3 {
                assert!(count(&REMOVE_WITHOUT_RETIRING).misled > 0, "{requests:?}");
            }
        }
    }
}
