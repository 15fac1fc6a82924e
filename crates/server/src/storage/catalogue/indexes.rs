//! Changes of the indexes of a table, and of what goes with them: the names under which they can be read.
//!
//! A change is computed from the record as it was read, and written if that is still the same: changes of a schema are
//! rare, and their rules are in [`definitions`](crate::storage::index::definitions), pure.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tavola_engine::{Decision, Engine, Reader, Transition, Visitor, Write, WriteSet};
use tavola_wire::Ticks;
use tavola_wire::table::names::TableName;

use super::{Catalogue, Resource, Table, decode};
use crate::storage::detached::detached;
use crate::storage::index::{IndexRegistry, build_records, definitions};
use crate::storage::layout::{
    AccountId, BuildRecord, Family, Key, Record, TableId, TableRecord, ViewRecord,
};
use crate::storage::{Error, Result, next_id};

/// How long the answer to the drop of a unique index waits for older requests: twice what a page of a query takes at most.
const RETIRING_WAIT_MAX: Duration = Duration::from_secs(10);

impl Catalogue<Table> {
    pub(crate) fn indexes(&self) -> &Arc<IndexRegistry> {
        &self.indexes
    }

    /// Writes down what is known of indexes and has changed.
    pub(crate) async fn keep_statistics(&self) {
        build_records::keep_statistics(&self.engine, &self.indexes.statistics).await;
    }

