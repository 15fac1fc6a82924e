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
//! fjall's writers wait without end when flushing has failed and memtables pile up. The committer may hang there
//! and cannot tell; this thread looks after it and reports the failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::committer::{Failures, fail};
use super::space::Space;
use super::store::{Pace, Store};
use crate::Result;

/// How long to leave it after a look at the levels: they change with flushes, which are seconds apart.
const PAUSE: Duration = Duration::from_millis(20);

/// When nothing was committed for so long, writing has paused: time to merge, and to see whether fjall is alive.
const QUIET_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Upkeep {
    pub(super) store: Arc<Store>,
    /// A word whenever something was committed; ends with the committer.
    pub(super) nudges: Receiver<()>,
    pub(super) closing: Arc<AtomicBool>,
    pub(super) failures: Failures,
    pub(super) space: Arc<Space>,
}

impl Upkeep {
    /// Compacts until the engine closes.
    pub(super) fn run(self) {
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

    fn once(&self, pace: Pace) -> Result<()> {
        self.store.check_alive()?;
        match pace {
            Pace::Busy => while self.may_compact() && self.store.compact_step(Pace::Busy)? {},
            Pace::Quiet => {
                while self.may_compact() && self.store.settle_step()? {
                    // Writing goes on, so the pause is over.
                    if self.nudges.try_recv().is_ok() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Nothing piles up without room: nothing is taken then that would be flushed.
    fn may_compact(&self) -> bool {
        !self.closing.load(Ordering::Relaxed) && !self.space.is_low()
    }
}
