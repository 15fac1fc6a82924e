//! What the embedded engine counts, as plain atomics that a metrics exporter reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since the engine was opened. Read them relaxed; they are not consistent with each other.
#[derive(Debug, Default)]
pub struct Stats {
    /// Transitions answered, whatever their verdict.
    pub transitions: AtomicU64,
    /// Transitions whose `apply` panicked.
    pub panics: AtomicU64,
    /// Requests in the queue now.
    pub queue_depth: AtomicU64,
    /// Requests refused because the queue was full.
    pub busy_refusals: AtomicU64,
    /// Requests refused because the disk is nearly full.
    pub full_refusals: AtomicU64,
    /// Bytes that the disk has left, as of the last look.
    pub disk_free_bytes: AtomicU64,
    /// Keys put or deleted.
    pub writes: AtomicU64,
    /// Transitions per commit group; its count is the number of durable commits.
    pub group_size: Histogram,
    /// Nanoseconds per commit: journal write, one fdatasync, memtable.
    pub commit_nanos: Histogram,
    /// Nanoseconds per sync alone, tried once a second while there are commits.
    pub sync_nanos: Histogram,
    /// Nanoseconds per step of compaction; its count is the number of steps that did something.
    pub compaction_nanos: Histogram,
    /// Bytes that those steps wrote at most.
    pub compaction_bytes: AtomicU64,
    /// Whether one is running: 0 or 1.
    pub compacting: AtomicU64,
}

/// What a store holds, asked for when somebody wants to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Tables and separated values on disk.
    pub table_bytes: u64,
    pub journal_bytes: u64,
    /// In memory, and in the journals until it is flushed.
    pub memtable_bytes: u64,
    /// Flushed memtables that have not been compacted.
    pub uncompacted_runs: u64,
    /// Deletions in tables that scans have to pass.
    pub deletions: u64,
    pub cache_bytes: u64,
    pub cache_bytes_max: u64,
    /// Blocks that were found in the cache, and those that were read from the disk or from the kernel's.
    pub cache_hits: u64,
    pub cache_misses: u64,
}

/// Counts of values by their power of two, with count and sum.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; Self::BUCKETS],
    sum: AtomicU64,
}

impl Histogram {
    /// Enough for 2^39 ns, nine minutes; larger values fall into the last bucket.
    pub const BUCKETS: usize = 40;

    pub(crate) fn record(&self, value: u64) {
        // Bucket n holds values up to 2^n inclusive.
        let bucket = (u64::BITS - value.saturating_sub(1).leading_zeros()) as usize;
        self.buckets[bucket.min(Self::BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Records nanoseconds.
    pub(crate) fn record_duration(&self, duration: Duration) {
        self.record(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// Pairs of an inclusive upper bound and the values counted between it and the bound before it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets
            .iter()
            .enumerate()
            .map(|(power, bucket)| (1 << power, bucket.load(Ordering::Relaxed)))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; Self::BUCKETS], sum: AtomicU64::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_bucket_of_their_power() {
        let histogram = Histogram::default();
        for value in [0, 1, 2, 3, 4, 5, u64::MAX / 2] {
            histogram.record(value);
        }
        let counts: Vec<_> = histogram.buckets().map(|(_, count)| count).collect();
        assert_eq!(&counts[..4], &[2, 1, 2, 1]);
        assert_eq!(counts[Histogram::BUCKETS - 1], 1);
        assert_eq!(histogram.count(), 7);
    }
}
