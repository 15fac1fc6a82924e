//! An index read as a table: its entities in the order of the index, under keys made of what is indexed.
//!
//! It is a view. Its order is that of values (numbers as numbers), not that of the texts that its keys show them as, so
//! that comparisons of its keys are evaluated row by row; equality of both keys, or of the first part with a prefix of what
//! follows, are found at once. A position is a place in the index, and a continuation token holds one.

mod bounds;
mod key_test;

use std::sync::Arc;

use bytes::Bytes;
use tavola_engine::{Engine, Reader, Visitor};
use tavola_wire::ErrorCode;
use tavola_wire::StorageError;
use tavola_wire::auth::sas::KeyRangeLimit;
use tavola_wire::explain::How;
use tavola_wire::table::continuation::ViewPosition;
use tavola_wire::table::filter::Expr;
use tavola_wire::table::index::{Include, IndexRow, RowRef, RowScratch, origin_keys};
use tavola_wire::table::names::TableName;
use tavola_wire::table::stored::key::{push_entity_key, read_entity_key};
use tavola_wire::table::stored::{EntityRef, Value, with_properties};

use self::key_test::KeyTest;
use super::entity_page::Page;
use super::errors::in_table;
use super::index_scan::{BATCH_ROWS, Batch, IndexUse, report_orphan};
use crate::context::RequestContext;
use crate::error::{Result, corrupt, engine_error};
use crate::storage::catalogue::Table;
use crate::storage::index::{Index, IndexState};
use crate::storage::layout::IndexKeys;

/// Beside the properties of the entity: where it is.
const ORIGIN_PARTITION_KEY: &str = "OriginPartitionKey";
const ORIGIN_ROW_KEY: &str = "OriginRowKey";

/// An index under a name of its own.
#[derive(Clone, Debug)]
pub(crate) struct IndexView {
    /// The record of the name.
    view: Arc<Table>,
    table: Arc<Table>,
    /// Which of the table's indexes it is.
    place: usize,
}

/// Where a query of a view begins, and what of it is shown.
pub(crate) struct ViewQuery<'q> {
    pub filter: &'q Expr,
    /// Of a continuation token.
    pub from: Option<ViewPosition>,
    /// Of a shared access signature.
    pub range: Option<&'q KeyRangeLimit>,
}

/// A page, as far as it got.
pub(crate) struct Filled {
    pub page: Box<Page>,
    /// Where the next one begins.
    pub next: Option<ViewPosition>,
    /// What an explanation says of it.
    pub used: IndexUse,
}

impl IndexView {
    /// The view of that record.
    ///
    /// # Errors
    /// 503 `ServerBusy` while the index is being built; 404 `TableNotFound` if it has gone or failed.
    pub(crate) async fn find(context: &RequestContext<'_>, view: &Arc<Table>) -> Result<Self> {
        let gone = || StorageError::from(ErrorCode::TableNotFound);
        let record = view.view.as_ref().ok_or_else(gone)?;
        let name = TableName::parse(record.table_key_name.clone())?;
        let found = context.state.catalogue.find(context.account.id, &name).await;
        let table = found.map_err(in_table)?;
        let is_shown = |index: &Index| index.name == record.index && index.state.is_named();
        // While a definition is replaced two have the name, and the old one still answers.
        let indexes = table.schema.indexes();
        let readable = |index: &Index| is_shown(index) && index.state == IndexState::Readable;
        let place = indexes.iter().position(readable);
        match place.filter(|_| table.id == record.table) {
            Some(place) => Ok(Self { view: Arc::clone(view), table, place }),
            None => Err(match indexes.iter().find(|index| is_shown(index)) {
                Some(index) if !index.state.has_failed() => StorageError::with_detail(
                    ErrorCode::ServerBusy,
                    "The index that this table shows is being built.",
                ),
                _ => gone(),
            }),
        }
    }

    fn index(&self) -> &Index {
        &self.table.schema.indexes()[self.place]
    }

    /// A page with these rows, of which so many were passed in the index.
    fn filled(&self, page: Box<Page>, next: Option<Vec<u8>>, entries: u64) -> Filled {
        let (table, index) = (self.table.id.0, self.index().number);
        let next = next.map(|row| ViewPosition { table, index, row });
        let names = vec![self.index().name.clone()];
        let used = IndexUse { names, how: Some(How::Browsed), entries, ..IndexUse::default() };
        Filled { page, next, used }
    }

    /// Shows the rows to the page until it is full.
    ///
    /// # Errors
    /// 400 `InvalidInput` if the query goes on in another index than this one.
    pub(crate) async fn fill(
        &self,
        context: &RequestContext<'_>,
        query: ViewQuery<'_>,
        page: Box<Page>,
    ) -> Result<Filled> {
        let index = self.index();
        let from = query.from.as_ref().map(|from| self.row_of(from)).transpose()?;
        if page.has_no_room() {
            return Ok(self.filled(page, None, 0));
        }
        index.statistics.note_page(from.is_none(), context.state.clock.now());
        match bounds::point(query.filter) {
            Some(point) if from.is_none() => self.fill_point(context, &query, point, page).await,
            _ => self.fill_rows(context, &query, from.unwrap_or_default(), page).await,
        }
    }

