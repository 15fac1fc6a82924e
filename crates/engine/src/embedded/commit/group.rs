//! Requests that are committed together: the overlay of their writes, and their answers.
//!
//! Within a group transitions run in the order they come. Each sees the writes of those before it through the overlay,
//! as if they were committed, and nobody is answered before they are. If the commit fails, nobody can say what the disk
//! holds: the group's callers are told so, everything is refused afterwards, and the server is notified to stop the
//! process. There is no retry: after a failed sync the kernel may have dropped the pages, and a second sync would lie.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::embedded::commit::inline_commit::Watch;
use crate::embedded::commit::job::Job;
use crate::embedded::stats::Stats;
use crate::embedded::store::disk_space::Admission;
use crate::{Error, Result, Write, WriteSet, panic_message};

/// Transitions in a group at most: bounds how long the first of them waits for the others to be applied.
pub(crate) const GROUP_TRANSITIONS_MAX: usize = 1024;

/// Bytes after which no further transition joins a group: bounds the time of one sync. One transition may be
/// larger; it is then alone with those before it.
pub(crate) const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long nothing must be committed before the committer lets the sink tidy up. Requests that write nothing do not
/// count: those that are refused on a full disk are tried again and again, and tidying is what makes room.
const TIDY_AFTER: Duration = Duration::from_secs(1);

/// The writes of a group; `None` is a deletion. The last write of a key wins.
pub(crate) type Overlay = HashMap<Bytes, Option<Bytes>>;

/// The group, for whoever commits. `None` once nothing is committed any more: then the sink is gone, and with it those who
/// were not answered.
pub(crate) type SharedGroup<S> = Arc<Mutex<Option<Group<S>>>>;

/// What the engine is told when it has failed.
pub(crate) type Failure = Arc<str>;

/// Where a failure is told. Once told, nothing is written any more.
pub(crate) type Failures = Arc<watch::Sender<Option<Failure>>>;

/// Where groups are committed to; the store, or a fake in tests.
pub(crate) trait Sink {
    /// The committed value under `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Writes everything in `overlay` atomically and durably, then makes it visible, and leaves it empty.
    fn commit(&self, overlay: &mut Overlay) -> Result<(), CommitError>;

    /// What there is room for.
    fn taking(&self) -> Admission {
        Admission::Everything
    }

    /// Cleans up while nothing is to be done; true if there will be more to clean later.
    fn tidy(&self) -> bool;
}

/// Why a group was not committed.
#[derive(Debug)]
pub(crate) struct CommitError {
    pub(crate) message: String,
    /// Whether it is certain that nothing was written.
    pub(crate) nothing_written: bool,
}

/// The requests that are committed next, and what they are committed to.
pub(crate) struct Group<S> {
    sink: S,
    stats: Arc<Stats>,
    failures: Failures,
    may_tidy: bool,
    /// The last commit, or the last time it tidied up.
    rests_since: Instant,
    last_took: Duration,
    pub(crate) watch: Watch,
    jobs: Vec<(Box<dyn Job>, Result<()>)>,
    bytes: usize,
    overlay: Overlay,
    /// Kept between transitions to save allocations.
    values: Vec<Option<Bytes>>,
    writes: WriteSet,
}

impl<S: Sink> Group<S> {
    pub(crate) fn new(sink: S, stats: Arc<Stats>, failures: Failures) -> Self {
        Self {
            sink,
            stats,
            failures,
            // What was left unmerged before is merged now, whether or not anything is committed.
            may_tidy: true,
            rests_since: Instant::now(),
            last_took: Duration::MAX,
            watch: Watch::default(),
            jobs: Vec::new(),
            bytes: 0,
            overlay: Overlay::new(),
            values: Vec::new(),
            writes: WriteSet::default(),
        }
    }

    /// Whether no further request may join.
    pub(crate) fn is_full(&self) -> bool {
        self.jobs.len() >= GROUP_TRANSITIONS_MAX || self.bytes >= GROUP_BYTES_MAX
    }

    /// How long the last commit took.
    pub(crate) fn last_took(&self) -> Duration {
        self.last_took
    }

    /// How long until there may be something to clean up; `None` if there will be nothing before the next commit.
    pub(crate) fn until_tidy(&self) -> Option<Duration> {
        self.may_tidy.then(|| TIDY_AFTER.saturating_sub(self.rests_since.elapsed()))
    }

    /// Cleans up, if nothing was committed for long enough.
    pub(crate) fn tidy_if_rested(&mut self) {
        if self.until_tidy().is_some_and(|left| left.is_zero()) {
            self.may_tidy = self.sink.tidy();
            self.rests_since = Instant::now();
        }
    }

    pub(crate) fn tidy(&mut self, done: oneshot::Sender<()>) {
        // Within a group this is still between two batches: the group is applied, but not yet committed.
        self.may_tidy = self.sink.tidy();
        // Whoever asked may have stopped waiting.
        let _ = done.send(());
    }

    /// Takes a request into the group and runs it on top of the group's writes so far.
    pub(crate) fn admit(&mut self, mut job: Box<dyn Job>) {
        let outcome = match &*self.failures.borrow() {
            Some(failure) => Err(Error::Unavailable(failure.to_string())),
            None => Ok(()),
        };
        let outcome = outcome.and_then(|()| self.apply(job.as_mut()));
        self.jobs.push((job, outcome));
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
            Admission::Everything => true,
            Admission::Deletions => !self.writes.takes_room(),
            Admission::Nothing => self.writes.is_empty(),
        }
    }

    fn overlay_writes(&mut self) {
        for write in self.writes.drain() {
            let (key, value) = match write {
                Write::Put(key, value) => (key, Some(value)),
                Write::Delete(key) => (key, None),
            };
            self.bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
            self.overlay.insert(key, value);
        }
    }

    /// Commits the group's writes, then answers all of it.
    pub(crate) fn commit(&mut self) {
        let committed = self.commit_overlay();
        self.stats.transitions.fetch_add(self.jobs.len() as u64, Ordering::Relaxed);
        self.bytes = 0;
        for (job, outcome) in self.jobs.drain(..) {
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
        self.last_took = start.elapsed();
        let nanos = u64::try_from(self.last_took.as_nanos()).unwrap_or(u64::MAX);
        self.overlay.clear();
        match &committed {
            Ok(()) => {
                self.stats.writes.fetch_add(writes, Ordering::Relaxed);
                self.stats.group_size.record(self.jobs.len() as u64);
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
pub(crate) fn fail(failures: &Failures, message: &str) {
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
