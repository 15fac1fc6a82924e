//! A connection that changes rows of its own in every way there is, also in ways that must be refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::exchange::{send_alone, send_together};
use super::ledger::{Ledger, RowChange, Settled};
use super::pager::{ARCHIVE, RowName};
use super::round::Round;
use crate::support::{Client, Random, Server};
use crate::table::model::all_matches;
use crate::table::model::store::{Change, Condition, Properties, Property, key};

/// Rows that are changed again and again.
const ROWS: usize = 24;
const TRANSACTION_ROWS_MAX: usize = 8;
const ARCHIVE_ROWS_MAX: usize = 12;
const TEXT_BYTES_MAX: usize = 200;
/// The longest text that a property may hold, almost. Two of them are kept in a file of separate values.
const LARGE_TEXT_BYTES_MAX: usize = 30 * 1024;
const NOISE_BYTES: usize = 64 * 1024;

pub(super) struct Writer {
    table: &'static str,
    partition: String,
    archive_partition: String,
    random: Random,
    /// What texts are cut from: nothing that would compress.
    noise: String,
    /// Rows that come and go.
    ledger: Ledger,
    /// Rows that are only ever added.
    archive: Ledger,
    archive_rows: usize,
    /// The first archived row that no check has seen yet.
    archive_checked: usize,
    next_number: i64,
}

impl Writer {
    pub(super) fn new(table: &'static str, number: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let words = (0..NOISE_BYTES / 16).map(|_| format!("{:016x}", random.next()));
        Self {
            table,
            partition: format!("writer{number}"),
            archive_partition: format!("{ARCHIVE}{number}"),
            noise: words.collect(),
            random,
            ledger: Ledger::default(),
            archive: Ledger::default(),
            archive_rows: 0,
            archive_checked: 0,
            next_number: 0,
        }
    }

    pub(super) fn run(&mut self, server: &Arc<Server>, round: &Round) {
        let client = Client::new(server).without_resending();
        round.work(|| match self.random.below(10) {
            0..5 => self.change_a_row(&client, round),
            5..8 => self.change_rows_together(&client, round),
            _ => self.archive(&client, round),
        });
    }

    /// Holds what is stored against the ledgers: everything, or what may have changed since the last time.
    pub(super) fn check(&mut self, client: &Client, is_full: bool) -> Settled {
        let everything = |partition: &str| format!("PartitionKey eq '{partition}'");
        let found = all_matches(client, self.table, &everything(&self.partition), None);
        let rows = self.ledger.settle(&found, &key(&self.partition, ""));
        let from = if is_full { String::new() } else { archive_row(self.archive_checked) };
        let filter = format!("{} and RowKey ge '{from}'", everything(&self.archive_partition));
        let found = all_matches(client, self.table, &filter, None);
        let archive = self.archive.settle(&found, &key(&self.archive_partition, &from));
        self.archive_checked = self.archive_rows;
        Settled {
            rows: rows.rows + archive.rows,
            done_unheard: rows.done_unheard || archive.done_unheard,
            undone_unheard: rows.undone_unheard || archive.undone_unheard,
        }
    }

    pub(super) fn archived(&self) -> impl Iterator<Item = RowName> {
        let keys = self.archive.rows().keys();
        keys.map(|(partition, row)| (partition.as_str().to_owned(), row.as_str().to_owned()))
    }

    fn change_a_row(&mut self, client: &Client, round: &Round) -> std::io::Result<()> {
        let is_refused = self.random.one_in(5);
        let row = format!("row{:02}", self.random.below(ROWS));
        let change = self.random_change(row, is_refused, round);
        send_alone(client, self.table, &mut self.ledger, change, round)
    }

