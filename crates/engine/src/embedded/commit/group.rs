//! Requests that are committed together: the overlay of their writes, and their answers.
//!
//! Within a group transitions run in the order they come. Each sees the writes of those before it through the overlay,
//! as if they were committed, and nobody is answered before they are. If the commit fails, nobody can say what the disk
//! holds: the group's callers are told so, everything is refused afterwards, and the server is notified to stop the
//! process. There is no retry: after a failed sync the kernel may have dropped the pages, and a second sync would lie.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::embedded::commit::job::{Job, Outcome};
use crate::embedded::commit::watchdog::Watchdog;
use crate::embedded::stats::Stats;
use crate::{ASKED_TWICE, Error, Result, Write, WriteSet, panic_message};

/// Transitions in a group at most: bounds how long the first of them waits for the others to be applied.
pub(crate) const GROUP_TRANSITIONS_MAX: usize = 1024;

/// Bytes after which no further transition joins a group: bounds the time of one sync. One transition may be
/// larger; it is then the last of its group.
pub(crate) const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long nothing must be committed before the sink is let do its housekeeping. Requests that write nothing do not
/// count: those that are refused on a full disk are tried again and again, and housekeeping is what makes room.
const HOUSEKEEPING_AFTER: Duration = Duration::from_secs(1);

/// The writes of a group; `None` is a deletion. The last write of a key wins.
pub(crate) type Overlay = BTreeMap<Bytes, Option<Bytes>>;

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
    fn admission(&self) -> Admission {
        Admission::Everything
    }

    /// Lets go of what nobody needs any more, while nothing is to be committed; true if there will be more later.
    fn housekeep(&self) -> bool;
}

/// What the disk has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Admission {
    Everything,
    /// Transitions that free space.
    Deletions,
    Nothing,
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
    needs_housekeeping: bool,
    /// The last commit, or the last housekeeping.
    idle_since: Instant,
    last_commit_time: Duration,
    pub(crate) watchdog: Watchdog,
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
            // What was left uncompacted before is compacted now, whether or not anything is committed.
            needs_housekeeping: true,
            idle_since: Instant::now(),
            last_commit_time: Duration::MAX,
            watchdog: Watchdog::default(),
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
    pub(crate) fn last_commit_time(&self) -> Duration {
        self.last_commit_time
    }

    /// How long until housekeeping is due; `None` if it will not be before the next commit.
    pub(crate) fn until_housekeeping(&self) -> Option<Duration> {
        self.needs_housekeeping
            .then(|| HOUSEKEEPING_AFTER.saturating_sub(self.idle_since.elapsed()))
    }

    /// Does the housekeeping if nothing was committed for long enough.
    pub(crate) fn housekeep_if_idle(&mut self) {
        if self.until_housekeeping().is_some_and(|left| left.is_zero()) {
            self.needs_housekeeping = self.sink.housekeep();
            self.idle_since = Instant::now();
        }
    }

    /// Does the housekeeping now, and says when it is done.
    pub(crate) fn housekeep(&mut self, done: oneshot::Sender<()>) {
        // Within a group this is still between two batches: the group is applied, but not yet committed.
        self.needs_housekeeping = self.sink.housekeep();
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

    /// Guards are not looked at: no version of this engine can be outdated, see [`Version::UNTRACKED`].
    ///
    /// [`Version::UNTRACKED`]: crate::Version::UNTRACKED
    fn apply(&mut self, job: &mut dyn Job) -> Result<()> {
        self.values.clear();
        self.read(job.keys())?;
        let mut outcome = self.run(job)?;
        if let Outcome::Read(keys) = &outcome {
            drop(self.writes.drain());
            self.read(keys)?;
            outcome = self.run(job)?;
        }
        match outcome {
            Outcome::Commit if !self.has_room(job) => {
                drop(self.writes.drain());
                self.stats.full_refusals.fetch_add(1, Ordering::Relaxed);
                return Err(Error::Full);
            }
            Outcome::Commit => self.overlay_writes(),
            Outcome::Abort => drop(self.writes.drain()),
            Outcome::Read(_) => return Err(self.panicked(ASKED_TWICE)),
        }
        Ok(())
    }

    /// Adds what is under the keys to what the transition is shown.
    fn read(&mut self, keys: &[Bytes]) -> Result<()> {
        for key in keys {
            let value = match self.overlay.get(key) {
                Some(written) => written.clone(),
                None => self.sink.get(key)?,
            };
            self.values.push(value);
        }
        Ok(())
    }

    fn run(&mut self, job: &mut dyn Job) -> Result<Outcome> {
        let (values, writes) = (&self.values, &mut self.writes);
        let applied = catch_unwind(AssertUnwindSafe(|| job.apply(values, writes)));
        applied.map_err(|panic| self.panicked(panic_message(&*panic)))
    }

    fn panicked(&mut self, message: &str) -> Error {
        drop(self.writes.drain());
        self.stats.panics.fetch_add(1, Ordering::Relaxed);
        Error::Panicked(message.into())
    }

    /// Whether there is room on the disk for what a transition writes. It says itself whether it only removes: an update
    /// that moves a row of an index deletes as well, and its writes alone do not tell the two apart.
    fn has_room(&self, job: &dyn Job) -> bool {
        let is_admitted = match self.sink.admission() {
            Admission::Everything => true,
            Admission::Deletions => job.frees_space(),
            Admission::Nothing => false,
        };
        is_admitted || self.writes.is_empty()
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
        self.last_commit_time = start.elapsed();
        self.overlay.clear();
        match &committed {
            Ok(()) => {
                self.stats.writes.fetch_add(writes, Ordering::Relaxed);
                self.stats.group_size.record(self.jobs.len() as u64);
                self.stats.commit_nanos.record_duration(self.last_commit_time);
                self.needs_housekeeping = true;
                self.idle_since = Instant::now();
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
