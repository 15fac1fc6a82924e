//! Latencies, counted in buckets that are about 1.5 % wide whatever the magnitude.

use std::time::Duration;

/// Buckets per power of two: the relative error is at most one in so many.
const FINENESS_BITS: u32 = 6;
const FINENESS: usize = 1 << FINENESS_BITS;
const BUCKETS: usize = (64 - FINENESS_BITS as usize + 1) * FINENESS;

/// Durations by the nanosecond, in constant space.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max_nanos: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, max_nanos: 0 }
    }

    pub fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.max_nanos = self.max_nanos.max(nanos);
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max_nanos = self.max_nanos.max(other.max_nanos);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The duration that so large a share of all stayed within, in microseconds; 0 when there is none.
    pub fn micros(&self, share: f64) -> f64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_bound(index).min(self.max_nanos) as f64 / 1000.0;
            }
        }
        0.0
    }

    pub fn max_micros(&self) -> f64 {
        self.max_nanos as f64 / 1000.0
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Small numbers have a bucket each; above, the highest bits choose.
fn bucket(nanos: u64) -> usize {
    let magnitude = nanos.checked_ilog2().unwrap_or(0);
    if magnitude < FINENESS_BITS {
        return nanos as usize;
    }
    let step = magnitude - FINENESS_BITS;
    (step as usize + 1) * FINENESS + (nanos >> step) as usize - FINENESS
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket < FINENESS {
        return bucket as u64;
    }
    let step = bucket / FINENESS - 1;
    let lowest = ((bucket % FINENESS + FINENESS) as u64) << step;
    lowest + ((1_u64 << step) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_in_the_bucket_that_its_bounds_name() {
        let mut previous = 0;
        for shift in 0..64 {
            for offset in [0, 1, 2, 3] {
                let nanos = (1_u64 << shift) + offset * ((1_u64 << shift) / 4);
                let index = bucket(nanos);
                assert!(index >= previous, "buckets are in order at {nanos}");
                assert!(upper_bound(index) >= nanos, "{nanos}");
                assert!(index == 0 || upper_bound(index - 1) < nanos, "{nanos}");
                previous = index;
            }
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn shares_are_exact_to_two_percent() {
        let mut histogram = Histogram::new();
        for micros in 1..=10_000 {
            histogram.record(Duration::from_micros(micros));
        }
        assert_eq!(histogram.count(), 10_000);
        for (share, expected) in [(0.5, 5000.0), (0.95, 9500.0), (0.99, 9900.0)] {
            let found = histogram.micros(share);
            assert!((found / expected - 1.0).abs() < 0.02, "{share}: {found}");
        }
        assert!((histogram.max_micros() - 10_000.0).abs() < f64::EPSILON);
        assert!((histogram.micros(1.0) - 10_000.0).abs() < f64::EPSILON);
    }

    #[test]
    fn sums_hold_what_their_parts_held() {
        let (mut fast, mut slow) = (Histogram::new(), Histogram::new());
        for _ in 0..99 {
            fast.record(Duration::from_micros(10));
        }
        slow.record(Duration::from_millis(10));
        fast.add(&slow);
        assert_eq!(fast.count(), 100);
        assert!(fast.micros(0.99) < 11.0);
        assert!(fast.micros(1.0) > 9_999.0);
    }

    #[test]
    fn an_empty_histogram_says_zero() {
        assert!(Histogram::new().micros(0.5).abs() < f64::EPSILON);
    }
}
