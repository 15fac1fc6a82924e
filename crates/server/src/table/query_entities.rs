//! Query Entities: the plan of a filter, scanned span by span until the page is full, or with the help of indexes.

use std::time::Instant;

use http::{HeaderName, HeaderValue, StatusCode};
use tavola_engine::{Engine, Reader, Visitor};
use tavola_wire::StorageError;
use tavola_wire::auth::sas::KeyRangeLimit;
use tavola_wire::explain;
use tavola_wire::table::continuation::{self, EntityContinuation, ViewPosition};
use tavola_wire::table::filter::{Expr, Plan, Program, QueryKind, Span, parse};
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::names::TableName;
use tavola_wire::table::stored::key::{push_entity_key, read_entity_key};
use tavola_wire::uri::query::TOP_MAX;

use super::any_table::AnyTable;
use super::entity_page::{FinishedPage, Page};
use super::index_scan::{self, Hint, IndexQuery, IndexUse};
use super::index_view::{Filled, IndexView, ViewQuery};
use super::odata;
use super::query_workload::{self, QueryPage};
use super::system::SystemTable;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, corrupt, engine_error};
use crate::request::reply::{Reply, ReplyBody};
use crate::request::respond;
use crate::storage::catalogue::Table;
use crate::storage::layout::EntityKeys;

/// Point look-ups between two moments at which other requests of the thread get their turn. A longer span takes as long
/// as many of them.
const POINTS_PER_YIELD: usize = 32;

const NEXT_PARTITION_KEY: HeaderName = HeaderName::from_static(continuation::NEXT_PARTITION_KEY);
const NEXT_ROW_KEY: HeaderName = HeaderName::from_static(continuation::NEXT_ROW_KEY);
const QUERY_KIND: HeaderName = HeaderName::from_static(explain::QUERY_KIND);
const ROWS_EXAMINED: HeaderName = HeaderName::from_static(explain::ROWS_EXAMINED);
const ROWS_RETURNED: HeaderName = HeaderName::from_static(explain::ROWS_RETURNED);
const KEY_SPANS: HeaderName = HeaderName::from_static(explain::KEY_SPANS);
const INDEX_HINT: HeaderName = HeaderName::from_static(explain::INDEX);

pub(crate) async fn run(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    name: &TableName<'_>,
) -> Result<Reply> {
    let query = &context.head.query;
    let level = odata::level(context.head)?;
    let plan = match query.filter() {
        Some(text) => Plan::read(text)?,
        None => Plan::new(&Expr::ALL),
    };
    let top = query.top()?.unwrap_or(TOP_MAX);
    let from = EntityContinuation::from_query(query.next_partition_key(), query.next_row_key());
    let (base, account) = (odata::metadata_base(context.head, level), &context.account.name);
    let format = EntityFormat::new(level, &base, account, name.as_str(), query.select())?;
    let table = match AnyTable::find(context, permit, name).await {
        Ok(table) => table,
        Err(error) => return without_table(context, from, error),
    };
    let page_time = context.state.settings.limits.page_time;
    let page_time = query.timeout()?.map_or(page_time, |timeout| timeout.min(page_time));
    let deadline = context.started + page_time;
    let asked = Asked { plan, format, top: usize::from(top), deadline, range: permit.key_range() };
    let found = match &table {
        AnyTable::Stored(table) => query_stored(context, table, asked.from(from?)).await?,
        AnyTable::System(table) => query_system(context, *table, asked.from(from?)).await?,
        AnyTable::View(view) => match Box::pin(IndexView::find(context, view)).await {
            Ok(view) => Box::pin(query_view(context, &view, asked)).await?,
            Err(error) => return without_table(context, from, error),
        },
    };
    note(context, name, &found);
    // Numbers of an index may tell of rows that the holder of a signature must not know of.
    let shows_indexes = permit.key_range().is_none();
    reply(context, found, shows_indexes)
}

/// The error of a table that there is none of, unless the token is one of no table: nobody knows which of the two forms it
/// must have.
fn without_table(
    context: &RequestContext<'_>,
    from: Result<Option<EntityContinuation>>,
    error: StorageError,
) -> Result<Reply> {
    let is_position = ViewPosition::is_token(context.head.query.next_partition_key());
    if is_position { Err(error) } else { from.and(Err(error)) }
}

/// What a client asks for.
struct Asked<'q> {
    plan: Plan,
    format: EntityFormat,
    top: usize,
    deadline: Instant,
    /// Rows outside the range of a shared access signature are not there for its holder.
    range: Option<&'q KeyRangeLimit>,
}

