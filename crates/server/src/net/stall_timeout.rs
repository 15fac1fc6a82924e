//! A timeout for transfers that stall.
//!
//! A limit on the whole transfer would cut off slow lines with large bodies, or else let a trickle of bytes use memory
//! for as long as the largest body may take. So the time runs while nothing moves, and bytes that move give some of it
//! back: a transfer takes at most the given time, and a second more for every [`BYTES_PER_SECOND_MIN`].

use std::time::Duration;

/// What a line must carry in the long run: 128 kbit/s.
pub(crate) const BYTES_PER_SECOND_MIN: u32 = 16 * 1024;

/// The time that is left for a peer to move on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallTimeout {
    stall_max: Duration,
    left: Duration,
}

impl StallTimeout {
    pub(crate) fn new(stall_max: Duration) -> Self {
        Self { stall_max, left: stall_max }
    }

    /// How long the next bytes may take.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Nothing moved for this long.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    /// That many bytes moved.
    pub(crate) fn moved(&mut self, bytes: usize) {
        if self.left < self.stall_max {
            self.left = self.stall_max.min(self.left + time_for(bytes));
        }
    }
}

/// What a line at the lowest speed needs for that many bytes.
pub(crate) fn time_for(bytes: usize) -> Duration {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    Duration::from_secs(1) * bytes / BYTES_PER_SECOND_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const A_SECONDS_BYTES: usize = BYTES_PER_SECOND_MIN as usize;

    #[test]
    fn silence_uses_it_up() {
        let mut stall_timeout = StallTimeout::new(3 * SECOND);
        stall_timeout.waited(2 * SECOND);
        assert_eq!(stall_timeout.left(), SECOND);
        stall_timeout.waited(5 * SECOND);
        assert_eq!(stall_timeout.left(), Duration::ZERO);
    }

    #[test]
    fn a_trickle_uses_it_up_and_a_slow_line_does_not() {
        let mut trickle = StallTimeout::new(3 * SECOND);
        let mut slow = StallTimeout::new(3 * SECOND);
        for _ in 0..10 {
            trickle.waited(SECOND);
            trickle.moved(A_SECONDS_BYTES / 2);
            slow.waited(SECOND);
            slow.moved(A_SECONDS_BYTES);
        }
        assert!(trickle.left() <= SECOND / 2, "{trickle:?}");
        assert_eq!(slow.left(), 3 * SECOND);
    }

    /// Fast bytes do not buy the right to stall for longer.
    #[test]
    fn it_does_not_grow_beyond_its_start() {
        let mut stall_timeout = StallTimeout::new(SECOND);
        stall_timeout.moved(100 * A_SECONDS_BYTES);
        assert_eq!(stall_timeout.left(), SECOND);
    }

    #[test]
    fn the_time_for_bytes_does_not_overflow() {
        assert_eq!(time_for(A_SECONDS_BYTES * 3), 3 * SECOND);
        assert!(time_for(usize::MAX) > SECOND);
    }
}
