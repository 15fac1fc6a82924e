//! Delete Table: the name is free at once, the space comes back in the background.

use tavola_wire::auth::sas::Access;
use tavola_wire::table::names::TableName;

use super::errors::of_table;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::respond::{self, Reply};

pub(crate) async fn run(context: &RequestContext<'_>, name: &TableName<'_>) -> Result<Reply> {
    context.identity.allows(Access::DeleteTable)?;
    let dropped = context.state.catalogue.drop_named(context.account.id, name, context.stamp());
    dropped.await.map_err(of_table)?;
    Ok(respond::no_content())
}
