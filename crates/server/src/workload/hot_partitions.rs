//! The partitions that are asked for most, and how often tables are written to.
//!
//! One request in eight is looked at, at random. Each thread counts in a sketch of its own, so that requests do not
//! wait for each other. Now and then the sketches are merged into one, in which everything is halved each minute: it
//! stands for the last minute or two. Requests that name no partition, such as scans of a table, are not counted.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tavola_wire::table::names::key_problem;

use super::space_saving::SpaceSaving;
use crate::storage::layout::{AccountId, TableId};

/// One request of this many is looked at. A power of two.
const SAMPLED_ONE_IN: u32 = 8;
/// Partitions that a thread counts, and that are counted in all.
const PARTITIONS_MAX: usize = 1024;
/// Tables whose writes are counted.
const TABLES_MAX: usize = 256;
/// Partitions that are shown.
const SHOWN_MAX: usize = 100;
/// How often everything is halved.
const HALVED_EVERY: Duration = Duration::from_secs(60);
/// Halves beyond these change nothing any more.
const HALVES_MAX: u32 = 64;
/// Threads that have a sketch of their own. More share them: a sketch of long keys may take 1.5 MiB.
const SKETCHES_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct HotPartitions {
    sketches: Box<[Mutex<Counts>]>,
    window: Mutex<Window>,
    hasher: RandomState,
}

/// A partition and what was asked of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HotPartition {
    pub table_name: String,
    pub partition_key: String,
    pub requests_per_second: f64,
    /// By how much this may be too high.
    pub error: f64,
    /// Of the account's requests that name a partition.
    pub share: f64,
    pub bytes_per_second: f64,
}

/// One request, as far as it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionRequest<'a> {
    pub account: AccountId,
    pub table: TableId,
    pub table_name: &'a str,
    pub partition_key: &'a str,
    /// Of the entities that are read or written.
    pub bytes: usize,
    /// Entities that are written.
    pub writes: usize,
}

#[derive(Debug)]
struct Counts {
    partitions: SpaceSaving<Partition>,
    by_account: BTreeMap<AccountId, u64>,
    /// By table id.
    writes: SpaceSaving<()>,
}

#[derive(Clone, Debug)]
struct Partition {
    account: AccountId,
    table_name: String,
    partition_key: String,
    bytes: u64,
}

/// Everything that was merged.
#[derive(Debug)]
struct Window {
    counts: Counts,
    /// The time that the counts stand for: halved as they are.
    seconds: f64,
    merged_at: Instant,
    since_halving: Duration,
}

impl Default for HotPartitions {
    fn default() -> Self {
        Self::new(Instant::now())
    }
}

