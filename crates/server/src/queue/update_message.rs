//! Update Message: another moment of visibility, and another text if one is sent.

use bytes::Bytes;
use http::HeaderName;
use tavola_wire::ErrorCode;
use tavola_wire::queue::parameters::{pop_receipt, update_visibility};
use tavola_wire::queue::{MessageId, PopReceipt, body};

use super::errors::of_queue;
use super::operation::MessageAddress;
use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::request::respond;

const POP_RECEIPT: HeaderName = HeaderName::from_static("x-ms-popreceipt");
const TIME_NEXT_VISIBLE: HeaderName = HeaderName::from_static("x-ms-time-next-visible");

pub(super) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    address: &MessageAddress<'_>,
) -> Result<Reply> {
    let query = &context.head.query;
    let receipt = PopReceipt::parse(pop_receipt(query)?)?;
    let hidden_for = update_visibility(query)?;
    let text = match &*context.body {
        [] => None,
        body => Some(Bytes::from(body::read(body)?)),
    };
    let message = MessageId::parse(&address.id).zip(receipt);
    let (account, body) = (context.account.id, context.body.clone());
    let queues = &context.state.queues;
    let updated = queues.update(account, &address.queue, message, hidden_for, text, body).await;
    let receipt = updated.map_err(of_queue)?.ok_or(ErrorCode::MessageNotFound)?;
    let mut reply = replies::no_content();
    reply.headers_mut().insert(POP_RECEIPT, respond::text(&receipt.to_string()));
    let next_visible = respond::text(&receipt.next_visible.to_rfc1123());
    reply.headers_mut().insert(TIME_NEXT_VISIBLE, next_visible);
    Ok(reply)
}
