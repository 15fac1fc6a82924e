//! Create Queue. A queue that is there with the same metadata is as good as a new one.

use http::StatusCode;
use tavola_wire::ErrorCode;
use tavola_wire::queue::QueueName;

use super::errors::of_queue;
use super::{metadata, replies};
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;
use crate::request::respond;
use crate::storage;

pub(super) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    name: &QueueName<'_>,
) -> Result<Reply> {
    let metadata = metadata::of_request(context.head)?;
    let (state, account) = (context.state, context.account.id);
    let now = context.stamp();
    loop {
        let created =
            state.queues.create(&state.features, account, name, metadata.clone(), now).await;
        match created {
            Ok(()) => return Ok(respond::empty(StatusCode::CREATED)),
            Err(storage::Error::Exists) => {}
            Err(error) => return Err(of_queue(error)),
        }
        match state.queue_catalogue.record(account, name).await {
            Ok(record) if record.metadata.is_same(&metadata) => return Ok(replies::no_content()),
            Ok(_) => return Err(ErrorCode::QueueAlreadyExists.into()),
            // Deleted in between.
            Err(storage::Error::NotFound) => {}
            Err(error) => return Err(of_queue(error)),
        }
    }
}
