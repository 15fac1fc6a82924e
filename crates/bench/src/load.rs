//! Fills a table: transactions of a hundred inserts from a few connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::entity::{Keys, Place};
use crate::operations::Change;
use crate::request::Client;
use crate::target::Target;
use crate::workload::TRANSACTION_ROWS;

/// Enough to keep a server busy, few enough that a slow one does not choke.
const CONNECTIONS: usize = 8;

/// What a load came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loaded {
    pub took: Duration,
    /// The JSON that the entities were sent as.
    pub json_bytes: u64,
}

/// Makes the table if need be, and inserts the entities from `from` up to `to`.
pub async fn load(target: &Target, table: &str, from: u64, to: u64) -> anyhow::Result<Loaded> {
    let keys = Keys::default();
    let start = Instant::now();
    Client::new(target, keys)
        .create_table(table)
        .await
        .with_context(|| format!("making {table}"))?;
    let blocks = Arc::new(blocks(keys, from, to));
    let next = Arc::new(AtomicU64::new(0));
    let mut loaders = Vec::new();
    for _ in 0..CONNECTIONS {
        let (blocks, next, table) = (blocks.clone(), next.clone(), table.to_owned());
        let client = Client::new(target, keys);
        loaders.push(tokio::spawn(load_blocks(client, table, blocks, next)));
    }
    let mut json_bytes = 0;
    for loader in loaders {
        json_bytes += loader.await.context("a loader ended")??;
    }
    Ok(Loaded { took: start.elapsed(), json_bytes })
}

async fn load_blocks(
    mut client: Client,
    table: String,
    blocks: Arc<Vec<(Place, u64)>>,
    next: Arc<AtomicU64>,
) -> anyhow::Result<u64> {
    let mut json_bytes = 0;
    let mut scratch = Vec::new();
    while let Some((first, rows)) =
        blocks.get(next.fetch_add(1, Ordering::Relaxed) as usize).copied()
    {
        let places = (first.row..first.row + rows).map(|row| Place { row, ..first });
        client.transaction(&table, places.clone().map(|place| (Change::Insert, place)), 0).await?;
        for place in places {
            scratch.clear();
            client.keys.push_entity(&mut scratch, place, 0);
            json_bytes += scratch.len() as u64;
        }
    }
    Ok(json_bytes)
}

/// The rows of each partition, in pieces of at most a transaction, partitions in turn.
fn blocks(keys: Keys, from: u64, to: u64) -> Vec<(Place, u64)> {
    let mut blocks: Vec<_> = (0..keys.partitions)
        .flat_map(|partition| {
            let (first, end) = (keys.rows_in(partition, from), keys.rows_in(partition, to));
            (first..end)
                .step_by(TRANSACTION_ROWS as usize)
                .map(move |row| (Place { partition, row }, TRANSACTION_ROWS.min(end - row)))
        })
        .collect();
    blocks.sort_by_key(|(place, _)| (place.row, place.partition));
    blocks
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn blocks_hold_every_new_entity_once() {
        let keys = Keys::default();
        for (from, to) in [(0, 0), (0, 1), (0, 5_000), (1234, 17_003), (5_000, 5_049)] {
            let mut numbers = HashSet::new();
            for (first, rows) in blocks(keys, from, to) {
                assert!((1..=TRANSACTION_ROWS).contains(&rows));
                for row in first.row..first.row + rows {
                    assert!(numbers.insert(keys.number(Place { row, ..first })), "once");
                }
            }
            assert_eq!(numbers, (from..to).collect(), "from {from} to {to}");
        }
    }
}
