//! Changes of the record of a build beside those that chunks make.

use bytes::Bytes;
use tavola_engine::{AnyEngine, Decision, Engine, Transition, WriteSet};

use super::statistics::StatisticsList;
use crate::storage::layout::{BuildRecord, Key, TableId};

/// Writes down what is known of indexes and has changed. Numbers that steer are not worth a failure.
pub(crate) async fn keep_statistics(engine: &AnyEngine, all: &StatisticsList) {
    for (table, number, statistics) in all.changed() {
        let keep = KeepStatistics::new(table, number, statistics.get());
        if let Err(error) = engine.transact(keep).await {
            tracing::debug!(%error, "cannot keep the statistics of an index");
        }
    }
}

/// Keeps what is known of an index, unless it is gone.
pub(crate) struct KeepStatistics {
    keys: [Bytes; 1],
    known: BuildRecord,
}

impl KeepStatistics {
    pub(crate) fn new(table: TableId, number: u16, known: BuildRecord) -> Self {
        Self { keys: [Key::IndexBuild { table, number }.encode()], known }
    }
}

impl Transition for KeepStatistics {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// A few bytes in place of as many: without it a build could not end on a disk that is nearly full.
    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        let Some(stored) = values[0].as_deref().and_then(BuildRecord::decode) else {
            return Decision::Abort(());
        };
        let BuildRecord { is_done, position, .. } = stored;
        let known = BuildRecord { is_done, position, ..self.known.clone() };
        writes.put(self.keys[0].clone(), known.encode());
        Decision::Commit(())
    }
}

/// Keeps the sketches of a build, unless it is gone.
pub(crate) struct KeepSketch {
    keys: [Bytes; 2],
    sketch: Bytes,
}

impl KeepSketch {
    pub(crate) fn new(table: TableId, number: u16, sketch: Bytes) -> Self {
        let build = Key::IndexBuild { table, number }.encode();
        Self { keys: [build, Key::IndexSketch { table, number }.encode()], sketch }
    }
}

impl Transition for KeepSketch {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        if values[0].is_none() {
            return Decision::Abort(());
        }
        writes.put(self.keys[1].clone(), self.sketch.clone());
        Decision::Commit(())
    }
}
