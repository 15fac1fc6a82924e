//! The life of an index, cut short at every step and begun again by another process.

use std::future::poll_fn;
use std::task::Poll;

use tavola_engine::MemoryEngine;
use tavola_engine::conformance::commit;
use tavola_wire::Ticks;
use tavola_wire::table::index::{IndexDefinition, RowMaker, RowScratch};
use tavola_wire::table::names::TableName;
use tavola_wire::table::stored::{EntityRef, EntityWriter, Value, set_timestamp};
use tokio::sync::watch;

use super::*;
use crate::storage::index::IndexState;
use crate::storage::index::verify::verify;
use crate::storage::layout::{AccountId, EntityKeys, TableId, entity_key_of};

const ACCOUNT: AccountId = AccountId(1_000);
const NOW: Ticks = Ticks::MIN_STORED;
/// More than three chunks.
const ROWS: usize = 200;

/// A process: everything but the rows is its own.
struct Process {
    engine: AnyEngine,
    shared: Arc<Shared>,
    stop: Stop,
    _stop: watch::Sender<bool>,
}

impl Process {
    async fn start(engine: &AnyEngine) -> Self {
        let catalogue = Arc::new(Catalogue::new(engine.clone(), Arc::default()));
        catalogue.load_indexes().await.unwrap();
        let clock = Arc::default();
        let shared = IndexBuilder::new(engine.clone(), catalogue, clock).shared;
        let (sender, stopped) = watch::channel(false);
        Self { engine: engine.clone(), shared, stop: Stop(stopped), _stop: sender }
    }

    fn worker(&self) -> Worker {
        Worker::new(&self.shared, (ACCOUNT, "people".into()), &self.stop)
    }

    /// Takes this many steps, or all that there are; answers how many.
    async fn steps(&self, most: usize) -> usize {
        let mut worker = self.worker();
        for taken in 0..most {
            if !worker.step().await.unwrap() {
                return taken;
            }
        }
        most
    }

    async fn change(&self, change: impl Fn(&mut TableRecord) + Send + 'static) {
        let changed: Result<()> = self
            .shared
            .catalogue
            .change_schema(ACCOUNT, "people", move |record| {
                change(record);
                Ok(())
            })
            .await;
        changed.unwrap();
    }

    async fn declare(&self, keys: &'static str, unique: bool) {
        let definition = IndexDefinition::parse(keys, "", "", unique).unwrap();
        self.change(move |record| {
            let list = &mut record.indexes;
            definitions::declare(list, "Index", &definition, Some("View"), NOW).unwrap();
        })
        .await;
    }

    async fn record(&self) -> TableRecord {
        self.shared.catalogue.table_record(ACCOUNT, "people").await.unwrap()
    }

    /// The states of all indexes, and that the readable one is complete and nothing else is left.
    async fn states(&self) -> Vec<(u16, IndexState)> {
        let record = self.record().await;
        for index in &record.indexes.indexes {
            if index.state.is_read() {
                let definition = index.definition.parse().unwrap();
                let found = verify(&self.engine, record.id, index.number, &definition).await;
                let found = found.unwrap();
                assert!(found.is_sound() && found.found > 0, "{found:?}");
            }
        }
        record.indexes.indexes.iter().map(|index| (index.number, index.state)).collect()
    }
}

async fn engine_with_people() -> (AnyEngine, TableId) {
    let engine = AnyEngine::Memory(MemoryEngine::new());
    let process = Process::start(&engine).await;
    let name = TableName::parse("People").unwrap();
    process.shared.catalogue.create_table(ACCOUNT, &name, NOW).await.unwrap();
    let table = process.record().await.id;
    for row in 0..ROWS {
        put(&engine, table, row, row as i32 % 7).await;
    }
    (engine, table)
}

async fn put(engine: &AnyEngine, table: TableId, row: usize, town: i32) {
    let mut entity = EntityWriter::new();
    entity.push("Town", Value::Int32(town));
    entity.push("Row", Value::Int32(row as i32));
    let mut entity = entity.finish();
    set_timestamp(&mut entity, NOW);
    let key = EntityKeys::of(table).key("p", &format!("{row:05}"));
    commit(engine, vec![tavola_engine::Write::Put(key, entity.into())]).await;
}

