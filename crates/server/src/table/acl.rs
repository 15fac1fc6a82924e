//! Get and Set Table ACL: the stored access policies that shared access signatures refer to.

use http::StatusCode;
use tavola_wire::table::names::TableName;
use tavola_wire::xml::acl;

use super::errors::in_table;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::request::respond;

pub(crate) async fn get(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &TableName<'_>,
) -> Result<Reply> {
    let table = context.state.catalogue.find(context.account.id, name).await.map_err(in_table)?;
    Ok(respond::xml(acl::write(&table.policies)))
}

pub(crate) async fn set(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &TableName<'_>,
    body: &[u8],
) -> Result<Reply> {
    let catalogue = &context.state.catalogue;
    catalogue.find(context.account.id, name).await.map_err(in_table)?;
    let policies = acl::parse(body)?;
    catalogue.set_policies(context.account.id, name, &policies).await.map_err(in_table)?;
    Ok(respond::empty(StatusCode::NO_CONTENT))
}
