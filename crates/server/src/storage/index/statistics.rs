//! What is known of an index beside its definition: numbers that steer, and decide nothing.
//!
//! They live in memory, shared by all who hold the index, and are kept in its build record every few seconds and at a stop.
//! After a crash those of the last seconds are missing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tavola_wire::Ticks;

use crate::storage::layout::{BuildRecord, TableId};

/// What is told of a verification that has come to nothing yet.
const VERIFYING: &str = "running";

/// From a key on and up to another.
#[derive(Debug)]
struct AheadOfBuild {
    position: Bytes,
    last: Bytes,
}

/// The numbers of one index.
#[derive(Debug, Default)]
pub(crate) struct IndexStatistics {
    /// Entities of the table: seen by the build, and changes since.
    rows: AtomicU64,
    /// Rows of the index, likewise.
    entries: AtomicU64,
    /// Changes of both while the index is being built, of entities that the build does not meet any more.
    rows_beside_build: AtomicI64,
    entries_beside_build: AtomicI64,
    /// The entities that it has still to meet, while it goes on.
    ahead_of_build: Mutex<Option<AheadOfBuild>>,
    /// Bytes of these rows, as the build found them.
    bytes: AtomicU64,
    off_type: AtomicU64,
    distinct: AtomicU64,
    largest: AtomicU64,
    uses: AtomicU64,
    /// Ticks; 0 is never.
    last_used: AtomicI64,
    /// Whether there is something to keep.
    is_changed: AtomicBool,
    /// What the last verification came to, in words.
    verification: Mutex<Option<Arc<str>>>,
}

impl IndexStatistics {
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Of one value of the first part on the average, if the build has met any.
    pub(crate) fn entries_of_a_value(&self) -> Option<u64> {
        self.entries().checked_div(self.distinct.load(Ordering::Relaxed))
    }

    /// Whether a value that the build has met has one in so many entities, or more.
    pub(crate) fn has_common_value(&self, one_in: u64) -> bool {
        let largest = self.largest.load(Ordering::Relaxed);
        largest > 0 && largest.saturating_mul(one_in) >= self.rows()
    }

    /// Counts a page that it found: as a query, if it is the first of one.
    pub(crate) fn note_page(&self, is_first: bool, now: Ticks) {
        self.uses.fetch_add(u64::from(is_first), Ordering::Relaxed);
        self.last_used.store(now.0, Ordering::Relaxed);
        self.is_changed.store(true, Ordering::Relaxed);
    }

    /// Counts changes that were committed.
    pub(crate) fn note_changes(&self, rows: i64, entries: i64) {
        add(&self.rows, rows);
        add(&self.entries, entries);
        self.is_changed.store(true, Ordering::Relaxed);
    }

    /// Counts changes of entities about this key that were committed before the index could be read. What the build has
    /// still to meet, it counts itself.
    pub(crate) fn note_changes_beside_build(&self, entity_key: &[u8], rows: i64, entries: i64) {
        match &*self.ahead_of_build() {
            Some(ahead) if ahead.has(entity_key) => {}
            Some(_) => {
                self.rows_beside_build.fetch_add(rows, Ordering::Relaxed);
                self.entries_beside_build.fetch_add(entries, Ordering::Relaxed);
            }
            None => self.note_changes(rows, entries),
        }
    }

    /// Where the build is, and the last entity that it has to do with.
    pub(crate) fn set_ahead_of_build(&self, position: Bytes, last: Bytes) {
        *self.ahead_of_build() = Some(AheadOfBuild { position, last });
    }

    /// Adds to what the build has found what came beside it.
    pub(crate) fn end_build(&self) {
        let mut ahead = self.ahead_of_build();
        *ahead = None;
        let rows = self.rows_beside_build.swap(0, Ordering::Relaxed);
        let entries = self.entries_beside_build.swap(0, Ordering::Relaxed);
        self.note_changes(rows, entries);
    }

    /// Takes over what a build has found, or what was kept.
    pub(crate) fn set(&self, build: &BuildRecord) {
        let BuildRecord { rows, entries, bytes, off_type, distinct, largest, .. } = *build;
        let all = [
            (&self.rows, rows),
            (&self.entries, entries),
            (&self.bytes, bytes),
            (&self.off_type, off_type),
            (&self.distinct, distinct),
            (&self.largest, largest),
        ];
        for (number, value) in all {
            number.store(value, Ordering::Relaxed);
        }
    }

