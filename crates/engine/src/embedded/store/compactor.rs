//! The thread that compacts, and that notices when fjall has died.
//!
//! fjall would compact by itself, but its pool keeps one thread free for flushes by having it put compaction
//! requests back into the queue, again and again, for as long as another thread compacts: on two cores a sixth of
//! all processor time under load went there. So fjall gets one thread, which flushes, and a strategy that never finds
//! anything to compact; compaction is done here, with fjall's own leveled strategy.
//!
//! Leveled compaction leaves up to four flushed memtables lie beside each other, each with its own versions of the
//! rows that are updated most, and a scan reads through all of them. While writes keep coming that is a fair price;
//! when they pause, everything is compacted, so that a table that is only read is read at full speed.
//!
//! Levels are compacted by their size, and tombstones are small: those of a queue that was worked off, or of a table that was
//! emptied entity by entity, would lie above what they delete for as long as little else is written, and both would keep
//! their room. So when they are a good part of all rows, all levels are taken down to the last one, step by step, where
//! deletions end with what they delete. That goes on beside writes, for a part of the time.
//!
//! Compaction is never a reason to stop: a step that there is no room for waits until there is; see [`DiskSpace`]. While the
//! disk is nearly full, deletions are flushed and compacted as soon as they pause, so that they give room back.
//!
//! fjall's writers wait without end when flushing has failed and memtables pile up. The committer may hang there
//! and cannot tell; this thread notices and reports the failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::embedded::commit::group::Admission;
use crate::embedded::commit::group::{Failures, fail};
use crate::embedded::stats::Stats;
use crate::embedded::store::Store;
use crate::embedded::store::compaction::{REWRITE_BYTES_MAX, Strategy, TOMBSTONE_SHARE_MAX};
use crate::embedded::store::disk_space::DiskSpace;
use crate::{Error, Result};

/// Pause after a look at the levels: they change with flushes, which are seconds apart.
const PAUSE: Duration = Duration::from_millis(20);

/// When nothing was committed for this long, writing has paused: time to compact, and to see whether fjall is alive.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// What a memtable holds at least to be flushed when writing pauses. A server that gets a few rows now and then must
/// not rewrite a level for each of them.
const QUIET_FLUSH_BYTES: u64 = 8 * 1024 * 1024;

/// Pause after finding no room to compact.
const WAIT: Duration = Duration::from_secs(1);

/// Pause after a compaction that ran out of room after all: what it has not finished stays on the disk until the next start,
/// so this must not happen often.
const WAIT_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Flushed memtables beside each other from which on only deletions are admitted while compaction waits: each further one
/// takes room, and makes what has to be compacted larger.
const RUNS_MANY: usize = 6;

/// The same for admitting nothing. Those in memory come on top, five at most, and fjall stops the committer at thirty.
const RUNS_MAX: usize = 16;

/// Stale separated values for which everything is rewritten while the disk is nearly full.
const RECLAIM_BYTES_MIN: u64 = 1024 * 1024;

/// The same while it is not.
const RECLAIM_BYTES_MANY: u64 = 64 * 1024 * 1024;

/// Tombstones for which something is done while writes keep coming: fewer keep little room, and a queue that is worked off
/// as it fills makes some ten thousand in a second.
const TOMBSTONES_MANY: u64 = if cfg!(test) { 1000 } else { 500_000 };

/// What is done for the sake of deletions while writes keep coming, and what rewrites everything, rests for this many
/// times as long as a step of it took.
const RESTS: u32 = 4;

pub(crate) struct Compactor {
    store: Arc<Store>,
    space: Arc<DiskSpace>,
    stats: Arc<Stats>,
    nudges: Receiver<()>,
    closing: Arc<AtomicBool>,
    failures: Failures,
    compacting: Wait,
    purging: Wait,
    rewriting: Wait,
    /// When to do next what is not done all the time.
    rests_until: Instant,
}

/// When to try again what there was no room for.
struct Wait {
    what: &'static str,
    until: Option<Instant>,
}

impl Wait {
    fn new(what: &'static str) -> Self {
        Self { what, until: None }
    }

    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Says so when it begins.
    fn begin(&mut self, time: Duration, bytes: u64) {
        if self.until.replace(Instant::now() + time).is_none() {
            tracing::warn!(bytes, "{} waits until there is room on the disk", self.what);
        }
    }

