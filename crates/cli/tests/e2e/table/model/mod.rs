//! Long random sequences of operations, through HTTP, against a plain model in memory.
//!
//! Every answer is compared: status, code, ETag, entity, and the results of queries in order. The server is
//! restarted and killed in between, and everything is read back after that. A failure tells its seed;
//! `TAVOLA_TEST_SEED` runs it again.

mod filter;
mod indexes;
mod large_tables;
mod requests;
pub(crate) mod store;
mod unique;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use self::filter::Filter;
use self::store::{Change, Condition, Properties, Rows, Store, key};
use crate::support::client::{Request, values};
use crate::support::{Batch, Client, Launch, Random, SEED};

const TABLES: [&str; 3] = ["alpha", "Beta", "gamma"];
const PARTITIONS: [&str; 6] = ["", "a", "aa", "b", "\u{1f600}", "\u{fffd}"];
const ROWS: [&str; 9] = ["", "1", "2", "22", "3", "O'Brien", "x", "\u{e9}", "\u{1f601}"];
/// The variable that sets how many sequences with indexes are run.
const INDEX_SEQUENCES: &str = "TAVOLA_INDEX_SEQUENCES";
const OPERATIONS: usize = 3000;
const OPERATIONS_BETWEEN_STOPS: usize = 400;
/// Sequences with indexes are many and short, but for long runs.
const SHORT_SEQUENCES: u64 = 24;
const SHORT_OPERATIONS: usize = 400;
const SHORT_BETWEEN_STOPS: usize = 150;

#[test]
fn a_long_random_sequence() {
    run(Random::seed_or(1));
}

#[test]
fn another_long_random_sequence() {
    run(Random::seed_or(20_260_801));
}

#[test]
fn a_long_random_sequence_in_memory() {
    let launch = Launch::new().arg("--inMemoryPersistence");
    Session::new(launch, Random::seed_or(77)).run(usize::MAX);
}

/// Many short ones, or as many long ones as the environment says: from a seed on, each with the next.
#[test]
#[expect(clippy::print_stdout, reason = "a long run shows what it did")]
fn random_sequences_with_indexes() {
    let (begun, first) = (Instant::now(), Random::seed_or(16));
    let long = std::env::var(INDEX_SEQUENCES).ok();
    let count = match (&long, std::env::var(SEED)) {
        (Some(count), _) => count.parse().expect("a number of sequences"),
        // A seed repeats the one that has failed with it.
        (None, Ok(_)) => 1,
        (None, Err(_)) => SHORT_SEQUENCES,
    };
    let (operations, between_stops) = match long {
        Some(_) => (OPERATIONS, OPERATIONS_BETWEEN_STOPS),
        None => (SHORT_OPERATIONS, SHORT_BETWEEN_STOPS),
    };
    for seed in first..first + count {
        run_with_indexes(seed, operations, between_stops);
    }
    let (operations, seconds) = (count * operations as u64, begun.elapsed().as_secs());
    println!("{SEED}={first}: {count} sequences, {operations} operations, {seconds} seconds");
}

/// Odd seeds run in memory, even ones on disk with restarts and kills.
fn run_with_indexes(seed: u64, operations: usize, between_stops: usize) {
    let (launch, between_stops) = match seed.is_multiple_of(2) {
        true => (Launch::new(), between_stops),
        false => (Launch::new().arg("--inMemoryPersistence"), usize::MAX),
    };
    let mut session = Session::new(launch, seed).with_indexes();
    session.operations = operations;
    session.run(between_stops);
}

fn run(seed: u64) {
    Session::new(Launch::new(), seed).run(OPERATIONS_BETWEEN_STOPS);
}

/// A server, the model of it, and the choices.
struct Session {
    client: Client,
    store: Store,
    random: Random,
    seed: u64,
    operations: usize,
    /// Whether indexes come and go meanwhile.
    has_indexes: bool,
    /// Those that are declared: table and name, and whether they have copies of everything.
    indexes: BTreeMap<(String, &'static str), bool>,
    /// The keys of the unique index of a table, if it has one.
    unique: BTreeMap<String, &'static str>,
    /// Tables of which an index is read as a table.
    viewed: BTreeSet<String>,
}

impl Session {
    fn new(launch: Launch, seed: u64) -> Self {
        let client = Client::new(&Arc::new(launch.start()));
        Self {
            client,
            store: Store::default(),
            random: Random::new(seed),
            seed,
            has_indexes: false,
            operations: OPERATIONS,
            indexes: BTreeMap::new(),
            unique: BTreeMap::new(),
            viewed: BTreeSet::new(),
        }
    }

    fn with_indexes(mut self) -> Self {
        self.has_indexes = true;
        self
    }

