//! What the clones of an engine and its snapshots share: the way to the committer, the threads, the scans, the store.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::watch;

use crate::embedded::commit::committer::Message;
use crate::embedded::commit::group::Failure;
use crate::embedded::commit::inline_commit::InlineCommits;
use crate::embedded::commit::job::Job;
use crate::embedded::scan::inline_scan::InlineScan;
use crate::embedded::scan::parallel_scan::ParallelScan;
use crate::embedded::scan::row_scan::RowScan;
use crate::embedded::stats::Stats;
use crate::embedded::store::disk_space::DiskSpace;
use crate::embedded::store::{Store, StoreSink, StoreSnapshot};
use crate::scan_pool::ScanPool;
use crate::{Error, KeyRange, Result, Visitor, panic_message};

/// One for each open folder. Its threads end with the last clone and the last snapshot.
pub(crate) struct Shared {
    /// `None` only while dropping: the committer ends when the last sender is gone.
    pub(crate) queue: Option<SyncSender<Message>>,
    pub(crate) inline_commits: InlineCommits<StoreSink>,
    /// `None` only while dropping: the disk monitor ends with it.
    pub(crate) running: Option<SyncSender<()>>,
    pub(crate) disk_monitor: Option<JoinHandle<()>>,
    pub(crate) space: Arc<DiskSpace>,
    /// Set when no more requests are taken; a running drop stops at its next chunk.
    pub(crate) closing: Arc<AtomicBool>,
    /// The committer, then the compactor, which ends after it.
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) failure: watch::Receiver<Option<Failure>>,
    pub(crate) inline_scan: InlineScan,
    pub(crate) scans: ScanPool,
    pub(crate) scan_helpers_max: usize,
    /// One drop at a time: a second one would only compete for the same compaction.
    pub(crate) drops: tokio::sync::Mutex<()>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) store: Arc<Store>,
}

impl Shared {
    /// Commits a request on this thread, or else queues it.
    pub(crate) fn commit(&self, job: Box<dyn Job>) -> Result<()> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(self.closed());
        }
        self.inline_commits.try_commit(job).or_else(|job| self.submit(Message::Job(job)))
    }

    /// Queues a request without waiting.
    pub(crate) fn submit(&self, message: Message) -> Result<()> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(self.closed());
        }
        let queue = self.queue.as_ref().expect("the queue exists until drop");
        // ORDER: counted before it is sent, so that the committer never counts below zero.
        self.stats.queue_depth.fetch_add(1, Ordering::Relaxed);
        queue.try_send(message).map_err(|refused| {
            self.stats.queue_depth.fetch_sub(1, Ordering::Relaxed);
            match refused {
                TrySendError::Full(_) => {
                    self.stats.busy_refusals.fetch_add(1, Ordering::Relaxed);
                    Error::Busy
                }
                TrySendError::Disconnected(_) => self.closed(),
            }
        })
    }

    /// Begins a scan on this thread, and leaves it to the pool if it is long.
    pub(crate) async fn scan<V: Visitor>(
        &self,
        snapshot: StoreSnapshot,
        range: KeyRange,
        visitor: V,
    ) -> Result<V> {
        self.inline_commits.note_call();
        let begins_here = self.inline_scan.is_allowed()
            && !self.scans.is_crowded()
            && !self.store.deletions().are_many_in(&range);
        if !begins_here {
            return self.finish_scan(RowScan::new(snapshot, range, visitor)).await;
        }
        let begin = || {
            let mut scan = RowScan::new(snapshot, range, visitor);
            let progress = scan.begin()?;
            Ok((scan, progress))
        };
        let begun = catch_unwind(AssertUnwindSafe(|| self.inline_scan.run(begin)));
        match begun.unwrap_or_else(|panic| Err(Error::Panicked(panic_message(&*panic).into())))? {
            (scan, ControlFlow::Break(())) => Ok(scan.into_visitor()),
            (scan, ControlFlow::Continue(())) => self.finish_scan(scan).await,
        }
    }

    async fn finish_scan<V: Visitor>(&self, scan: RowScan<V>) -> Result<V> {
        let latest_call = || self.inline_commits.latest_call();
        ParallelScan::finish(&self.scans, self.scan_helpers_max, scan, latest_call).await
    }

    /// Why there is no committer any more.
    pub(crate) fn closed(&self) -> Error {
        match &*self.failure.borrow() {
            Some(message) => Error::Unavailable(message.to_string()),
            None => Error::Closed,
        }
    }

    /// Why an accepted request was never answered.
    pub(crate) fn unanswered(&self) -> Error {
        match &*self.failure.borrow() {
            Some(message) => Error::OutcomeUnknown(message.to_string()),
            None => Error::Closed,
        }
    }

    pub(crate) fn join_threads(&self) {
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // A transition may own the last clone of the engine; its drop then runs on the committer itself, which
        // can wait neither for itself nor for the compactor that ends after it.
        let is_own = threads.first().is_some_and(|own| own.thread().id() == thread::current().id());
        if !is_own {
            for thread in threads {
                // A panic was reported through `failure`.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        self.queue = None;
        self.running = None;
        if let Some(monitor) = self.disk_monitor.take() {
            let _ = monitor.join();
        }
        self.join_threads();
    }
}