    /// Several rows at once; now and then one of them must not be changed, and so none.
    fn change_rows_together(&mut self, client: &Client, round: &Round) -> std::io::Result<()> {
        let count = 1 + self.random.below(TRANSACTION_ROWS_MAX);
        let refused = self.random.one_in(4).then(|| self.random.below(count));
        let first = self.random.below(ROWS);
        let changes = (0..count)
            .map(|index| {
                // Seven and the number of rows have no common factor: no row comes twice.
                let row = format!("row{:02}", (first + 7 * index) % ROWS);
                self.random_change(row, refused == Some(index), round)
            })
            .collect();
        send_together(client, self.table, &mut self.ledger, changes, round)
    }

    fn archive(&mut self, client: &Client, round: &Round) -> std::io::Result<()> {
        let from = self.archive_rows;
        self.archive_rows += 1 + self.random.below(ARCHIVE_ROWS_MAX);
        let changes = (from..self.archive_rows)
            .map(|number| {
                let change = Change::Insert(self.random_properties(TEXT_BYTES_MAX));
                let partition = self.archive_partition.clone();
                RowChange { partition, row: archive_row(number), change }
            })
            .collect();
        send_together(client, self.table, &mut self.archive, changes, round)
    }

    fn random_change(&mut self, row: String, is_refused: bool, round: &Round) -> RowChange {
        let properties = match round.kind.has_large_values() && !is_refused {
            true => self.random_properties(LARGE_TEXT_BYTES_MAX),
            false => self.random_properties(TEXT_BYTES_MAX),
        };
        let current = self.ledger.etag(&self.partition, &row).map(str::to_owned);
        let change = match is_refused {
            true => {
                let wrong = self.ledger.wrong_etag(&self.partition, &row);
                refused_change(&mut self.random, current.is_some(), wrong, properties)
            }
            false => allowed_change(&mut self.random, current, properties),
        };
        RowChange { partition: self.partition.clone(), row, change }
    }

    /// A number that no other change has, under a name that a merge may or may not meet, and texts.
    fn random_properties(&mut self, text_bytes_max: usize) -> Properties {
        self.next_number += 1;
        let number = Property::Int64(self.next_number);
        let numbered = (*self.random.pick(&["A", "B", "C"])).to_owned();
        let mut properties =
            BTreeMap::from([("Number".to_owned(), number.clone()), (numbered, number)]);
        for name in ["Text", "More"] {
            if name == "Text" || self.random.one_in(3) {
                let bytes = text_bytes_max / 2 + self.random.below(text_bytes_max / 2);
                let start = self.random.below(self.noise.len() - bytes);
                let text = self.noise[start..start + bytes].to_owned();
                properties.insert(name.to_owned(), Property::Text(text));
            }
        }
        Properties(properties)
    }
}

fn archive_row(number: usize) -> String {
    format!("{number:08}")
}

fn allowed_change(random: &mut Random, current: Option<String>, new: Properties) -> Change {
    let Some(etag) = current else {
        return match random.below(4) {
            0 => Change::Replace(None, new),
            1 => Change::Merge(None, new),
            _ => Change::Insert(new),
        };
    };
    match random.below(9) {
        0 => Change::Replace(None, new),
        1 => Change::Replace(Some(Condition::Any), new),
        2 => Change::Replace(Some(Condition::Version(etag)), new),
        3 => Change::Merge(None, new),
        4 => Change::Merge(Some(Condition::Any), new),
        5 | 6 => Change::Merge(Some(Condition::Version(etag)), new),
        7 => Change::Delete(Condition::Any),
        _ => Change::Delete(Condition::Version(etag)),
    }
}

fn refused_change(random: &mut Random, exists: bool, wrong: String, new: Properties) -> Change {
    if exists && random.one_in(3) {
        return Change::Insert(new);
    }
    // Any version is right for a row that exists.
    let condition = match !exists && random.one_in(2) {
        true => Condition::Any,
        false => Condition::Version(wrong),
    };
    match random.below(3) {
        0 => Change::Replace(Some(condition), new),
        1 => Change::Merge(Some(condition), new),
        _ => Change::Delete(condition),
    }
}
