//! fjall behind the few calls that the engine needs.
//!
//! Two things about fjall shape this module:
//!
//! - Its own snapshots are not stable while a batch is being committed: a flush or compaction that ends in that
//!   moment publishes a sequence number above the batch's, and a snapshot taken then sees the batch's rows appear.
//!   So snapshots are only taken by whoever commits, between two batches; readers clone the latest of those.
//! - A read without a snapshot sees the memtable as it is. That is right for one key, because a row reaches the
//!   memtable only after its batch is durable, and wrong for more than one.

pub(crate) mod compaction;
pub(crate) mod compactor;
mod database;
pub(crate) mod deletions;
pub(crate) mod disk_space;
mod garbage;
pub(crate) mod rows;
pub(crate) mod sync_probe;

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use fjall::{
    AbstractTree, Database, Keyspace, OwnedWriteBatch, PersistMode, Readable, Snapshot, UserKey,
};

use crate::embedded::commit::group::Admission;
use crate::embedded::commit::group::{CommitError, Overlay, Sink};
use crate::embedded::files::clean_mark::{self, CleanMark};
use crate::embedded::files::journal_links::{self, JournalLinks};
use crate::embedded::files::{folder, inventory, journal, manifest, store_record};
use crate::embedded::options::{EmbeddedOptions, OpenError};
use crate::embedded::stats::StoreFigures;
use crate::embedded::store::compaction::Strategies;
use crate::embedded::store::database::{WHICH_FILE, open_database, unreadable};
use crate::embedded::store::deletions::Deletions;
use crate::embedded::store::disk_space::DiskSpace;
use crate::{Error, KeyRange, Result};

/// The rows on disk.
pub(crate) struct Store {
    // ORDER: fields drop in this order: snapshots and trees, then the mark that all is written, then the lock that
    // guards the folder.
    latest: RwLock<Arc<CommittedState>>,
    keyspace: Keyspace,
    database: Database,
    path: PathBuf,
    strategies: Strategies,
    /// Whether everything written is compacted, and so no files will be replaced until the next commit.
    is_compacted: AtomicBool,
    /// Deletions in tables, as of the last look.
    deletions: Deletions,
    journals: JournalLinks,
    mark: CleanMark,
    _lock: File,
    #[cfg(test)]
    pub(crate) fail_next_commit: AtomicBool,
}

/// A stable state of a [`Store`].
#[derive(Clone)]
pub(crate) struct StoreSnapshot {
    state: Arc<CommittedState>,
    store: Arc<Store>,
}

/// What was committed up to a moment.
struct CommittedState {
    snapshot: Snapshot,
    /// The version of the tables that the snapshot reads, if that is still the current one.
    version: u64,
}

impl CommittedState {
    fn take(database: &Database, keyspace: &Keyspace) -> Self {
        // ORDER: a snapshot reads the last version that was complete when it was taken. If a new one comes in between, it is
        // not this one that is current later.
        let version = keyspace.tree.current_version().id();
        Self { snapshot: database.snapshot(), version }
    }
}

