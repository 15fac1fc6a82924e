//! Get Service Stats: asked of the secondary, which is as new as the primary because it is the same.

use tavola_wire::queue::parameters::invalid;
use tavola_wire::xml::stats::{self, ServiceStats};

use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(super) fn run(context: &RequestContext<'_>, _permit: Permit<'_>) -> Result<Reply> {
    if !context.head.address.secondary {
        return Err(invalid("comp", "stats", "The secondary alone has statistics."));
    }
    let last_sync = context.state.clock.now();
    Ok(replies::document(stats::write(&ServiceStats::Live { last_sync })))
}
