//! Brings indexes from one state to the next: builds those that were declared, removes those that were dropped.
//!
//! Each table with something to do has a worker. It takes the steps that wait for nobody but older requests, and builds
//! one index at a time, in slices: after each it looks again, so that an index can be dropped while it is built. What it has
//! come to is stored, and a start goes on from there. A full disk or a long queue pauses a build, and fails nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tavola_engine::{AnyEngine, Engine, Error as EngineError, Reader};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::build_pace::BuildPace;
use super::index_checks;
use super::{Next, Stop, Task, backoff};
use crate::clock::Clock;
use crate::storage::catalogue::{Catalogue, Table};
use crate::storage::index::backfill::{
    Chunk, ChunkKeys, ChunkOutcome, RowCount, rows_behind, rows_up_to,
};
use crate::storage::index::build_records::{KeepSketch, KeepStatistics};
use crate::storage::index::sketch::Sketch;
use crate::storage::index::{BuildProgress, Entities, IndexRegistry, TableKey, definitions};
use crate::storage::layout::{
    BuildRecord, IndexKeys, IndexRecord, Key, Record, TableId, TableRecord,
};
use crate::storage::{Error, Result};

/// Builds that go on at the same time: what they take of the committer is bounded.
const BUILDS_MAX: usize = 2;
/// Tables that are looked after at the same time; the steps of most take a moment.
const TABLES_MAX: usize = 64;
/// Chunks between two looks at the table's record.
const CHUNKS_PER_SLICE: usize = if cfg!(test) { 1 } else { 16 };
/// Slices between two moments at which the sketches are kept: as many rows as they may be behind after a crash.
const SLICES_PER_SKETCH: u32 = 4;
/// The longest rest after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// Entities that are counted between two looks at whether to stop.
const COUNT_ROWS: u64 = 100_000;
/// How often numbers that steer are kept.
const KEEP_EVERY: Duration = Duration::from_secs(10);

/// Why an index fails that was readable.
const ORPHAN: &str =
    "A row of it points to an entity that does not exist. Declare it again to have it built anew.";

#[derive(Debug)]
pub(crate) struct IndexBuilder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: AnyEngine,
    catalogue: Arc<Catalogue<Table>>,
    clock: Arc<Clock>,
    builds: Semaphore,
    pace: BuildPace,
}

impl IndexBuilder {
    pub(crate) fn new(
        engine: AnyEngine,
        catalogue: Arc<Catalogue<Table>>,
        clock: Arc<Clock>,
    ) -> Self {
        let (builds, pace) = (Semaphore::new(BUILDS_MAX), BuildPace::default());
        Self { shared: Arc::new(Shared { engine, catalogue, clock, builds, pace }) }
    }
}

impl Task for IndexBuilder {
    const NAME: &'static str = "building indexes";

    fn trigger(&self) -> Arc<Notify> {
        self.shared.registry().work_signal.clone()
    }

    async fn round(&mut self, stop: &Stop) -> Result<Next> {
        let (mut busy, mut workers) = (BTreeSet::new(), JoinSet::new());
        let work_signal = self.trigger();
        // Without anything to build, a round is over at once.
        self.shared.catalogue.keep_statistics().await;
        let mut keep_timer = interval_at(Instant::now() + KEEP_EVERY, KEEP_EVERY);
        keep_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while busy.len() < TABLES_MAX
                && !stop.is_requested()
                && let Some(table) = self.shared.registry().take_work(&busy)
            {
                busy.insert(table.clone());
                workers.spawn(Worker::new(&self.shared, table, stop).run());
            }
            let done = tokio::select! {
                // A worker may be at a table for hours.
                _ = keep_timer.tick() => {
                    self.shared.catalogue.keep_statistics().await;
                    continue;
                }
                done = workers.join_next() => done,
                () = work_signal.notified() => continue,
            };
            let error = match done {
                None => return Ok(Next::After(KEEP_EVERY)),
                Some(Ok((table, Ok(())))) => {
                    busy.remove(&table);
                    continue;
                }
                Some(Ok((_, Err(error)))) => error,
                Some(Err(panic)) => panic.into(),
            };
            // The others end with this round; the next goes on with what is stored.
            for (account, table) in &busy {
                self.shared.registry().add_work(*account, table);
            }
            return Err(error);
        }
    }
}

impl Shared {
    fn registry(&self) -> &IndexRegistry {
        self.catalogue.indexes()
    }
}

/// Looks after the indexes of one table until there is nothing to do.
struct Worker {
    shared: Arc<Shared>,
    table: TableKey,
    stop: Stop,
    /// Of the index that is being built: what was seen of it.
    sketch: Option<((TableId, u16), Sketch)>,
    slices: u32,
    /// Of that index.
    build: Option<Build>,
}

/// A build that has begun, or was taken up again.
struct Build {
    progress: BuildProgress,
    /// The last entity that it has to do with.
    last: Bytes,
}

