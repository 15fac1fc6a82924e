//! Whether the first rows of a scan are read where it is asked for.
//!
//! Most scans are short: some rows that lie side by side. To hand them to the pool and back would take as long as to
//! read a third of them. So a scan begins on the thread of its caller, as a read by key does, and goes to the pool only
//! if it is longer.
//!
//! Few rows can be much work all the same, for a slow disk, for a long filter, or because many were deleted between them
//! that are not yet compacted: all of those are passed to find the next. A thread that answers connections must not be kept
//! by that. So a scan that has to wait for the disk goes to the pool in between; where there are very many
//! [deletions](crate::embedded::store::Store::deletions) scans do not begin here at all; and when first rows take too long
//! too often, scans are left to the pool until no more than one part in twenty of a thread's time has gone there. Not at
//! once, for on a virtual machine time also passes without any work being done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first rows are read in this many steps of this many rows, or bytes: a third of a millisecond or so in all, with
/// the JSON that becomes of them. After each step the clock is looked at.
pub(crate) const STEPS: usize = 8;
pub(crate) const STEP_ROWS: usize = 16;
pub(crate) const STEP_BYTES: usize = 16 * 1024;

/// Time after which a scan goes to the pool, be it work or waiting.
pub(crate) const STEPS_TIME: Duration = Duration::from_millis(5);

/// Processor time that the first rows take at most if all is well.
const LONG: Duration = Duration::from_millis(2);

/// What is longer than that is lost, and must be one part in this many on the whole.
const LOST_SHARE: u32 = 20;

/// Time for which nothing must have been lost to make up for as much as is tolerated: a tenth of a second.
const CREDIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct InlineScan {
    opened: Instant,
    /// When what was lost will be one part in [`LOST_SHARE`]: nanoseconds since `opened`.
    made_up_at: AtomicU64,
}

impl InlineScan {
    pub(crate) fn new() -> Self {
        Self { opened: Instant::now(), made_up_at: AtomicU64::new(0) }
    }

    /// Whether scans begin on the threads of their callers.
    pub(crate) fn is_allowed(&self) -> bool {
        self.made_up_at.load(Ordering::Relaxed) <= nanos(self.opened.elapsed() + CREDIT)
    }

    /// Runs the beginning of a scan, and keeps in mind if it takes too long.
    pub(crate) fn run<R>(&self, read: impl FnOnce() -> R) -> R {
        let before = processor_time();
        let done = read();
        self.took(processor_time().saturating_sub(before));
        done
    }

    pub(crate) fn took(&self, time: Duration) {
        let lost = time.saturating_sub(LONG);
        if lost.is_zero() {
            return;
        }
        let (now, needed) = (nanos(self.opened.elapsed()), nanos(lost * LOST_SHARE));
        let later = |made_up_at: u64| Some(made_up_at.max(now).saturating_add(needed));
        // It always has a new value.
        let _ = self.made_up_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    /// Forgets what was lost.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        self.made_up_at.store(0, Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Of this thread: what it waits for the others on a busy machine says nothing about the rows.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn processor_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_too_often_is_left_to_the_pool() {
        let scan = InlineScan::new();
        scan.took(LONG);
        assert_eq!(scan.made_up_at.load(Ordering::Relaxed), 0);
        // Once in a while is not too often.
        scan.took(CREDIT / LOST_SHARE);
        assert!(scan.is_allowed());
        for _ in 0..100 {
            scan.took(CREDIT / LOST_SHARE);
        }
        assert!(!scan.is_allowed());
    }

    #[test]
    fn what_takes_very_long_is_left_to_the_pool_at_once() {
        let scan = InlineScan::new();
        scan.took(Duration::from_secs(60));
        assert!(!scan.is_allowed());
        scan.forget();
        assert!(scan.is_allowed());
    }

    #[test]
    fn the_time_that_reading_takes_is_noticed() {
        let scan = InlineScan::new();
        scan.run(|| {
            let start = processor_time();
            while processor_time() - start < 2 * LONG {}
        });
        assert!(scan.made_up_at.load(Ordering::Relaxed) > 0);
    }

    /// What a thread does not do itself is not its work.
    #[cfg(target_os = "linux")]
    #[test]
    fn waiting_is_no_work() {
        let scan = InlineScan::new();
        scan.run(|| std::thread::sleep(2 * CREDIT / LOST_SHARE));
        assert!(scan.is_allowed());
    }
}
