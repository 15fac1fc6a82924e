//! How tables are compacted, and what a compaction will write, told before it is started.
//!
//! The old tables go when the new ones are there, so a compaction needs room for both. One that ends for lack of room
//! leaves the tree as it was, but its unfinished files stay until the next start: it had better not begin. lsm-tree
//! chooses what to compact in the moment when it does; the same choice is asked for here.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fjall::{AbstractTree, AnyTree, CompressionType};
use lsm_tree::Table;
use lsm_tree::compaction::{Choice, CompactionStrategy, Leveled};

use crate::embedded::files::manifest;
use crate::embedded::options::{BLOCK_BYTES, SEPARATE_VALUE_BYTES};
use crate::embedded::store::garbage::StaleFiles;
use crate::embedded::store::{Store, guarded};
use crate::{Error, Result};

/// Size of a table file. Half of fjall's default, so that more tables lie wholly inside a dropped range and a
/// compaction step holds up the next one for less; the first level is four times this.
const TABLE_BYTES: u64 = 32 * 1024 * 1024;

/// Share of tombstones among all entries from which on they are a reason to compact. Each stands for one dead row, so at one
/// tenth about a fifth of the store is garbage; and ten entries are read at most for each.
pub(crate) const TOMBSTONE_SHARE_MAX: f64 = 0.1;

/// Tables are not rewritten at once beyond this: no other compaction runs meanwhile, and writers stall when some
/// twenty flushed memtables have piled up, which leaves about ten seconds.
pub(crate) const REWRITE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// From this level on tables are compressed, as fjall has it unless told otherwise.
const COMPRESSED_FROM_LEVEL: u8 = 2;

/// Checksums and headers of blocks: an eighth of what is compacted is more than they take.
const OVERHEAD_SHARE: u64 = 8;

/// What the index has for each block beside its last key, and the filter for each row.
const INDEX_ENTRY_BYTES: u64 = 32;
const FILTER_ROW_BYTES: u64 = 2;

/// The manifest, and what files take beyond their bytes.
const OVERHEAD_BYTES: u64 = 256 * 1024;

/// How often to compare the manifest on disk with the one in memory, and the pause after a look, a little longer each time.
const MANIFEST_LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Which tables are compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// As late as lsm-tree allows.
    Lazy,
    /// Until nothing is left to compact.
    Eager,
    /// Until everything is in the last level, where deletions end with what they delete.
    ToLastLevel,
}

/// What lsm-tree takes for each [`Strategy`].
pub(crate) struct Strategies {
    lazy: Arc<Leveled>,
    eager: Arc<Leveled>,
    to_last_level: Arc<Leveled>,
}

impl Strategies {
    pub(crate) fn new() -> Self {
        let first_level_from = |runs| Arc::new(leveled().with_l0_threshold(runs));
        Self {
            lazy: Arc::new(leveled()),
            eager: first_level_from(1),
            // The size of all levels follows from it: none but the last may hold anything.
            to_last_level: first_level_from(0),
        }
    }

    pub(crate) fn of(&self, strategy: Strategy) -> &Arc<Leveled> {
        match strategy {
            Strategy::Lazy => &self.lazy,
            Strategy::Eager => &self.eager,
            Strategy::ToLastLevel => &self.to_last_level,
        }
    }
}

fn leveled() -> Leveled {
    Leveled::default().with_table_target_size(TABLE_BYTES)
}

/// For fjall's own thread, which shall flush: levels so large and so late that none ever needs compaction.
pub(crate) fn never_compacting() -> Arc<Leveled> {
    Arc::new(Leveled::default().with_l0_threshold(u8::MAX).with_table_target_size(1 << 40))
}

impl Store {
    /// Bytes that the most urgent compaction writes at most; `None` if there is none.
    pub(crate) fn compaction_bytes(&self, strategy: Strategy) -> Result<Option<u64>> {
        guarded(|| step_bytes(&self.keyspace.tree, self.strategies.of(strategy)))
    }

