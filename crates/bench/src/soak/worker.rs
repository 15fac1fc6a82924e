//! One connection of the soak: most of what it does meets others on the shared keys, some of it concerns rows of its
//! own, about which it knows exactly what must be there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Shared;
use super::counts::{Kind, is_expected};
use super::ledger::{Known, Ledger};
use crate::entity::{Keys, Place};
use crate::operations::Change;
use crate::random::Random;
use crate::request::{Client, Failure};
use crate::target::Target;

const OWN_ROWS: usize = 40;
const RANGE_ROWS: u64 = 100;
const TRANSACTION_ROWS: u64 = 10;

pub(super) struct Worker {
    client: Client,
    random: Random,
    shared: Arc<Shared>,
    own_keys: Keys,
    ledger: Ledger,
    /// Each write has a revision of its own.
    revision: u64,
}

impl Worker {
    pub(super) fn new(
        target: &Target,
        shared: Arc<Shared>,
        index: usize,
        workers: usize,
        seed: u64,
    ) -> Self {
        let own_keys = Keys { partitions: workers as u64, prefix: 'w' };
        Self {
            client: Client::new(target, Keys::default()),
            random: Random::new(seed ^ ((index as u64) << 20)),
            shared,
            own_keys,
            ledger: Ledger::new(own_keys, index as u64, OWN_ROWS),
            revision: 0,
        }
    }

