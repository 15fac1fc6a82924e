//! `indexes`: what index tables give to queries and cost writes, beside the same without them, in one run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use super::run::side_by_side;
use crate::entity::Keys;
use crate::goals;
use crate::host::undisturbed;
use crate::load::load;
use crate::measure::{Contender, Row, Tally, in_turn};
use crate::request::Client;
use crate::stage::{Setting, let_rest, runtime};
use crate::workload::{Work, Workload};

/// A table large enough that a scan of it is slow, and one in which a value has a hundred entities.
const LARGE: &str = "large";
const MIDDLE: &str = "middle";
/// The same without indexes.
const PLAIN: &str = "plain";
/// The same beside indexes of properties that nobody asks for, and that no entity has.
const CROWDED: &str = "crowded";
const CROWD: usize = 8;
const MIDDLE_ENTITIES: u64 = 100_000;

/// What the tables for writes have indexes on; all without copies.
const KEYS: [&str; 8] =
    ["Customer", "Bucket", "Amount", "Price", "Active", "Ordered", "Trace", "Bucket,Customer"];
/// How many of them.
const COUNTS: [usize; 4] = [0, 1, 4, 8];

/// Indexes of the tables whose entities are merged.
const MERGED: [usize; 2] = [0, 1];

/// Parts of a round in which works take turns that are compared to within a few percent: the speed of a machine changes by
/// more than that from one second to the next.
const SLICES: u64 = 10;

/// Connections that scan whole tables: one for each core keeps it busy.
const SCANNING_CONNECTIONS: usize = 2;

const BUILT_POLL: Duration = Duration::from_millis(20);

#[derive(Args, Clone, Debug)]
pub struct IndexesOptions {
    #[command(flatten)]
    setting: Setting,
    /// Entities of the large table
    #[arg(long, default_value_t = 1_000_000)]
    entities: u64,
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Seconds of a round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    #[arg(long, default_value_t = 4)]
    rounds: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IndexesResult {
    pub entities: u64,
    pub rows: Vec<Row>,
    /// Of an index over the large table, while nobody else asks.
    pub build_seconds: f64,
    /// One query that scans the large table.
    pub scan_seconds: f64,
    /// The same beside a build, of that without.
    pub get_p99_factor_beside_build: f64,
}

pub fn indexes(options: &IndexesOptions) -> anyhow::Result<PathBuf> {
    let stage = options.setting.stage()?;
    let server = stage.start()?;
    let runtime = runtime()?;
    let contender = Contender::new(server.target("tavola"), Some(server.pid()), options.entities);
    let mut bench = Bench { options, contender, runtime, pid: server.pid(), rows: Vec::new() };
    let result = bench.run()?;
    println!("{}\n{}", goals::table(&goals::of_indexes(&result)), result.table());
    let IndexesOptions { entities, connections, seconds, rounds, .. } = options;
    let arguments = format!(
        "indexes --entities {entities} --connections {connections} --seconds {seconds} --rounds {rounds}"
    );
    stage.keep("indexes", &arguments, result)
}

struct Bench<'o> {
    options: &'o IndexesOptions,
    contender: Contender,
    runtime: Runtime,
    pid: u32,
    rows: Vec<Row>,
}

