//! The queue service: one file per operation, with parsed input and the reply. What messages are and how they move is in
//! [`storage::queues`](crate::storage::queues).

mod acl;
mod clear_messages;
mod create_queue;
mod delete_message;
mod delete_queue;
mod errors;
mod get_messages;
mod list_queues;
mod message_list;
mod metadata;
mod operation;
mod put_message;
mod replies;
mod service_properties;
mod service_stats;
mod update_message;

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::auth::sas::{Addressed, VerifiedSas};
use tavola_wire::queue::parameters::{GetParameters, ListParameters, PutParameters};
use tavola_wire::queue::{PopReceipt, QueueName, ResourcePath, parameters};
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, Service, StorageError};

use crate::auth::accounts::Account;
use crate::auth::permit::{Access, Permit};
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::operations::OperationSpec;
use crate::request::body::BodyStream;
use crate::request::head::RequestHead;
use crate::request::reply::Reply;
use crate::state::ServerState;
use crate::storage;
use crate::tenant::{FailedRequest, Operation, Tenant};

pub(crate) use operation::QueueOperation;

pub(crate) struct QueueService;

impl Tenant for QueueService {
    const SERVICE: Service = Service::Queue;
    type Operation<'a> = QueueOperation<'a>;

    /// Never tunnelled: a header that means nothing here must not turn a Put into a Clear.
    fn verb(head: &RequestHead<'_>) -> Result<Verb> {
        Verb::parse(head.method).ok_or_else(operation::unsupported_verb)
    }

    fn route<'a>(verb: Verb, head: &'a RequestHead<'a>, _: &Account) -> Result<QueueOperation<'a>> {
        let resource = ResourcePath::parse(head.address.resource_path)?;
        operation::route(verb, resource, &head.query)
    }

    /// Its signatures are for the queue that is addressed.
    fn addressed<'a>(head: &'a RequestHead<'a>) -> Addressed<'a> {
        Addressed::Queue(ResourcePath::signed_queue(head.address.resource_path))
    }

    async fn policies(
        state: &ServerState,
        account: &Account,
        head: &RequestHead<'_>,
        _: &VerifiedSas<'static>,
    ) -> Result<Arc<[SignedIdentifier]>> {
        let name = QueueName::parse(ResourcePath::signed_queue(head.address.resource_path));
        let Ok(name) = name else { return Ok([].into()) };
        match state.queue_catalogue.find(account.id, &name).await {
            Ok(queue) => Ok(queue.policies.clone()),
            Err(storage::Error::NotFound) => Ok([].into()),
            Err(error) => Err(storage_failure(error)),
        }
    }

    fn error(error: &StorageError, failed: &FailedRequest<'_>) -> Reply {
        replies::error(error, failed)
    }
}

impl Operation for QueueOperation<'_> {
    const SPECS: &'static [OperationSpec] = Self::SPECS;

    fn index(&self) -> usize {
        self.index()
    }

    fn access(&self, _: &RequestHead<'_>) -> Access<'_> {
        operation::access(self)
    }

    fn check_parameters(&self, head: &RequestHead<'_>) -> Result<()> {
        let query = &head.query;
        parameters::timeout(query)?;
        match self {
            Self::ListQueues => ListParameters::parse(query).map(drop),
            Self::PutMessage(_) => PutParameters::parse(query, head.version).map(drop),
            Self::GetMessages(_) => GetParameters::parse(query).map(drop),
            Self::PeekMessages(_) => parameters::messages(query).map(drop),
            Self::UpdateMessage(_) => {
                PopReceipt::parse(parameters::pop_receipt(query)?)?;
                parameters::update_visibility(query).map(drop)
            }
            Self::DeleteMessage(_) => PopReceipt::parse(parameters::pop_receipt(query)?).map(drop),
            _ => Ok(()),
        }
    }

    async fn run(
        self,
        context: &RequestContext<'_>,
        permit: Permit<'_>,
        _: Option<BodyStream<'_, Incoming>>,
    ) -> Result<Reply> {
        let running = self.answer(context, permit);
        match parameters::timeout(&context.head.query)? {
            None => running.await,
            Some(limit) => within(context.started + limit, running).await,
        }
    }
}

/// What comes of an operation, if it comes in time. One that writes may be done all the same, as when its answer is lost on
/// the way.
///
/// # Errors
/// 500 `OperationTimedOut`.
async fn within(deadline: Instant, running: impl Future<Output = Result<Reply>>) -> Result<Reply> {
    match tokio::time::timeout_at(deadline.into(), running).await {
        Ok(answered) => answered,
        Err(_) => Err(ErrorCode::OperationTimedOut.into()),
    }
}

impl QueueOperation<'_> {
    async fn answer(self, context: &RequestContext<'_>, permit: Permit<'_>) -> Result<Reply> {
        let body = &context.body;
        match self {
            Self::ListQueues => Box::pin(list_queues::run(context, permit)).await,
            Self::GetServiceProperties => Ok(service_properties::get(context, permit)),
            Self::SetServiceProperties => service_properties::set(context, permit, body).await,
            Self::GetServiceStats => service_stats::run(context, permit),
            Self::CreateQueue(name) => Box::pin(create_queue::run(context, permit, &name)).await,
            Self::DeleteQueue(name) => Box::pin(delete_queue::run(context, permit, &name)).await,
            Self::GetQueueMetadata(name) => Box::pin(metadata::get(context, permit, &name)).await,
            Self::SetQueueMetadata(name) => Box::pin(metadata::set(context, permit, &name)).await,
            Self::GetQueueAcl(name) => acl::get(context, permit, &name).await,
            Self::SetQueueAcl(name) => Box::pin(acl::set(context, permit, &name, body)).await,
            Self::PutMessage(name) => Box::pin(put_message::run(context, permit, &name)).await,
            Self::GetMessages(name) => Box::pin(get_messages::get(context, permit, &name)).await,
            Self::PeekMessages(name) => Box::pin(get_messages::peek(context, permit, &name)).await,
            Self::ClearMessages(name) => {
                Box::pin(clear_messages::run(context, permit, &name)).await
            }
            Self::UpdateMessage(address) => {
                Box::pin(update_message::run(context, permit, &address)).await
            }
            Self::DeleteMessage(address) => {
                Box::pin(delete_message::run(context, permit, &address)).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_operation_has_the_time_that_its_client_gives_it() {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
        let takes = |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(replies::no_content())
        };
        assert_eq!(within(deadline.into_std(), takes(4)).await.unwrap().status(), 204);
        let late = within(deadline.into_std(), takes(2)).await.unwrap_err();
        assert_eq!(late.code(), ErrorCode::OperationTimedOut);
    }
}
