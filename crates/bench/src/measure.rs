//! Runs one workload against one server for a while, and counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::histogram::Histogram;
use crate::host::{self, undisturbed};
use crate::process;
use crate::random::Random;
use crate::request::{Client, Failure};
use crate::target::Target;

/// A connection that fails so often in a row has nothing more to tell.
const FAILURES_IN_A_ROW_MAX: u32 = 50;

/// A fifth of the time that is measured comes before it and does not count, but no more than this.
const WARM_UP_MAX: Duration = Duration::from_secs(1);

/// What connections do over and over.
pub trait Job: Send + Sync + 'static {
    /// A client for one connection.
    fn client(&self, target: &Target) -> Client;

    /// Whether there is one more operation to do; called before each.
    fn begin(&self) -> bool {
        true
    }

    /// Does one operation; gives the entities or messages that it wrote, read or examined. `is_bare` says that the server
    /// answers everything alike.
    fn perform(
        &self,
        client: &mut Client,
        random: &mut Random,
        is_bare: bool,
    ) -> impl Future<Output = Result<u64, Failure>> + Send;
}

/// A server that takes part in a run.
#[derive(Clone, Debug)]
pub struct Contender {
    pub target: Target,
    /// The process whose CPU time is counted.
    pub pid: Option<u32>,
    /// It answers everything alike, and only shows what HTTP allows.
    pub is_bare: bool,
    /// Entities that it is loaded with.
    pub entities: u64,
}

/// What happened while a workload ran.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub latency: Histogram,
    pub entities: u64,
    pub failures: BTreeMap<String, u64>,
    pub elapsed: Duration,
    /// CPU time of the server, where its process is known.
    pub server_cpu: Option<f64>,
    pub driver_cpu: Option<f64>,
    /// The share of the processors that the host took away, where that is known.
    pub stolen: Option<f64>,
}

/// The rounds of one workload against one server, summed up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    pub workload: String,
    pub target: String,
    pub connections: usize,
    /// Entities that were loaded before.
    pub loaded: u64,
    pub operations: u64,
    /// The median of the rounds.
    pub operations_per_second: f64,
    /// Operations per second of each round; results that were kept before have none.
    #[serde(default)]
    pub round_rates: Vec<f64>,
    /// Entities written, read or examined.
    pub entities_per_second: f64,
    pub p50_micros: f64,
    pub p95_micros: f64,
    pub p99_micros: f64,
    pub max_micros: f64,
    pub server_cpu_micros_per_operation: Option<f64>,
    pub driver_cpu_micros_per_operation: Option<f64>,
    /// The largest share of the processors that the host took away in a round.
    pub stolen_max: Option<f64>,
    pub failures: BTreeMap<String, u64>,
}

impl Contender {
    pub fn new(target: Target, pid: Option<u32>, entities: u64) -> Self {
        Self { target, pid, is_bare: false, entities }
    }

    pub fn bare(target: Target, pid: Option<u32>) -> Self {
        Self { target, pid, is_bare: true, entities: 1 }
    }

    /// Keeps so many connections busy for so long. Operations that have started are waited for, and count: on a slow
    /// server they are all there is.
    pub async fn measure<J: Job>(
        &self,
        job: &Arc<J>,
        connections: usize,
        duration: Duration,
        seed: u64,
    ) -> Tally {
        self.keep_busy(job, &mut self.clients(job, connections), duration, seed).await
    }

    /// Measures several jobs in slices, by turns forth and back, after one slice of each that does not count. What comes and
    /// goes on the machine within a second meets all of them.
    pub async fn measure_in_slices<J: Job>(
        &self,
        jobs: &[Arc<J>],
        connections: usize,
        slice: Duration,
        slices: u64,
        seed: u64,
    ) -> Vec<Vec<Tally>> {
        let mut clients: Vec<_> = jobs.iter().map(|job| self.clients(job, connections)).collect();
        let mut tallies = vec![Vec::new(); jobs.len()];
        for number in 0..=slices {
            for place in in_turn(jobs.len(), number) {
                let seed = seed.wrapping_mul(slices + 1).wrapping_add(number);
                let (job, clients) = (&jobs[place], &mut clients[place]);
                tallies[place].push(self.keep_busy(job, clients, slice, seed).await);
            }
        }
        for tallies in &mut tallies {
            tallies.remove(0);
        }
        tallies
    }

    fn clients<J: Job>(&self, job: &Arc<J>, connections: usize) -> Vec<Client> {
        (0..connections).map(|_| job.client(&self.target)).collect()
    }

