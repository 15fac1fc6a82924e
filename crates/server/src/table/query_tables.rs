//! Query Tables: the catalogue, filtered by name, page by page.

use std::ops::ControlFlow;

use http::{HeaderName, StatusCode};
use tavola_engine::{Reader, Visitor};
use tavola_wire::auth::sas::Access;
use tavola_wire::table::continuation;
use tavola_wire::table::filter::TableFilter;
use tavola_wire::table::json::TableFormat;
use tavola_wire::uri::query::TOP_MAX;

use crate::context::RequestContext;
use crate::error::{Result, corrupt, engine_error};
use crate::request::respond::{self, Reply};
use crate::storage::layout::{Record, TableRecord, tables_of};

const NEXT_TABLE_NAME: HeaderName = HeaderName::from_static("x-ms-continuation-nexttablename");

pub(crate) async fn run(context: &RequestContext<'_>) -> Result<Reply> {
    context.identity.allows(Access::QueryTables)?;
    let query = &context.head.query;
    let level = context.head.level()?;
    let filter = query.filter().map(TableFilter::parse).transpose()?;
    let top = query.top()?.unwrap_or(TOP_MAX);
    let from = continuation::table_from_query(query.next_table_name())?;
    let from = from.as_ref().map(|name| name.lower().into_owned()).unwrap_or_default();

    let page = Page { filter, top: usize::from(top), ..Page::default() };
    let page = match top {
        0 => page,
        _ => {
            let range = tables_of(context.account.id, &from);
            context.state.engine.scan(range, page).await.map_err(engine_error)?
        }
    };
    if page.malformed {
        return Err(corrupt("a catalogue row"));
    }

    let base = context.head.base();
    let format = TableFormat { level, base: &base, account: &context.account.name };
    let body = format.list(page.names.iter().map(String::as_str));
    let mut reply = respond::json(StatusCode::OK, level, body);
    if let Some(next) = &page.next {
        let token = respond::text(&continuation::encode(next));
        reply.headers_mut().insert(NEXT_TABLE_NAME, token);
    }
    Ok(reply)
}

/// One page of names.
#[derive(Default)]
struct Page {
    filter: Option<TableFilter>,
    top: usize,
    names: Vec<String>,
    /// The first name of the next page.
    next: Option<String>,
    malformed: bool,
}

impl Visitor for Page {
    fn visit(&mut self, _: &[u8], value: &[u8]) -> ControlFlow<()> {
        let Some(TableRecord { name, .. }) = TableRecord::decode(value) else {
            self.malformed = true;
            return ControlFlow::Break(());
        };
        if self.filter.as_ref().is_some_and(|filter| !filter.matches(&name)) {
            return ControlFlow::Continue(());
        }
        if self.names.len() == self.top {
            self.next = Some(name);
            return ControlFlow::Break(());
        }
        self.names.push(name);
        ControlFlow::Continue(())
    }
}
