//! A connection that creates, fills, drops and creates again tables of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::exchange::send_together;
use super::ledger::{Ledger, RowChange};
use super::round::Round;
use crate::support::{Client, Random, Server};
use crate::table::model::all_matches;
use crate::table::model::store::{Change, Properties, Property, key};

/// Names that are used again and again.
const NAMES: usize = 3;
const PARTITION: &str = "rows";
const FILL_ROWS_MAX: usize = 40;
/// Enough that the server cares for the space at once and deletes whole files.
const LARGE_TABLE_ROWS: usize = 10_100;
const TRANSACTION_ROWS: usize = 100;

pub(super) struct Churner {
    number: usize,
    tables: Vec<Table>,
    random: Random,
    next_number: i64,
}

/// A name, and what it stands for now.
struct Table {
    name: String,
    /// The rows of the present incarnation.
    ledger: Option<Ledger>,
    pending: Option<Pending>,
}

#[derive(Clone, Copy)]
enum Pending {
    Create,
    Drop,
}

impl Churner {
    pub(super) fn new(number: usize, seed: u64) -> Self {
        let table =
            |index| Table { name: format!("Churn{number}x{index}"), ledger: None, pending: None };
        Self {
            number,
            tables: (0..NAMES).map(table).collect(),
            random: Random::new(seed),
            next_number: 0,
        }
    }

    pub(super) fn run(&mut self, server: &Arc<Server>, round: &Round) {
        let client = Client::new(server).without_resending();
        // One of them is enough.
        let mut drops_large = self.number == 0 && round.kind.drops_a_large_table();
        round.work(|| {
            if std::mem::take(&mut drops_large) {
                return self.fill_and_drop_large(&client, round);
            }
            self.step(&client, round)
        });
    }

    /// The tables there are.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        let existing = self.tables.iter().filter(|table| table.ledger.is_some());
        existing.map(|table| table.name.as_str())
    }

    /// Holds what is stored against what is known; answers the number of rows.
    pub(super) fn check(&mut self, client: &Client) -> usize {
        self.tables.iter_mut().map(|table| table.check(client)).sum()
    }

    fn step(&mut self, client: &Client, round: &Round) -> std::io::Result<()> {
        let index = self.random.below(NAMES);
        match self.random.below(8) {
            0 | 1 => self.tables[index].create(client, round),
            2 => self.tables[index].drop(client, round),
            _ => {
                let rows = 1 + self.random.below(FILL_ROWS_MAX);
                self.fill(index, rows, client, round)
            }
        }
    }

    fn fill_and_drop_large(&mut self, client: &Client, round: &Round) -> std::io::Result<()> {
        if self.tables[0].ledger.is_none() {
            self.tables[0].create(client, round)?;
        }
        for _ in 0..LARGE_TABLE_ROWS / TRANSACTION_ROWS {
            self.fill(0, TRANSACTION_ROWS, client, round)?;
        }
        self.tables[0].drop(client, round)?;
        round.large_table_dropped();
        // The name is free at once, and what comes under it now must not be swept with the rest.
        self.tables[0].create(client, round)?;
        self.fill(0, FILL_ROWS_MAX, client, round)
    }

    /// Inserts rows under keys that also earlier tables of the name have had.
    fn fill(
        &mut self,
        index: usize,
        rows: usize,
        client: &Client,
        round: &Round,
    ) -> std::io::Result<()> {
        let table = &mut self.tables[index];
        let Some(ledger) = &mut table.ledger else {
            let row = json!({"PartitionKey": PARTITION, "RowKey": "none"});
            let insert = client.post(format!("/{}", table.name), &row);
            insert.try_send()?.expect_error(404, "TableNotFound");
            round.count_refused();
            return Ok(());
        };
        let from = ledger.rows().len();
        let changes = (from..from + rows)
            .map(|row| {
                self.next_number += 1;
                let number = ("Number".to_owned(), Property::Int64(self.next_number));
                RowChange {
                    partition: PARTITION.to_owned(),
                    row: format!("{row:06}"),
                    change: Change::Insert(Properties(BTreeMap::from([number]))),
                }
            })
            .collect();
        send_together(client, &table.name, ledger, changes, round)
    }
}

impl Table {
    fn create(&mut self, client: &Client, round: &Round) -> std::io::Result<()> {
        let body = json!({ "TableName": self.name });
        let request = client.post("/Tables", &body).header("Prefer", "return-no-content");
        if self.ledger.is_some() {
            request.try_send()?.expect_error(409, "TableAlreadyExists");
            round.count_refused();
            return Ok(());
        }
        self.pending = Some(Pending::Create);
        request.try_send()?.expect(204);
        self.settle(true);
        round.count_acknowledged(0);
        Ok(())
    }

    fn drop(&mut self, client: &Client, round: &Round) -> std::io::Result<()> {
        let request = client.delete(format!("/Tables('{}')", self.name));
        if self.ledger.is_none() {
            request.try_send()?.expect_error(404, "ResourceNotFound");
            round.count_refused();
            return Ok(());
        }
        self.pending = Some(Pending::Drop);
        request.try_send()?.expect(204);
        self.settle(true);
        round.count_acknowledged(0);
        Ok(())
    }

    fn check(&mut self, client: &Client) -> usize {
        let exists = match client.get(format!("/Tables('{}')", self.name)).send() {
            answer if answer.status == 404 => false,
            answer => answer.expect(200).status == 200,
        };
        let is_done = matches!(
            (self.pending, exists),
            (Some(Pending::Create), true) | (Some(Pending::Drop), false)
        );
        self.settle(is_done);
        assert_eq!(self.ledger.is_some(), exists, "table {}", self.name);
        let Some(ledger) = &mut self.ledger else {
            client.query(&self.name, &[]).send().expect_error(404, "TableNotFound");
            return 0;
        };
        let found = all_matches(client, &self.name, "", None);
        ledger.settle(&found, &key("", "")).rows
    }

    fn settle(&mut self, is_done: bool) {
        match self.pending.take().filter(|_| is_done) {
            Some(Pending::Create) => self.ledger = Some(Ledger::default()),
            Some(Pending::Drop) => self.ledger = None,
            None => {}
        }
    }
}