    async fn keep_busy<J: Job>(
        &self,
        job: &Arc<J>,
        clients: &mut Vec<Client>,
        duration: Duration,
        seed: u64,
    ) -> Tally {
        let cpu_before = (self.cpu(), process::cpu_seconds(std::process::id()));
        let start = Instant::now();
        let end = start + duration;
        let mut workers = Vec::with_capacity(clients.len());
        for (index, client) in clients.drain(..).enumerate() {
            let random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
            workers.push(tokio::spawn(keep_busy(client, random, job.clone(), self.is_bare, end)));
        }
        let mut tally = Tally::default();
        for worker in workers {
            match worker.await {
                Ok((client, part)) => {
                    clients.push(client);
                    tally.add(&part);
                }
                Err(panic) => tally.fail(panic.to_string()),
            }
        }
        tally.elapsed = start.elapsed();
        tally.server_cpu = difference(self.cpu(), cpu_before.0);
        tally.driver_cpu = difference(process::cpu_seconds(std::process::id()), cpu_before.1);
        tally
    }

    /// Measures after a warm-up, so that connections are made and caches filled.
    pub async fn measure_warm<J: Job>(
        &self,
        job: &Arc<J>,
        connections: usize,
        duration: Duration,
        seed: u64,
    ) -> Tally {
        self.measure(job, connections, WARM_UP_MAX.min(duration / 5), !seed).await;
        self.measure(job, connections, duration, seed).await
    }

    /// Measures after a warm-up, while the host is quiet if it can be had. What failed in a round that does not count
    /// failed all the same.
    pub fn measure_undisturbed<J: Job>(
        &self,
        runtime: &Runtime,
        prepare: impl FnMut(),
        job: &Arc<J>,
        connections: usize,
        duration: Duration,
        seed: u64,
    ) -> anyhow::Result<Tally> {
        let mut failed = Tally::default();
        let (tally, stolen) = undisturbed(prepare, || {
            let tally = runtime.block_on(self.measure_warm(job, connections, duration, seed));
            failed.add_failures(&tally.failures);
            Ok(tally)
        })?;
        Ok(Tally { stolen, failures: failed.failures, ..tally })
    }

    fn cpu(&self) -> Option<f64> {
        process::cpu_seconds(self.pid?)
    }
}

/// Forth in one round and back in the next, so that nothing is always measured in the wake of the same.
pub fn in_turn(count: usize, round: u64) -> Vec<usize> {
    let mut places: Vec<_> = (0..count).collect();
    if round % 2 == 1 {
        places.reverse();
    }
    places
}

async fn keep_busy<J: Job>(
    mut client: Client,
    mut random: Random,
    job: Arc<J>,
    is_bare: bool,
    end: Instant,
) -> (Client, Tally) {
    let mut tally = Tally::default();
    let mut failures_in_a_row = 0;
    loop {
        let start = Instant::now();
        if start >= end || failures_in_a_row == FAILURES_IN_A_ROW_MAX || !job.begin() {
            return (client, tally);
        }
        match job.perform(&mut client, &mut random, is_bare).await {
            Ok(entities) => {
                tally.latency.record(start.elapsed());
                tally.entities += entities;
                failures_in_a_row = 0;
            }
            Err(failure) => {
                tally.fail(failure.to_string());
                failures_in_a_row += 1;
            }
        }
    }
}

fn difference(after: Option<f64>, before: Option<f64>) -> Option<f64> {
    Some(after? - before?)
}

impl Tally {
    /// Adds the counts of another connection or round; the time is the caller's to set.
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.entities += other.entities;
        self.add_failures(&other.failures);
    }

    fn add_failures(&mut self, failures: &BTreeMap<String, u64>) {
        for (failure, count) in failures {
            *self.failures.entry(failure.clone()).or_default() += count;
        }
    }

    fn fail(&mut self, failure: String) {
        *self.failures.entry(failure).or_default() += 1;
    }

    pub fn operations_per_second(&self) -> f64 {
        self.latency.count() as f64 / self.elapsed.as_secs_f64()
    }
}

