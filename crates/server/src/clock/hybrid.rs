//! A clock for what is ordered by time: it never goes back, and goes on when the wall clock stepped back.
//!
//! It follows the wall clock when that is ahead, and the monotonic clock when it is not: `max(wall, last + 1)` alone would
//! stand still after a step back, and what waits for a moment would wait until the wall clock has caught up. A lead of a
//! few seconds, which a start after a crash brings, is worked off by going a little slower.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tavola_wire::Ticks;

use super::Clock;

/// A lead over the wall clock up to this is worked off; what is more is a wall clock that was set back.
const LEAD_MAX: i64 = 10 * Ticks::PER_SECOND;
/// A wall clock that runs ahead by more than this was set, or the machine slept.
const JUMP_MIN: i64 = Ticks::PER_MINUTE;

/// Where the time comes from. Tests have their own.
pub(crate) trait TimeSource: fmt::Debug + Send + Sync {
    fn wall(&self) -> Ticks;

    /// Time since some moment, which never goes back.
    fn steady(&self) -> Duration;
}

/// The clocks of the machine.
#[derive(Debug)]
pub(crate) struct SystemTime {
    clock: Arc<Clock>,
    started: Instant,
}

impl SystemTime {
    pub(crate) fn new(clock: Arc<Clock>) -> Self {
        Self { clock, started: Instant::now() }
    }
}

impl TimeSource for SystemTime {
    fn wall(&self) -> Ticks {
        self.clock.now()
    }

    fn steady(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The clock.
#[derive(Debug)]
pub(crate) struct HybridClock {
    source: Arc<dyn TimeSource>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The last moment that was given out.
    last: i64,
    /// What the clock showed, and when by the monotonic one.
    shown: i64,
    shown_at: Duration,
    jumped_at: Option<Duration>,
}

impl HybridClock {
    /// A clock that gives out moments after `last`.
    pub(crate) fn new(source: Arc<dyn TimeSource>, last: Ticks) -> Self {
        let (wall, steady) = (source.wall().0, source.steady());
        let state =
            State { last: last.0, shown: wall.max(last.0), shown_at: steady, jumped_at: None };
        Self { source, state: Mutex::new(state) }
    }

    /// A moment that was never given out before, later than all that were.
    pub(crate) fn stamp(&self) -> Ticks {
        let (wall, steady) = (self.source.wall().0, self.source.steady());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = i64::try_from(steady.saturating_sub(state.shown_at).as_nanos() / 100);
        let passed = passed.unwrap_or(i64::MAX);
        let going = state.shown.saturating_add(passed);
        state.shown = if wall > going {
            if wall - going > JUMP_MIN {
                state.jumped_at = Some(steady);
                let seconds = (wall - going) / Ticks::PER_SECOND;
                tracing::warn!(
                    seconds,
                    "the clock of this machine jumped ahead: messages become visible and expire before their time"
                );
            }
            wall
        } else if going - wall <= LEAD_MAX {
            (going - passed / 8).max(wall)
        } else {
            going
        };
        // Two threads may have read the monotonic clock in one order and come here in the other.
        state.shown_at = state.shown_at.max(steady);
        state.last = state.shown.max(state.last + 1);
        Ticks(state.last)
    }

    /// The last moment that was given out.
    pub(crate) fn last(&self) -> Ticks {
        Ticks(self.state.lock().unwrap_or_else(PoisonError::into_inner).last)
    }

    /// How long ago the wall clock jumped ahead, if it did.
    pub(crate) fn since_jump(&self) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jumped_at.map(|jumped_at| self.source.steady().saturating_sub(jumped_at))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Clocks that go as they are told.
    #[derive(Debug)]
    pub(crate) struct TestTime(Mutex<(i64, Duration)>);

    impl TestTime {
        pub(crate) fn new(wall: i64) -> Arc<Self> {
            Arc::new(Self(Mutex::new((wall, Duration::ZERO))))
        }

        /// Both clocks go on.
        pub(crate) fn advance(&self, ticks: i64) {
            let mut time = self.0.lock().unwrap();
            time.0 += ticks;
            time.1 += Duration::from_nanos(ticks.unsigned_abs() * 100);
        }

        /// The wall clock is set, ahead or back.
        pub(crate) fn step(&self, ticks: i64) {
            self.0.lock().unwrap().0 += ticks;
        }
    }

    impl TimeSource for TestTime {
        fn wall(&self) -> Ticks {
            Ticks(self.0.lock().unwrap().0)
        }

        fn steady(&self) -> Duration {
            self.0.lock().unwrap().1
        }
    }

    const SECOND: i64 = Ticks::PER_SECOND;
    const NOW: i64 = 600_000_000 * SECOND;

    #[test]
    fn it_goes_on_when_the_wall_clock_steps_back() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(0));
        assert_eq!(clock.stamp(), Ticks(NOW));
        time.step(-3600 * SECOND);
        assert_eq!(clock.stamp(), Ticks(NOW + 1));
        time.advance(30 * SECOND);
        assert_eq!(clock.stamp(), Ticks(NOW + 30 * SECOND));
        assert_eq!(clock.since_jump(), None);
        time.step(3600 * SECOND);
        time.advance(SECOND);
        assert_eq!(clock.stamp(), Ticks(NOW + 31 * SECOND));
    }

    #[test]
    fn it_follows_the_wall_clock_ahead_and_tells_of_a_jump() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(0));
        time.step(7 * 86_400 * SECOND);
        assert_eq!(clock.stamp(), Ticks(NOW + 7 * 86_400 * SECOND));
        assert_eq!(clock.since_jump(), Some(Duration::ZERO));
        time.advance(5 * SECOND);
        assert_eq!(clock.since_jump(), Some(Duration::from_secs(5)));
    }

    /// A start after a crash begins ahead of the wall clock, and must not add up to more and more.
    #[test]
    fn a_small_lead_is_worked_off() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(NOW + 2 * SECOND));
        assert_eq!(clock.stamp(), Ticks(NOW + 2 * SECOND + 1));
        for _ in 0..20 {
            time.advance(SECOND);
            clock.stamp();
        }
        assert!(clock.stamp().0 - time.wall().0 <= 1);
    }

    proptest! {
        #[test]
        fn stamps_strictly_increase_whatever_the_wall_clock_does(
            steps in prop::collection::vec((0..100 * SECOND, -1000 * SECOND..1000 * SECOND), 1..50),
        ) {
            let time = TestTime::new(NOW);
            let clock = HybridClock::new(time.clone(), Ticks(NOW - 5));
            let mut last = clock.stamp();
            for (passed, step) in steps {
                time.advance(passed);
                time.step(step);
                let stamp = clock.stamp();
                prop_assert!(stamp > last);
                // Never much slower than time passes.
                prop_assert!(stamp.0 - last.0 >= passed - passed / 8);
                prop_assert!(stamp >= time.wall());
                last = stamp;
            }
        }
    }
}
