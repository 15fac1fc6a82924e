//! A clock for what is ordered by time: it never goes back, and goes on when the wall clock stepped back.
//!
//! It follows the wall clock when that is ahead, and the monotonic clock when it is not: `max(wall, last + 1)` alone would
//! stand still after a step back, and what waits for a moment would wait until the wall clock has caught up. A lead of
//! seconds or minutes, which starts after crashes bring, is worked off by going a little slower.
//!
//! Beside it goes the time of day, which follows a wall clock that was set back: a life that ends at some time of day is
//! counted by it, from its beginning to its end.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tavola_wire::Ticks;

use super::Clock;

/// A lead over the wall clock up to this is worked off; what is more is a wall clock that was set back.
const LEAD_MAX: i64 = 10 * Ticks::PER_MINUTE;
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

/// What the clock shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Not before any moment that was given out; from [`HybridClock::read`] one that never was, later than all of them.
    pub(crate) stamp: Ticks,
    /// The time of day, as far as one can tell: a wall clock that is much behind was set ahead before, and is right again.
    /// It goes on steadily, unless the wall clock is set.
    pub(crate) time_of_day: Ticks,
    /// The wall clock beside it.
    pub(crate) wall: Ticks,
}

impl Reading {
    /// How far ahead of the wall clock this one is.
    pub(crate) fn lead(self) -> i64 {
        self.stamp.0 - self.wall.0
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
    /// How far the time of day is behind.
    behind: i64,
    jumped_at: Option<Duration>,
}

impl HybridClock {
    /// A clock that gives out moments after `last`. After a while without a process nobody can tell whether
    /// that much time has passed or the wall clock has jumped meanwhile.
    pub(crate) fn new(source: Arc<dyn TimeSource>, last: Ticks) -> Self {
        let (wall, steady) = (source.wall().0, source.steady());
        let may_have_jumped = last.0 > 0 && wall - last.0 > JUMP_MIN;
        let state = State {
            last: last.0,
            shown: wall.max(last.0),
            shown_at: steady,
            behind: behind(0, last.0 - wall),
            jumped_at: may_have_jumped.then_some(steady),
        };
        Self { source, state: Mutex::new(state) }
    }

    /// Gives out a moment.
    pub(crate) fn read(&self) -> Reading {
        self.show(true)
    }

    /// The present, without giving out a moment.
    pub(crate) fn look(&self) -> Reading {
        self.show(false)
    }

    fn show(&self, gives_out: bool) -> Reading {
        let (wall, steady) = (self.source.wall().0, self.source.steady());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = i64::try_from(steady.saturating_sub(state.shown_at).as_nanos() / 100);
        let passed = passed.unwrap_or(i64::MAX);
        let going = state.shown.saturating_add(passed);
        let day_going = going - state.behind;
        state.shown = if wall > going {
            wall
        } else if going - wall <= LEAD_MAX {
            (going - passed / 8).max(wall)
        } else {
            going
        };
        // Two threads may have read the monotonic clock in one order and come here in the other.
        state.shown_at = state.shown_at.max(steady);
        let stamp = state.shown.max(state.last + i64::from(gives_out));
        if gives_out {
            state.last = stamp;
        }
        state.behind = behind(state.behind, stamp - wall);
        let time_of_day = stamp - state.behind;
        // Also by a wall clock that was set back before, and is set right: the stamps had gone on.
        if time_of_day - day_going > JUMP_MIN {
            state.jumped_at = Some(steady);
            let seconds = (time_of_day - day_going) / Ticks::PER_SECOND;
            tracing::warn!(
                seconds,
                "the clock of this machine jumped ahead: messages expire before their time, and perhaps become visible"
            );
        }
        Reading { stamp: Ticks(stamp), time_of_day: Ticks(time_of_day), wall: Ticks(wall) }
    }

    /// The last moment that was given out.
    pub(crate) fn last(&self) -> Ticks {
        Ticks(self.state.lock().unwrap_or_else(PoisonError::into_inner).last)
    }

    /// How long ago the wall clock jumped ahead, if it did or may have.
    pub(crate) fn since_jump(&self) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jumped_at.map(|jumped_at| self.source.steady().saturating_sub(jumped_at))
    }
}

