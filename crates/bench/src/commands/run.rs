//! `run`: workloads against servers that are running, interleaved round by round.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum as _};
use serde_json::json;

use crate::clock;
use crate::entity::Keys;
use crate::load::load;
use crate::measure::{Contender, Row, Tally};
use crate::request::Client;
use crate::stage::{let_rest_at_most, runtime};
use crate::table::{Table, micros, number};
use crate::target::{DEVELOPMENT_KEY, Target};
use crate::workload::{Work, Workload};

/// Before each round, of which there are many.
const ROUND_RESTING_MAX: Duration = Duration::from_secs(30);

#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// A server to measure, as name=http://host:port/account; the first is what the others are compared with
    #[arg(long, value_name = "NAME=URL", required = true)]
    target: Vec<Target>,
    /// The process of a server, for its CPU time
    #[arg(long, value_name = "NAME=PID")]
    pid: Vec<String>,
    /// A bare server (`tavola-bench bare`) to take part where it can
    #[arg(long, value_name = "URL")]
    bare: Option<String>,
    /// What to measure [default: everything]
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<Workload>,
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Seconds of a round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Entities to load before everything but insert and egt100
    #[arg(long, default_value_t = 100_000)]
    entities: u64,
    /// Seconds to pause before each round; Azurite saves 5 s after it was written to
    #[arg(long, default_value_t = 0.0)]
    settle: f64,
    /// The account's key [default: that of the development account]
    #[arg(long, value_name = "BASE64", default_value = DEVELOPMENT_KEY, hide_default_value = true)]
    key: String,
    /// Write the result to this file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    pub workloads: Vec<Workload>,
    pub connections: usize,
    pub round: Duration,
    pub rounds: usize,
    /// A pause before each round, after which the servers are waited for until they rest.
    pub settle: Duration,
}