impl Worker {
    fn new(shared: &Arc<Shared>, table: TableKey, stop: &Stop) -> Self {
        let (shared, stop) = (Arc::clone(shared), stop.clone());
        Self { shared, table, stop, sketch: None, slices: 0, build: None }
    }

    async fn run(mut self) -> (TableKey, Result<()>) {
        let mut failures = 0;
        while !self.stop.is_requested() {
            match self.step().await {
                Ok(true) => failures = 0,
                Ok(false) | Err(Error::NotFound) => break,
                Err(error @ Error::Engine(EngineError::Closed)) => return (self.table, Err(error)),
                Err(error) => {
                    // A full disk, say. Not for long: an index may be dropped to make room.
                    let pause = backoff(failures).min(PAUSE_MAX);
                    // Told once: more lines would fill what is left of the disk.
                    let is_first = failures == 0;
                    failures += 1;
                    if is_first {
                        let table = &*self.table.1;
                        tracing::warn!(table, %error, "indexes pause, and go on later");
                    }
                    self.pause(pause).await;
                }
            }
        }
        (self.table, Ok(()))
    }

    /// Does the next thing; false if there is none.
    async fn step(&mut self) -> Result<bool> {
        let (account, name) = (self.table.0, self.table.1.clone());
        self.check_orphans().await?;
        let record = self.shared.catalogue.table_record(account, &name).await?;
        let next_build = definitions::next_build(&record.indexes);
        // An index that was dropped meanwhile is not built any more.
        let is_next = |build: &Build| {
            next_build.is_some_and(|index| build.progress.is_of(record.id, index.number))
        };
        self.build = self.build.take().filter(is_next);
        // First: a unique index that was dropped refuses values until then.
        if definitions::has_steps(&record.indexes) {
            self.take_steps(&record).await?;
            return Ok(true);
        }
        let (engine, registry) = (&self.shared.engine, self.shared.registry());
        let mut to_verify = registry.take_verifications(&self.table);
        while let Some(index) = to_verify.first() {
            let verified = index_checks::verify_index(engine, registry, &self.table, index).await;
            if let Err(error) = verified {
                // Somebody waits for them.
                to_verify.iter().for_each(|index| registry.add_verification(account, &name, index));
                return Err(error);
            }
            to_verify.pop_first();
        }
        match next_build {
            Some(index) => self.build_slice(&record, index).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Takes indexes out of use whose rows point to nothing, as queries found.
    async fn check_orphans(&mut self) -> Result<()> {
        for (number, entity_key) in self.shared.registry().take_orphans(&self.table) {
            let engine = &self.shared.engine;
            let orphaned = index_checks::orphaned_in(engine, &self.table, number, &entity_key);
            if let Some(table) = orphaned.await? {
                self.fail(table, number, ORPHAN).await?;
            }
        }
        Ok(())
    }

    /// The steps that only wait until nobody works with an older record.
    async fn take_steps(&mut self, seen: &TableRecord) -> Result<()> {
        let (account, name) = (self.table.0, &*self.table.1);
        let catalogue = &self.shared.catalogue;
        tokio::select! {
            () = catalogue.schema_fence(account, name) => {}
            () = self.stop.requested() => return Ok(()),
        }
        for number in definitions::swept(&seen.indexes) {
            self.shared.engine.drop_range(IndexKeys::of(seen.id, number).all()).await?;
            tracing::info!(
                table = seen.name,
                number,
                "the rows of a dropped index have been swept"
            );
        }
        catalogue.advance_schema(account, name, seen, self.shared.clock.now()).await
    }

    async fn build_slice(&mut self, record: &TableRecord, index: &IndexRecord) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let _permit = shared.builds.acquire().await.expect("it is never closed");
        let definition = index.definition.parse();
        let Ok(definition) = definition else {
            return self.fail(record.id, index.number, "its definition cannot be read").await;
        };
        let (table, number) = (record.id, index.number);
        let statistics = shared.registry().statistics.of(table, number);
        let stored = shared.engine.get(&Key::IndexBuild { table, number }.encode()).await?;
        let stored = stored.as_deref().and_then(BuildRecord::decode).unwrap_or_default();
        let (mut is_done, mut position) = (stored.is_done, stored.position);
        let mut sketch = self.take_sketch(record, number, &position).await?;
        if self.build.is_none() {
            self.build = self.begin_build(record, number, stored.rows, &position).await?;
        }
        let Some(last) = self.build.as_ref().map(|build| build.last.clone()) else { return Ok(()) };
        statistics.set_ahead_of_build(position.clone(), last.clone());
        for _ in 0..CHUNKS_PER_SLICE {
            if is_done || self.stop.is_requested() {
                break;
            }
            let pace = shared.pace.begin(&shared.engine);
            let rows = rows_up_to(table, &position, &last);
            let found = shared.engine.scan(rows, ChunkKeys::default()).await?;
            let table_key = TableRecord::key(self.table.0, &self.table.1);
            let chunk = Chunk::new(table_key, table, number, &definition, position, found);
            match shared.engine.transact(chunk).await? {
                Ok(ChunkOutcome::Written(mut build, first_parts)) => {
                    first_parts.into_iter().for_each(|hash| sketch.add_hash(hash));
                    (is_done, position) = (build.is_done, build.position.clone());
                    (build.distinct, build.largest) = (sketch.distinct(), sketch.largest());
                    statistics.set(&build);
                    statistics.set_ahead_of_build(position.clone(), last.clone());
                    if let Some(Build { progress, .. }) = &self.build {
                        progress.set_done(build.rows);
                    }
                }
                Ok(ChunkOutcome::Stopped) => return Ok(()),
                Ok(ChunkOutcome::Violation) => {
                    let why =
                        format!("Two entities have the same values of {}.", definition.keys_text());
                    return self.fail(record.id, number, &why).await;
                }
                Err(Error::Corrupt(what)) => return self.fail(record.id, number, &what).await,
                Err(error) => return Err(error),
            }
            self.pause(pace.rest(&shared.engine)).await;
        }
        if is_done {
            statistics.end_build();
            return self.finish(record, index, &statistics.get()).await;
        }
        self.keep_sketch(record, number, sketch).await
    }

    /// Finds the last entity that a build has to do with, and tells operators how many there are until then. That takes a small
    /// part of the time that the build does. `None` if the server stops.
    async fn begin_build(
        &self,
        record: &TableRecord,
        number: u16,
        done: u64,
        position: &[u8],
    ) -> Result<Option<Build>> {
        let (mut rows, mut last) = (0, position.to_vec());
        loop {
            if self.stop.is_requested() {
                return Ok(None);
            }
            let range = rows_behind(record.id, &last);
            let counted = self.shared.engine.scan(range, RowCount::up_to(COUNT_ROWS)).await?;
            rows += counted.rows;
            if counted.rows > 0 {
                last = counted.last;
            }
            if !counted.has_more {
                break;
            }
        }
        let entities = Entities { done, expected: done + rows };
        let progress = self.shared.registry().builds.begin(record.id, number, entities);
        Ok(Some(Build { progress, last: last.into() }))
    }

    /// Every entity was seen: the index can be read from now on.
    async fn finish(
        &mut self,
        record: &TableRecord,
        index: &IndexRecord,
        known: &BuildRecord,
    ) -> Result<()> {
        let (table, number) = (record.id, index.number);
        self.shared
            .engine
            .transact(KeepStatistics::at_end_of_build(table, number, known.clone()))
            .await?;
        let now = self.shared.clock.now();
        let changed: Result<()> = self
            .shared
            .catalogue
            .change_schema(self.table.0, &self.table.1, move |record| {
                if record.id == table {
                    definitions::finish_build(&mut record.indexes, number, now);
                }
                Ok(())
            })
            .await;
        changed?;
        tracing::info!(
            table = record.name,
            index = index.name,
            entries = known.entries,
            "index built"
        );
        Ok(())
    }

    /// Takes an index out of use, unless the table was dropped meanwhile and this is another of its name.
    async fn fail(&mut self, table: TableId, number: u16, why: &str) -> Result<()> {
        tracing::warn!(table = &*self.table.1, number, why, "an index has failed");
        let (why, now) = (why.to_owned(), self.shared.clock.now());
        let catalogue = &self.shared.catalogue;
        catalogue
            .change_schema(self.table.0, &self.table.1, move |record| {
                if record.id == table {
                    definitions::fail(&mut record.indexes, number, &why, now);
                }
                Ok(())
            })
            .await
    }

    /// What was seen of the index before: from the last slice, or from before the start.
    async fn take_sketch(
        &mut self,
        record: &TableRecord,
        number: u16,
        position: &[u8],
    ) -> Result<Sketch> {
        match self.sketch.take() {
            Some((of, sketch)) if of == (record.id, number) => Ok(sketch),
            _ if position.is_empty() => Ok(Sketch::default()),
            _ => {
                let key = Key::IndexSketch { table: record.id, number }.encode();
                let stored = self.shared.engine.get(&key).await?;
                Ok(stored.as_deref().and_then(Sketch::decode).unwrap_or_default())
            }
        }
    }

    async fn keep_sketch(
        &mut self,
        record: &TableRecord,
        number: u16,
        sketch: Sketch,
    ) -> Result<()> {
        self.slices += 1;
        if self.slices.is_multiple_of(SLICES_PER_SKETCH) {
            let keep = KeepSketch::new(record.id, number, sketch.encode());
            self.shared.engine.transact(keep).await?;
        }
        self.sketch = Some(((record.id, number), sketch));
        Ok(())
    }

    async fn pause(&mut self, pause: Duration) {
        if pause.is_zero() {
            return tokio::task::yield_now().await;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.requested() => {}
        }
    }
}

#[cfg(test)]
#[path = "index_builder_tests.rs"]
mod tests;