async fn rows_left(engine: &AnyEngine, table: TableId) -> usize {
    struct Count(usize);
    impl tavola_engine::Visitor for Count {
        fn visit(&mut self, _: &[u8], _: &[u8]) -> std::ops::ControlFlow<()> {
            self.0 += 1;
            std::ops::ControlFlow::Continue(())
        }
    }
    let mut left = 0;
    for range in
        crate::storage::layout::ranges_of(crate::storage::layout::Kind::Table, table.into())
    {
        left += engine.scan(range, Count(0)).await.unwrap().0;
    }
    left
}

#[tokio::test]
async fn a_build_goes_on_wherever_it_was_cut_short() {
    let (engine, _) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    let all = process.steps(usize::MAX).await;
    assert!(all > 5, "{all}");
    for cut in 0..=all {
        for unique in [false, true] {
            let (engine, _) = engine_with_people().await;
            let process = Process::start(&engine).await;
            process.declare(if unique { "Row" } else { "Town" }, unique).await;
            process.steps(cut).await;
            drop(process);
            let process = Process::start(&engine).await;
            process.steps(usize::MAX).await;
            assert_eq!(process.states().await, [(1, IndexState::Readable)], "cut at {cut}");
            let table = process.record().await.id;
            let known = process.shared.registry().statistics.of(table, 1).get();
            assert_eq!((known.rows, known.entries), (ROWS as u64, ROWS as u64));
        }
    }
}

#[tokio::test]
async fn a_replacement_and_a_drop_go_on_wherever_they_were_cut_short() {
    for cut in 0..15 {
        let (engine, table) = engine_with_people().await;
        let process = Process::start(&engine).await;
        process.declare("Town", false).await;
        process.steps(usize::MAX).await;
        process.declare("Row", true).await;
        process.steps(cut).await;
        drop(process);
        let process = Process::start(&engine).await;
        // One of the two can be read at any time.
        let readable =
            process.states().await.into_iter().filter(|(_, state)| state.is_read()).count();
        assert_eq!(readable, 1, "cut at {cut}");
        process.steps(usize::MAX).await;
        assert_eq!(process.states().await, [(2, IndexState::Readable)], "cut at {cut}");

        process.change(|record| definitions::drop_index(&mut record.indexes, "Index", NOW)).await;
        process.steps(cut).await;
        drop(process);
        let process = Process::start(&engine).await;
        process.steps(usize::MAX).await;
        assert_eq!(process.states().await, []);
        assert_eq!(rows_left(&engine, table).await, ROWS, "cut at {cut}");
        let view = TableName::parse("View").unwrap();
        assert!(process.shared.catalogue.find(ACCOUNT, &view).await.is_err());
    }
}

/// Writers keep the rows of what they append: a build that waited for the end of the table might never meet it.
#[tokio::test]
async fn a_build_ends_though_entities_are_appended_all_the_while() {
    let (engine, table) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    let (mut worker, mut rows) = (process.worker(), ROWS);
    for _ in 0..20 {
        worker.step().await.unwrap();
        // More than a step gets on.
        if process.states().await == [(1, IndexState::Building)] {
            for row in rows..rows + 100 {
                put_with_row(&engine, table, row).await;
            }
            rows += 100;
        }
    }
    assert_eq!(process.states().await, [(1, IndexState::Readable)]);
    assert!(rows > ROWS + 300, "{rows}");
}

/// An entity with its row of an index on `Town`, as a writer puts it.
async fn put_with_row(engine: &AnyEngine, table: TableId, row: usize) {
    let definition = IndexDefinition::parse("Town", "", "", false).unwrap();
    let mut entity = EntityWriter::new();
    entity.push("Town", Value::Int32(1));
    let mut entity = entity.finish();
    set_timestamp(&mut entity, NOW);
    let key = EntityKeys::of(table).key("p", &format!("{row:05}"));
    let mut writes = vec![tavola_engine::Write::Put(key.clone(), entity.clone().into())];
    let parsed = EntityRef::parse(&entity).unwrap();
    let add = |_: usize, row: tavola_wire::table::index::IndexRow<'_>| {
        let key = IndexKeys::of(table, 1).key(row.parts_and_suffix);
        writes.push(tavola_engine::Write::Put(key, row.value.to_vec().into()));
    };
    let maker = RowMaker::new([&definition]);
    maker.rows(entity_key_of(&key), parsed, &mut RowScratch::default(), add).unwrap();
    commit(engine, writes).await;
}

