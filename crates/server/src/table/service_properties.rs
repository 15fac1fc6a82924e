//! Get and Set Service Properties: logging, metrics and CORS rules of an account.

use http::StatusCode;
use tavola_wire::Service;
use tavola_wire::xml::service_properties::ServicePropertiesUpdate;

use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::request::reply::Reply;
use crate::request::respond;

pub(crate) fn get(context: &RequestContext<'_>, _permit: Permit<'_>) -> Reply {
    respond::xml(context.account.properties(Service::Table).to_xml())
}

pub(crate) async fn set(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    body: &[u8],
) -> Result<Reply> {
    let update = ServicePropertiesUpdate::parse(body)?;
    let updated = context.account.update_properties(&context.state.engine, Service::Table, update);
    updated.await.map_err(storage_failure)?;
    Ok(respond::empty(StatusCode::ACCEPTED))
}
