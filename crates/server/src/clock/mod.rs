//! The one place that reads the wall clock.

pub(crate) mod hybrid;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tavola_wire::Ticks;

/// Hands out moments, no two of them equal and each later than the last, whatever the wall clock does.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: AtomicI64,
}

impl Clock {
    /// A moment for a timestamp: unique in this process.
    pub(crate) fn stamp(&self) -> Ticks {
        let now = wall_clock().0;
        let last = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)))
            .expect("the update never refuses");
        Ticks(now.max(last + 1))
    }

    /// The wall clock, for dates that clients send and signatures that expire.
    pub(crate) fn now(&self) -> Ticks {
        wall_clock()
    }
}

#[allow(clippy::disallowed_methods)]
fn wall_clock() -> Ticks {
    let nanoseconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    };
    Ticks::from_unix_nanos(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_strictly_increase() {
        let clock = Clock::default();
        let stamps: Vec<_> = (0..10_000).map(|_| clock.stamp()).collect();
        assert!(stamps.is_sorted_by(|a, b| a < b));
    }
}