    /// The record of a table, by the name that keys hold.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn table_record(&self, account: AccountId, name: &str) -> Result<TableRecord> {
        let stored = self.engine.get(&TableRecord::key(account, name)).await?;
        decode(&stored.ok_or(Error::NotFound)?)
    }

    /// Changes the indexes of a table. `change` is called with its record, perhaps more than once.
    ///
    /// # Errors
    /// Those of `change`; [`Error::NotFound`] without the table, [`Error::Exists`] if the name under which an index is to
    /// be read is taken.
    pub(crate) async fn change_schema<T, E>(
        self: &Arc<Self>,
        account: AccountId,
        name: &str,
        mut change: impl FnMut(&mut TableRecord) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (catalogue, name) = (Arc::clone(self), name.to_owned());
        let changed = tokio::spawn(async move {
            loop {
                let swap = catalogue.read_for_change(account, &name).await?;
                let mut after = swap.record.clone();
                let told = change(&mut after)?;
                if after == swap.record || catalogue.swap(account, &name, &swap, after).await? {
                    return Ok(told);
                }
            }
        });
        changed.await.unwrap_or_else(|interrupted| Err(Error::from(interrupted).into()))
    }

    /// Sees whether the names are free under which the indexes of a table are to be read after a change, before anything
    /// is written for it.
    ///
    /// # Errors
    /// [`Error::Exists`].
    pub(crate) async fn check_views(
        &self,
        account: AccountId,
        name: &str,
        before: &TableRecord,
        after: &TableRecord,
    ) -> Result<()> {
        let before = views(name, before);
        for view in views(name, after).keys().filter(|view| !before.contains_key(*view)) {
            if self.engine.get(&TableRecord::key(account, view)).await?.is_some() {
                return Err(Error::Exists);
            }
        }
        Ok(())
    }

    /// Drops a table with the names of its views, or a view.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn drop_table(
        self: &Arc<Self>,
        account: AccountId,
        name: &TableName<'_>,
        now: Ticks,
    ) -> Result<()> {
        let (catalogue, name) = (Arc::clone(self), name.clone().into_owned());
        // Once it is gone, it is no longer counted either, whoever still waits for the answer.
        detached(async move {
            let key_name = Table::key_name(&name);
            let Stored { key, stored, record } =
                catalogue.read_for_change(account, &key_name).await?;
            if let Some(view) = &record.view {
                return catalogue.drop_view(account, &key_name, view, key, stored, now).await;
            }
            catalogue.drop_named(account, &name, now).await?;
            catalogue.count_indexes(account, &key_name).await?;
            for index in &record.indexes.indexes {
                catalogue.indexes.statistics.forget(record.id, index.number);
            }
            Ok(())
        })
        .await
    }

    /// Resolves when nobody works with a record of the table that is older than what is stored now.
    pub(crate) async fn schema_fence(&self, account: AccountId, name: &str) {
        let fence = self.indexes.generations.fence(account, name);
        // ORDER: after the fence has begun, so that what is remembered from now on is of the new generation.
        self.cache_mut().forget(account, name);
        fence.passed().await;
    }

    /// Resolves when the unique indexes that were dropped refuse nothing any more; after [`RETIRING_WAIT_MAX`] in any
    /// case. Then, and after a failure, the builder takes this step.
    pub(crate) async fn retire_unique(
        self: &Arc<Self>,
        account: AccountId,
        name: &str,
        now: Ticks,
    ) -> Result<()> {
        let seen = self.table_record(account, name).await?;
        if !definitions::has_retiring_unique(&seen.indexes) {
            return Ok(());
        }
        let fence = self.schema_fence(account, name);
        if tokio::time::timeout(RETIRING_WAIT_MAX, fence).await.is_err() {
            return Ok(());
        }
        self.change_schema(account, name, move |record| {
            if record.id == seen.id {
                definitions::retire(&mut record.indexes, &seen.indexes, now);
            }
            Ok(())
        })
        .await
    }

    /// Removes what [`definitions::swept`] has named from the record, with the state of its build.
    pub(crate) async fn advance_schema(
        self: &Arc<Self>,
        account: AccountId,
        name: &str,
        seen: &TableRecord,
        now: Ticks,
    ) -> Result<()> {
        for number in definitions::swept(&seen.indexes) {
            let rows = vec![
                Write::Delete(Key::IndexBuild { table: seen.id, number }.encode()),
                Write::Delete(Key::IndexSketch { table: seen.id, number }.encode()),
            ];
            self.engine.transact(Swap::of(Vec::new(), rows).freeing_space()).await?;
            self.indexes.statistics.forget(seen.id, number);
        }
        let seen = seen.clone();
        self.change_schema(account, name, move |record| {
            if record.id == seen.id {
                definitions::advance(&mut record.indexes, &seen.indexes, now);
            }
            Ok(())
        })
        .await
    }

    /// Reads, at the start, which tables have indexes, what there is to do for them and what is known of them.
    pub(crate) async fn load_indexes(&self) -> Result<()> {
        let found = self.engine.scan(Family::Table.range(), IndexedTables::default()).await?;
        for (account, name, record) in found.tables {
            let indexes = definitions::names(&record.indexes).len();
            self.indexes.set_indexes(account, &name, indexes);
            if definitions::has_work(&record.indexes) {
                self.indexes.add_work(account, &name);
            }
        }
        let builds = self.engine.scan(Family::IndexBuild.range(), Builds::default()).await?;
        for (table, number, build) in builds.found {
            let statistics = self.indexes.statistics.of(table, number);
            statistics.set(&build);
            statistics.set_uses(&build);
        }
        Ok(())
    }

    /// Notes how many indexes a table has, after a change. Changes may come here in another order than that in which they
    /// were made, so that what is stored by now is counted, by one after the other.
    async fn count_indexes(&self, account: AccountId, name: &str) -> Result<()> {
        let _one_after_the_other = self.indexes.counting.lock().await;
        let count = match self.table_record(account, name).await {
            Ok(record) => definitions::names(&record.indexes).len(),
            Err(Error::NotFound) => 0,
            Err(error) => return Err(error),
        };
        self.indexes.set_indexes(account, name, count);
        Ok(())
    }

    async fn read_for_change(&self, account: AccountId, name: &str) -> Result<Stored> {
        let key = TableRecord::key(account, name);
        let stored = self.engine.get(&key).await?.ok_or(Error::NotFound)?;
        Ok(Stored { record: decode(&stored)?, key, stored })
    }

    /// Writes the record as it is after a change, and the names of views, if nothing has changed since it was read.
    async fn swap(
        &self,
        account: AccountId,
        name: &str,
        before: &Stored,
        after: TableRecord,
    ) -> Result<bool> {
        let mut expected = vec![(before.key.clone(), Some(before.stored.clone()))];
        let mut writes = vec![Write::Put(before.key.clone(), after.encode())];
        let (views_before, views_after) = (views(name, &before.record), views(name, &after));
        let (rows, view_writes) =
            self.view_writes(account, &views_before, &views_after, after.created).await?;
        expected.extend(rows);
        writes.extend(view_writes);
        let mut swap = Swap::of(expected, writes);
        // Only a new index takes room; whatever else changes must be possible when there is none.
        swap.frees_space = after.indexes.last_number == before.record.indexes.last_number;
        let is_swapped = self.engine.transact(swap).await;
        {
            let mut cache = self.cache_mut();
            cache.forget(account, name);
            for view in views_before.keys().chain(views_after.keys()) {
                cache.forget(account, view);
            }
        }
        let is_swapped = is_swapped?;
        if is_swapped {
            if definitions::has_work(&after.indexes) {
                self.indexes.add_work(account, name);
            }
            self.count_indexes(account, name).await?;
        }
        Ok(is_swapped)
    }

    /// What a change of a table's views comes to: the rows that it rests on, as they were read, and the writes.
    async fn view_writes(
        &self,
        account: AccountId,
        views_before: &Views,
        views_after: &Views,
        created: Ticks,
    ) -> Result<(Vec<(Bytes, Option<Bytes>)>, Vec<Write>)> {
        let (mut expected, mut writes) = (Vec::new(), Vec::new());
        for view in views_before.keys() {
            if views_after.contains_key(view) {
                continue;
            }
            let key = TableRecord::key(account, view);
            let stored = self.engine.get(&key).await?;
            expected.push((key.clone(), stored));
            writes.push(Write::Delete(key));
        }
        let sequence_key = Key::Sequence.encode();
        let sequence_stored = self.engine.get(&sequence_key).await?;
        let mut sequence_now = sequence_stored.clone();
        for (lower, shown) in views_after {
            let shown_before = views_before.get(lower);
            if shown_before == Some(shown) {
                continue;
            }
            let key = TableRecord::key(account, lower);
            let stored = self.engine.get(&key).await?;
            if stored.is_some() && shown_before.is_none() {
                return Err(Error::Exists);
            }
            let (as_written, view) = shown;
            let is_same_view = shown_before.is_some_and(|(_, before)| before == view);
            let record = match stored.as_ref().filter(|_| is_same_view) {
                // In other letters: the policies stay.
                Some(stored) => TableRecord { name: as_written.clone(), ..decode(stored)? },
                None => {
                    let (id, next) = next_id(sequence_now.as_deref())?;
                    sequence_now = Some(next);
                    let record = TableRecord::new(TableId(id), created, as_written.clone());
                    TableRecord { view: Some(view.clone()), ..record }
                }
            };
            expected.push((key.clone(), stored));
            writes.push(Write::Put(key, record.encode()));
        }
        if let Some(next) = sequence_now.filter(|now| Some(now) != sequence_stored.as_ref()) {
            expected.push((sequence_key.clone(), sequence_stored));
            writes.push(Write::Put(sequence_key, next));
        }
        Ok((expected, writes))
    }

    /// Takes the name of a view away; the index stays.
    async fn drop_view(
        self: &Arc<Self>,
        account: AccountId,
        name: &str,
        view: &ViewRecord,
        key: Bytes,
        stored: Bytes,
        now: Ticks,
    ) -> Result<()> {
        let lower = name.to_owned();
        let table = view.table;
        let removed: Result<bool> = self
            .change_schema(account, &view.table_key_name, move |record| {
                let mut was_there = false;
                let indexes = record.indexes.indexes.iter_mut();
                for index in indexes.filter(|_| record.id == table) {
                    let is_named = |name: &String| name.eq_ignore_ascii_case(&lower);
                    if index.browse_as.take_if(|name| is_named(name)).is_some() {
                        index.changed = now.max(Ticks(index.changed.0 + 1));
                        was_there = true;
                    }
                }
                Ok(was_there)
            })
            .await;
        match removed {
            Ok(true) => {}
            // Of an index that is gone: the name alone.
            Ok(false) | Err(Error::NotFound) => {
                let writes = vec![Write::Delete(key.clone())];
                let swap = Swap::of(vec![(key, Some(stored))], writes);
                self.engine.transact(swap.freeing_space()).await?;
            }
            Err(error) => return Err(error),
        }
        self.cache_mut().forget(account, name);
        Ok(())
    }
}