    /// Takes over the uses that were kept.
    pub(crate) fn set_uses(&self, build: &BuildRecord) {
        self.uses.store(build.uses, Ordering::Relaxed);
        self.last_used.store(build.last_used.map_or(0, |used| used.0), Ordering::Relaxed);
    }

    /// What there is to keep. Its position is left empty.
    pub(crate) fn get(&self) -> BuildRecord {
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let last_used = self.last_used.load(Ordering::Relaxed);
        BuildRecord {
            is_done: false,
            rows: number(&self.rows),
            entries: number(&self.entries),
            bytes: number(&self.bytes),
            off_type: number(&self.off_type),
            distinct: number(&self.distinct),
            largest: number(&self.largest),
            uses: number(&self.uses),
            last_used: (last_used != 0).then_some(Ticks(last_used)),
            position: Bytes::new(),
        }
    }

    fn ahead_of_build(&self) -> MutexGuard<'_, Option<AheadOfBuild>> {
        self.ahead_of_build.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is something to keep, which the caller does.
    pub(crate) fn take_changed(&self) -> bool {
        self.is_changed.swap(false, Ordering::Relaxed)
    }

    /// It could not be kept.
    pub(crate) fn set_changed(&self) {
        self.is_changed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_verification(&self, words: impl Into<Arc<str>>) {
        *self.verification.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.into());
    }

    /// Tells that somebody has asked for one.
    pub(crate) fn begin_verification(&self) {
        self.set_verification(VERIFYING);
    }

    pub(crate) fn is_being_verified(&self) -> bool {
        self.verification().as_deref() == Some(VERIFYING)
    }

    pub(crate) fn verification(&self) -> Option<Arc<str>> {
        self.verification.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AheadOfBuild {
    fn has(&self, entity_key: &[u8]) -> bool {
        self.position < *entity_key && self.last >= *entity_key
    }
}

fn add(number: &AtomicU64, change: i64) {
    if change != 0 {
        // Estimates: what was counted twice or not at all must not make one wrap.
        let _ = number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
            Some(number.saturating_add_signed(change))
        });
    }
}

/// The numbers of all indexes.
#[derive(Debug, Default)]
pub(crate) struct StatisticsList {
    by_index: Mutex<HashMap<(TableId, u16), Arc<IndexStatistics>>>,
}

impl StatisticsList {
    /// The numbers of an index, the same for all who ask.
    pub(crate) fn of(&self, table: TableId, number: u16) -> Arc<IndexStatistics> {
        let mut by_index = self.by_index.lock().unwrap_or_else(PoisonError::into_inner);
        by_index.entry((table, number)).or_default().clone()
    }

    /// The index is gone.
    pub(crate) fn forget(&self, table: TableId, number: u16) {
        self.by_index.lock().unwrap_or_else(PoisonError::into_inner).remove(&(table, number));
    }

    /// Those with something to keep, which the caller does.
    pub(crate) fn changed(&self) -> Vec<(TableId, u16, Arc<IndexStatistics>)> {
        let by_index = self.by_index.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = by_index.iter().filter(|(_, statistics)| statistics.take_changed());
        changed.map(|((table, number), statistics)| (*table, *number, statistics.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written ahead of a build, the build counts; what is written behind it, or behind the last entity, it does not.
    #[test]
    fn what_comes_beside_a_build_is_counted_once() {
        let statistics = IndexStatistics::default();
        // Before it begins; the build finds these and all others.
        statistics.note_changes_beside_build(b"m", 1, 1);
        statistics.set_ahead_of_build(b"f".as_slice().into(), b"p".as_slice().into());
        statistics.set(&BuildRecord { rows: 10, entries: 10, ..BuildRecord::default() });
        for (key, rows) in [(b"a", 1), (b"f", 2), (b"g", 100), (b"p", -100), (b"q", 4)] {
            statistics.note_changes_beside_build(key, rows, rows);
        }
        statistics.set(&BuildRecord { rows: 20, entries: 20, ..BuildRecord::default() });
        statistics.end_build();
        assert_eq!((statistics.get().rows, statistics.get().entries), (27, 27));
        statistics.note_changes_beside_build(b"g", 1, 1);
        assert_eq!(statistics.get().rows, 28);
    }

    #[test]
    fn a_value_has_as_many_entries_as_the_others() {
        let statistics = IndexStatistics::default();
        statistics.set(&BuildRecord { entries: 30, ..BuildRecord::default() });
        assert_eq!(statistics.entries_of_a_value(), None);
        statistics.set(&BuildRecord { entries: 30, distinct: 10, ..BuildRecord::default() });
        assert_eq!(statistics.entries_of_a_value(), Some(3));
    }
}
