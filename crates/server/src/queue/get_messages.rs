//! Get Messages and Peek Messages.

use tavola_wire::queue::QueueName;
use tavola_wire::queue::parameters::{self, GetParameters};

use super::errors::of_queue;
use super::message_list;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(super) async fn get(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let GetParameters { messages, visibility_timeout } = GetParameters::parse(&context.head.query)?;
    // ORDER: before anything is got, because what was got has to be answered.
    let window = message_list::reserve(context, messages)?;
    let queues = &context.state.queues;
    let got = queues.get(context.account.id, name, messages, visibility_timeout).await;
    message_list::reply(context, got.map_err(of_queue)?, true, window).await
}

pub(super) async fn peek(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let messages = parameters::messages(&context.head.query)?;
    let window = message_list::reserve(context, messages)?;
    let peeked = context.state.queues.peek(context.account.id, name, messages).await;
    message_list::reply(context, peeked.map_err(of_queue)?, false, window).await
}