pub fn run(options: &RunOptions) -> anyhow::Result<()> {
    let contenders = options.contenders()?;
    let workloads = match options.workloads.is_empty() {
        true => Workload::value_variants().to_vec(),
        false => options.workloads.clone(),
    };
    let plan = Plan {
        workloads,
        connections: options.connections,
        round: Duration::from_secs_f64(options.seconds),
        rounds: options.rounds,
        settle: Duration::from_secs_f64(options.settle),
    };
    let rows = plan.run(&contenders, &mut |_| Ok(()))?;
    println!("\n{}", side_by_side(&rows));
    if let Some(path) = &options.json {
        let result = json!({ "date": clock::today(), "rows": rows, "ratios": ratios(&rows) });
        std::fs::write(path, serde_json::to_string_pretty(&result)?)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    let failed: Vec<_> = rows.iter().filter(|row| !row.failures.is_empty()).collect();
    ensure!(failed.is_empty(), "some operations failed, see above");
    Ok(())
}

impl RunOptions {
    fn contenders(&self) -> anyhow::Result<Vec<Contender>> {
        let mut contenders = Vec::new();
        for target in &self.target {
            let target = target.clone().with_key(&self.key)?;
            let pid = self.pid_of(&target.name)?;
            contenders.push(Contender::new(target, pid, self.entities));
        }
        if let Some(url) = &self.bare {
            contenders.push(Contender::bare(format!("bare={url}").parse()?, self.pid_of("bare")?));
        }
        Ok(contenders)
    }

    fn pid_of(&self, name: &str) -> anyhow::Result<Option<u32>> {
        let given = self.pid.iter().filter_map(|text| text.split_once('='));
        let found = given.filter(|(of, _)| *of == name).map(|(_, pid)| pid).next();
        found.map(|pid| pid.parse().with_context(|| format!("no process id: {pid}"))).transpose()
    }
}

impl Plan {
    /// Measures everything, and calls `after_round` after each round of each workload.
    pub fn run(
        &self,
        contenders: &[Contender],
        after_round: &mut dyn FnMut(Workload) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Row>> {
        let runtime = runtime()?;
        let name = format!("bench{}", std::process::id());
        // Before what inserts into a table of its own as well: a server that is in use has data.
        self.load(&runtime, contenders, &name)?;
        let mut rows = Vec::new();
        for workload in &self.workloads {
            rows.extend(self.measure(&runtime, contenders, *workload, &name, after_round)?);
        }
        for contender in contenders.iter().filter(|contender| !contender.is_bare) {
            runtime.block_on(Client::new(&contender.target, Keys::default()).drop_table(&name))?;
        }
        Ok(rows)
    }

    fn load(
        &self,
        runtime: &tokio::runtime::Runtime,
        contenders: &[Contender],
        table: &str,
    ) -> anyhow::Result<()> {
        for contender in contenders.iter().filter(|contender| !contender.is_bare) {
            let loading = load(&contender.target, table, 0, contender.entities);
            let loaded = runtime
                .block_on(loading)
                .with_context(|| format!("loading {}", contender.target.name))?;
            let rate = contender.entities as f64 / loaded.took.as_secs_f64();
            println!(
                "{}: loaded {} entities, {}/s",
                contender.target.name,
                contender.entities,
                number(rate)
            );
        }
        Ok(())
    }

    fn measure(
        &self,
        runtime: &tokio::runtime::Runtime,
        contenders: &[Contender],
        workload: Workload,
        loaded_table: &str,
        after_round: &mut dyn FnMut(Workload) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Row>> {
        let takes_part = |contender: &&Contender| !contender.is_bare || workload.has_bare_form();
        let contenders: Vec<_> = contenders.iter().filter(takes_part).collect();
        let table = match workload.is_fresh() {
            true => format!("{loaded_table}{}", workload.name()),
            false => loaded_table.to_owned(),
        };
        let mut works = Vec::new();
        for contender in &contenders {
            works.push(Arc::new(Work::new(workload, &table, contender.entities)));
            if workload.is_fresh() {
                runtime.block_on(
                    Client::new(&contender.target, Keys::default()).create_table(&table),
                )?;
            }
        }
        let connections = self.connections_for(workload);
        let mut tallies = vec![Vec::new(); contenders.len()];
        for round in 0..self.rounds {
            for turn in 0..contenders.len() {
                // Each begins a round once, so that none always comes after the same other.
                let at = (turn + round) % contenders.len();
                // Only what was written to has something to do in the background.
                let pause = if workload.writes() || (round, turn) == (0, 0) {
                    self.settle
                } else {
                    Duration::ZERO
                };
                let prepare = || settle(pause, &contenders);
                let seed = (round * contenders.len() + turn) as u64;
                let (contender, work) = (contenders[at], &works[at]);
                let tally = contender.measure_undisturbed(
                    runtime,
                    prepare,
                    work,
                    connections,
                    self.round,
                    seed,
                )?;
                println!("{}", progress(contender, &workload.name(), &tally));
                tallies[at].push(tally);
            }
            after_round(workload)?;
        }
        if workload.is_fresh() {
            for contender in contenders.iter().filter(|contender| !contender.is_bare) {
                runtime
                    .block_on(Client::new(&contender.target, Keys::default()).drop_table(&table))?;
            }
        }
        let summed = contenders.iter().zip(&tallies);
        Ok(summed
            .map(|(contender, rounds)| Row::new(contender, &workload.name(), connections, rounds))
            .collect())
    }

    /// Scans are measured with as many connections as there are cores: more would only wait for each other.
    fn connections_for(&self, workload: Workload) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        match workload {
            Workload::ScanFilter => self.connections.min(cores),
            Workload::ScanFilterOne => 1,
            _ => self.connections,
        }
    }
}

fn settle(pause: Duration, contenders: &[&Contender]) {
    std::thread::sleep(pause);
    let pids: Vec<_> = contenders.iter().filter_map(|contender| contender.pid).collect();
    let_rest_at_most(&pids, ROUND_RESTING_MAX);
}

pub fn progress(contender: &Contender, workload: &str, tally: &Tally) -> String {
    let rate = number(tally.operations_per_second());
    let mut line = format!("{workload:>14} {:<14} {rate:>9}/s", contender.target.name);
    line += &format!(
        "  p50 {:>9}  p99 {:>9}",
        micros(tally.latency.micros(0.5)),
        micros(tally.latency.micros(0.99))
    );
    for (failure, count) in &tally.failures {
        line += &format!("\n{:>16} x {failure}", count);
    }
    line
}

/// How many times the rate of the first target each row has; `None` where the first did not take part.
pub fn ratios(rows: &[Row]) -> Vec<Option<f64>> {
    let first = |row: &Row| rows.iter().find(|other| other.workload == row.workload);
    let name = rows.first().map(|row| row.target.clone());
    rows.iter()
        .map(|row| {
            let base = first(row).filter(|base| Some(&base.target) == name.as_ref())?;
            row.times(base)
        })
        .collect()
}

/// All rows, with their rate as a multiple of the first target's.
pub fn side_by_side(rows: &[Row]) -> String {
    let mut table = Table::new([
        "Workload",
        "server",
        "per second",
        "p50",
        "p95",
        "p99",
        "max",
        "server CPU per operation",
        "ratio",
        "failures",
    ]);
    for (row, ratio) in rows.iter().zip(ratios(rows)) {
        table.row([
            row.workload.clone(),
            row.target.clone(),
            number(row.operations_per_second),
            micros(row.p50_micros),
            micros(row.p95_micros),
            micros(row.p99_micros),
            micros(row.max_micros),
            row.server_cpu_micros_per_operation.map_or_else(|| "-".to_owned(), micros),
            ratio.map_or_else(|| "-".to_owned(), number),
            row.failures.values().sum::<u64>().to_string(),
        ]);
    }
    table.to_markdown()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, target: &str, rate: f64) -> Row {
        let (workload, target) = (workload.to_owned(), target.to_owned());
        Row { workload, target, operations_per_second: rate, ..Row::default() }
    }

    #[test]
    fn ratios_are_to_the_first_target_of_the_same_workload() {
        let rows = [
            row("get", "a", 100.0),
            row("get", "b", 50.0),
            row("merge", "a", 10.0),
            row("merge", "b", 40.0),
        ];
        assert_eq!(ratios(&rows), [Some(1.0), Some(0.5), Some(1.0), Some(4.0)]);
        let missing = [row("get", "a", 100.0), row("merge", "b", 40.0)];
        assert_eq!(ratios(&missing), [Some(1.0), None]);
        assert_eq!(ratios(&[row("get", "a", 0.0), row("get", "b", 1.0)]), [None, None]);
    }

    #[test]
    fn the_table_says_what_failed() {
        let mut failing = row("get", "a", 1.0);
        failing.failures.insert("500 InternalError".to_owned(), 3);
        let table = side_by_side(&[failing]);
        assert!(table.lines().last().unwrap().trim_end().ends_with("3 |"), "{table}");
    }
}
