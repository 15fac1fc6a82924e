//! Changes of the record of a build beside those that chunks make.

use bytes::Bytes;
use tavola_engine::{AnyEngine, Decision, Engine, Transition, WriteSet};

use super::statistics::StatisticsList;
use crate::storage::layout::{BuildRecord, Key, TableId};

/// Indexes whose numbers are written down in one commit.
const KEPT_TOGETHER: usize = 100;

/// Writes down what is known of indexes and has changed. Numbers that steer are not worth a failure.
pub(crate) async fn keep_statistics(engine: &AnyEngine, all: &StatisticsList) {
    for some in all.changed().chunks(KEPT_TOGETHER) {
        let known = some.iter().map(|(table, number, statistics)| {
            (Key::IndexBuild { table: *table, number: *number }.encode(), statistics.get())
        });
        let (keys, known) = known.unzip();
        let keep = KeepStatistics { keys, known, ends_build: false };
        if let Err(error) = engine.transact(keep).await {
            some.iter().for_each(|(.., statistics)| statistics.set_changed());
            tracing::debug!(%error, "cannot keep the statistics of indexes");
        }
    }
}

/// Keeps what is known of indexes, but for those that are gone.
pub(crate) struct KeepStatistics {
    keys: Vec<Bytes>,
    known: Vec<BuildRecord>,
    ends_build: bool,
}

impl KeepStatistics {
    /// What is known of an index whose build has come to its end.
    pub(crate) fn at_end_of_build(table: TableId, number: u16, known: BuildRecord) -> Self {
        let keys = vec![Key::IndexBuild { table, number }.encode()];
        Self { keys, known: vec![known], ends_build: true }
    }
}

impl Transition for KeepStatistics {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// A few bytes in place of as many: without it a build could not end on a disk that is nearly full. What is kept every
    /// few seconds can wait for room.
    fn frees_space(&self) -> bool {
        self.ends_build
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        for ((key, value), known) in self.keys.iter().zip(values).zip(&self.known) {
            if let Some(stored) = value.as_deref().and_then(BuildRecord::decode) {
                let BuildRecord { is_done, position, .. } = stored;
                let known = BuildRecord { is_done, position, ..known.clone() };
                writes.put(key.clone(), known.encode());
            }
        }
        if writes.is_empty() { Decision::Abort(()) } else { Decision::Commit(()) }
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
