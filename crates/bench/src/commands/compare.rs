//! `compare`: the service, Azurite and what the machine allows, side by side on fresh data.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum as _};
use serde::{Deserialize, Serialize};
use tavola_wire::service::Service;

use super::run::{Plan, side_by_side};
use crate::bare_engine::{BareEngine, Committed};
use crate::host::{self, undisturbed};
use crate::measure::{Contender, Row, median};
use crate::servers;
use crate::stage::{Setting, Stage};
use crate::table::{micros, number};
use crate::workload::Workload;

/// Azurite writes everything it holds to disk 5 s after it was changed; a round begins after that.
pub(crate) const AZURITE_SAVES_AFTER: Duration = Duration::from_secs(6);

#[derive(Args, Clone, Debug)]
pub struct CompareOptions {
    #[command(flatten)]
    setting: Setting,
    /// Seconds of a round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Entities to load
    #[arg(long, default_value_t = 100_000)]
    entities: u64,
    /// Entities to load into Azurite, which is the quicker the fewer there are
    #[arg(long, default_value_t = 100_000)]
    azurite_entities: u64,
    /// Leave Azurite out
    #[arg(long)]
    without_azurite: bool,
    /// What to measure [default: everything]
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<Workload>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CompareResult {
    pub connections: usize,
    pub seconds: f64,
    pub rounds: usize,
    pub azurite_version: Option<String>,
    pub rows: Vec<Row>,
    pub bare_engine_rows_per_second: Option<f64>,
    pub bare_engine_cpu_micros_per_transaction: Option<f64>,
    /// The largest share of the processors that the host took away while the bare engine was measured.
    pub bare_engine_stolen_max: Option<f64>,
}

impl CompareResult {
    pub fn row(&self, workload: Workload, target: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.workload == workload.name() && row.target == target)
    }

    /// How many times the rate of another server the service reached; `of` and `to` may be different workloads.
    pub fn ratio(&self, of: Workload, to: Workload, other: &str) -> Option<f64> {
        self.row(of, "tavola")?.times(self.row(to, other)?)
    }
}

pub fn compare(options: &CompareOptions) -> anyhow::Result<PathBuf> {
    let stage = options.setting.stage()?;
    let tavola = stage.start()?;
    let bare = servers::bare()?;
    let azurite = match options.without_azurite {
        true => None,
        false => {
            let data = stage.folder.path().join("azurite");
            Some(servers::azurite(&stage.root, &data, Service::Table)?)
        }
    };
    let mut contenders =
        vec![Contender::new(tavola.target("tavola"), Some(tavola.pid()), options.entities)];
    if let Some(azurite) = &azurite {
        let entities = options.azurite_entities;
        contenders.push(Contender::new(azurite.target("azurite"), Some(azurite.pid()), entities));
    }
    contenders.push(Contender::bare(bare.target("bare"), Some(bare.pid())));

    let mut engine = BareEngine::open(&stage.folder.path().join("bare-engine"))?;
    let mut committed = Vec::new();
    let plan = options.plan();
    let rows = plan.run(&contenders, &mut |workload| {
        if workload == Workload::Egt100 {
            committed.push(undisturbed(|| {}, || commit(&mut engine, plan.round))?);
        }
        Ok(())
    })?;
    println!("\n{}", side_by_side(&rows));
    let result = options.result(&stage, rows, &committed)?;
    stage.keep("compare", &options.arguments(), result)
}

fn commit(engine: &mut BareEngine, round: Duration) -> anyhow::Result<Committed> {
    let committed = engine.commit_for(round)?;
    let (rate, cpu) =
        (number(committed.rows_per_second), micros(committed.cpu_micros_per_transaction));
    println!("{:>14} {:<14} {rate:>9} rows/s  CPU {cpu} per transaction", "egt100", "bare engine");
    Ok(committed)
}

impl CompareOptions {
    fn plan(&self) -> Plan {
        let workloads = match self.workloads.is_empty() {
            true => Workload::value_variants().to_vec(),
            false => self.workloads.clone(),
        };
        Plan {
            workloads,
            connections: self.connections,
            round: Duration::from_secs_f64(self.seconds),
            rounds: self.rounds,
            settle: if self.without_azurite { Duration::ZERO } else { AZURITE_SAVES_AFTER },
        }
    }

    fn result(
        &self,
        stage: &Stage,
        rows: Vec<Row>,
        committed: &[(Committed, Option<f64>)],
    ) -> anyhow::Result<CompareResult> {
        let of = |what: fn(&Committed) -> f64| {
            let figures = committed.iter().map(|(round, _)| what(round));
            (!committed.is_empty()).then(|| median(figures.collect()))
        };
        Ok(CompareResult {
            connections: self.connections,
            seconds: self.seconds,
            rounds: self.rounds,
            azurite_version: (!self.without_azurite)
                .then(|| servers::azurite_version(&stage.root))
                .transpose()?,
            rows,
            bare_engine_rows_per_second: of(|round| round.rows_per_second),
            bare_engine_cpu_micros_per_transaction: of(|round| round.cpu_micros_per_transaction),
            bare_engine_stolen_max: host::most(committed.iter().map(|(_, stolen)| *stolen)),
        })
    }

    fn arguments(&self) -> String {
        let Self { seconds, rounds, connections, entities, azurite_entities, .. } = self;
        let mut arguments = format!(
            "compare --seconds {seconds} --rounds {rounds} --connections {connections} --entities {entities}"
        );
        match self.without_azurite {
            true => arguments.push_str(" --without-azurite"),
            false => arguments.push_str(&format!(" --azurite-entities {azurite_entities}")),
        }
        if !self.workloads.is_empty() {
            let names: Vec<_> = self.workloads.iter().map(|workload| workload.name()).collect();
            arguments.push_str(&format!(" --workloads {}", names.join(",")));
        }
        arguments
    }
}
