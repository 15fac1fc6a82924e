//! How fjall is set up: one keyspace that holds all rows.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fjall::config::{BlockSizePolicy, PartitioningPolicy, PinningPolicy, RestartIntervalPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions};

use crate::embedded::options::{
    BLOCK_BYTES, EmbeddedOptions, OpenError, SEPARATE_VALUE_BYTES, STALE_SHARE,
};
use crate::embedded::store::compaction;
use crate::panic_message;

/// The one keyspace.
const KEYSPACE: &str = "rows";

/// Every this many rows of a block the whole key is written, and a search can begin; in between, what it shares with the
/// one before is left out. Rows are few and large: with fjall's default of 16 a read by key passes half a block. fjall
/// keeps what a store was made with, so that older folders stay as they are.
const RESTART_INTERVAL: u8 = 4;

/// From which level on the index of a table is in parts, which are cached like blocks. Before, and what leads to the
/// parts, it stays in memory: every read asks it. So do filters; fjall has them in parts from the fourth level on. The
/// levels before are small and not compressed, so that even with the longest keys their indexes take no more than they.
const INDEX_IN_PARTS: [bool; 3] = [false, false, true];

/// fjall's smallest. With one keyspace a journal goes as soon as its memtable is flushed.
const JOURNALS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// fjall does not say what it was reading.
pub(crate) const WHICH_FILE: &str = "`tavola check` tells which file";

fn keyspace_options(options: &EmbeddedOptions) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(options.memtable_bytes)
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(RESTART_INTERVAL))
        .index_block_partitioning_policy(PartitioningPolicy::new(INDEX_IN_PARTS))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .compaction_strategy(compaction::never_compacting())
        .with_kv_separation(Some(
            KvSeparationOptions::default()
                .separation_threshold(SEPARATE_VALUE_BYTES)
                // The length to decompress to is not covered by a checksum, and fjall believes it.
                .compression(CompressionType::None)
                .staleness_threshold(STALE_SHARE)
                // Whatever its age: fjall's default spares three of four such files.
                .age_cutoff(1.0),
        ))
}

/// Opens fjall. Its decoders panic on what they do not expect; that must not look like a mistake of ours.
pub(crate) fn open_database(
    store: &Path,
    options: &EmbeddedOptions,
) -> Result<(Database, Keyspace), OpenError> {
    let open = || {
        let database = Database::builder(store)
            .cache_size(options.cache_bytes)
            .max_cached_files(Some(options.cached_files_max))
            // Flushes only; see `compactor`.
            .worker_threads(1)
            .max_journaling_size(JOURNALS_BYTES_MAX)
            // Compressing on the committer's thread would hold up everyone behind a large entity.
            .journal_compression(CompressionType::None)
            .open()?;
        let keyspace = database.keyspace(KEYSPACE, || keyspace_options(options))?;
        fjall::Result::Ok((database, keyspace))
    };
    let failed = |source| OpenError::Store { path: store.into(), source };
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(|error| failed(error.into())),
        Err(panic) => Err(failed(unreadable(&*panic).into())),
    }
}

/// What a panic of fjall's decoders means.
pub(crate) fn unreadable(panic: &(dyn Any + Send)) -> String {
    format!("the store cannot be read: {}; {WHICH_FILE}", panic_message(panic))
}