/// How far the time of day is behind a clock that leads the wall clock by so much. It never goes ahead by itself when a lead is
/// worked off, or a life would end before its time.
fn behind(before: i64, lead: i64) -> i64 {
    if lead - before > JUMP_MIN { lead } else { before.min(lead).max(0) }
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
        assert_eq!(clock.read().stamp, Ticks(NOW));
        time.step(-3600 * SECOND);
        assert_eq!(clock.read().stamp, Ticks(NOW + 1));
        time.advance(30 * SECOND);
        assert_eq!(clock.read().stamp, Ticks(NOW + 30 * SECOND));
        assert_eq!(clock.since_jump(), None);
        time.step(3600 * SECOND);
        time.advance(SECOND);
        assert_eq!(clock.read().stamp, Ticks(NOW + 31 * SECOND));
    }

    #[test]
    fn it_follows_the_wall_clock_ahead_and_tells_of_a_jump() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(0));
        time.step(7 * 86_400 * SECOND);
        assert_eq!(clock.read().stamp, Ticks(NOW + 7 * 86_400 * SECOND));
        assert_eq!(clock.since_jump(), Some(Duration::ZERO));
        time.advance(5 * SECOND);
        assert_eq!(clock.since_jump(), Some(Duration::from_secs(5)));
    }

    /// A start after a crash begins ahead of the wall clock, and must not add up to more and more.
    #[test]
    fn a_small_lead_is_worked_off() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(NOW + 2 * SECOND));
        assert_eq!(clock.read().stamp, Ticks(NOW + 2 * SECOND + 1));
        for _ in 0..20 {
            time.advance(SECOND);
            clock.read();
        }
        assert!(clock.read().lead() <= 1);
    }

    #[test]
    fn the_time_of_day_is_that_of_a_wall_clock_that_is_right_again() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(NOW + 2 * SECOND));
        let reading = clock.read();
        assert_eq!(reading.time_of_day, reading.stamp, "a little ahead, after a crash");
        time.step(7 * 86_400 * SECOND);
        assert_eq!(clock.read().time_of_day, time.wall());
        time.step(-7 * 86_400 * SECOND);
        let reading = clock.read();
        assert_eq!(reading.time_of_day, Ticks(NOW));
        assert!(reading.stamp.0 > NOW + 7 * 86_400 * SECOND);
    }

    /// Also while the clock itself works off its lead, or gives the lead up because the wall clock is right again.
    #[test]
    fn the_time_of_day_goes_ahead_only_as_time_passes_or_the_wall_clock_does() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(0));
        clock.read();
        time.step(-62 * SECOND);
        let mut before = clock.read().time_of_day;
        assert_eq!(before, time.wall());
        for second in 0..1000 {
            time.advance(SECOND);
            let now = if second % 2 == 0 { clock.read() } else { clock.look() }.time_of_day;
            assert!((SECOND - 2..=SECOND + 2).contains(&(now.0 - before.0)), "{second}");
            before = now;
        }
        assert_eq!(clock.since_jump(), None);
        time.step(-3600 * SECOND);
        clock.read();
        time.step(3600 * SECOND);
        assert_eq!(clock.look().time_of_day, time.wall());
        assert_eq!(
            clock.since_jump(),
            Some(Duration::ZERO),
            "what began to live meanwhile is old now"
        );
    }

    #[test]
    fn a_look_gives_nothing_out() {
        let time = TestTime::new(NOW);
        let clock = HybridClock::new(time.clone(), Ticks(NOW - 5));
        assert_eq!(clock.look().stamp, Ticks(NOW));
        assert_eq!(clock.last(), Ticks(NOW - 5));
        let read = clock.read().stamp;
        assert_eq!(clock.look().stamp, read);
        assert_eq!(clock.read().stamp, Ticks(read.0 + 1));
    }

    /// A service that was off for a week, or a machine whose clock is wrong.
    #[test]
    fn a_start_a_while_after_the_last_stamp_may_be_a_jump() {
        let start = |last| HybridClock::new(TestTime::new(NOW), Ticks(last)).since_jump();
        assert_eq!(start(0), None, "the first one");
        assert_eq!(start(NOW - 59 * SECOND), None);
        assert_eq!(start(NOW - 61 * SECOND), Some(Duration::ZERO));
    }

    proptest! {
        #[test]
        fn stamps_strictly_increase_whatever_the_wall_clock_does(
            steps in prop::collection::vec((0..100 * SECOND, -1000 * SECOND..1000 * SECOND), 1..50),
        ) {
            let time = TestTime::new(NOW);
            let clock = HybridClock::new(time.clone(), Ticks(NOW - 5));
            let mut last = clock.read().stamp;
            for (passed, step) in steps {
                time.advance(passed);
                time.step(step);
                let stamp = clock.read().stamp;
                prop_assert!(stamp > last);
                // Never much slower than time passes.
                prop_assert!(stamp.0 - last.0 >= passed - passed / 8);
                prop_assert!(stamp >= time.wall());
                last = stamp;
            }
        }
    }
}
