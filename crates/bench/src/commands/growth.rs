//! `growth`: whether inserts and reads are as quick in a large table as in a small one.
//!
//! Each size has a server of its own, and they are measured in turn: on a machine that is fast in one minute and slow in
//! the next, sizes that were reached one after the other could not be compared.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::entity::Keys;
use crate::host;
use crate::load::load;
use crate::measure::{Contender, Row, Tally};
use crate::process;
use crate::servers::{self, Server};
use crate::stage::{Setting, Stage, let_rest, runtime, wait_until_settled};
use crate::table::{Table, megabytes, micros, number};
use crate::workload::{Work, Workload};

const TABLE: &str = "growth";

#[derive(Args, Clone, Debug)]
pub struct GrowthOptions {
    #[command(flatten)]
    setting: Setting,
    /// Entities to measure at, from few to many
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000, 5_000_000])]
    sizes: Vec<u64>,
    /// Seconds of each measurement in each round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GrowthResult {
    pub connections: usize,
    pub steps: Vec<Step>,
}

/// What was measured at one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Step {
    pub entities: u64,
    pub inserts_per_second: f64,
    pub insert_cpu_micros: Option<f64>,
    pub get_p50_micros: f64,
    pub get_cpu_micros: Option<f64>,
    pub lone_get_p50_micros: f64,
    pub resident_bytes: u64,
    pub disk_bytes: u64,
    /// The largest share of the processors that the host took away in a round.
    pub stolen_max: Option<f64>,
}

/// A server with a table of one size, and what was measured of it.
struct Grown {
    server: Server,
    data: PathBuf,
    contender: Contender,
    reading: Arc<Work>,
    inserting: Arc<Work>,
    lone_gets: Vec<Tally>,
    gets: Vec<Tally>,
    inserts: Vec<Tally>,
}

pub fn growth(options: &GrowthOptions) -> anyhow::Result<PathBuf> {
    let GrowthOptions { sizes, seconds, rounds, connections, .. } = options;
    ensure!(sizes.is_sorted(), "give the sizes from few to many");
    let stage = options.setting.stage()?;
    let runtime = runtime()?;
    let mut all = Vec::with_capacity(sizes.len());
    for size in sizes {
        all.push(Grown::load(&stage, &runtime, *size)?);
    }
    let duration = Duration::from_secs_f64(*seconds);
    for round in 0..*rounds {
        for grown in &mut all {
            let work = &grown.reading;
            grown.lone_gets.push(grown.measure(&runtime, work, 1, duration, round)?);
            grown.gets.push(grown.measure(&runtime, work, *connections, duration, round)?);
        }
    }
    // After all reads, because they let the tables grow, and the smallest by much.
    for round in 0..*rounds {
        for grown in &mut all {
            let work = &grown.inserting;
            grown.inserts.push(grown.measure(&runtime, work, *connections, duration, round)?);
        }
    }
    let steps = all.iter().map(|grown| grown.step(*connections)).collect();
    let result = GrowthResult { connections: *connections, steps };
    println!("{}", result.table());
    let sizes: Vec<_> = sizes.iter().map(u64::to_string).collect();
    let sizes = sizes.join(",");
    let arguments = format!(
        "growth --sizes {sizes} --seconds {seconds} --rounds {rounds} --connections {connections}"
    );
    stage.keep("growth", &arguments, result)
}

impl Grown {
    fn load(stage: &Stage, runtime: &Runtime, size: u64) -> anyhow::Result<Self> {
        let data = stage.folder.path().join(format!("tavola-{size}"));
        let server = servers::tavola(&stage.binary, &data)?;
        let contender = Contender::new(server.target("tavola"), Some(server.pid()), size);
        let loaded = runtime.block_on(load(&contender.target, TABLE, 0, size))?;
        let took = loaded.took.as_secs_f64();
        println!("loaded {} entities in {took:.1} s", number(size as f64));
        wait_until_settled(&data, server.pid());
        // Keys of their own, so that what is inserted while measuring is in nobody's way.
        let keys = Keys { prefix: 'n', ..Keys::default() };
        Ok(Self {
            server,
            data,
            contender,
            reading: Arc::new(Work::new(Workload::Get, TABLE, size)),
            inserting: Arc::new(Work { keys, ..Work::new(Workload::Insert, TABLE, 0) }),
            lone_gets: Vec::new(),
            gets: Vec::new(),
            inserts: Vec::new(),
        })
    }

