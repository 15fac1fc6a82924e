//! Get and Set Queue Metadata. Get also tells how many messages there are, and is how clients ask whether a queue exists.

use http::{HeaderName, HeaderValue, StatusCode};
use tavola_wire::queue::QueueName;
use tavola_wire::queue::metadata::{HEADER_PREFIX, Metadata};

use super::errors::of_queue;
use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::head::RequestHead;
use crate::request::reply::Reply;
use crate::request::{header_case, respond};

const COUNT: HeaderName = HeaderName::from_static("x-ms-approximate-messages-count");

pub(super) async fn get(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let described = context.state.queues.describe(context.account.id, name).await;
    let (record, count) = described.map_err(of_queue)?;
    let mut reply = replies::uncached(respond::empty(StatusCode::OK));
    reply.headers_mut().insert(COUNT, HeaderValue::from(count));
    let pairs = record.metadata.iter();
    let (names, values): (Vec<_>, Vec<_>) =
        pairs.map(|(name, value)| ([HEADER_PREFIX, name].concat(), value)).unzip();
    for (name, value) in names.iter().zip(values) {
        // They came as headers.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(value))
        {
            reply.headers_mut().insert(name, value);
        }
    }
    header_case::write_as(&mut reply, &names);
    Ok(reply)
}

pub(super) async fn set(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let metadata = of_request(context.head)?;
    let catalogue = &context.state.queue_catalogue;
    catalogue.set_metadata(context.account.id, name, metadata).await.map_err(of_queue)?;
    Ok(replies::no_content())
}

/// What a request says in its headers, with names in the case in which they were written.
pub(super) fn of_request(head: &RequestHead<'_>) -> Result<Metadata> {
    let headers = head.headers_as_written(HEADER_PREFIX);
    Metadata::from_headers(headers.iter().map(|(name, value)| (name.as_str(), value)))
}
