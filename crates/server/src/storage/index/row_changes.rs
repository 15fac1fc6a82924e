//! The changes of index rows that changes of entities bring with them, in the same transition.
//!
//! Old and new rows are derived from the stored entity and from what it becomes; most updates change none. A row belongs
//! to its entity alone, except in a unique index, where two entities may want the same one: there, the row is read first, by
//! [`Decision::Read`](tavola_engine::Decision::Read). All rows that a transition gives up are free before any is claimed,
//! so that two entities may exchange their values.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use tavola_engine::WriteSet;
use tavola_wire::table::index::{IndexRow, RowRef, RowScratch};
use tavola_wire::table::stored::{EntityRef, MalformedEntity};

use super::schema::{Index, Schema};
use crate::storage::layout::{IndexKeys, TableId, parts_and_suffix_of};

/// The changes of rows so far.
pub(crate) struct RowChanges<'a> {
    schema: &'a Schema,
    table: TableId,
    scratch: RowScratch,
    old: OldRows,
    deletes: Vec<Bytes>,
    puts: Vec<(Bytes, Bytes)>,
    unique: Vec<UniqueChange>,
    /// Rows more than before, of each index; empty if no row changes.
    entries: Vec<i64>,
    /// Of the values that are written.
    value_bytes: usize,
}

/// The rows that an entity had, in one buffer.
#[derive(Default)]
struct OldRows {
    bytes: Vec<u8>,
    /// Key and value in `bytes`, for each index.
    rows: Vec<Option<(Range<usize>, Range<usize>)>>,
}

/// What a change of an entity wants of a row of a unique index.
struct UniqueChange {
    /// Which change of the transition it is.
    change: usize,
    /// Which index of the schema.
    index: usize,
    key: Bytes,
    entity_key: Bytes,
    wish: Wish,
}

enum Wish {
    /// It no longer needs the row.
    Release,
    /// It has the same key as before, and another value. The row may be somebody else's as long as the index is being
    /// built; then that is left to the build.
    Keep(Bytes),
    /// It needs the row from now on.
    Claim(Bytes),
}

/// What the changes of rows came to.
#[derive(Debug)]
pub(crate) enum Finished {
    /// They are in the write set; rows more than before, for each index, or nothing if there are none.
    Written(Vec<i64>),
    /// These have to be read first.
    Read(Vec<Bytes>),
    /// A change would give two entities the same values.
    Violation { change: usize, index_name: String },
}

impl<'a> RowChanges<'a> {
    pub(crate) fn new(schema: &'a Schema, table: TableId) -> Self {
        Self {
            schema,
            table,
            scratch: RowScratch::default(),
            old: OldRows::default(),
            deletes: Vec::new(),
            puts: Vec::new(),
            unique: Vec::new(),
            entries: Vec::new(),
            value_bytes: 0,
        }
    }

    /// Bytes of the values of rows that are written: many where indexes have copies of large entities.
    pub(crate) fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    /// Adds the changes of rows for an entity that becomes `new`; `change` is its place in the transition.
    ///
    /// # Errors
    /// An entity that nobody wrote.
    pub(crate) fn add(
        &mut self,
        change: usize,
        entity_key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<(), MalformedEntity> {
        let old = old.map(EntityRef::parse).transpose()?;
        let new = new.map(EntityRef::parse).transpose()?;
        if let (Some(old), Some(new)) = (old, new)
            && self.schema.has_same_rows(old, new)
        {
            return Ok(());
        }
        self.old.clear(self.schema.indexes().len());
        self.entries.resize(self.schema.indexes().len(), 0);
        if let Some(old) = old {
            let old_rows = &mut self.old;
            let keep = |index: usize, row: IndexRow<'_>| old_rows.keep(index, row);
            self.schema.row_maker().rows(entity_key, old, &mut self.scratch, keep)?;
        }
        let mut entity = EntityRows {
            change,
            entity_key,
            table: self.table,
            all: Lists {
                deletes: &mut self.deletes,
                puts: &mut self.puts,
                unique: &mut self.unique,
                entries: &mut self.entries,
                value_bytes: &mut self.value_bytes,
            },
        };
        if let Some(new) = new {
            let (indexes, old) = (self.schema.indexes(), &mut self.old);
            let compare = |place: usize, row: IndexRow<'_>| {
                let index = &indexes[place];
                // Writers that only remove leave the old row to what follows.
                if index.state.is_written() {
                    entity.change_row(place, index, old.take(place), Some(row));
                }
            };
            self.schema.row_maker().rows(entity_key, new, &mut self.scratch, compare)?;
        }
        for (place, index) in self.schema.indexes().iter().enumerate() {
            if let Some(old) = self.old.take(place) {
                entity.change_row(place, index, Some(old), None);
            }
        }
        Ok(())
    }

    /// Writes the changes. `read` is what was found under the keys of [`Finished::Read`], if that came before.
    pub(crate) fn finish(self, read: &[Option<Bytes>], writes: &mut WriteSet) -> Finished {
        let mut rows = UniqueRows::new(&self.unique);
        if !rows.keys.is_empty() && read.is_empty() {
            return Finished::Read(rows.keys);
        }
        rows.see(self.schema, &self.unique, read);
        if let Err(violation) = rows.settle(self.schema, &self.unique) {
            return violation;
        }
        for key in self.deletes {
            writes.delete(key);
        }
        for (key, value) in self.puts {
            writes.put(key, value);
        }
        rows.write(writes);
        Finished::Written(self.entries)
    }
}