    fn measure(
        &self,
        runtime: &Runtime,
        work: &Arc<Work>,
        connections: usize,
        duration: Duration,
        round: u64,
    ) -> anyhow::Result<Tally> {
        let rest = || let_rest(&[self.server.pid()]);
        let tally = self.contender.measure_undisturbed(
            runtime,
            rest,
            work,
            connections,
            duration,
            round,
        )?;
        ensure!(tally.failures.is_empty(), "operations failed: {:?}", tally.failures);
        Ok(tally)
    }

    fn step(&self, connections: usize) -> Step {
        let row = |tallies: &[Tally]| Row::new(&self.contender, "", connections, tallies);
        let (lone_gets, gets, inserts) =
            (row(&self.lone_gets), row(&self.gets), row(&self.inserts));
        Step {
            entities: self.contender.entities,
            inserts_per_second: inserts.operations_per_second,
            insert_cpu_micros: inserts.server_cpu_micros_per_operation,
            get_p50_micros: gets.p50_micros,
            get_cpu_micros: gets.server_cpu_micros_per_operation,
            lone_get_p50_micros: lone_gets.p50_micros,
            resident_bytes: process::resident_bytes(self.server.pid()).unwrap_or_default(),
            disk_bytes: process::folder_bytes(&self.data),
            stolen_max: host::most([&lone_gets, &gets, &inserts].map(|row| row.stolen_max)),
        }
    }
}

impl GrowthResult {
    /// By how much the first size is better than the worst later one up to `size`: in inserts per second, and in the
    /// time of a get.
    pub fn worst_factors_up_to(&self, size: u64) -> Option<(f64, f64)> {
        let (first, later) = self.steps.split_first()?;
        let later: Vec<_> = later.iter().filter(|step| step.entities <= size).collect();
        let worst =
            |factor: &dyn Fn(&Step) -> f64| later.iter().map(|step| factor(step)).reduce(f64::max);
        let inserts = worst(&|step| first.inserts_per_second / step.inserts_per_second)?;
        Some((inserts, worst(&|step| step.get_p50_micros / first.get_p50_micros)?))
    }

    pub fn table(&self) -> String {
        let mut table = Table::new([
            "Entities",
            "inserts per second",
            "CPU per insert",
            "get p50",
            "CPU per get",
            "get p50 alone",
            "memory",
            "disk",
        ]);
        let or_none = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), micros);
        for step in &self.steps {
            table.row([
                number(step.entities as f64),
                number(step.inserts_per_second),
                or_none(step.insert_cpu_micros),
                micros(step.get_p50_micros),
                or_none(step.get_cpu_micros),
                micros(step.lone_get_p50_micros),
                megabytes(step.resident_bytes),
                megabytes(step.disk_bytes),
            ]);
        }
        table.to_markdown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_later_size_counts() {
        let step = |entities, inserts_per_second, get_p50_micros| Step {
            entities,
            inserts_per_second,
            get_p50_micros,
            ..Step::default()
        };
        let steps = vec![step(1, 100.0, 10.0), step(10, 50.0, 10.0), step(100, 80.0, 40.0)];
        let grown = GrowthResult { connections: 1, steps };
        assert_eq!(grown.worst_factors_up_to(100), Some((2.0, 4.0)));
        assert_eq!(grown.worst_factors_up_to(99), Some((2.0, 1.0)));
        assert_eq!(grown.worst_factors_up_to(9), None);
        assert_eq!(GrowthResult::default().worst_factors_up_to(100), None);
    }
}
