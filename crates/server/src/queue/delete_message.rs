//! Delete Message.

use tavola_wire::ErrorCode;
use tavola_wire::queue::parameters::pop_receipt;
use tavola_wire::queue::{MessageId, PopReceipt};

use super::errors::of_queue;
use super::operation::MessageAddress;
use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(super) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    address: &MessageAddress<'_>,
) -> Result<Reply> {
    let receipt = PopReceipt::parse(pop_receipt(&context.head.query)?)?;
    let message = MessageId::parse(&address.id).zip(receipt);
    let deleted = context.state.queues.delete(context.account.id, &address.queue, message).await;
    match deleted.map_err(of_queue)? {
        true => Ok(replies::no_content()),
        false => Err(ErrorCode::MessageNotFound.into()),
    }
}
