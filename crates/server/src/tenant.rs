//! What a service brings to be served by this house: its operations, and the form of its errors.
//!
//! Everything else is shared: listeners, heads, authentication, limits, metrics. [`handle`](crate::handle) is written
//! against these two traits and names no service; `docs/adding-a-service.md` says what a new one has to bring.

use std::sync::Arc;

use http::request::Parts;
use hyper::body::Incoming;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::auth::sas::{Addressed, VerifiedSas};
use tavola_wire::verb::Verb;
use tavola_wire::{Service, StorageError, Ticks};

use crate::auth::accounts::Account;
use crate::auth::permit::{Access, Permit};
use crate::context::RequestContext;
use crate::error::Result;
use crate::operations::{OperationIndex, OperationSpec};
use crate::request::body::BodyStream;
use crate::request::head::RequestHead;
use crate::request::ids::Id;
use crate::request::reply::Reply;
use crate::state::ServerState;

/// A service.
pub(crate) trait Tenant: 'static {
    const SERVICE: Service;
    type Operation<'a>: Operation;

    /// The verb of a request, which may be tunnelled in a header where clients of the service do that.
    ///
    /// # Errors
    /// 405 `UnsupportedHttpVerb` in the service's words.
    fn verb(head: &RequestHead<'_>) -> Result<Verb>;

    /// The operation that a request is: a pure function of verb, path, query and headers.
    fn route<'a>(
        verb: Verb,
        head: &'a RequestHead<'a>,
        account: &Account,
    ) -> Result<Self::Operation<'a>>;

    /// What a request addresses, as far as a signature for it does not say that itself.
    fn addressed<'a>(head: &'a RequestHead<'a>) -> Addressed<'a>;

    /// The stored policies of what a signature is for; none if there is no such thing.
    fn policies(
        state: &ServerState,
        account: &Account,
        head: &RequestHead<'_>,
        token: &VerifiedSas<'static>,
    ) -> impl Future<Output = Result<Arc<[SignedIdentifier]>>> + Send;

    /// Refuses options that the service does not support; not asked if the server is told to be loose.
    fn refuse_unserved_options(_head: &RequestHead<'_>) -> Result<()> {
        Ok(())
    }

    /// The reply to a request that failed, in the form that the service's clients read.
    fn error(error: &StorageError, failed: &FailedRequest<'_>) -> Reply;
}

/// One operation and what it addresses. [`operations!`](crate::operations) makes the enum and its table.
pub(crate) trait Operation: Send {
    /// All operations of the service, in the order of their index.
    const SPECS: &'static [OperationSpec];

    /// Which of [`Operation::SPECS`] it is.
    fn index(&self) -> usize;

    fn spec(&self) -> &'static OperationSpec {
        &Self::SPECS[self.index()]
    }

    /// What the caller must be allowed. Some headers change it, such as a condition.
    fn access(&self, head: &RequestHead<'_>) -> Access<'_>;

    /// Refuses what the query says wrongly of the operation. Asked of a request whose body is refused, as services look
    /// at parameters first; otherwise the operation finds out when it runs.
    fn check_parameters(&self, _head: &RequestHead<'_>) -> Result<()> {
        Ok(())
    }

    /// Runs the operation. Nobody gets here without a permit. A whole body is in the context; one that the operation
    /// takes as a stream is handed over. None takes one yet; blobs will.
    fn run(
        self,
        context: &RequestContext<'_>,
        permit: Permit<'_>,
        stream: Option<BodyStream<'_, Incoming>>,
    ) -> impl Future<Output = Result<Reply>> + Send;
}

/// A request that failed, as far as it was read.
pub(crate) struct FailedRequest<'a> {
    pub(crate) parts: &'a Parts,
    /// None if the head could not be read.
    pub(crate) head: Option<&'a RequestHead<'a>>,
    /// Which operation it was, if it got that far.
    pub(crate) operation: OperationIndex,
    pub(crate) id: &'a Id,
    pub(crate) now: Ticks,
}
