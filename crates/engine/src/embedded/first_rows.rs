//! Whether the first rows of a scan are read where it is asked for.
//!
//! Most scans are short: some rows that lie side by side. To hand them to the pool and back would take as long as to
//! read a third of them. So a scan begins on the thread of its caller, as a read by key does, and goes to the pool only
//! if it is longer.
//!
//! Few rows can be much work all the same, for a slow disk, for a long filter, or because many were deleted between them
//! that are not yet merged: all of those are passed to find the next. A thread that answers connections must not be kept
//! by that. So a scan that has to wait for the disk goes to the pool in between; where there are very many deletions
//! scans do not begin here at all; and when the first rows of one have taken too much work, scans are left to the pool for
//! a hundred times as long: no more than one part in a hundred of a thread's time is lost that way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first rows are read in so many steps of so many rows, or so many bytes: a third of a millisecond or so in all, with
/// the JSON that becomes of them. After each step the clock is looked at.
pub(super) const STEPS: usize = 8;
pub(super) const STEP_ROWS: usize = 16;
pub(super) const STEP_BYTES: usize = 16 * 1024;

/// Time after which a scan goes to the pool, be it work or waiting.
pub(super) const STEPS_TIME: Duration = Duration::from_millis(5);

/// Deletions in tables up to which scans begin here. To pass so many takes some ten milliseconds.
pub(super) const DELETIONS_MAX: u64 = 100_000;

/// Processor time that the first rows take at most if all is well.
const LONG: Duration = Duration::from_millis(2);

/// How many times as long to leave it after that.
const REST: u32 = 100;

#[derive(Debug)]
pub(super) struct FirstRows {
    opened: Instant,
    /// Until when scans are left to the pool: nanoseconds since `opened`.
    rest_until: AtomicU64,
}

impl FirstRows {
    pub(super) fn new() -> Self {
        Self { opened: Instant::now(), rest_until: AtomicU64::new(0) }
    }

    pub(super) fn are_read_here(&self) -> bool {
        nanos(self.opened.elapsed()) >= self.rest_until.load(Ordering::Relaxed)
    }

    /// Reads them, and keeps in mind if it takes too long.
    pub(super) fn read<R>(&self, read: impl FnOnce() -> R) -> R {
        let before = processor_time();
        let done = read();
        self.took(processor_time().saturating_sub(before));
        done
    }

    /// Ends the rest.
    #[cfg(test)]
    pub(super) fn resume(&self) {
        self.rest_until.store(0, Ordering::Relaxed);
    }

    pub(super) fn took(&self, time: Duration) {
        if time >= LONG {
            let rest_until = self.opened.elapsed() + time * REST;
            self.rest_until.fetch_max(nanos(rest_until), Ordering::Relaxed);
        }
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
    fn a_long_one_is_followed_by_a_rest() {
        let first_rows = FirstRows::new();
        assert!(first_rows.are_read_here());
        first_rows.took(LONG - Duration::from_nanos(1));
        assert!(first_rows.are_read_here());
        first_rows.took(Duration::from_secs(60));
        assert!(!first_rows.are_read_here());
        // A shorter one that began before does not end the rest.
        first_rows.took(LONG);
        assert!(!first_rows.are_read_here());
    }

    #[test]
    fn the_time_that_reading_takes_is_noticed() {
        let first_rows = FirstRows::new();
        let busy = || {
            let start = processor_time();
            while processor_time() - start < 50 * LONG {}
        };
        first_rows.read(busy);
        assert!(!first_rows.are_read_here());
    }

    /// What a thread does not do itself is not its work.
    #[cfg(target_os = "linux")]
    #[test]
    fn waiting_is_no_work() {
        let first_rows = FirstRows::new();
        assert_eq!(first_rows.read(|| std::thread::sleep(5 * LONG)), ());
        assert!(first_rows.are_read_here());
    }
}