/// Between the commits of one step, too.
#[tokio::test]
async fn a_step_goes_on_between_its_commits() {
    let (engine, table) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    while !process.states().await.iter().any(|(_, state)| *state == IndexState::Building) {
        process.steps(1).await;
    }
    // All was seen, and the record does not say so yet.
    let key = Key::IndexBuild { table, number: 1 }.encode();
    let is_done = async || {
        let stored = engine.get(&key).await.unwrap();
        stored.as_deref().and_then(BuildRecord::decode).is_some_and(|build| build.is_done)
    };
    let building = process.record().await;
    while !is_done().await {
        process.steps(1).await;
    }
    let restored = building.clone();
    process.change(move |record| *record = restored.clone()).await;
    process.steps(usize::MAX).await;
    assert_eq!(process.states().await, [(1, IndexState::Readable)]);
    // The rows are swept, and what is known of it is gone, and the record still names it.
    process.change(|record| definitions::drop_index(&mut record.indexes, "Index", NOW)).await;
    process.steps(1).await;
    assert_eq!(process.states().await, [(1, IndexState::Dropped)]);
    engine.drop_range(IndexKeys::of(table, 1).all()).await.unwrap();
    commit(&engine, vec![tavola_engine::Write::Delete(key.clone())]).await;
    drop(process);
    let process = Process::start(&engine).await;
    process.steps(usize::MAX).await;
    assert_eq!((process.states().await.len(), rows_left(&engine, table).await), (0, ROWS));
}

#[tokio::test]
async fn an_index_can_be_dropped_while_it_is_built() {
    for cut in 0..6 {
        let (engine, table) = engine_with_people().await;
        let process = Process::start(&engine).await;
        process.declare("Town", false).await;
        let mut worker = process.worker();
        for _ in 0..cut {
            worker.step().await.unwrap();
        }
        process.change(|record| definitions::drop_index(&mut record.indexes, "Index", NOW)).await;
        while worker.step().await.unwrap() {}
        assert_eq!((process.states().await.len(), rows_left(&engine, table).await), (0, ROWS));
    }
}

#[tokio::test]
async fn a_build_ends_with_its_table() {
    let (engine, _) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    let mut worker = process.worker();
    for _ in 0..4 {
        worker.step().await.unwrap();
    }
    let name = TableName::parse("people").unwrap();
    process.shared.catalogue.drop_table(ACCOUNT, &name, NOW).await.unwrap();
    assert!(matches!(worker.step().await, Err(Error::NotFound)));
    assert!(!process.shared.registry().has_indexes(ACCOUNT));
    let view = TableName::parse("View").unwrap();
    assert!(process.shared.catalogue.find(ACCOUNT, &view).await.is_err());
}

