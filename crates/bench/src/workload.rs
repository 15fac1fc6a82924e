//! What is measured: one kind of operation at a time, over and over.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;

use crate::entity::{Keys, Place, SCAN_FILTER, scan_matches};
use crate::operations::Change;
use crate::random::Random;
use crate::request::{Client, Failure, MINIMAL_METADATA, NO_METADATA};

/// Entities that a range query returns, and rows that a transaction inserts.
pub const RANGE_ROWS: u64 = 100;
pub const TRANSACTION_ROWS: u64 = 100;
/// Entities on a full page.
pub const PAGE_ROWS: u64 = 1000;

/// One kind of operation. The names are those on the command line and in reports, the order is that of measuring: first
/// what reads, so that it meets what was loaded, and not the million rows that the others leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Workload {
    /// One entity by its keys
    Get,
    /// One entity by a filter that names both keys
    PointQuery,
    /// 100 entities of a partition by a range of row keys
    QueryRange,
    /// A page of 1,000 entities without metadata
    QueryPage,
    /// A page of 1,000 entities with minimal metadata
    QueryPageMin,
    /// The whole table by a property that one entity in a thousand has
    ScanFilter,
    /// New entities, one a request, into a table that starts empty
    Insert,
    /// Transactions of 100 inserts into a table that starts empty
    Egt100,
    /// Replaces whole entities
    Upsert,
    /// Sets two properties
    Merge,
}

/// What the operations of a workload share: the table, what is in it, and what comes next.
#[derive(Debug)]
pub struct Work {
    pub workload: Workload,
    pub table: String,
    pub keys: Keys,
    /// Entities that are loaded.
    pub entities: u64,
    /// The next entity or transaction that is new.
    pub next: AtomicU64,
}

impl Workload {
    pub fn name(self) -> String {
        self.to_possible_value().expect("no workload is hidden").get_name().to_owned()
    }

    /// Whether it writes into a table of its own, which starts empty.
    pub fn is_fresh(self) -> bool {
        matches!(self, Self::Insert | Self::Egt100)
    }

    pub fn writes(self) -> bool {
        matches!(self, Self::Insert | Self::Egt100 | Self::Upsert | Self::Merge)
    }

    /// The workload that shows what HTTP alone allows for this one, where there is one.
    pub fn has_bare_form(self) -> bool {
        matches!(self, Self::Get | Self::Insert)
    }
}

impl Work {
    pub fn new(workload: Workload, table: &str, entities: u64) -> Self {
        let (table, keys) = (table.to_owned(), Keys::default());
        Self { workload, table, keys, entities, next: AtomicU64::new(0) }
    }

    /// Does one operation; gives the entities it wrote or read, or examined in a scan.
    pub async fn perform(&self, client: &mut Client, random: &mut Random) -> Result<u64, Failure> {
        let table = &self.table;
        match self.workload {
            Workload::Insert => {
                let place = self.keys.place(self.next.fetch_add(1, Ordering::Relaxed));
                client.insert(table, place, 0).await.map(|()| 1)
            }
            Workload::Egt100 => {
                let block = self.keys.place(self.next.fetch_add(1, Ordering::Relaxed));
                let first = block.row * TRANSACTION_ROWS;
                let rows = (first..first + TRANSACTION_ROWS)
                    .map(|row| (Change::Insert, Place { row, ..block }));
                client.transaction(table, rows, 0).await
            }
            Workload::Get => client.get(table, self.anywhere(random)).await.map(|()| 1),
            Workload::PointQuery => {
                client.point_query(table, self.anywhere(random)).await.map(|()| 1)
            }
            Workload::Upsert => {
                let revision = random.below(1000);
                client.upsert(table, self.anywhere(random), revision).await.map(|()| 1)
            }
            Workload::Merge => {
                let revision = random.below(1 << 24);
                client.merge(table, self.anywhere(random), revision).await.map(|()| 1)
            }
            Workload::QueryRange => self.range(client, random).await,
            Workload::QueryPage => self.page(client, random, NO_METADATA).await,
            Workload::QueryPageMin => self.page(client, random, MINIMAL_METADATA).await,
            Workload::ScanFilter => self.scan(client).await,
        }
    }

    /// Sends the same bytes to the bare server, which answers all alike.
    pub async fn perform_bare(
        &self,
        client: &mut Client,
        random: &mut Random,
    ) -> Result<u64, Failure> {
        match (self.perform(client, random).await, self.workload) {
            // The bare server's entity is not the one asked for; that it came is all.
            (Err(Failure::Wrong(_)), Workload::Get) => Ok(1),
            (outcome, _) => outcome,
        }
    }

    fn anywhere(&self, random: &mut Random) -> Place {
        self.keys.place(random.below(self.entities))
    }

    async fn range(&self, client: &mut Client, random: &mut Random) -> Result<u64, Failure> {
        let partition = random.below(self.keys.partitions);
        let there = self.keys.rows_in(partition, self.entities);
        let rows = RANGE_ROWS.min(there);
        let row = random.below(there - rows + 1);
        client.range_query(&self.table, Place { partition, row }, rows).await?;
        Ok(rows)
    }

    async fn page(
        &self,
        client: &mut Client,
        random: &mut Random,
        accept: &str,
    ) -> Result<u64, Failure> {
        let partition = random.below(self.keys.partitions);
        let rows = PAGE_ROWS.min(self.keys.rows_in(partition, self.entities));
        client.page(&self.table, partition, rows, accept).await?;
        Ok(rows)
    }

    async fn scan(&self, client: &mut Client) -> Result<u64, Failure> {
        let scanned = client.scan(&self.table, SCAN_FILTER).await?;
        let expected = scan_matches(self.entities);
        if scanned.entities != expected {
            let found = scanned.entities;
            return Err(Failure::Wrong(format!("{found} matches where {expected} were expected")));
        }
        Ok(self.entities)
    }
}