impl HotPartitions {
    fn new(now: Instant) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let sketches = (0..threads.min(SKETCHES_MAX)).map(|_| Mutex::new(Counts::new()));
        let (counts, since_halving) = (Counts::new(), Duration::ZERO);
        let window = Window { counts, seconds: 0.0, merged_at: now, since_halving };
        let (sketches, window) = (sketches.collect(), Mutex::new(window));
        Self { sketches, window, hasher: RandomState::new() }
    }

    /// Counts a request, if it is one of those that are looked at.
    #[inline]
    pub(crate) fn note(&self, request: PartitionRequest<'_>) {
        if let Some(thread) = sampled() {
            self.note_sampled(thread, request);
        }
    }

    #[cold]
    fn note_sampled(&self, thread: usize, request: PartitionRequest<'_>) {
        // Filters may ask for what no partition is called.
        if key_problem(request.partition_key).is_some() {
            return;
        }
        let key = self.hasher.hash_one((request.table.0, request.partition_key));
        // Whoever finds the sketch in use is not counted: nobody waits for a count.
        if let Ok(mut counts) = self.sketches[thread % self.sketches.len()].try_lock() {
            counts.note(key, &request);
        }
    }

    /// Brings what the threads have counted together.
    pub(crate) fn merge(&self, now: Instant) {
        drop(self.merged(now));
    }

    /// The hottest partitions of an account, hottest first.
    pub(crate) fn hottest(&self, account: AccountId, now: Instant) -> Vec<HotPartition> {
        let window = self.merged(now);
        // A start that is shorter ago says nothing of a second.
        let seconds = window.seconds.max(1.0);
        let all = window.counts.by_account.get(&account).copied().unwrap_or(0).max(1) as f64;
        let mut by_name = BTreeMap::<_, HotPartition>::new();
        for counter in window.counts.partitions.counters() {
            let Partition { table_name, partition_key, bytes, .. } = &counter.value;
            if counter.value.account != account {
                continue;
            }
            let found = HotPartition {
                table_name: table_name.clone(),
                partition_key: partition_key.clone(),
                requests_per_second: counter.estimate as f64 / seconds,
                error: counter.error as f64 / seconds,
                share: (counter.estimate as f64 / all).min(1.0),
                bytes_per_second: *bytes as f64 / seconds,
            };
            // A table that was dropped and made anew is another one, under the same name.
            let name = (table_name.clone(), partition_key.clone());
            by_name.entry(name).and_modify(|known| known.add(&found)).or_insert(found);
        }
        let mut hottest: Vec<_> = by_name.into_values().collect();
        hottest.sort_by(|a, b| b.requests_per_second.total_cmp(&a.requests_per_second));
        hottest.truncate(SHOWN_MAX);
        hottest
    }

    /// Entities of a table that were written since the start, about.
    pub(crate) fn writes(&self, table: TableId, now: Instant) -> u64 {
        let window = self.merged(now);
        window.counts.writes.get(table.0).map_or(0, |counter| counter.estimate)
    }

    fn merged(&self, now: Instant) -> MutexGuard<'_, Window> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        for sketch in &self.sketches {
            let mut counts = sketch.lock().unwrap_or_else(PoisonError::into_inner);
            if counts.by_account.is_empty() {
                continue;
            }
            let counts = std::mem::replace(&mut *counts, Counts::new());
            window.counts.merge(counts);
        }
        window.pass(now);
        window
    }
}

impl HotPartition {
    fn add(&mut self, other: &Self) {
        self.requests_per_second += other.requests_per_second;
        self.error += other.error;
        self.share = (self.share + other.share).min(1.0);
        self.bytes_per_second += other.bytes_per_second;
    }
}

impl Counts {
    fn new() -> Self {
        Self {
            partitions: SpaceSaving::new(PARTITIONS_MAX),
            by_account: BTreeMap::new(),
            writes: SpaceSaving::new(TABLES_MAX),
        }
    }

    fn note(&mut self, key: u64, request: &PartitionRequest<'_>) {
        let weight = u64::from(SAMPLED_ONE_IN);
        let new = || Partition {
            account: request.account,
            table_name: request.table_name.to_owned(),
            partition_key: request.partition_key.to_owned(),
            bytes: 0,
        };
        self.partitions.note(key, weight, new).bytes += weight * request.bytes as u64;
        *self.by_account.entry(request.account).or_default() += weight;
        if request.writes > 0 {
            self.writes.note(request.table.0, weight * request.writes as u64, || ());
        }
    }

    fn merge(&mut self, other: Self) {
        self.partitions.merge(other.partitions, |ours, theirs| ours.bytes += theirs.bytes);
        self.writes.merge(other.writes, |(), ()| ());
        for (account, requests) in other.by_account {
            *self.by_account.entry(account).or_default() += requests;
        }
    }

    /// Halves what fades. The writes are those since the start.
    fn halve(&mut self) {
        self.partitions.halve(|partition| partition.bytes /= 2);
        self.by_account.values_mut().for_each(|requests| *requests /= 2);
    }
}

impl Window {
    fn pass(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.merged_at);
        self.merged_at = self.merged_at.max(now);
        self.seconds += passed.as_secs_f64();
        self.since_halving += passed;
        for _ in 0..HALVES_MAX {
            let Some(rest) = self.since_halving.checked_sub(HALVED_EVERY) else { return };
            self.since_halving = rest;
            self.seconds /= 2.0;
            self.counts.halve();
        }
        self.since_halving = Duration::ZERO;
    }
}

/// Whether this request is looked at, and then the number of its thread.
#[inline]
fn sampled() -> Option<usize> {
    thread_local! {
        static SAMPLER: Sampler = Sampler::new();
    }
    SAMPLER.with(|sampler| sampler.next().then_some(sampler.thread))
}

