//! Get Table: the legacy clients' way to ask whether a table exists.

use http::StatusCode;
use tavola_wire::table::json::TableFormat;
use tavola_wire::table::names::TableName;

use super::errors::of_table;
use super::odata;
use super::system::SystemTable;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::storage;

pub(crate) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &TableName<'_>,
) -> Result<Reply> {
    let level = odata::level(context.head)?;
    let found = context.state.catalogue.find(context.account.id, name).await;
    let found = match (&found, SystemTable::named(name)) {
        (Err(storage::Error::NotFound), Some(table)) => table.name(),
        _ => &found.map_err(of_table)?.name,
    };
    let base = context.head.base();
    let format = TableFormat { level, base: &base, account: &context.account.name };
    Ok(odata::json(StatusCode::OK, level, format.element(found)))
}