/// A page, and how its rows were found.
struct Found {
    kind: QueryKind,
    spans: usize,
    used: IndexUse,
    page: FinishedPage,
    /// Where the next page begins.
    tokens: Option<(String, String)>,
}

impl Asked<'_> {
    /// Restricts the plan to what comes from a continuation token on, and to what is granted.
    fn from(mut self, from: Option<EntityContinuation>) -> Self {
        if let Some(from) = from {
            let mut lower = Vec::new();
            push_entity_key(&mut lower, &from.partition_key, from.row_key.as_deref().unwrap_or(""));
            self.plan.restrict(Some(&lower), None);
        }
        if let Some((lower, upper)) = self.range.map(KeyRangeLimit::key_span) {
            self.plan.restrict(lower.as_deref(), upper.as_deref());
        }
        self
    }
}

impl Found {
    fn new(kind: QueryKind, spans: usize, used: IndexUse, page: FinishedPage) -> Result<Self> {
        let token = |next: &Vec<u8>| -> Result<_> {
            let (partition_key, row_key) =
                read_entity_key(next).ok_or_else(|| corrupt("the key of an entity"))?;
            Ok((continuation::encode(&partition_key), continuation::encode(&row_key)))
        };
        let tokens = page.next.as_ref().map(token).transpose()?;
        Ok(Self { kind, spans, used, page, tokens })
    }
}

/// How the rows were found, in a word.
fn kind_name(kind: QueryKind, used: &IndexUse, shows_indexes: bool) -> &'static str {
    let is_index = used.is_used() && shows_indexes;
    if is_index { explain::KIND_INDEX } else { kind.as_str() }
}

async fn query_stored(
    context: &RequestContext<'_>,
    table: &Table,
    asked: Asked<'_>,
) -> Result<Found> {
    let Asked { plan, format, top, deadline, range } = asked;
    let Plan { spans, kind, residual, filter } = plan;
    let is_asked = residual.is_some() && top > 0;
    let memory = context.state.memory_budget.reservation();
    let page = |format| Page::new(format, residual, top, deadline, memory);
    let indexed = filter.as_ref().filter(|_| is_asked && !table.schema.is_empty());
    let (page, used) = match indexed {
        None if top == 0 => (page(format), IndexUse::default()),
        None => (scan_spans(context, table, &spans, page(format)).await?, IndexUse::default()),
        Some(filter) => {
            let hint = Hint::from_header(context.head.header(&INDEX_HINT));
            let is_restricted = range.is_some();
            let query = IndexQuery { filter, spans: &spans, kind, top, hint, is_restricted };
            match index_scan::choose(table, &query, &format) {
                // Large, and few queries have it.
                Ok(choice) => {
                    Box::pin(index_scan::fill(context, table, &query, choice, page(format))).await?
                }
                Err(used) => (scan_spans(context, table, &spans, page(format)).await?, used),
            }
        }
    };
    let found = Found::new(kind, spans.len(), used, page.finish()?)?;
    if top > 0 {
        let uses_index = found.used.is_useful();
        let query = QueryPage { filter: filter.as_ref(), spans: &spans, kind, uses_index };
        query_workload::note(context, table, &query, &found.page);
    }
    Ok(found)
}

async fn query_system(
    context: &RequestContext<'_>,
    table: SystemTable,
    asked: Asked<'_>,
) -> Result<Found> {
    let Asked { plan, format, top, deadline, .. } = asked;
    let Plan { spans, kind, residual, .. } = plan;
    let memory = context.state.memory_budget.reservation();
    let page = Page::new(format, residual, top, deadline, memory);
    let page = match top {
        0 => page,
        _ => table.rows(context).await?.scan_spans(&spans, page),
    };
    Found::new(kind, spans.len(), IndexUse::default(), page.finish()?)
}