    fn run(mut self, operations_between_stops: usize) {
        for table in TABLES {
            self.create_table(table);
        }
        for step in 1..=self.operations {
            self.step();
            if step % operations_between_stops == 0 {
                match step / operations_between_stops % 2 {
                    0 => self.client.server().restart_cleanly(),
                    _ => self.client.server().crash_and_restart(),
                }
                self.compare_everything();
            }
        }
        self.compare_everything();
        if self.has_indexes {
            self.verify_indexes();
        }
    }

    fn step(&mut self) {
        let table = *self.random.pick(&TABLES);
        match self.random.below(100) {
            0 => self.create_table(table),
            1 => self.drop_table(table),
            2 | 3 if self.has_indexes => self.change_indexes(table),
            4 | 5 if self.has_indexes => self.change_unique(table),
            6 if self.has_indexes => self.change_view(table),
            2..=19 => self.get(table),
            20..=39 => self.query(table),
            40..=59 => self.batch(table),
            _ => self.change(table),
        }
    }

    fn create_table(&mut self, table: &str) {
        let answer = self.client.create_table(table);
        match self.store.create(table) {
            true => answer.expect(204),
            false => answer.expect_error(409, "TableAlreadyExists"),
        };
    }

    fn drop_table(&mut self, table: &str) {
        let answer = self.client.drop_table(table);
        self.indexes.retain(|(of, _), _| of != table);
        self.unique.remove(table);
        self.viewed.remove(table);
        match self.store.drop(table) {
            true => answer.expect(204),
            false => answer.expect_error(404, "ResourceNotFound"),
        };
    }

    fn get(&mut self, table: &str) {
        let (partition, row) = (*self.random.pick(&PARTITIONS), *self.random.pick(&ROWS));
        let answer = self.client.entity(table, (partition, row));
        let Some(rows) = self.store.rows(table) else {
            answer.expect_error(404, "TableNotFound");
            return;
        };
        match rows.get(&key(partition, row)) {
            Some(expected) => {
                let answer = answer.expect(200);
                assert_eq!(answer.etag(), expected.etag);
                expected.assert_is((partition, row), &answer.json());
            }
            None => {
                answer.expect_error(404, "ResourceNotFound");
            }
        }
    }

    fn change(&mut self, table: &str) {
        let partition = *self.random.pick(&PARTITIONS);
        let row = *self.random.pick(&ROWS);
        self.change_of(table, partition, row);
    }

    fn change_of(&mut self, table: &str, partition: &str, row: &str) {
        let change = self.random_change(table, partition, row);
        let answer = change.request(&self.client, table, (partition, row)).send();
        let Some(rows) = self.store.rows_mut(table) else {
            answer.expect_error(404, "TableNotFound");
            return;
        };
        let unique = self.unique.get(table).copied();
        let refusal = change.refusal(rows.get(&key(partition, row)));
        let changes = [(row, change)];
        let violation = || unique::violation(rows, unique?, partition, &changes);
        let refusal = refusal.or_else(|| violation().map(|_| unique::VIOLATION));
        let [(_, change)] = &changes;
        match refusal {
            Some((status, code)) => {
                answer.expect_error(status, code);
            }
            None => {
                let answer = answer.expect(204);
                change.apply(rows, partition, row, answer.header("etag"));
            }
        }
    }

    fn random_change(&mut self, table: &str, partition: &str, row: &str) -> Change {
        let current = self.store.rows(table).and_then(|rows| rows.get(&key(partition, row)));
        let current = current.map(|row| row.etag.clone());
        let condition = |random: &mut Random| match (random.below(4), &current) {
            (0, _) => Condition::Any,
            (1 | 2, Some(etag)) => Condition::Version(etag.clone()),
            _ => Condition::Version("W/\"datetime'2020-01-01T00%3A00%3A00Z'\"".to_owned()),
        };
        let random = &mut self.random;
        match random.below(7) {
            0 | 1 => Change::Insert(Properties::random(random)),
            2 => Change::Replace(None, Properties::random(random)),
            3 => Change::Merge(None, Properties::random(random)),
            4 => Change::Replace(Some(condition(random)), Properties::random(random)),
            5 => Change::Merge(Some(condition(random)), Properties::random(random)),
            _ => Change::Delete(condition(random)),
        }
    }

    /// A changeset in one partition; now and then a row comes twice.
    fn batch(&mut self, table: &str) {
        let partition = *self.random.pick(&PARTITIONS);
        let mut rows: Vec<&str> = Vec::new();
        for _ in 0..1 + self.random.below(6) {
            let row = *self.random.pick(&ROWS);
            if !rows.contains(&row) || self.random.one_in(20) {
                rows.push(row);
            }
        }
        let changes: Vec<_> =
            rows.into_iter().map(|row| (row, self.random_change(table, partition, row))).collect();
        let batch = changes.iter().fold(Batch::new(), |batch, (row, change)| {
            change.add_to(batch, &self.client, table, (partition, row))
        });
        let reply = batch.send(&self.client);
        let Some(stored) = self.store.rows_mut(table) else {
            reply.expect_failure(404, "TableNotFound", 0);
            return;
        };
        let unique = self.unique.get(table).copied();
        let violation = || unique::violation(stored, unique?, partition, &changes);
        let refusal = refusal(stored, partition, &changes)
            .or_else(|| violation().map(|index| (index, unique::VIOLATION)));
        if let Some((index, (status, code))) = refusal {
            reply.expect_failure(status, code, index);
            return;
        }
        let parts = reply.expect_done(changes.len());
        for ((row, change), part) in changes.iter().zip(parts) {
            assert_eq!(part.status, 204);
            change.apply(stored, partition, row, part.header("etag"));
        }
    }

