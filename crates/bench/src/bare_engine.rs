//! The bare engine: the store that the service keeps its rows in, committing the same rows in the same groups, with
//! nothing around it. What transactions of a hundred inserts are held against.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fjall::{Database, KeyspaceCreateOptions, PersistMode};

use crate::entity::{Keys, Place};
use crate::micro::{stored_entity, stored_key};
use crate::process;
use crate::workload::TRANSACTION_ROWS;

/// Rows are encoded beforehand, for so many transactions, and then used again under new keys.
const TRANSACTIONS_READY: u64 = 50;

/// What the bare engine did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Committed {
    pub rows_per_second: f64,
    pub cpu_micros_per_transaction: f64,
}

/// A store in a folder of its own, kept from round to round.
pub struct BareEngine {
    database: Database,
    keyspace: fjall::Keyspace,
    /// Encoded entities, in the order of their transactions.
    values: Vec<Vec<u8>>,
    committed: u64,
}

impl BareEngine {
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let database = Database::builder(folder).open().context("opening the bare engine")?;
        let keyspace = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        let keys = Keys::default();
        let numbers = 0..TRANSACTIONS_READY * TRANSACTION_ROWS;
        let values = numbers.map(|number| stored_entity(keys, number)).collect();
        Ok(Self { database, keyspace, values, committed: 0 })
    }

    /// Commits transactions of a hundred rows one after the other, each durable before the next.
    pub fn commit_for(&mut self, duration: Duration) -> anyhow::Result<Committed> {
        let cpu = || process::cpu_seconds(std::process::id()).unwrap_or_default();
        let (start, cpu_before, before) = (Instant::now(), cpu(), self.committed);
        while start.elapsed() < duration {
            self.commit_one()?;
        }
        let transactions = (self.committed - before) as f64;
        Ok(Committed {
            rows_per_second: transactions * TRANSACTION_ROWS as f64 / start.elapsed().as_secs_f64(),
            cpu_micros_per_transaction: (cpu() - cpu_before) * 1e6 / transactions,
        })
    }

    fn commit_one(&mut self) -> anyhow::Result<()> {
        let keys = Keys::default();
        let block = keys.place(self.committed);
        let values_at = (self.committed % TRANSACTIONS_READY * TRANSACTION_ROWS) as usize;
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for offset in 0..TRANSACTION_ROWS {
            let place = Place { row: block.row * TRANSACTION_ROWS + offset, ..block };
            batch.insert(
                &self.keyspace,
                row_key(keys, place),
                self.values[values_at + offset as usize].as_slice(),
            );
        }
        batch.commit().context("committing to the bare engine")?;
        self.committed += 1;
        Ok(())
    }
}

/// A key as the service writes it: family, table, and the entity's own.
fn row_key(keys: Keys, place: Place) -> Vec<u8> {
    let mut key = vec![b'E'];
    key.extend_from_slice(&1_u64.to_be_bytes());
    key.extend(stored_key(keys, keys.number(place)));
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_committed_is_in_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let mut engine = BareEngine::open(folder.path()).unwrap();
        let committed = engine.commit_for(Duration::from_millis(20)).unwrap();
        assert!(committed.rows_per_second > 0.0);
        assert!(engine.committed > 0);
        assert_eq!(engine.keyspace.iter().count() as u64, engine.committed * TRANSACTION_ROWS);
    }
}