impl Bench<'_> {
    fn run(&mut self) -> anyhow::Result<IndexesResult> {
        let entities = self.options.entities;
        self.load(LARGE, entities)?;
        self.load(MIDDLE, MIDDLE_ENTITIES)?;
        self.load(PLAIN, MIDDLE_ENTITIES)?;
        self.load(CROWDED, MIDDLE_ENTITIES)?;
        let_rest(&[self.pid]);
        let scan_seconds = self.scan_once()?;
        let large = |workload| Work::new(workload, LARGE, entities);
        let middle = |workload| Work::new(workload, MIDDLE, MIDDLE_ENTITIES);

        let build_seconds = self.build(LARGE, "ByCustomer", "Customer", "")?;
        self.build(MIDDLE, "ByBucket", "Bucket", "")?;
        self.build(MIDDLE, "ByActive", "Active", "Quantity")?;
        let_rest(&[self.pid]);
        let plain = Work::new(Workload::QueryRange, PLAIN, MIDDLE_ENTITIES);
        let unused =
            vec![("without indexes", plain), ("with indexes", middle(Workload::QueryRange))];
        self.measure_each(unused, self.options.connections)?;
        for number in 0..CROWD {
            self.build(CROWDED, &format!("Index{number}"), &format!("Other{number},Another"), "")?;
        }
        let ranges = |table| Work::new(Workload::RangeAndProperty, table, MIDDLE_ENTITIES);
        let unrelated = vec![("without indexes", ranges(PLAIN)), ("with indexes", ranges(CROWDED))];
        self.measure_each(unrelated, self.options.connections)?;
        let queries = vec![
            large(Workload::PointQuery),
            large(Workload::ByValue),
            middle(Workload::QueryRange),
            middle(Workload::ByBucket),
        ];
        self.measure("tavola", queries, self.options.connections)?;
        let common = vec![middle(Workload::ByCommonValueScanned), middle(Workload::ByCommonValue)];
        self.measure("tavola", common, self.options.connections)?;
        let none = vec![middle(Workload::CommonAndNoneScanned), middle(Workload::CommonAndNone)];
        self.measure("tavola", none, SCANNING_CONNECTIONS)?;
        self.build(MIDDLE, "ByBucket", "Bucket", "Quantity")?;
        self.measure("tavola", vec![middle(Workload::ByBucketCovered)], self.options.connections)?;
        let get_p99_factor_beside_build = self.beside_a_build()?;
        self.inserts()?;
        self.merges()?;
        let rows = std::mem::take(&mut self.rows);
        Ok(IndexesResult {
            entities,
            rows,
            build_seconds,
            scan_seconds,
            get_p99_factor_beside_build,
        })
    }

    fn client(&self) -> Client {
        Client::new(&self.contender.target, Keys::default())
    }

    fn load(&self, table: &str, entities: u64) -> anyhow::Result<()> {
        self.runtime.block_on(load(&self.contender.target, table, 0, entities)).map(drop)
    }

    fn scan_once(&self) -> anyhow::Result<f64> {
        let work = Work::new(Workload::ScanFilter, LARGE, self.options.entities);
        let mut random = crate::random::Random::new(1);
        let start = Instant::now();
        self.runtime.block_on(work.once(&mut self.client(), &mut random))?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Declares an index and waits for it: how long that took.
    fn build(&self, table: &str, name: &str, keys: &str, include: &str) -> anyhow::Result<f64> {
        let start = Instant::now();
        self.runtime.block_on(async {
            self.client().build_index(table, name, keys, include).await?;
            Ok(start.elapsed().as_secs_f64())
        })
    }

    /// Measures the works in turn.
    fn measure(
        &mut self,
        target: &str,
        works: Vec<Work>,
        connections: usize,
    ) -> anyhow::Result<()> {
        self.measure_each(works.into_iter().map(|work| (target, work)).collect(), connections)
    }

    /// The same, each with the name under which it stands in the table.
    fn measure_each(&mut self, works: Vec<(&str, Work)>, connections: usize) -> anyhow::Result<()> {
        let works: Vec<_> =
            works.into_iter().map(|(target, work)| (target, Arc::new(work))).collect();
        let jobs: Vec<_> = works.iter().map(|(_, work)| Arc::clone(work)).collect();
        let mut tallies = vec![Vec::<Tally>::new(); works.len()];
        for number in 0..self.options.rounds {
            let slices = self.round_of_slices(&jobs, connections, number)?;
            for (tallies, slices) in tallies.iter_mut().zip(slices) {
                tallies.extend(slices);
            }
        }
        for ((target, work), tallies) in works.iter().zip(&tallies) {
            let mut row = Row::new(&self.contender, &work.workload.name(), connections, tallies);
            (*target).clone_into(&mut row.target);
            self.rows.push(row);
        }
        Ok(())
    }

    fn in_slices(
        &self,
        jobs: &[Arc<Work>],
        connections: usize,
        seed: u64,
    ) -> anyhow::Result<Vec<Vec<Tally>>> {
        let slice = Duration::from_secs_f64(self.options.seconds / SLICES as f64);
        let measured = self.contender.measure_in_slices(jobs, connections, slice, SLICES, seed);
        let tallies = self.runtime.block_on(measured);
        let failed = tallies.iter().flatten().find(|tally| !tally.failures.is_empty());
        ensure!(failed.is_none(), "operations failed: {:?}", failed.map(|tally| &tally.failures));
        Ok(tallies)
    }

    /// Reads of the middle table alone, and while the large one is indexed.
    fn beside_a_build(&mut self) -> anyhow::Result<f64> {
        let reading = Arc::new(Work::new(Workload::Get, MIDDLE, MIDDLE_ENTITIES));
        let (connections, round) =
            (self.options.connections, Duration::from_secs_f64(self.options.seconds));
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        for number in 0..self.options.rounds {
            let_rest(&[self.pid]);
            let runtime = &self.runtime;
            let measure = || {
                runtime.block_on(self.contender.measure_warm(&reading, connections, round, number))
            };
            alone.push(measure());
            let name = format!("Round{number}");
            runtime.block_on(self.client().declare_index(LARGE, &name, "Price,Customer", ""))?;
            beside.push(measure());
            while !runtime.block_on(self.client().is_index_readable(LARGE, &name))? {
                std::thread::sleep(BUILT_POLL);
            }
        }
        let mut row = |target: &str, tallies: &[Tally]| {
            let mut row = Row::new(&self.contender, "get", connections, tallies);
            target.clone_into(&mut row.target);
            self.rows.push(row.clone());
            row.p99_micros
        };
        let (alone, beside) = (row("alone", &alone), row("beside a build", &beside));
        Ok(beside / alone)
    }

    /// Inserts into tables with no index and with several.
    fn inserts(&mut self) -> anyhow::Result<()> {
        let mut inserts = vec![Vec::<Tally>::new(); COUNTS.len()];
        let round = Duration::from_secs_f64(self.options.seconds);
        let connections = self.options.connections;
        for number in 0..self.options.rounds {
            for place in in_turn(COUNTS.len(), number) {
                let table = format!("inserts{}round{number}", COUNTS[place]);
                self.indexed_table(&table, COUNTS[place])?;
                let work = Arc::new(Work::new(Workload::Insert, &table, 0));
                inserts[place].push(self.undisturbed(&work, connections, round, number)?);
                self.runtime.block_on(self.client().drop_table(&table))?;
            }
        }
        for (count, tallies) in COUNTS.into_iter().zip(&inserts) {
            let mut row = Row::new(&self.contender, "insert", connections, tallies);
            row.target = format!("{count} indexes");
            self.rows.push(row);
        }
        Ok(())
    }

    /// Merges of properties that no index has, without an index and with one. Each round has tables of its own, filled in
    /// turn: of two tables the later one is quicker for as long as more of it is in memory.
    fn merges(&mut self) -> anyhow::Result<()> {
        let mut merges = vec![Vec::<Tally>::new(); MERGED.len()];
        for number in 0..self.options.rounds {
            let table = |indexes: usize| format!("merges{indexes}round{number}");
            for place in in_turn(MERGED.len(), number) {
                self.indexed_table(&table(MERGED[place]), MERGED[place])?;
                self.load(&table(MERGED[place]), MIDDLE_ENTITIES)?;
            }
            let merge = |indexes| Work::new(Workload::Merge, &table(indexes), MIDDLE_ENTITIES);
            let jobs = MERGED.map(|indexes| Arc::new(merge(indexes)));
            for (tallies, slices) in merges.iter_mut().zip(self.round_of_slices(
                &jobs,
                self.options.connections,
                number,
            )?) {
                tallies.extend(slices);
            }
            for indexes in MERGED {
                self.runtime.block_on(self.client().drop_table(&table(indexes)))?;
            }
        }
        for (indexes, tallies) in MERGED.into_iter().zip(&merges) {
            let mut row = Row::new(&self.contender, "merge", self.options.connections, tallies);
            row.target = format!("{indexes} indexes");
            self.rows.push(row);
        }
        Ok(())
    }

    /// One round in slices, and again if the host took too much of it.
    fn round_of_slices(
        &self,
        jobs: &[Arc<Work>],
        connections: usize,
        number: u64,
    ) -> anyhow::Result<Vec<Vec<Tally>>> {
        let (slices, stolen) =
            undisturbed(|| let_rest(&[self.pid]), || self.in_slices(jobs, connections, number))?;
        let with_stolen = |slice: Tally| Tally { stolen, ..slice };
        Ok(slices.into_iter().map(|it| it.into_iter().map(with_stolen).collect()).collect())
    }

    fn undisturbed(
        &self,
        work: &Arc<Work>,
        connections: usize,
        round: Duration,
        seed: u64,
    ) -> anyhow::Result<Tally> {
        let rest = || let_rest(&[self.pid]);
        let tally = self.contender.measure_undisturbed(
            &self.runtime,
            rest,
            work,
            connections,
            round,
            seed,
        )?;
        ensure!(tally.failures.is_empty(), "operations failed: {:?}", tally.failures);
        Ok(tally)
    }

    fn indexed_table(&self, table: &str, indexes: usize) -> anyhow::Result<()> {
        self.runtime.block_on(self.client().create_table(table))?;
        for (number, keys) in KEYS.into_iter().take(indexes).enumerate() {
            self.build(table, &format!("Index{number}"), keys, "")?;
        }
        Ok(())
    }
}

impl IndexesResult {
    fn row(&self, workload: &str, target: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.workload == workload && row.target == target)
    }

    /// Operations per second of a row, if it is there.
    pub fn rate(&self, workload: &str, target: &str) -> Option<f64> {
        self.row(workload, target).map(|row| row.operations_per_second)
    }

    /// The rate of a row (workload and target) in percent of another's.
    pub fn percent(&self, of: (&str, &str), base: (&str, &str)) -> Option<f64> {
        Some(100.0 * self.row(of.0, of.1)?.times(self.row(base.0, base.1)?)?)
    }

    pub fn table(&self) -> String {
        side_by_side(&self.rows)
    }
}
