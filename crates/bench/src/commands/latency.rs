//! `latency`: what one durable insert takes when nobody else asks, beside one `fdatasync` on the same disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::entity::Keys;
use crate::histogram::Histogram;
use crate::host::{self, undisturbed};
use crate::machine::fdatasync_for;
use crate::measure::Contender;
use crate::request::Client;
use crate::stage::{Setting, let_rest, runtime};
use crate::table::micros;
use crate::workload::{Work, Workload};

const TABLE: &str = "latency";

#[derive(Args, Clone, Debug)]
pub struct LatencyOptions {
    #[command(flatten)]
    setting: Setting,
    /// Seconds of a round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatencyResult {
    pub insert_p50_micros: f64,
    pub insert_p99_micros: f64,
    pub fdatasync_p50_micros: f64,
    pub fdatasync_p99_micros: f64,
    /// The largest share of the processors that the host took away in a round.
    pub stolen_max: Option<f64>,
}

impl LatencyResult {
    /// What an insert takes beyond the one `fdatasync` that it cannot do without.
    pub fn beyond_fdatasync_micros(&self) -> f64 {
        self.insert_p50_micros - self.fdatasync_p50_micros
    }
}

pub fn latency(options: &LatencyOptions) -> anyhow::Result<PathBuf> {
    let stage = options.setting.stage()?;
    let server = stage.start()?;
    let runtime = runtime()?;
    let contender = Contender::new(server.target("tavola"), Some(server.pid()), 0);
    runtime.block_on(Client::new(&contender.target, Keys::default()).create_table(TABLE))?;
    let work = Arc::new(Work::new(Workload::Insert, TABLE, 0));
    let round = Duration::from_secs_f64(options.seconds);
    let (mut inserts, mut syncs) = (Histogram::new(), Histogram::new());
    let mut stolen_max = None;
    for number in 0..options.rounds {
        let rest = || let_rest(&[server.pid()]);
        let ((synced, inserted), stolen) = undisturbed(rest, || {
            let synced = fdatasync_for(stage.folder.path(), round)?;
            let tally = runtime.block_on(contender.measure_warm(&work, 1, round, number));
            ensure!(tally.failures.is_empty(), "inserts failed: {:?}", tally.failures);
            Ok((synced, tally.latency))
        })?;
        syncs.add(&synced);
        inserts.add(&inserted);
        stolen_max = host::most([stolen_max, stolen]);
    }
    let result = LatencyResult {
        insert_p50_micros: inserts.micros(0.50),
        insert_p99_micros: inserts.micros(0.99),
        fdatasync_p50_micros: syncs.micros(0.50),
        fdatasync_p99_micros: syncs.micros(0.99),
        stolen_max,
    };
    println!(
        "durable insert: p50 {}, p99 {}; one fdatasync: p50 {}, p99 {}; beyond it: {}",
        micros(result.insert_p50_micros),
        micros(result.insert_p99_micros),
        micros(result.fdatasync_p50_micros),
        micros(result.fdatasync_p99_micros),
        micros(result.beyond_fdatasync_micros()),
    );
    let arguments = format!("latency --seconds {} --rounds {}", options.seconds, options.rounds);
    stage.keep("latency", &arguments, result)
}
