//! Group commit: the one thread that writes.
//!
//! A disk syncs some ten thousand times a second, clients want more; so whatever has gathered in the queue while
//! the last group was synced becomes the next group, written as one batch with one sync. No timer waits for a
//! group to fill: a lone request is committed at once, and the busier the disk, the larger the groups.
//!
//! Within a group transitions run in the order of the queue. Each sees the writes of those before it through
//! the overlay, as if they were committed, and nobody is answered before they are. If the commit fails, nobody can
//! say what the disk holds: the group's callers are told so, the committer refuses everything afterwards, and
//! the server is notified to stop the process. There is no retry: after a failed sync the kernel may have
//! dropped the pages, and a second sync would lie.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use super::job::Job;
use super::space::Taking;
use super::stats::Stats;
use crate::{Error, Result, Write, WriteSet, panic_message};

/// Transitions in a group at most: bounds how long the first of them waits for the others to be applied.
const GROUP_TRANSITIONS_MAX: usize = 1024;

/// Bytes after which no further transition joins a group: bounds the time of one sync. One transition may be
/// larger; it is then alone with those before it.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long nothing must be committed before the committer lets the sink tidy up. Requests that write nothing do not
/// count: those that are refused on a full disk are tried again and again, and tidying is what makes room.
const TIDY_AFTER: Duration = Duration::from_secs(1);

/// The writes of a group; `None` is a deletion. The last write of a key wins.
pub(super) type Overlay = HashMap<Bytes, Option<Bytes>>;

/// What the engine is told when it has failed.
pub(super) type Failure = Arc<str>;

/// Where a failure is told. Once told, nothing is written any more.
pub(super) type Failures = Arc<watch::Sender<Option<Failure>>>;

/// Where groups are committed to; the store, or a fake in tests.
pub(super) trait Sink {
    /// The committed value under `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Writes everything in `overlay` atomically and durably, then makes it visible, and leaves it empty.
    fn commit(&self, overlay: &mut Overlay) -> Result<(), CommitError>;

    /// What there is room for.
    fn taking(&self) -> Taking {
        Taking::Everything
    }

    /// Cleans up while nothing is to be done; true if there will be more to clean later.
    fn tidy(&self) -> bool;
}

/// Why a group was not committed.
#[derive(Debug)]
pub(super) struct CommitError {
    pub(super) message: String,
    /// Whether it is certain that nothing was written.
    pub(super) nothing_written: bool,
}

pub(super) enum Message {
    Job(Box<dyn Job>),
    /// Clean up now, and say when it is done.
    Tidy(oneshot::Sender<()>),
    /// Finish the queue, then end.
    Close,
}

/// Owns the queue's end and commits what comes out of it.
pub(super) struct Committer<S> {
    queue: Receiver<Message>,
    sink: S,
    stats: Arc<Stats>,
    failures: Failures,
    closing: bool,
    may_tidy: bool,
    /// The last commit, or the last time it tidied up.
    rests_since: Instant,
    group: Vec<(Box<dyn Job>, Result<()>)>,
    group_bytes: usize,
    overlay: Overlay,
    /// Kept between transitions to save allocations.
    values: Vec<Option<Bytes>>,
    writes: WriteSet,
}

impl<S: Sink> Committer<S> {
    pub(super) fn new(
        queue: Receiver<Message>,
        sink: S,
        stats: Arc<Stats>,
        failures: Failures,
    ) -> Self {
        Self {
            queue,
            sink,
            stats,
            failures,
            closing: false,
            // What was left unmerged before is merged now, whether or not anything is committed.
            may_tidy: true,
            rests_since: Instant::now(),
            group: Vec::new(),
            group_bytes: 0,
            overlay: Overlay::new(),
            values: Vec::new(),
            writes: WriteSet::default(),
        }
    }

