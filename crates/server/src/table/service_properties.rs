//! Get and Set Service Properties: logging, metrics and CORS rules of an account.

use http::StatusCode;
use tavola_wire::Service;
use tavola_wire::auth::sas::Access;
use tavola_wire::xml::service_properties::ServicePropertiesUpdate;

use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::request::respond::{self, Reply};

pub(crate) fn get(context: &RequestContext<'_>) -> Result<Reply> {
    context.identity.allows(Access::GetServiceProperties)?;
    Ok(respond::xml(context.account.properties(Service::Table).to_xml()))
}

pub(crate) async fn set(context: &RequestContext<'_>, body: &[u8]) -> Result<Reply> {
    context.identity.allows(Access::SetServiceProperties)?;
    let update = ServicePropertiesUpdate::parse(body)?;
    let updated = context.account.update_properties(&context.state.engine, Service::Table, update);
    updated.await.map_err(storage_failure)?;
    Ok(respond::empty(StatusCode::ACCEPTED))
}
