//! Get and Set Service Properties: logging, metrics and CORS rules of an account.

use http::StatusCode;
use tavola_wire::xml::service_properties::ServicePropertiesUpdate;

use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::request::respond;

pub(crate) fn get(context: &RequestContext<'_>, _permit: Permit<'_>) -> Reply {
    respond::xml(context.account.properties().to_xml())
}

pub(crate) async fn set(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    body: &[u8],
) -> Result<Reply> {
    let update = ServicePropertiesUpdate::parse(body)?;
    context.account.update_properties(&context.state.engine, update).await?;
    Ok(respond::empty(StatusCode::ACCEPTED))
}