impl OldRows {
    fn clear(&mut self, indexes: usize) {
        self.bytes.clear();
        self.rows.clear();
        self.rows.resize(indexes, None);
    }

    fn keep(&mut self, index: usize, row: IndexRow<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(row.parts_and_suffix);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(row.value);
        self.rows[index] = Some((start..middle, middle..self.bytes.len()));
    }

    fn take(&mut self, index: usize) -> Option<IndexRow<'_>> {
        let (key, value) = self.rows[index].take()?;
        Some(IndexRow { parts_and_suffix: &self.bytes[key], value: &self.bytes[value] })
    }
}

struct Lists<'a> {
    deletes: &'a mut Vec<Bytes>,
    puts: &'a mut Vec<(Bytes, Bytes)>,
    unique: &'a mut Vec<UniqueChange>,
    entries: &'a mut Vec<i64>,
    value_bytes: &'a mut usize,
}

/// The rows of one entity.
struct EntityRows<'a> {
    change: usize,
    entity_key: &'a [u8],
    table: TableId,
    all: Lists<'a>,
}

impl EntityRows<'_> {
    fn change_row(
        &mut self,
        place: usize,
        index: &Index,
        old: Option<IndexRow<'_>>,
        new: Option<IndexRow<'_>>,
    ) {
        if old == new {
            return;
        }
        self.all.entries[place] += i64::from(new.is_some()) - i64::from(old.is_some());
        *self.all.value_bytes += new.map_or(0, |new| new.value.len());
        let keys = IndexKeys::of(self.table, index.number);
        let has_same_key =
            old.zip(new).is_some_and(|(old, new)| old.parts_and_suffix == new.parts_and_suffix);
        let released = old.filter(|_| !has_same_key).map(|old| keys.key(old.parts_and_suffix));
        let written =
            new.map(|new| (keys.key(new.parts_and_suffix), Bytes::copy_from_slice(new.value)));
        if !index.definition.unique {
            self.all.deletes.extend(released);
            self.all.puts.extend(written);
            return;
        }
        if let Some(key) = released {
            self.wish(place, key, Wish::Release);
        }
        if let Some((key, value)) = written {
            let wish = if has_same_key { Wish::Keep(value) } else { Wish::Claim(value) };
            self.wish(place, key, wish);
        }
    }

    fn wish(&mut self, index: usize, key: Bytes, wish: Wish) {
        let entity_key = Bytes::copy_from_slice(self.entity_key);
        self.all.unique.push(UniqueChange { change: self.change, index, key, entity_key, wish });
    }
}

/// Rows of unique indexes, and who has them.
struct UniqueRows {
    /// In the order in which they are asked for.
    keys: Vec<Bytes>,
    by_key: HashMap<Bytes, UniqueRow>,
}

#[derive(Default)]
struct UniqueRow {
    holder: Option<Bytes>,
    /// What becomes of it: nothing, a value, or none.
    written: Option<Option<Bytes>>,
}

impl UniqueRows {
    fn new(changes: &[UniqueChange]) -> Self {
        let (mut keys, mut by_key) = (Vec::new(), HashMap::new());
        for change in changes {
            if by_key.insert(change.key.clone(), UniqueRow::default()).is_none() {
                keys.push(change.key.clone());
            }
        }
        Self { keys, by_key }
    }

    /// Notes who has the rows.
    fn see(&mut self, schema: &Schema, changes: &[UniqueChange], read: &[Option<Bytes>]) {
        let index_of: HashMap<_, _> =
            changes.iter().map(|change| (&change.key, change.index)).collect();
        for (key, value) in self.keys.iter().zip(read) {
            let (Some(value), Some(index)) = (value, index_of.get(key)) else { continue };
            let definition = &schema.indexes()[*index].definition;
            let row = RowRef::read(definition, parts_and_suffix_of(key), value);
            if let (Some(row), Some(seen)) = (row, self.by_key.get_mut(key)) {
                seen.holder = Some(Bytes::copy_from_slice(&row.entity_key));
            }
        }
    }

    fn settle(&mut self, schema: &Schema, changes: &[UniqueChange]) -> Result<(), Finished> {
        for change in changes {
            let row = self.by_key.entry(change.key.clone()).or_default();
            let is_ours = row.holder.as_ref() == Some(&change.entity_key);
            if matches!(change.wish, Wish::Release) && is_ours {
                *row = UniqueRow { holder: None, written: Some(None) };
            }
        }
        for change in changes {
            if let Wish::Keep(value) = &change.wish {
                self.take(change, value);
            }
        }
        for change in changes {
            if let Wish::Claim(value) = &change.wish
                && !self.take(change, value)
            {
                let index_name = schema.indexes()[change.index].name.clone();
                return Err(Finished::Violation { change: change.change, index_name });
            }
        }
        Ok(())
    }

    /// Gives a row to the entity that wants it, unless it is somebody else's.
    fn take(&mut self, change: &UniqueChange, value: &Bytes) -> bool {
        let row = self.by_key.entry(change.key.clone()).or_default();
        let is_free = row.holder.as_ref().is_none_or(|holder| *holder == change.entity_key);
        if is_free {
            let holder = Some(change.entity_key.clone());
            *row = UniqueRow { holder, written: Some(Some(value.clone())) };
        }
        is_free
    }

    fn write(mut self, writes: &mut WriteSet) {
        for key in self.keys {
            match self.by_key.remove(&key).and_then(|row| row.written) {
                Some(Some(value)) => writes.put(key, value),
                Some(None) => writes.delete(key),
                None => {}
            }
        }
    }
}
