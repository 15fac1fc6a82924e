//! Get and Set Queue ACL: the stored access policies that shared access signatures refer to.

use tavola_wire::queue::QueueName;
use tavola_wire::xml::acl;

use super::errors::of_queue;
use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(super) async fn get(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let queue = context.state.queue_catalogue.find(context.account.id, name).await;
    Ok(replies::document(acl::write_queue(&queue.map_err(of_queue)?.policies)))
}

pub(super) async fn set(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
    body: &[u8],
) -> Result<Reply> {
    let policies = acl::parse_queue(body)?;
    let catalogue = &context.state.queue_catalogue;
    catalogue.set_policies(context.account.id, name, &policies).await.map_err(of_queue)?;
    Ok(replies::no_content())
}
