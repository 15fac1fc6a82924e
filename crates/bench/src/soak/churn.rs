//! Tables made, filled, read and dropped while everything else goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Shared;
use super::counts::Kind;
use crate::entity::{Keys, Place};
use crate::operations::Change;
use crate::random::Random;
use crate::request::{Client, Failure};
use crate::target::Target;

const TRANSACTIONS: u64 = 10;
const TRANSACTION_ROWS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(200);
/// The room of a dropped table's name is soon free again.
const CREATE_TRIES_MAX: u32 = 50;

pub(super) async fn run(target: Target, shared: Arc<Shared>, seed: u64) {
    let mut client = Client::new(&target, Keys { partitions: 1, prefix: 'c' });
    let mut random = Random::new(seed);
    let mut number = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        // Half of the names come back at once, the others are new.
        number += random.below(2);
        let table =
            format!("{}churn{:08x}x{number}", shared.table, seed as u32 ^ (seed >> 32) as u32);
        if let Err(failure) = live_and_die(&mut client, &shared, &table).await {
            shared.counts.accuse("table", failure.to_string());
            // Whatever is left of it must not make the next one fail.
            number += 1;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn live_and_die(client: &mut Client, shared: &Shared, table: &str) -> Result<(), Failure> {
    create(client, shared, table).await?;
    for transaction in 0..TRANSACTIONS {
        let rows = transaction * TRANSACTION_ROWS..(transaction + 1) * TRANSACTION_ROWS;
        let changes = rows.map(|row| (Change::Insert, Place { partition: 0, row }));
        let start = Instant::now();
        let outcome = client.transaction(table, changes, 0).await.map(|_| ());
        shared.counts.note("table fill", Kind::Write, start.elapsed(), &outcome);
        if is_busy(&outcome) {
            // What was refused for lack of room is left out, and the table ends early.
            return drop_table(client, shared, table).await;
        }
        outcome?;
    }
    let start = Instant::now();
    let outcome =
        client.page(table, 0, TRANSACTIONS * TRANSACTION_ROWS, crate::request::NO_METADATA).await;
    shared.counts.note("table page", Kind::Query, start.elapsed(), &outcome);
    drop_table(client, shared, table).await?;
    match client.get(table, Place { partition: 0, row: 0 }).await {
        Err(Failure::Refused { status: 404 | 503, .. }) => Ok(()),
        Err(failure) => Err(failure),
        Ok(()) => Err(Failure::Wrong("a row of a dropped table is there".to_owned())),
    }
}

async fn create(client: &mut Client, shared: &Shared, table: &str) -> Result<(), Failure> {
    for _ in 0..CREATE_TRIES_MAX {
        let start = Instant::now();
        match client.create_table(table).await {
            Ok(true) => {
                shared.counts.note("table create", Kind::Write, start.elapsed(), &Ok(()));
                return Ok(());
            }
            Ok(false) | Err(Failure::Refused { status: 503, .. }) => {}
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failure::Wrong("the name of a dropped table is still taken".to_owned()))
}

async fn drop_table(client: &mut Client, shared: &Shared, table: &str) -> Result<(), Failure> {
    loop {
        let start = Instant::now();
        let outcome = client.drop_table(table).await;
        shared.counts.note("table drop", Kind::Write, start.elapsed(), &outcome);
        if !is_busy(&outcome) {
            return outcome;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn is_busy(outcome: &Result<(), Failure>) -> bool {
    matches!(outcome, Err(Failure::Refused { status: 503, .. }))
}
