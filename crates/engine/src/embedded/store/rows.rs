//! The rows of a range, in order.
//!
//! fjall's own iterator hands out every row in a guard that counts three shared references up and down, for the case that
//! the value lies elsewhere and is not wanted. That is a tenth of what a row takes, and a third when several threads scan,
//! because all of them count the same ones. Few rows have their value elsewhere: those are looked up by key.
//!
//! What is compacted lies in one run of tables. If no other run and no memtable has rows of the range, there is nothing to
//! merge, and the tables are read one after the other.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use fjall::{AbstractTree, AnyTree, UserKey};
use lsm_tree::{InternalValue, Memtable, SeqNo, Table, Tree, ValueType};

use crate::embedded::store::database::{WHICH_FILE, unreadable};
use crate::embedded::store::{StoreSnapshot, guarded, read_error};
use crate::{Error, KeyRange, Result};

type Tables = Box<dyn Iterator<Item = Table> + Send>;
type BoxedRows = Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>> + Send>;

pub(crate) struct Rows {
    source: Source,
    seqno: SeqNo,
    /// The row that was last read, be it shown or not.
    row: Option<InternalValue>,
    /// Its value, if it lies elsewhere.
    value: Option<Bytes>,
    /// Holds on to what is read.
    snapshot: StoreSnapshot,
}

enum Source {
    /// Of each key the version that the snapshot sees.
    Merged(BoxedRows),
    /// All versions, of each key the newest first.
    Run(RunRows),
}

impl Rows {
    /// The range must not be empty.
    pub(crate) fn open(snapshot: &StoreSnapshot, range: &KeyRange) -> Result<Self> {
        let tree = match &snapshot.store.keyspace.tree {
            AnyTree::Blob(tree) => &tree.index,
            AnyTree::Standard(tree) => tree,
        };
        let seqno = snapshot.state.snapshot.seqno();
        let source = guarded(|| {
            Ok(match only_run(tree, snapshot.state.version, range) {
                Some(tables) => Source::Run(RunRows::new(tables, range)),
                None => Source::Merged(merged(tree, range, seqno)),
            })
        })?;
        Ok(Self { source, seqno, row: None, value: None, snapshot: snapshot.clone() })
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let read = catch_unwind(AssertUnwindSafe(|| match &mut self.source {
            Source::Merged(rows) => {
                self.row = rows.next().transpose()?;
                Ok(())
            }
            Source::Run(rows) => rows.next_visible(&mut self.row, self.seqno),
        }));
        match read {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(read_error(fjall::Error::Storage(error))),
            Err(panic) => return Err(Error::Corrupt(unreadable(&*panic))),
        }
        let Some(row) = &self.row else { return Ok(None) };
        let key = &row.key.user_key;
        if row.key.value_type != ValueType::Indirection {
            return Ok(Some((key, &row.value)));
        }
        let lost = || Error::Corrupt(format!("the value of {key:?} is nowhere; {WHICH_FILE}"));
        let value = self.snapshot.get(key)?.ok_or_else(lost)?;
        Ok(Some((key, self.value.insert(value))))
    }
}

fn merged(tree: &Tree, range: &KeyRange, seqno: SeqNo) -> BoxedRows {
    let range = range.start.as_ref()..range.end.as_ref();
    let version = tree.get_version_history_lock().get_version_for_snapshot(seqno);
    Box::new(Tree::create_internal_range::<&[u8], _>(version, &range, seqno, None))
}

/// The tables of a version that have rows of a range, in order, if they are of one run and nothing else has any. `None` if
/// the version is not the current one: compaction keeps the newest of each row, which an older snapshot must not see.
fn only_run(tree: &Tree, version_id: u64, range: &KeyRange) -> Option<Tables> {
    // ORDER: what is read in between belongs to this version if it is still the current one at the end. Rows leave memory
    // by way of a sealed memtable and a new version, and there is neither.
    let version = tree.current_version();
    if version.id() != version_id {
        return None;
    }
    let bounds = range.start.as_ref()..range.end.as_ref();
    let mut runs = version.iter_levels().flat_map(|level| level.iter()).filter_map(|run| {
        let (first, last) = run.range_overlap_indexes::<&[u8], _>(&bounds)?;
        (first <= last).then_some((run, first..=last))
    });
    let only = runs.next();
    let is_only = runs.next().is_none()
        && !has_rows(&tree.active_memtable(), range)
        && tree.sealed_memtable_count() == 0
        && tree.current_version().id() == version_id;
    is_only.then(|| match only {
        Some((run, tables)) => {
            let run = Arc::clone(run);
            Box::new(tables.map(move |at| run[at].clone())) as Tables
        }
        None => Box::new(std::iter::empty()),
    })
}

fn has_rows(memtable: &Memtable, range: &KeyRange) -> bool {
    let first = if range.start.is_empty() {
        memtable.items.front()
    } else {
        // Before every version of the first key.
        let start = InternalValue::new_tombstone(range.start.as_ref(), SeqNo::MAX).key;
        memtable.items.lower_bound(Bound::Included(&start))
    };
    first.is_some_and(|first| *first.key().user_key < *range.end)
}

/// The rows of tables that lie one behind the other.
struct RunRows {
    tables: Tables,
    rows: Option<BoxedRows>,
    range: (Bound<UserKey>, Bound<UserKey>),
}

impl RunRows {
    fn new(tables: Tables, range: &KeyRange) -> Self {
        let start = Bound::Included(UserKey::from(range.start.as_ref()));
        let end = Bound::Excluded(UserKey::from(range.end.as_ref()));
        Self { tables, rows: None, range: (start, end) }
    }

    /// Goes on to the next row that a snapshot sees. `row` is the one before, whose other versions are passed.
    fn next_visible(
        &mut self,
        row: &mut Option<InternalValue>,
        seqno: SeqNo,
    ) -> lsm_tree::Result<()> {
        loop {
            let Some(next) = self.next()? else {
                *row = None;
                return Ok(());
            };
            let is_older = row.as_ref().is_some_and(|row| row.key.user_key == next.key.user_key);
            if is_older || next.key.seqno >= seqno {
                continue;
            }
            let is_deleted = next.is_tombstone();
            *row = Some(next);
            if !is_deleted {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> lsm_tree::Result<Option<InternalValue>> {
        loop {
            if let Some(row) = self.rows.as_mut().and_then(Iterator::next) {
                return row.map(Some);
            }
            let Some(table) = self.tables.next() else { return Ok(None) };
            self.rows = Some(Box::new(table.range(self.range.clone())));
        }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
