//! Query Entities: the plan of a filter, walked span by span until the page is full.
//!
//! The visitor is the executor: it filters, projects and writes JSON straight from the stored bytes. A page
//! ends at `$top` or 1000 entities, at about 4 MiB, when its server time is used up, or when there is no more memory for
//! messages; the token is the key of the first row that is not in it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderName, HeaderValue, StatusCode};
use tavola_engine::{Engine, Reader, Visitor};
use tavola_wire::ErrorCode;
use tavola_wire::auth::sas::{Access, EntityOperation, KeyRangeLimit};
use tavola_wire::continuation::{self, EntityContinuation};
use tavola_wire::entity::{EntityRef, MalformedEntity};
use tavola_wire::filter::{Expr, Plan, Program, QueryKind, Scratch, Span};
use tavola_wire::json::EntityFormat;
use tavola_wire::key::{push_entity_key, read_entity_key};
use tavola_wire::names::{TableName, key_problem};
use tavola_wire::uri::query::TOP_MAX;

use crate::catalogue::Table;
use crate::context::RequestContext;
use crate::error::{Result, corrupt, engine_error};
use crate::layout::{EntityKeys, entity_key_of};
use crate::message_memory::Growing;
use crate::respond::{self, Reply};

/// A page that has grown beyond this ends, whatever its count.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Rows that are looked at behind a full page for one that matches: a token is for a page that has something.
const PEEKED_ROWS_MAX: usize = 1000;
/// Rows between two looks at the clock.
const ROWS_PER_TIME_CHECK: u64 = 64;
/// Point look-ups between two moments at which other requests of the thread get their turn. A longer span takes as long
/// as many of them.
const POINTS_PER_YIELD: usize = 32;

const NEXT_PARTITION_KEY: HeaderName =
    HeaderName::from_static("x-ms-continuation-nextpartitionkey");
const NEXT_ROW_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextrowkey");
const QUERY_KIND: HeaderName = HeaderName::from_static("x-tavola-query-kind");
const ROWS_EXAMINED: HeaderName = HeaderName::from_static("x-tavola-rows-examined");
const ROWS_RETURNED: HeaderName = HeaderName::from_static("x-tavola-rows-returned");
const KEY_SPANS: HeaderName = HeaderName::from_static("x-tavola-key-spans");

