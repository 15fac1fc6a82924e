//! Get and Set Queue Metadata. Get also tells how many messages there are, and is how clients ask whether a queue exists.

use http::{HeaderName, HeaderValue, StatusCode};
use tavola_wire::queue::QueueName;
use tavola_wire::queue::metadata::{HEADER_PREFIX, Metadata};

use super::errors::of_queue;
use super::replies;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::request::respond;

const COUNT: HeaderName = HeaderName::from_static("x-ms-approximate-messages-count");

pub(super) async fn get(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let described = context.state.queues.describe(context.account.id, name).await;
    let (record, count) = described.map_err(of_queue)?;
    let mut reply = replies::uncached(respond::empty(StatusCode::OK));
    let headers = reply.headers_mut();
    headers.insert(COUNT, HeaderValue::from(count));
    for (name, value) in record.metadata.iter() {
        let name = HeaderName::try_from([HEADER_PREFIX, name].concat());
        // They came as headers.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    Ok(reply)
}

pub(super) async fn set(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let metadata = Metadata::from_headers(context.head.headers())?;
    let catalogue = &context.state.queue_catalogue;
    catalogue.set_metadata(context.account.id, name, metadata).await.map_err(of_queue)?;
    Ok(replies::no_content())
}
