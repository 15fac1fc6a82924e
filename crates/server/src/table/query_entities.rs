//! Query Entities: the plan of a filter, scanned span by span until the page is full.

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

use super::entity_page::{FinishedPage, Page};
use super::errors::in_table;
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
    let table = context.state.catalogue.find(context.account.id, name).await.map_err(in_table)?;

    restrict_to_continuation(&mut plan, from.as_ref());
    restrict_to_grant(&mut plan, permit.key_range());
    let Plan { spans, kind, residual } = plan;
    let page_time = context.state.settings.limits.page_time;
    let page_time = query.timeout()?.map_or(page_time, |timeout| timeout.min(page_time));
    let memory = context.state.memory_budget.reservation();
    let page = Page::new(format, residual, usize::from(top), context.started + page_time, memory);
    let page = if top == 0 { page } else { scan_spans(context, &table, &spans, page).await? };
    let page = page.finish()?;
    note(context, name, kind, &page);
    reply(context, kind, spans.len(), page)
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
fn note(context: &RequestContext<'_>, table: &TableName<'_>, kind: QueryKind, page: &FinishedPage) {
    let state = context.state;
    context.notes.set_rows(page.examined, page.returned as u64);
    state.metrics.query_kind(kind);
    state.metrics.rows_examined.inc_by(page.examined);
    state.metrics.rows_returned.inc_by(page.returned as u64);
    let elapsed = context.started.elapsed();
    if elapsed >= state.settings.slow_query {
        tracing::warn!(
            request_id = %context.id,
            account = context.account.name,
            table = table.as_str(),
            kind = %kind,
            rows_examined = page.examined,
            rows_returned = page.returned,
            elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            "slow query"
        );
    }
}

fn reply(
    context: &RequestContext<'_>,
    kind: QueryKind,
    spans: usize,
    page: FinishedPage,
) -> Result<Reply> {
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
        headers.insert(QUERY_KIND, respond::text(&kind.to_string()));
        headers.insert(ROWS_EXAMINED, HeaderValue::from(page.examined));
        headers.insert(ROWS_RETURNED, HeaderValue::from(page.returned));
        headers.insert(KEY_SPANS, HeaderValue::from(spans));
    }
    Ok(reply)
}
