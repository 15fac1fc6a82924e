//! Clear Messages: the queue gets an empty place for its messages, the space comes back in the background.

use tavola_wire::queue::QueueName;

use super::errors::of_queue;
use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(super) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let cleared = context.state.queues.clear(context.account.id, name, context.stamp());
    cleared.await.map_err(of_queue)?;
    Ok(replies::no_content())
}