impl Store {
    pub(crate) fn open(path: &Path, options: &EmbeddedOptions) -> Result<Self, OpenError> {
        let lock = folder::claim(path)?;
        let store_path = folder::store_folder(path);
        let inventory = inventory::take(path, &store_path)?;
        if !inventory.is_used {
            folder::remove_unfinished(&store_path)?;
        }
        clean_mark::verify(inventory.mark.as_ref(), &store_path)?;
        manifest::check(&store_path)?;
        // ORDER: the mark goes before anything is changed, and stays if nothing is.
        clean_mark::remove_stopped(path, inventory.mark.as_ref())?;
        journal_links::restore(path, &store_path, &inventory.to_restore)?;
        journal::check(&store_path)?;
        if inventory.is_used {
            folder::ensure_store_lock(&store_path)?;
        }
        let journals = JournalLinks::begin(path, &store_path, inventory.is_used)?;
        let (database, keyspace) = open_database(&store_path, options)?;
        // ORDER: nothing is acknowledged before the folder says what it has.
        store_record::write_if_absent(path, &store_path)?;
        journals.opened();
        Ok(Self {
            latest: RwLock::new(Arc::new(CommittedState::take(&database, &keyspace))),
            keyspace,
            database,
            path: path.into(),
            strategies: Strategies::new(),
            is_compacted: AtomicBool::new(false),
            deletions: Deletions::new(),
            journals,
            mark: CleanMark::new(path, &store_path),
            _lock: lock,
            #[cfg(test)]
            fail_next_commit: false.into(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        // Journals are counted on a best effort: they cannot be asked once the store is poisoned.
        self.keyspace.disk_space() + self.database.journal_disk_space().unwrap_or(0)
    }

    pub(crate) fn figures(&self) -> StoreFigures {
        let metrics = self.keyspace.metrics();
        StoreFigures {
            table_bytes: self.keyspace.disk_space(),
            journal_bytes: self.database.journal_disk_space().unwrap_or(0),
            memtable_bytes: self.unflushed_bytes(),
            uncompacted_runs: self.uncompacted_runs() as u64,
            deletions: self.deletions.total(),
            cache_bytes: self.database.cache_size(),
            cache_bytes_max: self.database.cache_capacity(),
            cache_hits: metrics.block_load_cached_count() as u64,
            cache_misses: metrics.block_load_io_count() as u64,
        }
    }

    /// The value after the last commit. Not the keyspace's own `get`: that one sees a batch while it is being
    /// applied, and so half of a transaction.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let state = Arc::clone(&self.latest.read().unwrap_or_else(PoisonError::into_inner));
        let value = guarded(|| state.snapshot.get(&self.keyspace, key))?;
        Ok(value.map(Bytes::from))
    }

    /// Deletions in tables that scans may have to pass.
    pub(crate) fn deletions(&self) -> &Deletions {
        &self.deletions
    }

    /// The state after the last commit.
    pub(crate) fn snapshot(self: &Arc<Self>) -> StoreSnapshot {
        let state = self.latest.read().unwrap_or_else(PoisonError::into_inner).clone();
        StoreSnapshot { state, store: Arc::clone(self) }
    }
}

impl StoreSnapshot {
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = guarded(|| self.state.snapshot.get(&self.store.keyspace, key))?;
        Ok(value.map(Bytes::from))
    }

    /// The key of the last row of a range that is not empty.
    pub(crate) fn last_key(&self, range: &KeyRange) -> Result<Option<UserKey>> {
        let range = range.start.as_ref()..range.end.as_ref();
        guarded(|| {
            let mut rows = self.state.snapshot.range::<&[u8], _>(&self.store.keyspace, range);
            rows.next_back().map(fjall::Guard::key).transpose()
        })
    }
}

/// The store as whoever commits sees it.
pub(crate) struct StoreSink {
    pub(crate) store: Arc<Store>,
    pub(crate) space: Arc<DiskSpace>,
    /// Tells the compactor that there may be something to compact.
    pub(crate) nudge: SyncSender<()>,
}

impl Sink for StoreSink {
    /// Only who holds the group writes, so to them the newest version is the committed one.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = guarded(|| self.store.keyspace.get(key))?;
        Ok(value.map(Bytes::from))
    }

    fn commit(&self, overlay: &mut Overlay) -> Result<(), CommitError> {
        let value_bytes = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        let bytes: usize = overlay.iter().map(|(key, value)| key.len() + value_bytes(value)).sum();
        self.store.commit(overlay)?;
        self.space.set_unflushed(self.store.unflushed_bytes());
        self.space.committed(bytes as u64);
        // Full means that it is nudged already.
        let _ = self.nudge.try_send(());
        Ok(())
    }

    fn admission(&self) -> Admission {
        self.space.admission()
    }

    fn housekeep(&self) -> bool {
        self.store.housekeep()
    }
}

/// What is done by whoever holds the group; nobody else may.
impl Store {
    fn commit(&self, overlay: &mut Overlay) -> Result<(), CommitError> {
        #[cfg(test)]
        if self.fail_next_commit.swap(false, Ordering::Relaxed) {
            let message = "failed on purpose".into();
            return Err(CommitError { message, nothing_written: false });
        }
        let mut batch = OwnedWriteBatch::with_capacity(self.database.clone(), overlay.len())
            .durability(Some(PersistMode::SyncData));
        // In order: neighbours in the memtable are found sooner one after the other.
        for (key, value) in std::mem::take(overlay) {
            match value {
                Some(value) => batch.insert(&self.keyspace, key, value),
                None => batch.remove(&self.keyspace, key),
            }
        }
        batch.commit().map_err(|error| CommitError {
            // fjall tells that it is poisoned before it touches the journal.
            nothing_written: matches!(error, fjall::Error::Poisoned),
            message: format!("cannot commit to {}: {error}", self.path.display()),
        })?;
        // ORDER: before anyone is told, so that a journal that holds what was acknowledged is missed if it goes.
        self.journals.committed();
        self.is_compacted.store(false, Ordering::Relaxed);
        self.publish();
        Ok(())
    }

    /// Takes the snapshot that readers get from now on.
    fn publish(&self) {
        let fresh = Arc::new(CommittedState::take(&self.database, &self.keyspace));
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        let stale = std::mem::replace(&mut *latest, fresh);
        drop(latest);
        drop(stale);
    }

