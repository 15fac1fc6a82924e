//! The embedded engine: a folder on this machine, kept by fjall, written by one thread at a time.
//!
//! fjall gives the log-structured tree; what it does not give is here: group commit ([`commit`]), a folder that says what
//! it is and recovery from a torn journal tail ([`files`]), compaction that leaves the cores alone ([`store`], the only
//! room that calls fjall) and space that comes back when a range is dropped ([`drop_range`]).
//!
//! Reads by key run where they are called: they touch memory, or one block of one file. So do the first rows of a scan
//! ([`scan`]); the rest goes to a bounded pool. Writes go through one queue to one thread; whoever commits holds the
//! group, so there are no latches and no write conflicts. The folder belongs to one process, so there are no versions of
//! rows either: guards always hold.

mod check;
mod commit;
mod drop_range;
mod files;
mod locks;
mod options;
mod salvage;
mod scan;
mod shared;
mod stats;
mod store;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::{fmt, io};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::scan_pool::ScanPool;
use crate::{Engine, Error, Fullness, KeyRange, Reader, Result, Status, Transition, Visitor};
use commit::committer::{Committer, Message};
use commit::group::Admission;
use commit::inline_commit::SpareWorker;
use commit::job::Pending;
use scan::inline_scan::InlineScan;
use shared::Shared;
use store::compactor::Compactor;
use store::disk_space::{DiskSpace, fit_to_disk};
use store::sync_probe::SyncProbe;
use store::{Store, StoreSink, StoreSnapshot};

pub use check::{CheckedRows, FileProblem, FilesReport, FolderCheck};
pub use options::{EmbeddedOptions, OpenError};
pub use salvage::{Loss, Salvage};
pub use stats::{Histogram, Stats, StoreFigures};

/// Ordered bytes in a folder. Cheap to clone; the folder is released when the last clone and the last snapshot
/// are gone.
#[derive(Clone)]
pub struct EmbeddedEngine {
    shared: Arc<Shared>,
}

/// The rows of an [`EmbeddedEngine`] at one moment. Keeps old versions of rows on disk while it lives.
#[derive(Clone)]
pub struct EmbeddedSnapshot {
    snapshot: StoreSnapshot,
    shared: Arc<Shared>,
}

impl EmbeddedEngine {
    /// Opens the data folder at `path`, creating it if there is none or it is empty. To be opened in the runtime that
    /// will serve its callers.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; nothing was changed then, except that a torn journal tail may have been cut off.
    pub fn open(path: impl AsRef<Path>, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let options = fit_to_disk(path.as_ref(), options)?;
        let store = Arc::new(Store::open(path.as_ref(), &options)?);
        let stats = Arc::new(Stats::default());
        let (queue, requests) = sync_channel(options.queue_requests_max);
        let (failure_sender, failure) = watch::channel(None);
        let failures = Arc::new(failure_sender);
        let closing = Arc::new(AtomicBool::new(false));
        let (nudge, nudges) = sync_channel(1);
        let reserve = options.disk_reserve_bytes;
        let space = Arc::new(DiskSpace::new(path.as_ref().into(), reserve, Arc::clone(&stats)));
        let compactor = Compactor::new(
            Arc::clone(&store),
            Arc::clone(&space),
            Arc::clone(&stats),
            nudges,
            Arc::clone(&closing),
            Arc::clone(&failures),
        );
        let sink = StoreSink { store: Arc::clone(&store), space: Arc::clone(&space), nudge };
        let committer =
            Committer::new(requests, sink, Arc::clone(&stats), failures, SpareWorker::new());
        let inline_commits = committer.inline_commits();
        let failed = |source| OpenError::Io { path: path.as_ref().into(), source };
        let committer = spawn("tavola-commit", move || committer.run()).map_err(failed)?;
        // If this fails, the committer ends as well, because the queue is dropped.
        let compactor = spawn("tavola-compact", move || compactor.run()).map_err(failed)?;
        let (running, ended) = sync_channel(0);
        let probe = SyncProbe::new(path.as_ref().into(), Arc::clone(&stats));
        let monitor = start_monitor(Arc::clone(&space), Arc::clone(&store), probe, ended);
        let disk_monitor = monitor.map_err(failed)?;
        let shared = Shared {
            queue: Some(queue),
            inline_commits,
            running: Some(running),
            closing,
            threads: Mutex::new(vec![committer, compactor]),
            disk_monitor: Some(disk_monitor),
            space,
            failure,
            inline_scan: InlineScan::new(),
            scans: ScanPool::new(options.scans_running_max, options.scans_waiting_max),
            scan_helpers_max: options.scan_helpers_max,
            drops: tokio::sync::Mutex::default(),
            stats,
            store,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What the engine counts.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// What the store holds.
    pub fn figures(&self) -> StoreFigures {
        self.shared.store.figures()
    }

    /// Bytes of the tables and journals on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.store.disk_bytes()
    }
}

/// Starts the thread that looks at the disk every second until `ended` is.
fn start_monitor(
    space: Arc<DiskSpace>,
    store: Arc<Store>,
    mut probe: SyncProbe,
    ended: Receiver<()>,
) -> io::Result<JoinHandle<()>> {
    let monitor = move || {
        space.monitor(&ended, || {
            store.note_journals();
            space.set_unflushed(store.unflushed_bytes());
            // Last: it takes as long as the disk does.
            probe.sync_if_committed();
        });
    };
    spawn("tavola-disk", monitor)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(body)
}

impl Reader for EmbeddedEngine {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.shared.inline_commits.note_call();
        self.shared.store.get(key)
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        self.shared.scan(self.shared.store.snapshot(), range, visitor).await
    }
}

