//! Query Entities: the plan of a filter, scanned span by span until the page is full, or with the help of indexes.

use http::{HeaderName, HeaderValue, StatusCode};
use tavola_engine::{Engine, Reader, Visitor};
use tavola_wire::auth::sas::KeyRangeLimit;
use tavola_wire::explain;
use tavola_wire::table::continuation::{self, EntityContinuation};
use tavola_wire::table::filter::{Expr, Plan, QueryKind, Span};
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::names::TableName;
use tavola_wire::table::stored::key::{push_entity_key, read_entity_key};
use tavola_wire::uri::query::TOP_MAX;

use super::any_table::AnyTable;
use super::entity_page::{FinishedPage, Page};
use super::index_scan::{self, Hint, IndexQuery, IndexUse};
use super::odata;
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

const NEXT_PARTITION_KEY: HeaderName =
    HeaderName::from_static("x-ms-continuation-nextpartitionkey");
const NEXT_ROW_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextrowkey");
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
    let mut plan = match query.filter() {
        Some(text) => Plan::read(text)?,
        None => Plan::new(&Expr::Constant(true)),
    };
    let top = query.top()?.unwrap_or(TOP_MAX);
    let from = EntityContinuation::from_query(query.next_partition_key(), query.next_row_key())?;
    let (base, account) = (odata::metadata_base(context.head, level), &context.account.name);
    let format = EntityFormat::new(level, &base, account, name.as_str(), query.select())?;
    let table = AnyTable::find(context, permit, name).await?;

    restrict_to_continuation(&mut plan, from.as_ref());
    restrict_to_grant(&mut plan, permit.key_range());
    let Plan { spans, kind, residual, filter } = plan;
    let page_time = context.state.settings.limits.page_time;
    let page_time = query.timeout()?.map_or(page_time, |timeout| timeout.min(page_time));
    let memory = context.state.memory_budget.reservation();
    let top = usize::from(top);
    let deadline = context.started + page_time;
    let page = |format| Page::new(format, residual, top, deadline, memory);
    let (page, used) = match &table {
        _ if top == 0 => (page(format), IndexUse::default()),
        AnyTable::System(table) => {
            let rows = table.rows(context).await?;
            (rows.scan_spans(&spans, page(format)), IndexUse::default())
        }
        AnyTable::Stored(table) => match filter.as_ref().filter(|_| !table.schema.is_empty()) {
            None => (scan_spans(context, table, &spans, page(format)).await?, IndexUse::default()),
            Some(filter) => {
                let hint = Hint::from_header(context.head.header(&INDEX_HINT));
                let query = IndexQuery { filter, spans: &spans, kind, top, hint };
                let choice = index_scan::candidates(table, &query, &format);
                let page = page(format);
                if choice.is_some() {
                    // Large, and few queries have it.
                    Box::pin(index_scan::fill(context, table, &query, choice, page)).await?
                } else {
                    let used = choice.into_unused();
                    (scan_spans(context, table, &spans, page).await?, used)
                }
            }
        },
    };
    let page = page.finish()?;
    let found = Found { kind, spans: spans.len(), used, page };
    note(context, name, &found);
    // Numbers of an index may tell of rows that the holder of a signature must not know of.
    let shows_indexes = permit.key_range().is_none();
    reply(context, found, shows_indexes)
}

/// A page, and how its rows were found.
struct Found {
    kind: QueryKind,
    spans: usize,
    used: IndexUse,
    page: FinishedPage,
}

impl Found {
    fn kind(&self) -> String {
        if self.used.is_used() { explain::KIND_INDEX.to_owned() } else { self.kind.to_string() }
    }
}

fn restrict_to_continuation(plan: &mut Plan, from: Option<&EntityContinuation>) {
    if let Some(from) = from {
        let mut lower = Vec::new();
        push_entity_key(&mut lower, &from.partition_key, from.row_key.as_deref().unwrap_or(""));
        plan.restrict(Some(&lower), None);
    }
}

/// Rows outside the range of a shared access signature are not there for its holder.
fn restrict_to_grant(plan: &mut Plan, range: Option<&KeyRangeLimit>) {
    let Some(range) = range else { return };
    let (lower, upper) = range.key_span();
    plan.restrict(lower.as_deref(), upper.as_deref());
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
        state.metrics.indexes.note_use(how.name());
        state.metrics.indexes.entries.inc_by(used.entries);
    }
    for (_, reason) in &used.not_used {
        state.metrics.indexes.note_fallback(reason.name());
    }
    state.metrics.rows_examined.inc_by(page.examined);
    state.metrics.rows_returned.inc_by(page.returned as u64);
    let elapsed = context.started.elapsed();
    if elapsed >= state.settings.slow_query {
        tracing::warn!(
            request_id = %context.id,
            account = context.account.name,
            table = table.as_str(),
            kind = found.kind(),
            indexes = used.names.join(","),
            index_use = %used,
            index_entries = used.entries,
            rows_examined = page.examined,
            rows_returned = page.returned,
            elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            "slow query"
        );
    }
}

fn reply(context: &RequestContext<'_>, found: Found, shows_indexes: bool) -> Result<Reply> {
    let kind = if shows_indexes { found.kind() } else { found.kind.to_string() };
    let Found { spans, used, page, .. } = found;
    let body = ReplyBody::reserved(page.body, page.memory);
    let mut reply = odata::json(StatusCode::OK, page.level, body);
    let headers = reply.headers_mut();
    if let Some(next) = &page.next {
        let (partition_key, row_key) =
            read_entity_key(next).ok_or_else(|| corrupt("the key of an entity"))?;
        let token = |key: &str| respond::text(&continuation::encode(key));
        headers.insert(NEXT_PARTITION_KEY, token(&partition_key));
        headers.insert(NEXT_ROW_KEY, token(&row_key));
    }
    if odata::wants_explanation(context.head) {
        headers.insert(QUERY_KIND, respond::text(&kind));
        headers.insert(ROWS_EXAMINED, HeaderValue::from(page.examined));
        headers.insert(ROWS_RETURNED, HeaderValue::from(page.returned));
        headers.insert(KEY_SPANS, HeaderValue::from(spans));
        if shows_indexes {
            used.set_headers(headers);
        }
    }
    Ok(reply)
}
