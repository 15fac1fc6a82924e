//! Delete Queue: the name is free at once, the space comes back in the background.

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
    let deleted = context.state.queues.delete_queue(context.account.id, name, context.stamp());
    deleted.await.map_err(of_queue)?;
    Ok(replies::no_content())
}
