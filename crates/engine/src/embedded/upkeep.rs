//! The thread that compacts, and that notices when fjall has died.
//!
//! fjall would compact by itself, but its pool keeps one thread free for flushes by having it put compaction
//! requests back into the queue, again and again, for as long as another thread compacts: on two cores a sixth of
//! all processor time under load went there. So fjall gets one thread and a compaction strategy that never merges,
//! and flushes; the merging is done here, with fjall's own leveled compaction.
//!
//! Leveled compaction leaves up to four flushed memtables lie beside each other, each with its own versions of the
//! rows that are updated most, and a scan reads through all of them. While writes keep coming that is a fair price;
//! when they pause, everything is merged, so that a table that is only read is read at full speed.
//!
//! Merging is never a reason to stop: a step that there is no room for waits until there is; see [`Space`]. While the
//! disk is nearly full, deletions are flushed and merged as soon as they pause, so that they give room back.
//!
//! fjall's writers wait without end when flushing has failed and memtables pile up. The committer may hang there
//! and cannot tell; this thread looks after it and reports the failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::committer::{Failures, fail};
use super::space::{Space, Taking};
use super::store::{Pace, Store};
use crate::{Error, Result};

/// How long to leave it after a look at the levels: they change with flushes, which are seconds apart.
const PAUSE: Duration = Duration::from_millis(20);

/// When nothing was committed for so long, writing has paused: time to merge, and to see whether fjall is alive.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// What a memtable holds at least to be flushed when writing pauses. A server that gets a few rows now and then must
/// not rewrite a level for each of them.
const QUIET_FLUSH_BYTES: u64 = 8 * 1024 * 1024;

/// How long to leave it when there is no room to merge.
const WAIT: Duration = Duration::from_secs(1);

/// How long to leave it when there was no room after all: what was not finished stays on the disk until the next
/// start, so this must not happen often.
const WAIT_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Flushed memtables beside each other from which on nothing is taken while merging waits. Those in memory come on top,
/// five at most, and fjall stops the committer at thirty.
const RUNS_MAX: usize = 16;

/// Stale separated values for which everything is rewritten while the disk is nearly full.
const RECLAIM_BYTES_MIN: u64 = 1024 * 1024;

pub(super) struct Upkeep {
    pub(super) store: Arc<Store>,
    /// A word whenever something was committed; ends with the committer.
    pub(super) nudges: Receiver<()>,
    pub(super) closing: Arc<AtomicBool>,
    pub(super) failures: Failures,
    pub(super) space: Arc<Space>,
    /// When to try again to merge what there was no room for.
    pub(super) waits_until: Option<Instant>,
}

/// What came of the attempt to merge something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// There was nothing to do.
    Nothing,
    /// There is, or may be, but not now.
    Later,
}

impl Upkeep {
    /// Compacts until the engine closes.
    pub(super) fn run(mut self) {
        loop {
            let pace = match self.nudges.recv_timeout(QUIET_AFTER) {
                Ok(()) => Pace::Busy,
                Err(RecvTimeoutError::Timeout) => Pace::Quiet,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = self.once(pace) {
                fail(&self.failures, &format!("the store cannot be kept up: {error}"));
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn once(&mut self, pace: Pace) -> Result<()> {
        self.store.check_alive()?;
        match pace {
            Pace::Busy => while self.step(Pace::Busy)? == Step::Done {},
            Pace::Quiet => self.settle()?,
        }
        let waits = self.waits_until.is_some();
        self.space.set_piled_up(waits && self.store.unmerged_runs() >= RUNS_MAX);
        Ok(())
    }

    /// Merges everything, as long as nothing is written.
    fn settle(&mut self) -> Result<()> {
        let mut step = Step::Done;
        while step == Step::Done && !self.closing.load(Ordering::Relaxed) {
            self.flush()?;
            // ORDER: looked at before compaction, because a flush that ends after it makes more work.
            let is_flushed = self.store.is_flushed()?;
            step = self.step(Pace::Quiet)?;
            if step == Step::Nothing && is_flushed {
                step = self.reclaim_values()?;
            }
            self.store.set_settled(is_flushed && step == Step::Nothing);
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
        match self.space.taking() {
            Taking::Everything => self.store.flush_from(QUIET_FLUSH_BYTES),
            Taking::Deletions
                if self.store.unmerged_runs() == 0
                    && self.space.spares(self.store.unflushed_bytes()) =>
            {
                self.store.flush_from(1)
            }
            Taking::Deletions | Taking::Nothing => Ok(()),
        }
    }

    /// Does the most urgent compaction, if there is room for it.
    fn step(&mut self, pace: Pace) -> Result<Step> {
        self.attempt(
            |store| store.bytes_to_merge(pace),
            |store| {
                let has_compacted = store.compact_step(pace)?;
                Ok(if has_compacted { Step::Done } else { Step::Nothing })
            },
        )
    }

    /// While the disk is nearly full: rewrites everything for the sake of separated values that were deleted. fjall
    /// deletes their files with the compaction after the one that dropped their rows, and there may be none.
    fn reclaim_values(&mut self) -> Result<Step> {
        let is_worthwhile = || self.store.reclaimable_value_bytes() >= RECLAIM_BYTES_MIN;
        if self.space.taking() == Taking::Everything || !is_worthwhile() {
            return Ok(Step::Nothing);
        }
        self.attempt(
            |store| store.bytes_to_compact().map(Some),
            |store| store.compact().map(|()| Step::Done),
        )
    }

    /// Merges with `merge` what takes `needed` bytes, unless there is nothing to merge, or no room.
    fn attempt(
        &mut self,
        needed: impl FnOnce(&Store) -> Result<Option<u64>>,
        merge: impl FnOnce(&Store) -> Result<Step>,
    ) -> Result<Step> {
        let must_wait = self.waits_until.is_some_and(|until| Instant::now() < until);
        if must_wait || self.closing.load(Ordering::Relaxed) {
            return Ok(Step::Later);
        }
        let (store, space) = (Arc::clone(&self.store), Arc::clone(&self.space));
        let Some(turn) = space.turn_now() else { return Ok(Step::Later) };
        let Some(bytes) = needed(&store)? else {
            self.go_on();
            return Ok(Step::Nothing);
        };
        // What is in memory will be flushed, perhaps meanwhile. What is only moved takes no room.
        if bytes > 0 && !turn.claim(bytes + store.unflushed_bytes()) {
            self.wait(WAIT, bytes);
            return Ok(Step::Later);
        }
        match merge(&store) {
            Err(Error::Full) => {
                self.wait(WAIT_AFTER_FAILURE, bytes);
                Ok(Step::Later)
            }
            done => {
                self.go_on();
                done
            }
        }
    }

    fn wait(&mut self, time: Duration, bytes: u64) {
        if self.waits_until.replace(Instant::now() + time).is_none() {
            tracing::warn!(bytes, "merging waits until there is room on the disk");
        }
    }

    fn go_on(&mut self) {
        if self.waits_until.take().is_some() {
            tracing::info!("merging goes on");
        }
    }
}