    /// Does the most urgent compaction; false if there was none.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] for lack of room: the tables are as before, and can be compacted later.
    pub(crate) fn compact_step(&self, strategy: Strategy) -> Result<bool> {
        let tree = &self.keyspace.tree;
        let version = tree.current_version().id();
        let strategy = Arc::clone(self.strategies.of(strategy));
        self.compacting(|| {
            let safe_to_forget = self.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
            Ok(tree.compact(strategy as _, safe_to_forget)?)
        })?;
        // A flush in between changes the version as well; then there is one look too many.
        Ok(tree.current_version().id() != version)
    }

    /// Rewrites all tables without what is deleted.
    ///
    /// # Errors
    ///
    /// As [`Store::compact_step`].
    pub(crate) fn rewrite(&self) -> Result<()> {
        self.compacting(|| self.keyspace.major_compact())
    }

    /// Bytes that [`Store::rewrite`] writes at most.
    pub(crate) fn rewrite_bytes(&self) -> Result<u64> {
        guarded(|| rewrite_bytes(&self.keyspace.tree))
    }

    pub(crate) fn set_compacted(&self, is_compacted: bool) {
        self.is_compacted.store(is_compacted, Ordering::Release);
    }

    /// Tells a compaction that found no room from one that cannot be gone on after. Its tables are shown again by
    /// lsm-tree, and the files that it has not finished go at the next start. But when even the manifest was
    /// written and only its sync failed, the disk is ahead of what is in memory, and the next manifest would
    /// overwrite the one that counts.
    fn compacting(&self, compact: impl FnOnce() -> fjall::Result<()>) -> Result<()> {
        let mut is_full = false;
        let compacted = guarded(|| compact().inspect_err(|error| is_full = is_out_of_room(error)));
        if is_full && self.is_as_on_disk() { Err(Error::Full) } else { compacted }
    }

    fn is_as_on_disk(&self) -> bool {
        // A flush may be about to write the next manifest: a difference counts only if it stays.
        (0..MANIFEST_LOOKS).any(|look| {
            std::thread::sleep(look * BETWEEN_LOOKS);
            let written = manifest::current_number(self.keyspace.path());
            written == Some(self.keyspace.tree.current_version().id())
        })
    }
}

/// Bytes that the next step of `strategy` writes at most; `None` if there is nothing to do.
fn step_bytes(tree: &AnyTree, strategy: &Leveled) -> fjall::Result<Option<u64>> {
    let version = tree.current_version();
    // The default: as if no other compaction were running, which is so; see `DiskSpace::compaction_permit`.
    let input = match strategy.choose(&version, tree.tree_config(), &Default::default()) {
        Choice::Merge(input) => input,
        Choice::Move(_) | Choice::Drop(_) => return Ok(Some(0)),
        Choice::DoNothing => return Ok(None),
    };
    let is_input = |table: &&Table| input.table_ids.contains(&table.id());
    let is_compressed = input.canonical_level >= COMPRESSED_FROM_LEVEL;
    let tables = version.iter_tables().filter(is_input);
    let block_bytes = block_bytes(tree);
    let table_bytes =
        tables.map(|table| written_bytes(table, is_compressed, block_bytes)).sum::<u64>();
    let value_bytes = rewritten_value_bytes(tree, |table| input.table_ids.contains(&table.id()))?;
    Ok(Some(with_overhead(table_bytes + value_bytes)))
}

/// Bytes that a rewrite of all tables writes at most.
fn rewrite_bytes(tree: &AnyTree) -> fjall::Result<u64> {
    // They go to the last level, where tables are compressed.
    let version = tree.current_version();
    let table_bytes = version.iter_tables().map(|table| written_bytes(table, true, 0)).sum::<u64>();
    Ok(with_overhead(table_bytes + rewritten_value_bytes(tree, |_| true)?))
}

