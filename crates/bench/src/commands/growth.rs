//! `growth`: whether inserts and reads stay as quick as the table grows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{Setting, runtime, wait_until_settled};
use crate::entity::Keys;
use crate::load::load;
use crate::measure::{Contender, Tally};
use crate::process;
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
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
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
}

pub fn growth(options: &GrowthOptions) -> anyhow::Result<()> {
    ensure!(options.sizes.is_sorted(), "a table only grows: give the sizes from few to many");
    let stage = options.setting.stage()?;
    let server = stage.start()?;
    let runtime = runtime()?;
    let mut contender = Contender::new(server.target("tavola"), Some(server.pid()), 0);
    // Keys of their own, so that what is inserted while measuring is in nobody's way.
    let inserting = Arc::new(Work {
        keys: Keys { prefix: 'n', ..Keys::default() },
        ..Work::new(Workload::Insert, TABLE, 0)
    });
    let duration = Duration::from_secs_f64(options.seconds);
    let mut result = GrowthResult { connections: options.connections, steps: Vec::new() };
    for size in &options.sizes {
        let loaded = runtime.block_on(load(&contender.target, TABLE, contender.entities, *size))?;
        println!(
            "grown to {} entities in {:.1} s",
            number(*size as f64),
            loaded.took.as_secs_f64()
        );
        contender.entities = *size;
        wait_until_settled(&stage.data(), server.pid());
        let reading = Arc::new(Work::new(Workload::Get, TABLE, *size));
        let measure = |work: &Arc<Work>, connections| {
            runtime.block_on(contender.measure(work, connections, duration / 5, size ^ 1));
            let tally = runtime.block_on(contender.measure(work, connections, duration, *size));
            ensure!(tally.failures.is_empty(), "operations failed: {:?}", tally.failures);
            Ok(tally)
        };
        let lone = measure(&reading, 1)?;
        let reads = measure(&reading, options.connections)?;
        let inserts = measure(&inserting, options.connections)?;
        result.steps.push(Step {
            entities: *size,
            inserts_per_second: inserts.operations_per_second(),
            insert_cpu_micros: cpu_micros(&inserts),
            get_p50_micros: reads.latency.micros(0.5),
            get_cpu_micros: cpu_micros(&reads),
            lone_get_p50_micros: lone.latency.micros(0.5),
            resident_bytes: process::resident_bytes(server.pid()).unwrap_or_default(),
            disk_bytes: process::folder_bytes(&stage.data()),
        });
    }
    println!(
        "{}(besides, {} inserted while measuring)",
        result.table(),
        inserting.next.load(Ordering::Relaxed)
    );
    let sizes: Vec<_> = options.sizes.iter().map(u64::to_string).collect();
    let arguments = format!(
        "growth --sizes {} --seconds {} --connections {}",
        sizes.join(","),
        options.seconds,
        options.connections
    );
    stage.keep("growth", &arguments, result)
}

fn cpu_micros(tally: &Tally) -> Option<f64> {
    Some(tally.server_cpu? * 1e6 / tally.latency.count().max(1) as f64)
}

impl GrowthResult {
    /// By how much the first size is better than the worst later one: in inserts per second, and in the time of a get.
    pub fn worst_factors(&self) -> Option<(f64, f64)> {
        let (first, later) = self.steps.split_first()?;
        let worst =
            |factor: &dyn Fn(&Step) -> f64| later.iter().map(factor).fold(f64::NAN, f64::max);
        (!later.is_empty()).then(|| {
            let inserts = worst(&|step| first.inserts_per_second / step.inserts_per_second);
            (inserts, worst(&|step| step.get_p50_micros / first.get_p50_micros))
        })
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
        let step = |inserts_per_second, get_p50_micros| Step {
            inserts_per_second,
            get_p50_micros,
            ..Step::default()
        };
        let of = |steps: Vec<Step>| GrowthResult { connections: 1, steps }.worst_factors();
        assert_eq!(
            of(vec![step(100.0, 10.0), step(50.0, 10.0), step(80.0, 40.0)]),
            Some((2.0, 4.0))
        );
        assert_eq!(of(vec![step(100.0, 10.0)]), None);
    }
}