impl Row {
    /// Sums up the rounds of a workload.
    pub fn new(
        contender: &Contender,
        workload: &str,
        connections: usize,
        rounds: &[Tally],
    ) -> Self {
        let mut total = Tally::default();
        for round in rounds {
            total.add(round);
        }
        let operations = total.latency.count();
        let sum = |cpu: fn(&Tally) -> Option<f64>| rounds.iter().map(cpu).sum::<Option<f64>>();
        let per_operation = |seconds: Option<f64>| Some(seconds? * 1e6 / operations.max(1) as f64);
        let rates: Vec<_> = rounds.iter().map(Tally::operations_per_second).collect();
        let operations_per_second = median(rates.clone());
        let entities_each = total.entities as f64 / operations.max(1) as f64;
        Self {
            workload: workload.to_owned(),
            target: contender.target.name.clone(),
            connections,
            loaded: contender.entities,
            operations,
            operations_per_second,
            round_rates: rates,
            entities_per_second: operations_per_second * entities_each,
            p50_micros: total.latency.micros(0.50),
            p95_micros: total.latency.micros(0.95),
            p99_micros: total.latency.micros(0.99),
            max_micros: total.latency.max_micros(),
            server_cpu_micros_per_operation: per_operation(sum(|round| round.server_cpu)),
            driver_cpu_micros_per_operation: per_operation(sum(|round| round.driver_cpu)),
            stolen_max: host::most(rounds.iter().map(|round| round.stolen)),
            failures: total.failures,
        }
    }

    /// The rate as a multiple of another row's: the median of the rounds, each beside the same round of the other. A host that
    /// is slow for a while is slow for both.
    pub fn times(&self, other: &Self) -> Option<f64> {
        if other.operations_per_second <= 0.0 {
            return None;
        }
        let (rounds, others) = (&self.round_rates, &other.round_rates);
        let is_paired = rounds.len() == others.len() && others.iter().all(|rate| *rate > 0.0);
        let ratios: Vec<_> = rounds.iter().zip(others).map(|(own, other)| own / other).collect();
        Some(match is_paired && !ratios.is_empty() {
            true => median(ratios),
            false => self.operations_per_second / other.operations_per_second,
        })
    }
}

/// The middle of some numbers, or between the two in the middle; 0 when there are none.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => 0.0,
        count if count.is_multiple_of(2) => {
            f64::midpoint(numbers[count / 2 - 1], numbers[count / 2])
        }
        count => numbers[count / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(operations: u64, seconds: u64, cpu: Option<f64>) -> Tally {
        let mut tally =
            Tally { elapsed: Duration::from_secs(seconds), server_cpu: cpu, ..Tally::default() };
        for _ in 0..operations {
            tally.latency.record(Duration::from_micros(100));
            tally.entities += 5;
        }
        tally
    }

    fn sum_up(rounds: &[Tally]) -> Row {
        let contender = Contender::new("x=http://127.0.0.1:1/a".parse().unwrap(), None, 10);
        Row::new(&contender, "get", 4, rounds)
    }

    #[test]
    fn rounds_give_the_median_rate_and_the_mean_cpu() {
        let row = sum_up(&[
            round(100, 1, Some(0.001)),
            round(10, 1, Some(0.002)),
            round(40, 1, Some(0.003)),
        ]);
        assert_eq!(row.operations, 150);
        assert!((row.operations_per_second - 40.0).abs() < 1e-9);
        assert!((row.entities_per_second - 200.0).abs() < 1e-9);
        assert!((row.server_cpu_micros_per_operation.unwrap() - 40.0).abs() < 1e-9);
        assert!((row.p50_micros - 100.0).abs() < 2.0);
    }

    #[test]
    fn rates_are_compared_round_by_round() {
        let slow_at_last = [round(100, 1, None), round(120, 1, None), round(10, 1, None)];
        let twice_as_fast = [round(200, 1, None), round(240, 1, None), round(20, 1, None)];
        let (slow, fast) = (sum_up(&slow_at_last), sum_up(&twice_as_fast));
        assert!((fast.times(&slow).unwrap() - 2.0).abs() < 1e-9);
        // Without pairs the medians are compared.
        let shorter = sum_up(&slow_at_last[..1]);
        assert!((fast.times(&shorter).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(fast.times(&Row::default()), None);
    }

    #[test]
    fn cpu_is_unknown_when_one_round_lacks_it() {
        assert_eq!(
            sum_up(&[round(1, 1, Some(0.1)), round(1, 1, None)]).server_cpu_micros_per_operation,
            None
        );
    }

    #[test]
    fn failures_are_counted_by_what_they_say() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.fail("a".to_owned());
        other.fail("a".to_owned());
        other.fail("b".to_owned());
        one.add(&other);
        assert_eq!(one.failures, BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
    }

    #[test]
    fn the_median_is_in_the_middle() {
        for (numbers, expected) in
            [(vec![], 0.0), (vec![3.0], 3.0), (vec![9.0, 1.0, 2.0], 2.0), (vec![4.0, 1.0], 2.5)]
        {
            assert!((median(numbers) - expected).abs() < f64::EPSILON);
        }
    }
}