    /// Works until it is told to stop.
    pub(super) async fn run(mut self) -> Self {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.revision += 1;
            let choice = self.random.below(100);
            if choice < 88 {
                self.client.keys = Keys::default();
                self.on_shared_keys(choice).await;
            } else {
                self.client.keys = self.own_keys;
                self.on_own_rows().await;
            }
        }
        self
    }

    /// Reads all rows of its own; gives how many were as acknowledged.
    pub(super) async fn verify(mut self) -> u64 {
        self.client.keys = self.own_keys;
        let mut right = 0;
        for row in 0..self.ledger.len() {
            right += u64::from(self.read_own(row).await);
        }
        right
    }

    async fn on_shared_keys(&mut self, choice: u64) {
        let place = Keys::default().place(self.shared.zipf.strewn(&mut self.random) as u64);
        let (start, shared, revision) = (Instant::now(), self.shared.clone(), self.revision);
        let (client, table) = (&mut self.client, shared.table.as_str());
        let (name, kind, outcome) = match choice {
            0..42 => ("get", Kind::Read, client.get(table, place).await),
            42..56 => ("upsert", Kind::Write, client.upsert(table, place, revision).await),
            56..65 => ("merge", Kind::Write, client.merge(table, place, revision).await),
            65..72 => ("insert", Kind::Write, client.insert(table, place, revision).await),
            72..77 => ("delete", Kind::Write, client.delete(table, place).await),
            77..80 => {
                ("replace", Kind::Write, replace_as_read(client, table, place, revision).await)
            }
            80..84 => {
                let found = client.range_count(table, place, RANGE_ROWS).await;
                ("range", Kind::Query, found.and_then(|rows| at_most(rows, RANGE_ROWS)))
            }
            84 => {
                let filter = format!(
                    "PartitionKey eq 'p{:05}' and Active eq true and Quantity gt 1000",
                    place.partition
                );
                ("filter", Kind::Query, client.scan(table, &filter).await.map(|_| ()))
            }
            85 => {
                // What somebody wrote at about the same time.
                let filter = format!("Revision eq '{revision}'");
                ("indexed", Kind::Query, client.scan(table, &filter).await.map(|_| ()))
            }
            _ => {
                let rows = (place.row..place.row + TRANSACTION_ROWS)
                    .map(|row| (Change::Upsert, Place { row, ..place }));
                (
                    "transaction",
                    Kind::Write,
                    client.transaction(table, rows, revision).await.map(|_| ()),
                )
            }
        };
        shared.counts.note(name, kind, start.elapsed(), &outcome);
    }

    async fn on_own_rows(&mut self) {
        let row = self.random.below(OWN_ROWS as u64) as usize;
        let (choice, revision, place) =
            (self.random.below(10), self.revision, self.ledger.place(row));
        if choice < 4 {
            self.read_own(row).await;
            return;
        }
        if choice == 9 {
            return self.transact_on_own_rows().await;
        }
        let known = self.ledger.known(row);
        let (start, table) = (Instant::now(), self.shared.table.clone());
        let (name, outcome, now) = match (choice, known) {
            (4 | 5, Known::Absent) => {
                ("own insert", self.client.insert(&table, place, revision).await, written(revision))
            }
            (6, Known::Present { base, .. }) => {
                let merged = Known::Present { base, revision };
                ("own merge", self.client.merge(&table, place, revision).await, merged)
            }
            (7, Known::Present { .. }) => {
                ("own delete", self.client.delete(&table, place).await, Known::Absent)
            }
            _ => {
                ("own upsert", self.client.upsert(&table, place, revision).await, written(revision))
            }
        };
        self.shared.counts.note(name, Kind::Write, start.elapsed(), &outcome);
        self.settle(name, &[row], &outcome, now);
    }

    /// Writes some rows together, sometimes with one more that cannot be: then none of them may change.
    async fn transact_on_own_rows(&mut self) {
        let first = self.random.below((OWN_ROWS - TRANSACTION_ROWS as usize) as u64) as usize;
        let rows: Vec<_> = (first..first + TRANSACTION_ROWS as usize).collect();
        let present = (0..OWN_ROWS).filter(|row| !rows.contains(row));
        let mut present =
            present.filter(|row| matches!(self.ledger.known(*row), Known::Present { .. }));
        let obstacle = present.next().filter(|_| self.random.below(3) == 0);
        let upserts = rows.iter().map(|row| (Change::Upsert, self.ledger.place(*row)));
        let changes: Vec<_> =
            upserts.chain(obstacle.map(|row| (Change::Insert, self.ledger.place(row)))).collect();
        let (start, table) = (Instant::now(), self.shared.table.clone());
        let outcome =
            self.client.transaction(&table, changes.into_iter(), self.revision).await.map(|_| ());
        let name =
            if obstacle.is_some() { "own transaction that fails" } else { "own transaction" };
        self.shared.counts.note(name, Kind::Write, start.elapsed(), &outcome);
        match (obstacle, &outcome) {
            (None, _) => self.settle(name, &rows, &outcome, written(self.revision)),
            (Some(_), Err(Failure::Refused { status: 409 | 503, .. })) => {}
            (Some(_), Ok(())) => {
                self.shared.counts.accuse(name, "it was done".to_owned());
                self.settle(name, &rows, &outcome, Known::Unsure);
            }
            (Some(_), Err(_)) => rows.iter().for_each(|row| self.ledger.set(*row, Known::Unsure)),
        }
    }

    /// Takes down what a write of its own rows came to. Nobody else writes them, so that it cannot be refused but for
    /// lack of room.
    fn settle(&mut self, name: &str, rows: &[usize], outcome: &Result<(), Failure>, now: Known) {
        let known = match outcome {
            Ok(()) => now,
            Err(Failure::Refused { status: 503, .. }) => return,
            Err(failure) => {
                if is_expected(failure) {
                    self.shared
                        .counts
                        .accuse(name, format!("{failure}, though nobody else writes these rows"));
                }
                Known::Unsure
            }
        };
        rows.iter().for_each(|row| self.ledger.set(*row, known));
    }

    async fn read_own(&mut self, row: usize) -> bool {
        let (start, shared) = (Instant::now(), self.shared.clone());
        let outcome = self.client.get(&shared.table, self.ledger.place(row)).await;
        shared.counts.note("own get", Kind::Read, start.elapsed(), &outcome);
        let checked = match outcome {
            Ok(()) => self.ledger.check(row, Some(self.client.connection.body())),
            Err(Failure::Refused { status: 404, .. }) => self.ledger.check(row, None),
            // Refused or lost: counted, and nothing was learnt.
            Err(_) => return false,
        };
        match checked {
            Ok(()) => true,
            Err(what) => {
                shared.counts.accuse("own get", what);
                false
            }
        }
    }
}

fn written(revision: u64) -> Known {
    Known::Present { base: revision, revision }
}

async fn replace_as_read(
    client: &mut Client,
    table: &str,
    place: Place,
    revision: u64,
) -> Result<(), Failure> {
    client.get(table, place).await?;
    let etag = client.connection.etag().unwrap_or_default().to_owned();
    client.replace(table, place, revision, &etag).await
}

fn at_most(rows: u64, limit: u64) -> Result<(), Failure> {
    if rows <= limit {
        Ok(())
    } else {
        Err(Failure::Wrong(format!("{rows} rows in a range of {limit}")))
    }
}
