//! `soak`: everything at once, at full speed, for long. A service that is well after a minute may still leak, grow or
//! slow down over an hour; this watches for it, and at the end reads back what was acknowledged.

mod churn;
mod counts;
mod ledger;
mod verdict;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;

use crate::entity::Keys;
use crate::load::load;
use crate::measure::median;
use crate::process;
use crate::request::Client;
use crate::stage::runtime;
use crate::table::{megabytes, micros, number};
use crate::target::Target;
use crate::zipf::Zipf;
use counts::{Counts, Kind, Outcomes};
use verdict::{Interval, checks};
use worker::Worker;

const TABLE: &str = "soak";
/// An index of what every write changes.
const INDEX: (&str, &str) = ("ByRevision", "Revision");
/// The most skewed choice in common use: with 100,000 keys the first comes up once in a dozen times.
const ZIPF_EXPONENT: f64 = 0.99;
const CHURNERS: u64 = 2;
/// Short soaks are cut into so many intervals, long ones into minutes.
const INTERVALS_MIN: u32 = 20;
const INTERVAL_MAX: Duration = Duration::from_secs(60);
const JUDGED_MINUTES_MIN: f64 = 2.0;
const SAMPLED_EVERY: Duration = Duration::from_millis(500);

#[derive(Args, Clone, Debug)]
pub struct SoakOptions {
    /// The server, as name=http://host:port/account
    #[arg(long, value_name = "NAME=URL")]
    pub target: Target,
    /// Its process
    #[arg(long)]
    pub pid: u32,
    /// Its data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    #[arg(long, default_value_t = 20.0)]
    pub minutes: f64,
    #[arg(long, default_value_t = 256)]
    pub connections: usize,
    /// Keys that the connections share
    #[arg(long, default_value_t = 100_000)]
    pub entities: u64,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the result to this file too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What the workers share.
pub(crate) struct Shared {
    table: String,
    zipf: Zipf,
    counts: Counts,
    stop: AtomicBool,
}

pub fn soak(options: &SoakOptions) -> anyhow::Result<()> {
    let table = format!("{TABLE}{}", std::process::id());
    let runtime = runtime()?;
    println!(
        "seed {}, {} connections, {} shared keys",
        options.seed, options.connections, options.entities
    );
    runtime
        .block_on(load(&options.target, &table, 0, options.entities))
        .context("loading the shared keys")?;
    let (index, keys) = INDEX;
    // A connection that has nothing to do for minutes is closed.
    let client = || Client::new(&options.target, Keys::default());
    runtime
        .block_on(client().build_index(&table, index, keys, ""))
        .context("building the index")?;
    let zipf = Zipf::new(usize::try_from(options.entities)?, ZIPF_EXPONENT);
    let shared =
        Arc::new(Shared { table, zipf, counts: Counts::default(), stop: AtomicBool::new(false) });
    let (intervals, acknowledged) = runtime.block_on(options.drive(&shared))?;
    let verified = runtime.block_on(client().verify_index(&shared.table, index));
    shared.counts.note("verify index", Kind::Query, Duration::ZERO, &verified);
    let outcomes = shared.counts.outcomes();
    options.report(&intervals, &outcomes, acknowledged)
}

impl SoakOptions {
    /// Runs the load, watches the server meanwhile, and reads everything back; gives how many rows were as acknowledged.
    async fn drive(&self, shared: &Arc<Shared>) -> anyhow::Result<(Vec<Interval>, u64)> {
        let mut workers = Vec::new();
        for index in 0..self.connections {
            let worker =
                Worker::new(&self.target, shared.clone(), index, self.connections, self.seed);
            workers.push(tokio::spawn(worker.run()));
        }
        let mut churners = Vec::new();
        for index in 0..CHURNERS {
            churners.push(tokio::spawn(churn::run(
                self.target.clone(),
                shared.clone(),
                self.seed ^ (index << 32),
            )));
        }
        let intervals = self.watch(shared).await?;
        shared.stop.store(true, Ordering::Relaxed);
        for churner in churners {
            churner.await.context("making and dropping tables")?;
        }
        let mut acknowledged = 0;
        for worker in workers {
            acknowledged += worker.await.context("a worker ended")?.verify().await;
        }
        Ok((intervals, acknowledged))
    }

    async fn watch(&self, shared: &Shared) -> anyhow::Result<Vec<Interval>> {
        let whole = Duration::from_secs_f64(self.minutes * 60.0);
        let length = (whole / INTERVALS_MIN).min(INTERVAL_MAX);
        let start = Instant::now();
        let mut intervals = Vec::new();
        while start.elapsed() < whole {
            let interval = self.watch_interval(shared, length).await?;
            println!("{:>6.1} min  {}", start.elapsed().as_secs_f64() / 60.0, describe(&interval));
            intervals.push(interval);
        }
        Ok(intervals)
    }

    async fn watch_interval(&self, shared: &Shared, length: Duration) -> anyhow::Result<Interval> {
        let start = Instant::now();
        let (mut resident, mut disk) = (Vec::new(), Vec::new());
        while start.elapsed() < length {
            tokio::time::sleep(SAMPLED_EVERY.min(length)).await;
            let bytes = process::resident_bytes(self.pid).context("the server is gone")?;
            resident.push(bytes as f64);
            disk.push(process::folder_bytes(&self.data) as f64);
        }
        let latencies = shared.counts.take_latencies();
        Ok(Interval {
            operations_per_second: latencies.count() as f64 / start.elapsed().as_secs_f64(),
            read_p99_micros: latencies.reads.micros(0.99),
            write_p99_micros: latencies.writes.micros(0.99),
            query_p99_micros: latencies.queries.micros(0.99),
            resident_bytes: median(resident),
            disk_bytes: median(disk),
        })
    }

    fn report(
        &self,
        intervals: &[Interval],
        outcomes: &Outcomes,
        acknowledged: u64,
    ) -> anyhow::Result<()> {
        // What a moment shows of growth is noise.
        let checks = if self.minutes < JUDGED_MINUTES_MIN { Vec::new() } else { checks(intervals) };
        println!("\n{}", outcomes.table());
        match checks.is_empty() {
            true => println!("too short to judge whether it stays the same"),
            false => println!("{}", verdict::table(&checks)),
        }
        println!("{acknowledged} rows were read back and are as they were acknowledged");
        let mut violations: Vec<_> = outcomes.unexpected().collect();
        violations.extend(
            checks
                .iter()
                .filter(|check| !check.holds())
                .map(|check| format!("{} is not steady", check.what)),
        );
        if let Some(path) = &self.json {
            let result = json!({
                "minutes": self.minutes, "connections": self.connections, "entities": self.entities, "seed": self.seed,
                "intervals": intervals, "outcomes": outcomes, "checks": checks, "rows_verified": acknowledged,
                "violations": violations,
            });
            std::fs::write(path, serde_json::to_string_pretty(&result)?)?;
        }
        if !violations.is_empty() {
            bail!("the soak failed:\n  {}", violations.join("\n  "));
        }
        println!("the soak passed");
        Ok(())
    }
}

fn describe(interval: &Interval) -> String {
    format!(
        "{:>8}/s  p99: read {}, write {}, query {}  memory {}  disk {}",
        number(interval.operations_per_second),
        micros(interval.read_p99_micros),
        micros(interval.write_p99_micros),
        micros(interval.query_p99_micros),
        megabytes(interval.resident_bytes as u64),
        megabytes(interval.disk_bytes as u64),
    )
}
