//! Delete Table: the name is free at once, the space comes back in the background.

use tavola_wire::ErrorCode;
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
    let dropped = context.state.catalogue.drop_table(context.account.id, name, context.stamp());
    match dropped.await {
        Ok(()) => Ok(odata::no_content()),
        Err(storage::Error::NotFound) if SystemTable::named(name).is_some() => {
            Err(ErrorCode::InsufficientAccountPermissions.into())
        }
        Err(error) => Err(of_table(error)),
    }
}