    fn end(&mut self) {
        if self.until.take().is_some() {
            tracing::info!("{} goes on", self.what);
        }
    }
}

/// What is attempted.
#[derive(Clone, Copy)]
enum Work {
    Compact(Strategy),
    /// For the sake of deletions and separated values that no level is compacted for.
    Rewrite,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// There was nothing to do.
    Nothing,
    /// There is, or may be, but not now.
    Later,
}

impl Compactor {
    /// `nudges` has a word whenever something was committed, and ends with the committer.
    pub(crate) fn new(
        store: Arc<Store>,
        space: Arc<DiskSpace>,
        stats: Arc<Stats>,
        nudges: Receiver<()>,
        closing: Arc<AtomicBool>,
        failures: Failures,
    ) -> Self {
        Self {
            store,
            space,
            stats,
            nudges,
            closing,
            failures,
            compacting: Wait::new("compaction"),
            purging: Wait::new("compaction of what was deleted"),
            rewriting: Wait::new("reclaiming deleted values"),
            rests_until: Instant::now(),
        }
    }

    /// Compacts until the engine closes.
    pub(crate) fn run(mut self) {
        loop {
            let has_paused = match self.nudges.recv_timeout(QUIET_AFTER) {
                Ok(()) => false,
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = self.once(has_paused) {
                fail(&self.failures, &format!("the store cannot be compacted: {error}"));
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn once(&mut self, has_paused: bool) -> Result<()> {
        self.store.check_alive()?;
        if has_paused {
            self.compact_all()?;
        } else {
            self.keep_up()?;
        }
        self.store.count_deletions();
        Ok(())
    }

    /// Lets no more pile up than can be compacted when there is room again.
    fn limit_admission(&self) {
        let limit = match self.store.uncompacted_runs() {
            _ if self.compacting.until.is_none() => Admission::Everything,
            ..RUNS_MANY => Admission::Everything,
            RUNS_MANY..RUNS_MAX => Admission::Deletions,
            RUNS_MAX.. => Admission::Nothing,
        };
        self.space.limit(limit);
    }

    /// Compacts what has to be while writes keep coming, and then, for a part of the time, what is deleted.
    fn keep_up(&mut self) -> Result<()> {
        while self.attempt(Work::Compact(Strategy::Lazy))? == Step::Done {}
        if self.has_rested() && self.store.waiting_tombstones().count >= TOMBSTONES_MANY {
            let started = Instant::now();
            if self.purge_deletions()? == Step::Done {
                self.rest(started);
            }
        }
        Ok(())
    }

    fn has_rested(&self) -> bool {
        Instant::now() >= self.rests_until
    }

    fn rest(&mut self, started: Instant) {
        self.rests_until = Instant::now() + RESTS * started.elapsed();
    }

    /// Compacts everything, as long as nothing is written.
    fn compact_all(&mut self) -> Result<()> {
        let mut step = Step::Done;
        while step == Step::Done && !self.closing.load(Ordering::Relaxed) {
            self.flush()?;
            // ORDER: looked at before compaction, because a flush that ends after it makes more work.
            let is_flushed = self.store.is_flushed()?;
            step = self.attempt(Work::Compact(Strategy::Eager))?;
            if step == Step::Nothing && is_flushed {
                step = self.purge_deletions()?;
            }
            if step == Step::Nothing && is_flushed {
                step = self.rewrite_everything()?;
            }
            self.store.set_compacted(is_flushed && step == Step::Nothing);
            // Writing goes on, so the pause is over.
            if self.nudges.try_recv().is_ok() {
                break;
            }
        }
        Ok(())
    }

    /// Has a good part of a memtable flushed, and while the disk is nearly full any part, for there may be deletions
    /// in it: but then only one at a time, and if it spares what the reserve is there for.
    fn flush(&self) -> Result<()> {
        match self.space.admission() {
            Admission::Everything => self.store.flush_from(QUIET_FLUSH_BYTES),
            Admission::Deletions
                if self.store.uncompacted_runs() == 0
                    && self.space.spares(self.store.unflushed_bytes()) =>
            {
                self.store.flush_from(1)
            }
            Admission::Deletions | Admission::Nothing => Ok(()),
        }
    }

    /// Takes tombstones a step further down, where they are a good part of all rows.
    fn purge_deletions(&mut self) -> Result<Step> {
        if self.store.waiting_tombstones().share < TOMBSTONE_SHARE_MAX {
            self.purging.end();
            return Ok(Step::Nothing);
        }
        // Flushed memtables first: while writes keep coming, some of them wait for others.
        match self.attempt(Work::Compact(Strategy::Eager))? {
            Step::Nothing => self.attempt(Work::Compact(Strategy::ToLastLevel)),
            step => Ok(step),
        }
    }

    /// Rewrites everything for the sake of separated values that were deleted: fjall deletes their files with the compaction
    /// after the one that dropped their rows, and there may be none. Also for that of tombstones that have come to the last
    /// level without meeting anything to delete, and of those that somebody still read what they deleted.
    fn rewrite_everything(&mut self) -> Result<Step> {
        if !self.is_rewrite_worthwhile() {
            self.rewriting.end();
            return Ok(Step::Nothing);
        }
        let started = Instant::now();
        let step = self.attempt(Work::Rewrite)?;
        self.rest(started);
        Ok(step)
    }

    fn is_rewrite_worthwhile(&self) -> bool {
        let store = &self.store;
        let reclaimable = store.reclaimable_value_bytes();
        if self.space.is_low() {
            return reclaimable >= RECLAIM_BYTES_MIN;
        }
        let bytes = store.table_bytes();
        let is_much_garbage = || {
            store.tombstone_share() >= TOMBSTONE_SHARE_MAX
                || reclaimable >= RECLAIM_BYTES_MANY.max(bytes / 4)
        };
        self.has_rested() && bytes <= REWRITE_BYTES_MAX && is_much_garbage()
    }

    /// Does the most urgent work of its kind, unless there is none, or no room for it.
    fn attempt(&mut self, work: Work) -> Result<Step> {
        let step = self.attempt_now(work);
        self.limit_admission();
        step
    }

    fn attempt_now(&mut self, work: Work) -> Result<Step> {
        let wait = match work {
            Work::Compact(Strategy::Lazy | Strategy::Eager) => &mut self.compacting,
            Work::Compact(Strategy::ToLastLevel) => &mut self.purging,
            Work::Rewrite => &mut self.rewriting,
        };
        if !wait.is_over() || self.closing.load(Ordering::Relaxed) {
            return Ok(Step::Later);
        }
        let (store, space) = (&self.store, &self.space);
        let Some(permit) = space.try_compaction_permit() else { return Ok(Step::Later) };
        let Some(bytes) = work.bytes(store)? else {
            wait.end();
            return Ok(Step::Nothing);
        };
        // What is in memory will be flushed, perhaps meanwhile. What is only moved takes no room.
        if bytes > 0 && !permit.claim(bytes + store.unflushed_bytes()) {
            wait.begin(WAIT, bytes);
            return Ok(Step::Later);
        }
        self.stats.compacting.store(1, Ordering::Relaxed);
        let started = Instant::now();
        let done = work.run(store);
        self.stats.compacting.store(0, Ordering::Relaxed);
        if matches!(done, Ok(Step::Done)) {
            self.stats.compaction_nanos.record_duration(started.elapsed());
            self.stats.compaction_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        match done {
            Err(Error::Full) => {
                wait.begin(WAIT_AFTER_FAILURE, bytes);
                Ok(Step::Later)
            }
            done => {
                wait.end();
                done
            }
        }
    }
}

impl Work {
    /// Bytes that it writes at most; `None` if there is nothing to do.
    fn bytes(self, store: &Store) -> Result<Option<u64>> {
        match self {
            Self::Compact(strategy) => store.compaction_bytes(strategy),
            Self::Rewrite => store.rewrite_bytes().map(Some),
        }
    }

    fn run(self, store: &Store) -> Result<Step> {
        let has_worked = match self {
            Self::Compact(strategy) => store.compact_step(strategy)?,
            Self::Rewrite => {
                store.rewrite()?;
                true
            }
        };
        Ok(if has_worked { Step::Done } else { Step::Nothing })
    }
}