    fn query(&mut self, table: &str) {
        // What few properties are asked for, an index has alone more often.
        let depth = if self.has_indexes { *self.random.pick(&[0, 1, 3]) } else { 3 };
        let filter = Filter::random(&mut self.random, depth);
        let top = self.random.one_in(2).then(|| 1 + self.random.below(10));
        let text = filter.text();
        let Some(rows) = self.store.rows(table) else {
            let answer = self.client.query(table, &[("$filter", &text)]).send();
            answer.expect_error(404, "TableNotFound");
            return;
        };
        let found = all_matches(&self.client, table, &text, top);
        let expected: Vec<_> = rows
            .iter()
            .filter(|(keys, row)| filter.matches(keys.0.as_str(), keys.1.as_str(), row))
            .collect();
        assert_same(&expected, &found, &text);
        if self.has_indexes {
            self.compare_paths(table, &filter);
            self.compare_view(table);
        }
    }

    fn compare_everything(&self) {
        for table in TABLES {
            match self.store.rows(table) {
                Some(rows) => {
                    let found = all_matches(&self.client, table, "", None);
                    assert_same(&rows.iter().collect::<Vec<_>>(), &found, table);
                }
                None => {
                    let answer = self.client.query(table, &[]).send();
                    answer.expect_error(404, "TableNotFound");
                }
            }
        }
        let tables = values(&self.client.get("/Tables").send().expect(200));
        let mut names: Vec<_> = tables.iter().map(|table| table["TableName"].clone()).collect();
        names.retain(|name| !self.has_indexes || name != "TavolaIndexes");
        let views: Vec<_> = self.viewed.iter().map(|table| views::name_of(table)).collect();
        names.retain(|name| !views.iter().any(|view| name == view));
        let expected: Vec<_> =
            TABLES.into_iter().filter(|table| self.store.rows(table).is_some()).collect();
        assert_eq!(names, expected);
    }
}

/// Rows that come twice are found before anything is executed; else the first that fails.
fn refusal(
    stored: &Rows,
    partition: &str,
    changes: &[(&str, Change)],
) -> Option<(usize, (u16, &'static str))> {
    for (index, (row, _)) in changes.iter().enumerate() {
        if changes[..index].iter().any(|(earlier, _)| earlier == row) {
            return Some((index, (400, "InvalidDuplicateRow")));
        }
    }
    changes.iter().enumerate().find_map(|(index, (row, change))| {
        let refusal = change.refusal(stored.get(&key(partition, row)));
        refusal.map(|refusal| (index, refusal))
    })
}

/// All pages of a query.
pub(crate) fn all_matches(
    client: &Client,
    table: &str,
    filter: &str,
    top: Option<usize>,
) -> Vec<Value> {
    let top = top.map(|top| top.to_string());
    let mut options = vec![("$filter", filter)];
    options.extend(top.as_deref().map(|top| ("$top", top)));
    client.pages(table, &options, Request::send).iter().flat_map(values).collect()
}

#[track_caller]
fn assert_same(expected: &[(&store::Keys, &store::Row)], found: &[Value], what: &str) {
    let keys = |entity: &Value| {
        key(
            entity["PartitionKey"].as_str().expect("a partition key"),
            entity["RowKey"].as_str().expect("a row key"),
        )
    };
    let found_keys: Vec<_> = found.iter().map(keys).collect();
    let expected_keys: Vec<_> = expected.iter().map(|(keys, _)| (*keys).clone()).collect();
    assert_eq!(found_keys, expected_keys, "{what}");
    for ((keys, row), entity) in expected.iter().zip(found) {
        assert_eq!(entity["odata.etag"].as_str(), Some(row.etag.as_str()), "{what}");
        row.assert_is((keys.0.as_str(), keys.1.as_str()), entity);
    }
}

/// Tells the seed of a failed run.
impl Drop for Session {
    #[expect(clippy::print_stderr, reason = "a failed test tells how to repeat it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let is_long = self.has_indexes && self.operations == OPERATIONS;
            let long = if is_long { format!("{INDEX_SEQUENCES}=1 ") } else { String::new() };
            eprintln!("repeat with {long}TAVOLA_TEST_SEED={}", self.seed);
        }
    }
}