pub async fn run(context: &RequestContext<'_>, name: &TableName<'_>) -> Result<Reply> {
    let operation = EntityOperation::Query;
    context.identity.allows(Access::Entity { table: name.as_str(), operation })?;
    let query = &context.head.query;
    let level = context.head.level()?;
    let mut plan = match query.filter() {
        Some(text) => Plan::read(text)?,
        None => Plan::new(&Expr::Constant(true)),
    };
    let top = query.top()?.unwrap_or(TOP_MAX);
    let from = EntityContinuation::from_query(query.next_partition_key(), query.next_row_key())?;
    let (base, account) = (context.head.metadata_base(level), &context.account.name);
    let format = EntityFormat::new(level, &base, account, name.as_str(), query.select())?;
    let table = context.services.catalogue.find(context.account.id, name).await?;

    restrict_to_continuation(&mut plan, from.as_ref());
    restrict_to_grant(&mut plan, context.identity.key_range());
    let Plan { spans, kind, residual } = plan;
    let page_time = context.services.settings.limits.page_time;
    let page_time = query.timeout()?.map_or(page_time, |timeout| timeout.min(page_time));
    let memory = Growing::new(&context.services.message_memory);
    let page = Page::new(format, residual, usize::from(top), context.started + page_time, memory);
    let page = if top == 0 { page } else { walk(context, &table, &spans, page).await? };
    match page.failure {
        Some(Failure::Malformed(malformed)) => return Err(corrupt(malformed)),
        Some(Failure::NoMemory) => return Err(ErrorCode::ServerBusy.into()),
        None => {}
    }
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
async fn walk(
    context: &RequestContext<'_>,
    table: &Table,
    spans: &[Span],
    mut page: Box<Page>,
) -> Result<Box<Page>> {
    let keys = table.keys();
    let engine = &context.services.engine;
    match spans {
        [] => {}
        [span] => page = walk_span(engine, keys, span, page).await?,
        spans => {
            let snapshot = engine.snapshot().await.map_err(engine_error)?;
            for (index, span) in spans.iter().enumerate() {
                page = walk_span(&snapshot, keys, span, page).await?;
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

async fn walk_span(
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

/// One page in the making. It is handed from one to the other, and large.
struct Page {
    format: EntityFormat,
    residual: Option<Program>,
    scratch: Scratch,
    body: Vec<u8>,
    memory: Growing,
    examined: u64,
    returned: usize,
    returned_max: usize,
    /// Rows looked at since the page was full.
    peeked: usize,
    deadline: Instant,
    /// The entity key of the first row of the next page.
    next: Option<Vec<u8>>,
    failure: Option<Failure>,
}

impl Page {
    fn new(
        format: EntityFormat,
        residual: Option<Program>,
        returned_max: usize,
        deadline: Instant,
        memory: Growing,
    ) -> Box<Self> {
        let mut body = Vec::with_capacity(1024);
        format.push_list_start(&mut body);
        Box::new(Self {
            format,
            residual,
            scratch: Scratch::default(),
            body,
            memory,
            examined: 0,
            returned: 0,
            returned_max,
            peeked: 0,
            deadline,
            next: None,
            failure: None,
        })
    }

    fn is_done(&self) -> bool {
        self.next.is_some() || self.failure.is_some()
    }

    /// Whether the page must end before the next row. At least one row is examined, so that paging advances.
    fn is_over(&self) -> bool {
        self.body.len() >= PAGE_BYTES_MAX
            || self.peeked >= PEEKED_ROWS_MAX
            || (self.examined > 0
                && self.examined.is_multiple_of(ROWS_PER_TIME_CHECK)
                && Instant::now() >= self.deadline)
    }

    /// Ends the page before a span when the time is up: what is not found is not counted.
    fn end_in_time(&mut self, next: Option<&Span>) {
        if Instant::now() >= self.deadline {
            self.next = next.and_then(first_key);
        }
    }

    /// Takes the row, leaves it out, or finds it to be the first of the next page.
    fn examine(&mut self, entity_key: &[u8], value: &[u8]) -> Result<Found, Failure> {
        let is_full = self.returned == self.returned_max;
        if is_full && self.residual.is_none() {
            return Ok(Found::NextPage);
        }
        self.examined += 1;
        self.peeked += usize::from(is_full);
        let entity = EntityRef::parse(value)?;
        if let Some(residual) = &self.residual
            && !residual.matches(entity_key, entity, &mut self.scratch)?
        {
            return Ok(Found::ThisPage);
        }
        if is_full {
            return Ok(Found::NextPage);
        }
        let (partition_key, row_key) =
            read_entity_key(entity_key).ok_or(MalformedEntity { at: 0 })?;
        let (first, before) = (self.returned == 0, self.body.len());
        self.format.push_item(&mut self.body, first, &partition_key, &row_key, entity)?;
        if self.memory.grow_to(self.body.len()).is_err() {
            self.body.truncate(before);
            return if self.examined == 1 { Err(Failure::NoMemory) } else { Ok(Found::NextPage) };
        }
        self.returned += 1;
        Ok(Found::ThisPage)
    }
}

/// The key that a span begins with, if it does: a page cannot end between two keys.
fn first_key(span: &Span) -> Option<Vec<u8>> {
    let (partition_key, row_key) = read_entity_key(&span.start)?;
    let are_keys = key_problem(&partition_key).is_none() && key_problem(&row_key).is_none();
    are_keys.then(|| span.start.clone())
}

/// Why there is no page.
enum Failure {
    Malformed(MalformedEntity),
    /// The first row is too much.
    NoMemory,
}

impl From<MalformedEntity> for Failure {
    fn from(malformed: MalformedEntity) -> Self {
        Self::Malformed(malformed)
    }
}

/// Which page a row belongs to, be it in it or left out of it.
enum Found {
    ThisPage,
    NextPage,
}

impl Visitor for Box<Page> {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let entity_key = entity_key_of(key);
        let found =
            if self.is_over() { Ok(Found::NextPage) } else { self.examine(entity_key, value) };
        match found {
            Ok(Found::ThisPage) => return ControlFlow::Continue(()),
            Ok(Found::NextPage) => self.next = Some(entity_key.to_vec()),
            Err(failure) => self.failure = Some(failure),
        }
        ControlFlow::Break(())
    }
}

/// Counts the query, and logs it if it was slow.
fn note(context: &RequestContext<'_>, table: &TableName<'_>, kind: QueryKind, page: &Page) {
    let services = context.services;
    services.metrics.rows_examined.inc_by(page.examined);
    services.metrics.rows_returned.inc_by(page.returned as u64);
    let elapsed = context.started.elapsed();
    if elapsed >= services.settings.slow_query {
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
    mut page: Box<Page>,
) -> Result<Reply> {
    page.format.push_list_end(&mut page.body);
    let mut reply =
        respond::json(StatusCode::OK, page.format.level(), std::mem::take(&mut page.body));
    if let Some(held) = page.memory.into_held() {
        reply.extensions_mut().insert(Arc::new(held));
    }
    let headers = reply.headers_mut();
    if let Some(next) = &page.next {
        let (partition_key, row_key) =
            read_entity_key(next).ok_or_else(|| corrupt("the key of an entity"))?;
        let token = |key: &str| respond::text(&continuation::encode(key));
        headers.insert(NEXT_PARTITION_KEY, token(&partition_key));
        headers.insert(NEXT_ROW_KEY, token(&row_key));
    }
    if context.head.wants_explanation() {
        headers.insert(QUERY_KIND, respond::text(&kind.to_string()));
        headers.insert(ROWS_EXAMINED, HeaderValue::from(page.examined));
        headers.insert(ROWS_RETURNED, HeaderValue::from(page.returned));
        headers.insert(KEY_SPANS, HeaderValue::from(spans));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_can_end_before_points_and_most_ranges() {
        let cases = [
            ("PartitionKey eq 'a' and RowKey eq '1'", Some(("a", "1"))),
            ("PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '2'", Some(("a", "1"))),
            ("PartitionKey eq 'a'", Some(("a", ""))),
            ("PartitionKey eq 'a' and RowKey gt '1'", None),
            ("A eq 1", None),
        ];
        for (filter, expected) in cases {
            let plan = Plan::read(filter).unwrap();
            let key = first_key(&plan.spans[0]);
            let found = key.as_deref().and_then(read_entity_key);
            let found = found.as_ref().map(|(partition, row)| (&**partition, &**row));
            assert_eq!(found, expected, "{filter}");
        }
    }
}
