//! Pauses that get longer from one to the next.

use std::time::Duration;

/// Pauses that double, from the first to the longest.
///
/// ```
/// use std::time::Duration;
/// use tavola_client::queue::Backoff;
///
/// let pauses = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// assert_eq!(pauses.pause(1).as_secs(), 1);
/// assert_eq!(pauses.pause(4).as_secs(), 8);
/// assert_eq!(pauses.pause(100).as_secs(), 60);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first time.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after that many times.
    pub fn pause(&self, times: u32) -> Duration {
        let factor = 1_u32.checked_shl(times.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// As [`Backoff::pause`], shorter by a random part of up to a half, so that those who began together part.
    pub(crate) fn random_pause(&self, times: u32) -> Duration {
        let pause = self.pause(times);
        let random = getrandom::u32().unwrap_or_default();
        pause - pause.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_pauses_are_between_a_half_and_the_whole() {
        let pauses = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5) };
        for times in 0..40 {
            let (whole, random) = (pauses.pause(times), pauses.random_pause(times));
            assert!(random <= whole && random * 2 >= whole, "{times}: {random:?} of {whole:?}");
        }
    }
}