impl Engine for EmbeddedEngine {
    type Snapshot = EmbeddedSnapshot;

    async fn snapshot(&self) -> Result<EmbeddedSnapshot> {
        Ok(EmbeddedSnapshot {
            snapshot: self.shared.store.snapshot(),
            shared: Arc::clone(&self.shared),
        })
    }

    async fn transact<T: Transition>(&self, transition: T) -> Result<T::Verdict> {
        let (reply, answer) = oneshot::channel();
        self.shared.commit(Box::new(Pending::new(transition, reply)))?;
        answer.await.unwrap_or_else(|_| Err(self.shared.unanswered()))
    }

    async fn drop_range(&self, range: KeyRange) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let _one_at_a_time = self.shared.drops.lock().await;
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || drop_range::drop_range(&shared, &range))
            .await
            .unwrap_or_else(|error| Err(Error::Unavailable(format!("drop failed: {error}"))))
    }
}

impl Status for EmbeddedEngine {
    fn fullness(&self) -> Fullness {
        let stats = &self.shared.stats;
        Fullness {
            free_bytes: Some(stats.disk_free_bytes.load(Ordering::Relaxed)),
            takes_writes: self.shared.space.admission() == Admission::Everything,
        }
    }

    fn failure(&self) -> Option<String> {
        self.shared.failure.borrow().as_ref().map(ToString::to_string)
    }

    /// When a commit has failed: the engine still reads, but writes no more.
    async fn failed(&self) -> String {
        let mut failure = self.shared.failure.clone();
        let message = failure.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        match message {
            Some(message) => message.to_string(),
            // The committer has ended in good order.
            None => std::future::pending().await,
        }
    }

    fn raise_format(&self, format: u32) -> io::Result<()> {
        files::folder::raise_format(self.shared.store.path(), format)
    }

    /// Finishes what was accepted, then ends the committer. Later requests are told [`Error::Closed`]; reads go
    /// on.
    fn close(&self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        if let Some(queue) = &self.shared.queue {
            // An error means that the committer has ended already, which is what is wanted.
            let _ = queue.send(Message::Close);
        }
        self.shared.join_threads();
    }
}

impl Reader for EmbeddedSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.shared.inline_commits.note_call();
        self.snapshot.get(key)
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        self.shared.scan(self.snapshot.clone(), range, visitor).await
    }
}

impl fmt::Debug for EmbeddedEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EmbeddedEngine")
            .field("path", &self.shared.store.path())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EmbeddedSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EmbeddedSnapshot")
            .field("path", &self.shared.store.path())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

#[cfg(test)]
mod tombstone_tests;

#[cfg(all(test, unix))]
#[path = "image_tests.rs"]
mod image_tests;

#[cfg(all(test, unix))]
#[path = "flip_tests.rs"]
mod flip_tests;

#[cfg(all(test, unix))]
#[path = "loss_tests.rs"]
mod loss_tests;

#[cfg(all(test, unix))]
#[path = "salvage_tests.rs"]
mod salvage_tests;