    /// The row of a position, which says nothing about any other index.
    fn row_of<'p>(&self, position: &'p ViewPosition) -> Result<&'p [u8]> {
        let is_of_this = (position.table, position.index) == (self.table.id.0, self.index().number);
        is_of_this.then_some(&*position.row).ok_or_else(|| {
            StorageError::with_detail(
                ErrorCode::InvalidInput,
                "The index that this table shows was replaced: the listing has to begin anew.",
            )
        })
    }

    /// Shows the one row with these keys.
    async fn fill_point(
        &self,
        context: &RequestContext<'_>,
        query: &ViewQuery<'_>,
        (partition_key, row_key): (&str, &str),
        mut page: Box<Page>,
    ) -> Result<Filled> {
        if query.range.is_none_or(|range| range.contains(partition_key, row_key))
            && let Some(entity) = self.get(context, partition_key, row_key).await?
        {
            let _ = page.visit(&self.view.keys().key(partition_key, row_key), &entity);
        }
        Ok(self.filled(page, None, 0))
    }

    async fn fill_rows(
        &self,
        context: &RequestContext<'_>,
        query: &ViewQuery<'_>,
        from: &[u8],
        mut page: Box<Page>,
    ) -> Result<Filled> {
        let index = self.index();
        let snapshot = context.state.engine.snapshot().await.map_err(engine_error)?;
        let keys = IndexKeys::of(self.table.id, index.number);
        let (start, end) = bounds::of_filter(&index.definition, query.filter);
        let mut key_test = KeyTest::new(query.filter, query.range);
        let mut entries = 0;
        let mut position = Some(start.max(from.to_vec()));
        while let Some(start) = position {
            let range = keys.range(&start, end.as_deref());
            let batch = Batch::read(&snapshot, range, true, BATCH_ROWS).await?;
            position = batch.next_position();
            for (key, value) in &batch.rows {
                entries += 1;
                let row = RowRef::read(&index.definition, key, value).ok_or_else(damaged)?;
                let (partition_key, row_key) =
                    row.view_keys(&index.definition).ok_or_else(damaged)?;
                let entity = match key_test.passes(&partition_key, &row_key)? {
                    true => self.entity(&snapshot, &row).await?,
                    false if page.pass() => continue,
                    false => return Ok(self.filled(page, Some(key.clone()), entries)),
                };
                let Some(entity) = entity else {
                    report_orphan(context, &self.table, index.number, &row.entity_key);
                    continue;
                };
                let _ = page.visit(&self.view.keys().key(&partition_key, &row_key), &entity);
                if page.is_done() {
                    return Ok(self.filled(page, Some(key.clone()), entries));
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(self.filled(page, None, entries))
    }

    /// The entity that a row with these keys shows.
    pub(crate) async fn get(
        &self,
        context: &RequestContext<'_>,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Bytes>> {
        let Some((origin_partition, origin_row)) = origin_keys(row_key) else { return Ok(None) };
        let snapshot = context.state.engine.snapshot().await.map_err(engine_error)?;
        let key = self.table.keys().key(&origin_partition, &origin_row);
        let Some(stored) = snapshot.get(&key).await.map_err(engine_error)? else {
            return Ok(None);
        };
        let definition = &self.index().definition;
        let mut entity_key = Vec::new();
        push_entity_key(&mut entity_key, &origin_partition, &origin_row);
        let entity = EntityRef::parse(&stored).map_err(corrupt)?;
        let mut is_shown = false;
        let compare = |place, row: IndexRow<'_>| {
            if place == self.place {
                let row = RowRef::read(definition, row.parts_and_suffix, row.value);
                let keys = row.and_then(|row| row.view_keys(definition));
                is_shown = keys.is_some_and(|keys| keys == (partition_key.into(), row_key.into()));
            }
        };
        let rows = self.table.schema.row_maker();
        rows.rows(&entity_key, entity, &mut RowScratch::default(), compare).map_err(corrupt)?;
        if !is_shown {
            return Ok(None);
        }
        with_origin(&stored, &origin_partition, &origin_row).map(|entity| Some(entity.into()))
    }

    /// The entity that a row is shown with; `None` if there is none, which is never seen.
    async fn entity(&self, reader: &impl Reader, row: &RowRef<'_>) -> Result<Option<Vec<u8>>> {
        let is_copy_whole = self.index().definition.include == Include::All;
        let fetched;
        let stored = match row.copy.filter(|_| is_copy_whole) {
            Some(copy) => copy,
            None => {
                let key = self.table.keys().raw(&row.entity_key);
                match reader.get(&key).await.map_err(engine_error)? {
                    Some(stored) => fetched = stored,
                    None => return Ok(None),
                }
                &fetched
            }
        };
        let (partition_key, row_key) = read_entity_key(&row.entity_key).ok_or_else(damaged)?;
        with_origin(stored, &partition_key, &row_key).map(Some)
    }
}

fn damaged() -> StorageError {
    corrupt("a row of an index")
}

fn with_origin(stored: &[u8], partition_key: &str, row_key: &str) -> Result<Vec<u8>> {
    let origin = [
        (ORIGIN_PARTITION_KEY, Value::String(partition_key)),
        (ORIGIN_ROW_KEY, Value::String(row_key)),
    ];
    with_properties(EntityRef::parse(stored).map_err(corrupt)?, &origin).map_err(corrupt)
}
