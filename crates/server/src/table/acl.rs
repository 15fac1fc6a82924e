//! Get and Set Table ACL: the stored access policies that shared access signatures refer to.

use http::StatusCode;
use tavola_wire::ErrorCode;
use tavola_wire::table::names::TableName;
use tavola_wire::xml::acl;

use super::any_table::AnyTable;
use super::errors::in_table;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::request::respond;

pub(crate) async fn get(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    name: &TableName<'_>,
) -> Result<Reply> {
    let written = match AnyTable::find(context, permit, name).await? {
        AnyTable::Stored(table) => acl::write(&table.policies),
        AnyTable::System(_) => acl::write(&[]),
        AnyTable::View(view) => acl::write(&view.policies),
    };
    Ok(respond::xml(written))
}

pub(crate) async fn set(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    name: &TableName<'_>,
    body: &[u8],
) -> Result<Reply> {
    if let AnyTable::System(_) = AnyTable::find(context, permit, name).await? {
        return Err(ErrorCode::InsufficientAccountPermissions.into());
    }
    let catalogue = &context.state.catalogue;
    let policies = acl::parse(body)?;
    catalogue.set_policies(context.account.id, name, &policies).await.map_err(in_table)?;
    Ok(respond::empty(StatusCode::NO_CONTENT))
}