async fn query_view(
    context: &RequestContext<'_>,
    view: &IndexView,
    asked: Asked<'_>,
) -> Result<Found> {
    let Asked { format, top, deadline, range, .. } = asked;
    let query = &context.head.query;
    // Its order is not that of its keys, so that a plan says nothing about it.
    let filter = query.filter().map_or(Ok(Expr::ALL), parse)?;
    let keys = &context.account.keys[..];
    let from = ViewPosition::from_query(query.next_partition_key(), range.map(|_| keys))?;
    let memory = context.state.memory_budget.reservation();
    let page = Page::new(format, Some(Program::new(&filter)), top, deadline, memory);
    let query = ViewQuery { filter: &filter, from, range };
    let Filled { page, next, used } = view.fill(context, query, page).await?;
    let page = page.finish()?;
    // The next row may be one that the holder of a signature must not know of.
    let token = |next: ViewPosition| match range.and(keys.first()) {
        Some(key) => next.seal(key),
        None => next.encode(),
    };
    let tokens = next.map(|next| (token(next), continuation::encode("")));
    Ok(Found { kind: QueryKind::TableScan, spans: 1, used, page, tokens })
}

/// Shows the rows of the spans to the page until it is full. All spans are read from one state.
async fn scan_spans(
    context: &RequestContext<'_>,
    table: &Table,
    spans: &[Span],
    mut page: Box<Page>,
) -> Result<Box<Page>> {
    let keys = table.keys();
    let engine = &context.state.engine;
    match spans {
        [] => {}
        [span] => page = scan_span(engine, keys, span, page).await?,
        spans => {
            let snapshot = engine.snapshot().await.map_err(engine_error)?;
            for (index, span) in spans.iter().enumerate() {
                page = scan_span(&snapshot, keys, span, page).await?;
                if page.is_done() {
                    break;
                }
                if span.as_point().is_none() || index % POINTS_PER_YIELD == POINTS_PER_YIELD - 1 {
                    tokio::task::yield_now().await;
                    page.end_in_time(spans.get(index + 1));
                    if page.is_done() {
                        break;
                    }
                }
            }
        }
    }
    Ok(page)
}

async fn scan_span(
    reader: &impl Reader,
    keys: EntityKeys,
    span: &Span,
    mut page: Box<Page>,
) -> Result<Box<Page>> {
    // A point costs what Get Entity costs.
    if let Some(point) = span.as_point() {
        let key = keys.raw(point);
        if let Some(value) = reader.get(&key).await.map_err(engine_error)? {
            let _ = page.visit(&key, &value);
        }
        return Ok(page);
    }
    let range = keys.range(&span.start, span.end.as_deref());
    reader.scan(range, page).await.map_err(engine_error)
}

/// Counts the query, and logs it if it was slow.
fn note(context: &RequestContext<'_>, table: &TableName<'_>, found: &Found) {
    let (state, Found { page, used, .. }) = (context.state, found);
    if let Some(how) = used.how {
        state.metrics.indexes.note_use(how);
    }
    // Also those of a range that was given up: nobody else counts what it cost.
    state.metrics.indexes.entries.inc_by(used.entries);
    for (_, reason) in &used.not_used {
        state.metrics.indexes.note_fallback(*reason);
    }
    context.notes.set_rows(page.examined, page.returned as u64);
    let kind = kind_name(found.kind, used, true);
    state.metrics.query_kind(kind);
    state.metrics.rows_examined.inc_by(page.examined);
    state.metrics.rows_returned.inc_by(page.returned as u64);
    let elapsed = context.started.elapsed();
    if elapsed >= state.settings.slow_query {
        tracing::warn!(
            request_id = %context.id,
            account = context.account.name,
            table = table.as_str(),
            kind,
            indexes = used.names.join(","),
            index_use = %used,
            index_entries = used.entries,
            index_not_used = used.reasons(),
            rows_examined = page.examined,
            rows_returned = page.returned,
            elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            "slow query"
        );
    }
}

fn reply(context: &RequestContext<'_>, found: Found, shows_indexes: bool) -> Result<Reply> {
    let Found { kind, spans, used, page, tokens } = found;
    let body = ReplyBody::reserved(page.body, page.memory);
    let mut reply = odata::json(StatusCode::OK, page.level, body);
    let headers = reply.headers_mut();
    if let Some((partition_key, row_key)) = tokens {
        headers.insert(NEXT_PARTITION_KEY, respond::text(&partition_key));
        headers.insert(NEXT_ROW_KEY, respond::text(&row_key));
    }
    if odata::wants_explanation(context.head) {
        headers.insert(QUERY_KIND, HeaderValue::from_static(kind_name(kind, &used, shows_indexes)));
        headers.insert(ROWS_EXAMINED, HeaderValue::from(page.examined));
        headers.insert(ROWS_RETURNED, HeaderValue::from(page.returned));
        headers.insert(KEY_SPANS, HeaderValue::from(spans));
        if shows_indexes {
            used.set_headers(headers);
        }
    }
    Ok(reply)
}
