//! Delete Table: the name is free at once, the space comes back in the background.

use tavola_wire::table::names::TableName;

use super::errors::of_table;
use super::odata;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(crate) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &TableName<'_>,
) -> Result<Reply> {
    let dropped = context.state.catalogue.drop_named(context.account.id, name, context.stamp());
    dropped.await.map_err(of_table)?;
    Ok(odata::no_content())
}
