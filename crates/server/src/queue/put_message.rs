//! Put Message.

use bytes::Bytes;
use http::StatusCode;
use tavola_wire::ServiceVersion;
use tavola_wire::queue::message::{ListWriter, Message};
use tavola_wire::queue::parameters::PutParameters;
use tavola_wire::queue::{QueueName, body};

use super::errors::of_queue;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::request::respond;

pub(super) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let version = context.head.version;
    let PutParameters { visibility_timeout, time_to_live } =
        PutParameters::parse(&context.head.query, version)?;
    let text = Bytes::from(body::read(&context.body)?);
    let queues = &context.state.queues;
    let times = (visibility_timeout, time_to_live);
    let put = queues.put(context.account.id, name, text, times, context.body.clone()).await;
    let put = put.map_err(of_queue)?;
    if version.is_some_and(|version| version < ServiceVersion::FIRST_WITH_PUT_ANSWER) {
        return Ok(respond::empty(StatusCode::CREATED));
    }
    let message = Message {
        id: put.id,
        inserted: put.inserted,
        expires: put.expires,
        receipt: Some(put.receipt),
        dequeue_count: None,
        text: None,
    };
    let (mut document, mut list) = (Vec::with_capacity(640), ListWriter::default());
    list.push(&mut document, &message);
    list.finish(&mut document);
    let mut reply = respond::xml(document);
    *reply.status_mut() = StatusCode::CREATED;
    Ok(reply)
}