/// A client that hangs up while its table is dropped must not leave an index that nobody can get rid of.
#[tokio::test]
async fn a_table_is_not_counted_any_more_though_nobody_waits_for_its_drop() {
    let (engine, _) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    let name = TableName::parse("people").unwrap();
    let mut dropping = Box::pin(process.shared.catalogue.drop_table(ACCOUNT, &name, NOW));
    let polled = poll_fn(|context| Poll::Ready(dropping.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    drop(dropping);
    while process.shared.registry().has_indexes(ACCOUNT) {
        tokio::task::yield_now().await;
    }
    assert!(process.shared.catalogue.find(ACCOUNT, &name).await.is_err());
}

#[tokio::test]
async fn a_build_that_finds_the_same_values_twice_fails() {
    let (engine, table) = engine_with_people().await;
    put(&engine, table, ROWS, 3).await;
    let process = Process::start(&engine).await;
    process.declare("Town", true).await;
    process.steps(usize::MAX).await;
    assert_eq!(process.states().await, [(1, IndexState::Failed)]);
    assert!(process.record().await.indexes.indexes[0].error.contains("Town"));
    // In two chunks, or in one.
    for twin in [1, ROWS - 1] {
        let (engine, table) = engine_with_people().await;
        put(&engine, table, ROWS, 1).await;
        let process = Process::start(&engine).await;
        let key = EntityKeys::of(table).key("p", &format!("{twin:05}"));
        let stored = engine.get(&key).await.unwrap().unwrap();
        let other = EntityKeys::of(table).key("p", "00000x");
        commit(&engine, vec![tavola_engine::Write::Put(other, stored)]).await;
        process.declare("Row", true).await;
        process.steps(usize::MAX).await;
        assert_eq!(process.states().await, [(1, IndexState::Failed)], "{twin}");
    }
}

/// Only if it is one, in the state of the store that the builder finds.
#[tokio::test]
async fn an_index_with_a_row_without_its_entity_fails() {
    for (keys, unique) in [("Town", false), ("PartitionKey,Town", false), ("Row", true)] {
        let (engine, table) = engine_with_people().await;
        let process = Process::start(&engine).await;
        process.declare(keys, unique).await;
        process.steps(usize::MAX).await;
        let key = EntityKeys::of(table).key("p", "00003");
        let entity_key = entity_key_of(&key).to_vec();
        let report =
            |number| process.shared.registry().add_orphan(ACCOUNT, "people", number, &entity_key);
        // The entity is there; there is no such index.
        assert!(report(1) && !report(1) && report(7));
        process.steps(usize::MAX).await;
        assert_eq!(process.states().await, [(1, IndexState::Readable)]);

        let stored = engine.get(&key).await.unwrap().unwrap();
        commit(&engine, vec![tavola_engine::Write::Delete(key.clone())]).await;
        // A row that is not there either points to nothing.
        let other = EntityKeys::of(table).key("p", "never");
        let never = entity_key_of(&other);
        assert!(process.shared.registry().add_orphan(ACCOUNT, "people", 1, never));
        process.worker().check_orphans().await.unwrap();
        assert!(process.record().await.indexes.indexes[0].state.is_read());

        // Whoever still reads it finds it kept until then.
        let name = TableName::parse("People").unwrap();
        let reader = process.shared.catalogue.find(ACCOUNT, &name).await.unwrap();
        assert!(report(1));
        process.worker().check_orphans().await.unwrap();
        assert_eq!(process.states().await, [(1, IndexState::Failing)]);
        drop(reader);
        process.steps(usize::MAX).await;
        assert_eq!(process.states().await, [(1, IndexState::Failed)]);

        // It is kept, and another declaration builds it anew.
        drop(process);
        let process = Process::start(&engine).await;
        let failed = process.record().await.indexes.indexes[0].clone();
        assert_eq!((failed.state, &*failed.error), (IndexState::Failed, ORPHAN));
        commit(&engine, vec![tavola_engine::Write::Put(key, stored)]).await;
        process.declare(keys, unique).await;
        process.steps(usize::MAX).await;
        assert_eq!(process.states().await, [(2, IndexState::Readable)]);
    }
}

/// The step to the next state waits for everyone who found the table before.
#[tokio::test]
async fn a_step_waits_for_those_who_work_with_an_older_schema() {
    let (engine, _) = engine_with_people().await;
    let process = Process::start(&engine).await;
    let name = TableName::parse("People").unwrap();
    let held = process.shared.catalogue.find(ACCOUNT, &name).await.unwrap().schema.clone();
    assert!(held.is_empty());
    process.declare("Town", false).await;
    let mut worker = process.worker();
    let stepping = tokio::spawn(async move { worker.step().await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!stepping.is_finished());
    let now = process.shared.catalogue.find(ACCOUNT, &name).await.unwrap();
    assert_eq!(now.schema.indexes()[0].state, IndexState::DeleteOnly);
    drop((held, now));
    stepping.await.unwrap().unwrap();
    let now = process.shared.catalogue.find(ACCOUNT, &name).await.unwrap();
    assert_eq!(now.schema.indexes()[0].state, IndexState::WriteOnly);
}

/// From the first chunk to the last, after a start from where it goes on, and no longer than the build.
#[tokio::test]
async fn the_progress_of_a_build_is_told() {
    let (engine, _) = engine_with_people().await;
    let process = Process::start(&engine).await;
    let builds = process.shared.registry().builds.clone();
    assert_eq!(builds.total(), (0, Entities::default()));
    process.declare("Town", false).await;
    let mut worker = process.worker();
    let mut told = Vec::new();
    while worker.step().await.unwrap() {
        told.extend(Some(builds.total()).filter(|(running, _)| *running == 1));
    }
    let all = ROWS as u64;
    let seen = |done| (1, Entities { done, expected: all });
    assert_eq!(told, [seen(64), seen(128), seen(192), seen(200)]);
    assert_eq!(builds.total(), (0, Entities::default()));

    // The next knows how many there are; it goes on after a start, and ends with its index.
    process.declare("Row", false).await;
    let mut worker = process.worker();
    while builds.total() != seen(64) {
        worker.step().await.unwrap();
    }
    drop((worker, process));
    let process = Process::start(&engine).await;
    let mut worker = process.worker();
    worker.step().await.unwrap();
    let builds = process.shared.registry().builds.clone();
    assert_eq!(builds.total(), seen(128));
    process.change(|record| definitions::drop_index(&mut record.indexes, "Index", NOW)).await;
    worker.step().await.unwrap();
    assert_eq!(builds.total(), (0, Entities::default()));
}

/// However many tables want one.
#[tokio::test]
async fn two_builds_go_on_at_a_time() {
    let (engine, _) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    let mut worker = process.worker();
    while definitions::next_build(&process.record().await.indexes).is_none() {
        worker.step().await.unwrap();
    }
    assert_eq!(process.shared.builds.available_permits(), 2);
    let others = process.shared.builds.acquire_many(2).await.unwrap();
    let building = tokio::spawn(async move { worker.step().await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!building.is_finished());
    drop(others);
    assert!(building.await.unwrap().unwrap());
    // And one of a table: nobody else looks after it meanwhile.
    let registry = process.shared.registry();
    registry.add_work(ACCOUNT, "people");
    let busy = [(ACCOUNT, Box::from("people"))].into();
    assert_eq!(registry.take_work(&busy), None);
    assert!(registry.take_work(&BTreeSet::new()).is_some());
}

#[tokio::test]
async fn uses_and_changes_are_kept() {
    let (engine, table) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    process.steps(usize::MAX).await;
    let numbers = process.shared.registry().statistics.of(table, 1);
    numbers.note_page(true, Ticks(77));
    numbers.note_changes(3, -2);
    process.shared.catalogue.keep_statistics().await;
    let process = Process::start(&engine).await;
    let known = process.shared.registry().statistics.of(table, 1).get();
    assert_eq!((known.uses, known.last_used), (1, Some(Ticks(77))));
    assert_eq!((known.rows, known.entries), (ROWS as u64 + 3, ROWS as u64 - 2));
    assert_eq!(known.distinct, 7);
}

/// A server that has nothing to build keeps what queries have counted, as if it were killed a while after.
#[tokio::test]
async fn numbers_are_kept_though_nothing_is_built() {
    let (engine, table) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    process.steps(usize::MAX).await;
    process.shared.registry().statistics.of(table, 1).note_page(true, Ticks(77));
    let mut builder = IndexBuilder { shared: process.shared.clone() };
    // The table's worker finds nothing to do.
    let (_running, stop) = watch::channel(false);
    assert_eq!(builder.round(&Stop(stop)).await.unwrap(), Next::After(KEEP_EVERY));
    let process = Process::start(&engine).await;
    assert_eq!(process.shared.registry().statistics.of(table, 1).get().uses, 1);
}

/// Somebody waits for the words of a verification, whatever has become of the index.
#[tokio::test]
async fn a_verification_comes_to_an_end_though_the_index_is_declared_anew() {
    let (engine, table) = engine_with_people().await;
    let process = Process::start(&engine).await;
    process.declare("Town", false).await;
    process.steps(usize::MAX).await;
    let registry = process.shared.registry();
    let statistics = |number| registry.statistics.of(table, number);
    statistics(1).begin_verification();
    registry.add_verification(ACCOUNT, "people", "Index");
    process.declare("Row", false).await;
    let mut worker = process.worker();
    while statistics(1).is_being_verified() {
        worker.step().await.unwrap();
    }
    let words = |number| statistics(number).verification().unwrap();
    assert!(words(1).contains("declared anew"), "{}", words(1));
    assert_eq!(&*words(2), "not readable yet");
}