    /// Commits group after group until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let ended = catch_unwind(AssertUnwindSafe(|| while self.run_once().is_continue() {}));
        if let Err(panic) = ended {
            // ORDER: the failure is told before the queue and the group are dropped, so that callers who find
            // themselves unanswered find the reason.
            fail(&self.failures, &format!("the committer panicked: {}", panic_message(&*panic)));
        }
    }

    /// Waits for a request and commits it together with all that have gathered. Breaks when there will be no more.
    pub(super) fn run_once(&mut self) -> ControlFlow<()> {
        let Some(first) = self.wait() else { return ControlFlow::Break(()) };
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Job(job) => self.admit(job),
                Message::Tidy(done) => self.tidy(done),
                Message::Close => self.closing = true,
            }
            let full =
                self.group.len() >= GROUP_TRANSITIONS_MAX || self.group_bytes >= GROUP_BYTES_MAX;
            next = if full { None } else { self.queue.try_recv().ok() };
        }
        self.commit();
        ControlFlow::Continue(())
    }

    fn wait(&mut self) -> Option<Message> {
        if self.closing {
            return self.queue.try_recv().ok();
        }
        while self.may_tidy {
            let left = TIDY_AFTER.saturating_sub(self.rests_since.elapsed());
            let next = if left.is_zero() {
                Err(RecvTimeoutError::Timeout)
            } else {
                self.queue.recv_timeout(left)
            };
            match next {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => {
                    self.may_tidy = self.sink.tidy();
                    self.rests_since = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.queue.recv().ok()
    }

    fn tidy(&mut self, done: oneshot::Sender<()>) {
        // Within a group this is still between two batches: the group is applied, but not yet committed.
        self.may_tidy = self.sink.tidy();
        // Whoever asked may have stopped waiting.
        let _ = done.send(());
    }

    /// Takes a request into the group and runs it on top of the group's writes so far.
    fn admit(&mut self, mut job: Box<dyn Job>) {
        self.stats.queue_depth.fetch_sub(1, Ordering::Relaxed);
        let outcome = match &*self.failures.borrow() {
            Some(failure) => Err(Error::Unavailable(failure.to_string())),
            None => Ok(()),
        };
        let outcome = outcome.and_then(|()| self.apply(job.as_mut()));
        self.group.push((job, outcome));
    }

    fn apply(&mut self, job: &mut dyn Job) -> Result<()> {
        self.values.clear();
        for key in job.keys() {
            let value = match self.overlay.get(key) {
                Some(written) => written.clone(),
                None => self.sink.get(key)?,
            };
            self.values.push(value);
        }
        let (values, writes) = (&self.values, &mut self.writes);
        let applied = catch_unwind(AssertUnwindSafe(|| job.apply(values, writes)));
        match applied {
            Ok(true) if !self.has_room() => {
                drop(self.writes.drain());
                self.stats.full_refusals.fetch_add(1, Ordering::Relaxed);
                return Err(Error::Full);
            }
            Ok(true) => self.overlay_writes(),
            Ok(false) => drop(self.writes.drain()),
            Err(panic) => {
                drop(self.writes.drain());
                self.stats.panics.fetch_add(1, Ordering::Relaxed);
                return Err(Error::Panicked(panic_message(&*panic).into()));
            }
        }
        Ok(())
    }

    /// Whether there is room on the disk for what a transition writes.
    fn has_room(&self) -> bool {
        match self.sink.taking() {
            Taking::Everything => true,
            Taking::Deletions => !self.writes.takes_room(),
            Taking::Nothing => self.writes.is_empty(),
        }
    }

    fn overlay_writes(&mut self) {
        for write in self.writes.drain() {
            let (key, value) = match write {
                Write::Put(key, value) => (key, Some(value)),
                Write::Delete(key) => (key, None),
            };
            self.group_bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
            self.overlay.insert(key, value);
        }
    }

    /// Commits the group's writes, then answers all of it.
    fn commit(&mut self) {
        let committed = self.commit_overlay();
        self.stats.transitions.fetch_add(self.group.len() as u64, Ordering::Relaxed);
        self.group_bytes = 0;
        for (job, outcome) in self.group.drain(..) {
            // A transition that aborted may have read what the group failed to write: it fails as well.
            job.answer(
                outcome.and_then(|()| committed.as_ref().copied().map_err(CommitError::error)),
            );
        }
    }

    fn commit_overlay(&mut self) -> Result<(), CommitError> {
        if self.overlay.is_empty() {
            return Ok(());
        }
        let writes = self.overlay.len() as u64;
        let start = Instant::now();
        let committed = self.sink.commit(&mut self.overlay);
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.overlay.clear();
        match &committed {
            Ok(()) => {
                self.stats.writes.fetch_add(writes, Ordering::Relaxed);
                self.stats.group_size.record(self.group.len() as u64);
                self.stats.commit_nanos.record(nanos);
                self.may_tidy = true;
                self.rests_since = Instant::now();
            }
            Err(error) => fail(&self.failures, &error.message),
        }
        committed
    }
}

/// Tells everybody that the engine has failed. The first reason stays: later ones follow from it.
pub(super) fn fail(failures: &Failures, message: &str) {
    let is_first = failures.send_if_modified(|failure| {
        let is_first = failure.is_none();
        failure.get_or_insert_with(|| message.into());
        is_first
    });
    if is_first {
        tracing::error!(message, "the engine has failed and writes no more");
    }
}

impl CommitError {
    fn error(&self) -> Error {
        let message = self.message.clone();
        if self.nothing_written {
            Error::Unavailable(message)
        } else {
            Error::OutcomeUnknown(message)
        }
    }
}

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
