//! `mixed`: whether a table scan that runs all the time hurts those who read single entities.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::run::side_by_side;
use crate::host::undisturbed;
use crate::load::load;
use crate::measure::{Contender, Row, Tally};
use crate::stage::{Setting, let_rest, runtime};
use crate::table::number;
use crate::workload::{Work, Workload};

const TABLE: &str = "mixed";

#[derive(Args, Clone, Debug)]
pub struct MixedOptions {
    #[command(flatten)]
    setting: Setting,
    #[arg(long, default_value_t = 1_000_000)]
    entities: u64,
    /// Connections that read; one more scans
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Seconds of a round
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MixedResult {
    pub entities: u64,
    pub alone: Row,
    pub beside_a_scan: Row,
    pub entities_scanned_per_second: f64,
}

impl MixedResult {
    pub fn p99_factor(&self) -> f64 {
        self.beside_a_scan.p99_micros / self.alone.p99_micros
    }
}

pub fn mixed(options: &MixedOptions) -> anyhow::Result<PathBuf> {
    let stage = options.setting.stage()?;
    let server = stage.start()?;
    let runtime = runtime()?;
    let contender = Contender::new(server.target("tavola"), Some(server.pid()), options.entities);
    runtime.block_on(load(&contender.target, TABLE, 0, options.entities))?;
    let reading = Arc::new(Work::new(Workload::Get, TABLE, options.entities));
    let scanning = Arc::new(Work::new(Workload::ScanFilter, TABLE, options.entities));
    let round = Duration::from_secs_f64(options.seconds);
    let (mut alone, mut beside, mut scans) = (Vec::new(), Vec::new(), Vec::<Tally>::new());
    for number in 0..options.rounds {
        let connections = options.connections;
        let rest = || let_rest(&[server.pid()]);
        let ((reads, (reads_beside, scan)), stolen) = undisturbed(rest, || {
            let (alone, beside) = runtime.block_on(async {
                let alone = contender.measure_warm(&reading, connections, round, number).await;
                let beside = contender.measure(&reading, connections, round, number);
                let scan = contender.measure(&scanning, 1, round, number);
                (alone, tokio::join!(beside, scan))
            });
            for tally in [&alone, &beside.0, &beside.1] {
                ensure!(tally.failures.is_empty(), "operations failed: {:?}", tally.failures);
            }
            Ok((alone, beside))
        })?;
        alone.push(Tally { stolen, ..reads });
        beside.push(Tally { stolen, ..reads_beside });
        scans.push(scan);
    }
    let scanned: f64 = scans.iter().map(|scan| scan.entities as f64).sum();
    let seconds: f64 = scans.iter().map(|scan| scan.elapsed.as_secs_f64()).sum();
    let mut result = MixedResult {
        entities: options.entities,
        alone: Row::new(&contender, "get", options.connections, &alone),
        beside_a_scan: Row::new(&contender, "get", options.connections, &beside),
        entities_scanned_per_second: scanned / seconds,
    };
    result.alone.target = "alone".to_owned();
    result.beside_a_scan.target = "beside a scan".to_owned();
    // The scan's work is in it too.
    result.beside_a_scan.server_cpu_micros_per_operation = None;
    println!("{}", result.table());
    let MixedOptions { entities, connections, seconds, rounds, .. } = options;
    let arguments = format!(
        "mixed --entities {entities} --connections {connections} --seconds {seconds} --rounds {rounds}"
    );
    stage.keep("mixed", &arguments, result)
}

impl MixedResult {
    pub fn table(&self) -> String {
        let rows = [self.alone.clone(), self.beside_a_scan.clone()];
        let scanned = number(self.entities_scanned_per_second);
        format!(
            "{}\nThe scan examined {scanned} entities per second meanwhile.\n",
            side_by_side(&rows)
        )
    }
}