/// Random numbers that nobody has to trust (xorshift): what is asked for in a rhythm must not fall in step with them.
struct Sampler {
    state: Cell<u32>,
    thread: usize,
}

impl Sampler {
    fn new() -> Self {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        let thread = THREADS.fetch_add(1, Ordering::Relaxed);
        let seed = RandomState::new().hash_one(thread) as u32;
        Self { state: Cell::new(seed.max(1)), thread }
    }

    fn next(&self) -> bool {
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        self.state.set(state);
        state.is_multiple_of(SAMPLED_ONE_IN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: AccountId = AccountId(1);

    fn request(table: u64, partition_key: &str) -> PartitionRequest<'_> {
        PartitionRequest {
            account: ACCOUNT,
            table: TableId(table),
            table_name: "orders",
            partition_key,
            bytes: 100,
            writes: 1,
        }
    }

    #[test]
    fn the_hottest_partition_comes_first_with_its_rate_and_share() {
        let start = Instant::now();
        let hot = HotPartitions::new(start);
        for number in 0..32_000 {
            let partition = if number % 2 == 0 { "hot".to_owned() } else { number.to_string() };
            hot.note(request(1, &partition));
        }
        let found = hot.hottest(ACCOUNT, start + Duration::from_secs(32));
        assert!(found.len() <= SHOWN_MAX);
        assert_eq!((&*found[0].table_name, &*found[0].partition_key), ("orders", "hot"));
        // About 2,000 samples: a tenth is more than four deviations.
        let certain = found[0].requests_per_second - found[0].error;
        assert!((450.0..=550.0).contains(&found[0].requests_per_second), "{:?}", found[0]);
        assert!(certain > 400.0 && (found[0].share - 0.5).abs() < 0.05, "{:?}", found[0]);
        let bytes = found[0].bytes_per_second / found[0].requests_per_second;
        assert!((95.0..=105.0).contains(&bytes), "{bytes} bytes a request");
        let writes = hot.writes(TableId(1), start) as f64;
        assert!((writes - 32_000.0).abs() < 3_200.0, "{writes}");
        assert_eq!(hot.hottest(AccountId(2), start), []);
    }

    #[test]
    fn what_is_no_partition_key_is_not_counted() {
        let start = Instant::now();
        let hot = HotPartitions::new(start);
        let long = "x".repeat(1000);
        for _ in 0..200 {
            for partition in ["a/b", "a\0b", &long] {
                hot.note(request(1, partition));
            }
        }
        assert_eq!(hot.hottest(ACCOUNT, start + Duration::from_secs(1)), []);
    }

    #[test]
    fn what_cools_down_fades_and_is_forgotten() {
        let start = Instant::now();
        let hot = HotPartitions::new(start);
        for _ in 0..8_000 {
            hot.note(request(1, "once"));
        }
        let rate = |after: u64| {
            let found = hot.hottest(ACCOUNT, start + Duration::from_secs(after));
            found.first().map_or(0.0, |partition| partition.requests_per_second)
        };
        let (first, later) = (rate(10), rate(130));
        assert!(first > 600.0 && later > 0.0 && later < first / 10.0, "{first} {later}");
        assert_eq!(rate(3_600), 0.0);
        assert!(hot.writes(TableId(1), start + Duration::from_secs(3_600)) > 7_000);
    }

    #[test]
    fn a_table_made_anew_is_the_same_to_its_users() {
        let start = Instant::now();
        let hot = HotPartitions::new(start);
        for id in [1, 2] {
            for _ in 0..800 {
                hot.note(request(id, "p"));
            }
        }
        let found = hot.hottest(ACCOUNT, start + Duration::from_secs(1));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].requests_per_second > 1_000.0);
    }

    #[test]
    fn threads_count_for_themselves_and_are_brought_together() {
        let start = Instant::now();
        let hot = HotPartitions::new(start);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..4_000 {
                        let partition = if number % 4 == 0 { "hot" } else { "other" };
                        hot.note(request(1, partition));
                    }
                });
            }
        });
        let found = hot.hottest(ACCOUNT, start + Duration::from_secs(1));
        let names: Vec<_> =
            found.iter().map(|partition| partition.partition_key.as_str()).collect();
        assert_eq!(names, ["other", "hot"]);
    }
}
