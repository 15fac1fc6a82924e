//! What is measured: one kind of operation at a time, over and over.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;

use crate::entity::{BUCKETS, Keys, Place, SCAN_FILTER, scan_matches};
use crate::measure::Job;
use crate::operations::Change;
use crate::random::Random;
use crate::request::{Client, Failure, MINIMAL_METADATA, NO_METADATA};
use crate::target::Target;

/// Entities that a range query returns, and rows that a transaction inserts.
pub const RANGE_ROWS: u64 = 100;
pub const TRANSACTION_ROWS: u64 = 100;
/// What is asked of covered entities.
const COVERED: &str = "RowKey,Bucket,Quantity";
const COVERED_NUMBERS: &str = "RowKey,Quantity";
/// A condition that no key helps with, and no index that is not of its property.
const EACH_FULFILS: &str = "Quantity ne -1";
const NO_INDEX: &str = "x-tavola-index: none\r\n";
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
    /// The same, and each entity asked something that they all fulfil; for `indexes`
    #[value(skip)]
    RangeAndProperty,
    /// A page of 1,000 entities without metadata
    QueryPage,
    /// A page of 1,000 entities with minimal metadata
    QueryPageMin,
    /// The whole table by a property that one entity in a thousand has
    ScanFilter,
    /// The same by one client
    ScanFilterOne,
    /// New entities, one a request, into a table that starts empty
    Insert,
    /// Transactions of 100 inserts into a table that starts empty
    Egt100,
    /// Replaces whole entities
    Upsert,
    /// Sets two properties
    Merge,
    /// One entity by a property that is unique; for `indexes`, which declares one
    #[value(skip)]
    ByValue,
    /// The entities with one value in a thousand, likewise
    #[value(skip)]
    ByBucket,
    /// The same, of which a copy in the index has all that is asked for
    #[value(skip)]
    ByBucketCovered,
    /// A page of a filter that nine entities in ten match, likewise
    #[value(skip)]
    ByCommonValue,
    /// The same, with indexes left alone
    #[value(skip)]
    ByCommonValueScanned,
    /// A filter that nine entities in ten match and another that none does, of which copies in the index have all that is
    /// asked for; for `indexes`
    #[value(skip)]
    CommonAndNone,
    /// The same, with indexes left alone
    #[value(skip)]
    CommonAndNoneScanned,
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
        let of_index = match self {
            Self::RangeAndProperty => "key range and a property",
            Self::ByValue => "equality, unique value",
            Self::ByBucket => "equality, 100 matches, looked up",
            Self::ByBucketCovered => "equality, 100 matches, covered",
            Self::ByCommonValue => "a value of nine in ten, indexed",
            Self::ByCommonValueScanned => "a value of nine in ten, scanned",
            Self::CommonAndNone => "nine in ten and none, covered",
            Self::CommonAndNoneScanned => "nine in ten and none, scanned",
            _ => {
                let value = self.to_possible_value().expect("the others are on the command line");
                return value.get_name().to_owned();
            }
        };
        of_index.to_owned()
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

impl Job for Work {
    fn client(&self, target: &Target) -> Client {
        Client::new(target, self.keys)
    }

    async fn perform(
        &self,
        client: &mut Client,
        random: &mut Random,
        is_bare: bool,
    ) -> Result<u64, Failure> {
        match self.once(client, random).await {
            // The bare server's entity is not the one asked for; that it came is all.
            Err(Failure::Wrong(_)) if is_bare && self.workload == Workload::Get => Ok(1),
            outcome => outcome,
        }
    }
}

impl Work {
    pub fn new(workload: Workload, table: &str, entities: u64) -> Self {
        let (table, keys) = (table.to_owned(), Keys::default());
        Self { workload, table, keys, entities, next: AtomicU64::new(0) }
    }

    /// Does one operation; gives the entities it wrote or read, or examined in a scan.
    pub async fn once(&self, client: &mut Client, random: &mut Random) -> Result<u64, Failure> {
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
            Workload::RangeAndProperty => self.range_and_property(client, random).await,
            Workload::QueryPage => self.page(client, random, NO_METADATA).await,
            Workload::QueryPageMin => self.page(client, random, MINIMAL_METADATA).await,
            Workload::ScanFilter | Workload::ScanFilterOne => self.scan(client).await,
            Workload::ByValue => {
                let number = random.below(self.entities);
                let filter = format!("Customer eq 'customer {number:010}'");
                client.filtered(table, &filter, "", "", 1).await
            }
            Workload::ByBucket => self.bucket(client, random, "").await,
            Workload::ByBucketCovered => self.bucket(client, random, COVERED).await,
            Workload::ByCommonValue => self.common(client, "").await,
            Workload::ByCommonValueScanned => self.common(client, NO_INDEX).await,
            Workload::CommonAndNone => self.common_and_none(client, "").await,
            Workload::CommonAndNoneScanned => self.common_and_none(client, NO_INDEX).await,
        }
    }

    fn anywhere(&self, random: &mut Random) -> Place {
        self.keys.place(random.below(self.entities))
    }

    /// Where a range of rows begins, and how many it has.
    fn some_range(&self, random: &mut Random) -> (Place, u64) {
        let partition = random.below(self.keys.partitions);
        let there = self.keys.rows_in(partition, self.entities);
        let rows = RANGE_ROWS.min(there);
        let row = random.below(there - rows + 1);
        (Place { partition, row }, rows)
    }

    async fn range(&self, client: &mut Client, random: &mut Random) -> Result<u64, Failure> {
        let (from, rows) = self.some_range(random);
        client.range_query(&self.table, from, rows).await?;
        Ok(rows)
    }

    async fn range_and_property(
        &self,
        client: &mut Client,
        random: &mut Random,
    ) -> Result<u64, Failure> {
        let (from, rows) = self.some_range(random);
        let (partition, first) = client.key_texts(from);
        let (_, end) = client.key_texts(Place { row: from.row + rows, ..from });
        let filter = format!(
            "PartitionKey eq '{partition}' and RowKey ge '{first}' and RowKey lt '{end}' and {EACH_FULFILS}"
        );
        client.filtered(&self.table, &filter, "", "", rows).await
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

    async fn bucket(
        &self,
        client: &mut Client,
        random: &mut Random,
        select: &str,
    ) -> Result<u64, Failure> {
        let filter = format!("Bucket eq {}", random.below(BUCKETS));
        client.filtered(&self.table, &filter, select, "", self.entities / BUCKETS).await
    }

    async fn common(&self, client: &mut Client, headers: &str) -> Result<u64, Failure> {
        client.filtered(&self.table, "Active eq true", "", headers, PAGE_ROWS).await
    }

    /// The entities that were examined.
    async fn common_and_none(&self, client: &mut Client, headers: &str) -> Result<u64, Failure> {
        let filter = "Active eq true and Quantity eq -1";
        client.filtered(&self.table, filter, COVERED_NUMBERS, headers, 0).await?;
        Ok(self.entities)
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