/// A record as it was read.
struct Stored {
    key: Bytes,
    stored: Bytes,
    record: TableRecord,
}

/// Views by the name that keys hold: the name as it was written, and what it shows.
type Views = BTreeMap<String, (String, ViewRecord)>;

/// The views of a table's indexes.
fn views(table_key_name: &str, record: &TableRecord) -> Views {
    let named = record.indexes.indexes.iter().filter(|index| index.state.is_named());
    named
        .filter_map(|index| {
            let name = index.browse_as.clone()?;
            let view = ViewRecord {
                table: record.id,
                table_key_name: table_key_name.to_owned(),
                index: index.name.clone(),
            };
            Some((name.to_ascii_lowercase(), (name, view)))
        })
        .collect()
}

/// Writes, if rows are still as they were read.
struct Swap {
    keys: Vec<Bytes>,
    expected: Vec<Option<Bytes>>,
    writes: Vec<Write>,
    frees_space: bool,
}

impl Swap {
    fn of(expected: Vec<(Bytes, Option<Bytes>)>, writes: Vec<Write>) -> Self {
        let (keys, expected) = expected.into_iter().unzip();
        Self { keys, expected, writes, frees_space: false }
    }

    fn freeing_space(mut self) -> Self {
        self.frees_space = true;
        self
    }
}

impl Transition for Swap {
    type Verdict = bool;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn frees_space(&self) -> bool {
        self.frees_space
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<bool> {
        if values != self.expected {
            return Decision::Abort(false);
        }
        for write in &self.writes {
            match write.clone() {
                Write::Put(key, value) => writes.put(key, value),
                Write::Delete(key) => writes.delete(key),
            }
        }
        Decision::Commit(true)
    }
}

/// Collects the tables that have indexes.
#[derive(Default)]
struct IndexedTables {
    tables: Vec<(AccountId, String, TableRecord)>,
}

impl Visitor for IndexedTables {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        // What cannot be read is told when somebody asks for it.
        if let (Ok(Key::Table { account, name }), Some(record)) =
            (Key::decode(key), TableRecord::decode(value))
            && !record.indexes.indexes.is_empty()
        {
            self.tables.push((account, name.to_owned(), record));
        }
        ControlFlow::Continue(())
    }
}

/// Collects what is known of indexes.
#[derive(Default)]
struct Builds {
    found: Vec<(TableId, u16, BuildRecord)>,
}

impl Visitor for Builds {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        if let (Ok(Key::IndexBuild { table, number }), Some(build)) =
            (Key::decode(key), BuildRecord::decode(value))
        {
            self.found.push((table, number, build));
        }
        ControlFlow::Continue(())
    }
}