    fn housekeep(&self) -> bool {
        // ORDER: looked at first, because a compaction that ends after the rest has been looked at leaves files behind.
        let is_compacted = self.is_compacted.load(Ordering::Acquire);
        self.publish();
        self.forget_old_versions();
        !is_compacted
            || self.keyspace.tree.version_free_list_len() > 0
            || self.database.outstanding_flushes() > 0
    }

    /// Lets go of table files that compaction has replaced. fjall does this only when the next memtable is
    /// flushed, which on a quiet server may be never.
    fn forget_old_versions(&self) {
        let tracker = &self.database.supervisor.snapshot_tracker;
        let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
        // Nobody but who holds the group opens snapshots, and readers share them. So if there is one, it is `latest`,
        // and whatever is older than that will never be read again.
        if tracker.open_snapshots() > 1 {
            return;
        }
        let mut versions = self.keyspace.tree.get_version_history_lock();
        if let Err(error) = versions.maintenance(self.keyspace.path(), latest.snapshot.seqno()) {
            tracing::warn!(%error, "cannot remove replaced files; trying again later");
        }
    }
}

/// What the compactor and dropping a range need, beside [`compaction`] and [`garbage`].
impl Store {
    /// # Errors
    ///
    /// [`Error::Unavailable`] when fjall writes no more, because its thread has failed, say for lack of space.
    pub(crate) fn check_alive(&self) -> Result<()> {
        // Asks the journal for nothing, which it refuses once poisoned.
        self.database.persist(PersistMode::Buffer).map_err(read_error)
    }

    /// Has what is in memory flushed when writing pauses: from `bytes_min` on.
    pub(crate) fn flush_from(&self, bytes_min: u64) -> Result<()> {
        let bytes = self.keyspace.tree.active_memtable().size();
        if bytes > 0 && bytes >= bytes_min { self.start_flush() } else { Ok(()) }
    }

    /// Bytes in memory that will be flushed to tables.
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.database.write_buffer_size()
    }

    /// Flushed memtables that lie beside each other. fjall holds up writers from twenty on, and stops them at thirty.
    pub(crate) fn uncompacted_runs(&self) -> usize {
        self.keyspace.tree.l0_run_count()
    }

    /// Notes which journals fjall has removed.
    pub(crate) fn note_journals(&self) {
        self.journals.look();
    }

    /// Keys from the start of `range`, at most `rows_max`, as of the last commit.
    pub(crate) fn keys(self: &Arc<Self>, range: &KeyRange, rows_max: usize) -> Result<Vec<Bytes>> {
        let state = self.snapshot().state;
        let range = range.start.as_ref()..range.end.as_ref();
        guarded(|| {
            let rows = state.snapshot.range::<&[u8], _>(&self.keyspace, range);
            // Copied: a key is a slice of its block, and its tombstone would hold the whole block in the memtable.
            let copied = |row: fjall::Guard| row.key().map(|key| Bytes::copy_from_slice(&key));
            rows.take(rows_max).map(copied).collect()
        })
    }

    /// Seals the memtable, so that it is flushed to tables in the background.
    pub(crate) fn start_flush(&self) -> Result<()> {
        self.keyspace.rotate_memtable().map(drop).map_err(read_error)
    }

    pub(crate) fn is_flushed(&self) -> Result<bool> {
        self.check_alive()?;
        Ok(self.keyspace.sealed_memtable_count() == 0)
    }

    /// Deletes the tables that lie wholly in `range`, without a look at their rows.
    pub(crate) fn drop_tables(&self, range: &KeyRange) -> Result<()> {
        let range = range.start.as_ref()..range.end.as_ref();
        guarded(|| Ok(self.keyspace.tree.drop_range(range)?))
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        self.keyspace.disk_space()
    }
}

#[cfg(test)]
impl Store {
    pub(crate) fn uncompacted_tables(&self) -> usize {
        self.keyspace.tree.level_table_count(0).expect("there is a first level")
    }
}

/// Asks fjall for something that reads files. What panics in there has met bytes that nobody wrote.
pub(crate) fn guarded<T>(read: impl FnOnce() -> fjall::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(done) => done.map_err(read_error),
        Err(panic) => Err(Error::Corrupt(unreadable(&*panic))),
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.check_alive().is_ok() {
            self.mark.set_clean();
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over by value")]
fn read_error(error: fjall::Error) -> Error {
    match error {
        fjall::Error::Io(_) | fjall::Error::Storage(fjall::LsmError::Io(_)) => {
            Error::Unavailable(error.to_string())
        }
        fjall::Error::Poisoned | fjall::Error::KeyspaceDeleted | fjall::Error::Locked => {
            Error::Unavailable(error.to_string())
        }
        _ => Error::Corrupt(format!("{error}; {WHICH_FILE}")),
    }
}
