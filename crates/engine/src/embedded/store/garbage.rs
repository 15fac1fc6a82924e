//! What is dead in a store: tombstones, and separated values that no row refers to.

use fjall::{AbstractTree, AnyTree};
use lsm_tree::Table;
use lsm_tree::blob_tree::FragmentationMap;

use crate::embedded::options::STALE_SHARE;
use crate::embedded::store::Store;

/// lsm-tree has seven.
const LAST_LEVEL: usize = 6;

impl Store {
    /// Looks how many deletions there are in tables.
    pub(crate) fn count_deletions(&self) {
        let version = self.keyspace.tree.current_version();
        let tables = version.iter_tables().filter(|table| table.tombstone_count() > 0);
        self.deletions.count(&tables.collect::<Vec<_>>());
    }

    pub(crate) fn waiting_tombstones(&self) -> WaitingTombstones {
        WaitingTombstones::of(&self.keyspace.tree)
    }

    /// The share of entries in tables that are tombstones.
    pub(crate) fn tombstone_share(&self) -> f64 {
        let entries = self.keyspace.approximate_len().max(1);
        self.keyspace.tree.tombstone_count() as f64 / entries as f64
    }

    /// Bytes of separated values that [`Store::rewrite`] gives back.
    pub(crate) fn reclaimable_value_bytes(&self) -> u64 {
        StaleFiles::of(&self.keyspace.tree).files.iter().map(|(_, stale_bytes)| stale_bytes).sum()
    }

    /// Bytes of separated values that no row refers to any more.
    pub(crate) fn stale_value_bytes(&self) -> u64 {
        self.keyspace.fragmented_blob_bytes()
    }
}

/// Tombstones above the last level: those that compaction has not brought to what they delete.
pub(crate) struct WaitingTombstones {
    pub(crate) count: u64,
    /// Of all entries.
    pub(crate) share: f64,
}

impl WaitingTombstones {
    fn of(tree: &AnyTree) -> Self {
        let version = tree.current_version();
        let waiting = (0..LAST_LEVEL).filter_map(|level| version.level(level));
        let waiting = waiting.flat_map(|level| level.iter()).flat_map(|run| run.iter());
        let count = waiting.map(Table::tombstone_count).sum::<u64>();
        let entries = version.iter_tables().map(|table| table.metadata.item_count).sum::<u64>();
        Self { count, share: count as f64 / entries.max(1) as f64 }
    }
}

/// The files of separated values that are stale enough to be rewritten or deleted, with their stale bytes.
pub(super) struct StaleFiles {
    pub(super) files: Vec<(u64, u64)>,
}

impl StaleFiles {
    pub(super) fn of(tree: &AnyTree) -> Self {
        let version = tree.current_version();
        let stale_bytes = |id: u64| {
            let mut one = FragmentationMap::default();
            one.extend(version.gc_stats().get(&id).map(|entry| (id, *entry)));
            one.stale_bytes()
        };
        let mut files = Vec::new();
        for file in version.blob_files.iter() {
            let stale_bytes = stale_bytes(file.id());
            // A file that cannot be asked is no reason to wait.
            let bytes = file.path().metadata().map_or(0, |file| file.len());
            if stale_bytes > 0 && stale_bytes as f32 >= STALE_SHARE * bytes as f32 {
                files.push((file.id(), stale_bytes));
            }
        }
        Self { files }
    }
}
