//! Get Service Stats: asked of the secondary, which is as new as the primary because it is the same.

use tavola_wire::ErrorCode;
use tavola_wire::auth::sas::Access;
use tavola_wire::xml::stats::{self, ServiceStats};

use crate::context::RequestContext;
use crate::error::Result;
use crate::request::respond::{self, Reply};

pub(crate) fn run(context: &RequestContext<'_>) -> Result<Reply> {
    context.identity.allows(Access::GetServiceStats)?;
    if !context.head.address.secondary {
        return Err(ErrorCode::InvalidQueryParameterValue.into());
    }
    let last_sync = context.state.clock.now();
    Ok(respond::xml(stats::write(&ServiceStats::Live { last_sync })))
}
