//! Get and Set Service Properties: logging, metrics and CORS rules of an account.

use http::StatusCode;
use tavola_wire::Service;
use tavola_wire::xml::service_properties::ServicePropertiesUpdate;

use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::request::reply::Reply;
use crate::request::respond;

pub(super) fn get(context: &RequestContext<'_>, _permit: Permit<'_>) -> Reply {
    replies::document(context.account.properties(Service::Queue).to_xml())
}

pub(super) async fn set(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    body: &[u8],
) -> Result<Reply> {
    let update = ServicePropertiesUpdate::parse_for_queues(body)?;
    let updated = context.account.update_properties(&context.state.engine, Service::Queue, update);
    updated.await.map_err(storage_failure)?;
    Ok(respond::empty(StatusCode::ACCEPTED))
}
