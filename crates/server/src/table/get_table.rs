//! Get Table: the legacy clients' way to ask whether a table exists.

use http::StatusCode;
use tavola_wire::auth::sas::Access;
use tavola_wire::table::json::TableFormat;
use tavola_wire::table::names::TableName;

use super::errors::of_table;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::respond::{self, Reply};

pub(crate) async fn run(context: &RequestContext<'_>, name: &TableName<'_>) -> Result<Reply> {
    context.identity.allows(Access::QueryTables)?;
    let level = context.head.level()?;
    let table = context.state.catalogue.find(context.account.id, name).await.map_err(of_table)?;
    let base = context.head.base();
    let format = TableFormat { level, base: &base, account: &context.account.name };
    Ok(respond::json(StatusCode::OK, level, format.element(&table.name)))
}
