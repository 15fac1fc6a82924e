//! Whether the rows of an index are those that the entities have: compared as multisets, by sums of 128-bit hashes.
//!
//! Two passes in key order, one over the entities and one over the rows, and no memory. Only if the sums differ is every
//! row looked up, to tell which.

use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;

use bytes::Bytes;
use tavola_engine::{Reader, Visitor, successor};
use tavola_wire::table::index::{IndexDefinition, RowMaker, RowRef, RowScratch};
use tavola_wire::table::stored::EntityRef;

use crate::storage::Result;
use crate::storage::layout::{EntityKeys, IndexKeys, TableId, entity_key_of, parts_and_suffix_of};

/// Differences that are told one by one.
pub(crate) const DIFFERENCES_MAX: usize = 100;
/// Rows that are looked up between two scans.
const LOOKUP_ROWS: usize = 256;

/// What a comparison came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Rows that entities have.
    pub expected: u64,
    /// Rows that there are.
    pub found: u64,
    /// In words, at most the first hundred. None if the two are the same.
    pub differences: Vec<String>,
}

impl Verified {
    pub(crate) fn is_sound(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Compares an index with its table, in one state of both: `reader` must not change meanwhile.
pub(crate) async fn verify<R: Reader>(
    reader: &R,
    table: TableId,
    number: u16,
    definition: &IndexDefinition,
) -> Result<Verified> {
    let (one, other) = (RandomState::new(), RandomState::new());
    let hashes = Hashes { one, other };
    let keys = IndexKeys::of(table, number);
    let derived = Derived {
        keys,
        row_maker: RowMaker::new([definition]),
        scratch: RowScratch::default(),
        sum: Sum { hashes: hashes.clone(), total: 0, rows: 0 },
        malformed: None,
    };
    let derived = reader.scan(EntityKeys::of(table).all(), derived).await?;
    let stored = reader.scan(keys.all(), Sum { hashes, total: 0, rows: 0 }).await?;
    let mut verified =
        Verified { expected: derived.sum.rows, found: stored.rows, differences: Vec::new() };
    if let Some(key) = derived.malformed {
        verified.differences.push(format!("row {}: it is no entity", key.escape_ascii()));
    } else if (derived.sum.total, derived.sum.rows) != (stored.total, stored.rows) {
        let search =
            Search { reader, table, keys, definition, row_maker: RowMaker::new([definition]) };
        search.missing(&mut verified.differences).await?;
        search.wrong(&mut verified.differences).await?;
        if verified.is_sound() {
            verified.differences.push("the sums of the rows differ".to_owned());
        }
    }
    Ok(verified)
}

#[derive(Clone)]
struct Hashes {
    one: RandomState,
    other: RandomState,
}

/// A sum that does not depend on the order.
struct Sum {
    hashes: Hashes,
    total: u128,
    rows: u64,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let row = (key, value);
        let (high, low) = (self.hashes.one.hash_one(row), self.hashes.other.hash_one(row));
        self.total = self.total.wrapping_add(u128::from(high) << 64 | u128::from(low));
        self.rows += 1;
    }
}

impl Visitor for Sum {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.add(key, value);
        ControlFlow::Continue(())
    }
}

/// Adds up the rows that the entities have.
struct Derived {
    keys: IndexKeys,
    row_maker: RowMaker,
    scratch: RowScratch,
    sum: Sum,
    /// The key of an entity that cannot be read.
    malformed: Option<Vec<u8>>,
}

impl Visitor for Derived {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let (keys, sum) = (self.keys, &mut self.sum);
        let derived = EntityRef::parse(value).and_then(|entity| {
            self.row_maker.rows(entity_key_of(key), entity, &mut self.scratch, |_, row| {
                sum.add(&keys.key(row.parts_and_suffix), row.value);
            })
        });
        if derived.is_err() {
            self.malformed = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Looks up row by row which ones differ.
struct Search<'a, R> {
    reader: &'a R,
    table: TableId,
    keys: IndexKeys,
    definition: &'a IndexDefinition,
    row_maker: RowMaker,
}

impl<R: Reader> Search<'_, R> {
    /// Entities whose row is not there, or is another's.
    async fn missing(&self, differences: &mut Vec<String>) -> Result<()> {
        let mut rest = EntityKeys::of(self.table).all();
        loop {
            let batch = self.reader.scan(rest.clone(), Batch::default()).await?.rows;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            rest.start = successor(last).into();
            for (key, entity) in &batch {
                let Some((row_key, value)) = self.row(entity_key_of(key), entity) else { continue };
                let stored = self.reader.get(&row_key).await?;
                if stored.as_ref() != Some(&value) {
                    let what = if stored.is_none() { "has no row" } else { "has another row" };
                    let number = row_key[9..11].escape_ascii();
                    let key = key.escape_ascii();
                    differences.push(format!("row {key}: it {what} in index {number}"));
                }
                if differences.len() == DIFFERENCES_MAX {
                    return Ok(());
                }
            }
        }
    }

    /// Rows whose entity is not there, or does not have them.
    async fn wrong(&self, differences: &mut Vec<String>) -> Result<()> {
        let mut rest = self.keys.all();
        loop {
            let batch = self.reader.scan(rest.clone(), Batch::default()).await?.rows;
            let Some((last, _)) = batch.last() else { return Ok(()) };
            rest.start = successor(last).into();
            for (key, value) in &batch {
                if differences.len() == DIFFERENCES_MAX {
                    return Ok(());
                }
                let row = RowRef::read(self.definition, parts_and_suffix_of(key), value);
                let told = match row {
                    None => Some("it cannot be read"),
                    Some(row) => {
                        let entity_key = EntityKeys::of(self.table).raw(&row.entity_key);
                        let entity = self.reader.get(&entity_key).await?;
                        let is_ours = |entity: &Bytes| {
                            self.row(&row.entity_key, entity).is_some_and(|(own, _)| own == key)
                        };
                        match entity {
                            None => Some("it points to no entity"),
                            Some(entity) if !is_ours(&entity) => {
                                Some("it points to an entity with other values")
                            }
                            Some(_) => None,
                        }
                    }
                };
                if let Some(told) = told {
                    differences.push(format!("row {}: {told}", key.escape_ascii()));
                }
            }
        }
    }

    /// The row that an entity has.
    fn row(&self, entity_key: &[u8], entity: &[u8]) -> Option<(Bytes, Bytes)> {
        let (mut row, mut scratch) = (None, RowScratch::default());
        let entity = EntityRef::parse(entity).ok()?;
        let keep = |_: usize, found: tavola_wire::table::index::IndexRow<'_>| {
            let value = Bytes::copy_from_slice(found.value);
            row = Some((self.keys.key(found.parts_and_suffix), value));
        };
        self.row_maker.rows(entity_key, entity, &mut scratch, keep).ok()?;
        row
    }
}

#[derive(Default)]
struct Batch {
    rows: Vec<(Bytes, Bytes)>,
}

impl Visitor for Batch {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        if self.rows.len() < LOOKUP_ROWS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
