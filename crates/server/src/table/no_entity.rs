//! A request for something behind a table that is no entity: which error it is.
//!
//! A client whose endpoint holds the name of a table asks for `/t/Tables` when it lists tables. Answering the entities
//! of `t` would hide the mistake.

use tavola_wire::table::key_count_error;
use tavola_wire::{ErrorCode, StorageError};

use super::any_table::AnyTable;
use super::operation::{NoEntity, PathFault};
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

/// # Errors
/// Always: 404 `TableNotFound`, else what is wrong with the path.
pub(crate) async fn run(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    path: &NoEntity<'_>,
) -> Result<Reply> {
    let table = &path.table;
    AnyTable::find(context, permit, table).await?;
    Err(match path.fault {
        PathFault::KeyCount => key_count_error(&context.account.name, table.as_str()),
        PathFault::Segment => StorageError::new(ErrorCode::NotImplemented),
    })
}