fn is_out_of_room(error: &fjall::Error) -> bool {
    let (fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error))) = error
    else {
        return false;
    };
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn with_overhead(bytes: u64) -> u64 {
    bytes + bytes / OVERHEAD_SHARE + OVERHEAD_BYTES
}

/// What blocks are made of at least; what the store was made with counts.
fn block_bytes(tree: &AnyTree) -> u64 {
    tree.tree_config().data_block_size_policy.last().copied().unwrap_or(BLOCK_BYTES).into()
}

/// What becomes of a table that is compacted whole. It is not compressed again on its way to an upper level, which is
/// where tables go that were the only ones below.
fn written_bytes(table: &Table, is_compressed: bool, block_bytes: u64) -> u64 {
    let metadata = &table.metadata;
    let (blocks, rows) = (metadata.data_block_count, metadata.item_count);
    let grows = !is_compressed && metadata.data_block_compression != CompressionType::None;
    let grown_bytes = if grows { uncompressed_bytes(blocks, rows, block_bytes) } else { 0 };
    // No key is known but the first and the last; those between are likely to be of their length.
    let keys = &metadata.key_range;
    let key_bytes = keys.min().len().max(keys.max().len()) as u64;
    // The file's size, as lsm-tree tells it, is that of its blocks.
    metadata.file_size.max(grown_bytes)
        + blocks * (key_bytes + INDEX_ENTRY_BYTES)
        + rows * FILTER_ROW_BYTES
}

/// Bytes of that many blocks, at most, unless their rows are very unlike each other. A block ends with the row that makes it
/// large enough, so without it it is smaller than `block_bytes`.
fn uncompressed_bytes(blocks: u64, rows: u64, block_bytes: u64) -> u64 {
    if rows < 2 * blocks {
        return blocks * (block_bytes + u64::from(SEPARATE_VALUE_BYTES));
    }
    let bytes = u128::from(blocks) * u128::from(block_bytes) * u128::from(rows);
    u64::try_from(bytes / u128::from((rows - blocks).max(1))).unwrap_or(u64::MAX)
}

/// Files of separated values are rewritten when enough of them is stale and no other table refers to them.
fn rewritten_value_bytes(tree: &AnyTree, is_input: impl Fn(&Table) -> bool) -> fjall::Result<u64> {
    let mut stale =
        StaleFiles::of(tree).files.into_iter().map(|(id, _)| id).collect::<HashSet<_>>();
    if stale.is_empty() {
        return Ok(0);
    }
    let mut referred = Vec::new();
    for table in tree.current_version().iter_tables() {
        for reference in table.list_blob_file_references()?.unwrap_or_default() {
            if is_input(table) {
                referred.push((reference.blob_file_id, reference.on_disk_bytes));
            } else {
                stale.remove(&reference.blob_file_id);
            }
        }
    }
    Ok(referred.iter().filter(|(id, _)| stale.contains(id)).map(|(_, bytes)| bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills blocks with rows of one size, as lsm-tree does.
    #[test]
    fn blocks_are_not_larger_than_expected() {
        for row_bytes in [1, 100, 400, 1000, 2047, 2048, 3000, 4096, 5000, 20_000, 32_767] {
            let block_bytes = 4096_u64;
            let rows_per_block = block_bytes.div_ceil(row_bytes);
            let (blocks, rows) = (1000, 1000 * rows_per_block);
            let expected = uncompressed_bytes(blocks, rows, block_bytes);
            let bytes = rows * row_bytes;
            assert!(bytes <= expected, "rows of {row_bytes}: {bytes} of {expected}");
            // Not so much that compaction would wait without need, if there is more than one row to a block.
            assert!(
                rows_per_block == 1 || expected <= 2 * bytes,
                "rows of {row_bytes}: {expected}"
            );
        }
        assert_eq!(uncompressed_bytes(0, 0, 4096), 0);
    }
}
