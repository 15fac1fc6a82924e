//! From a request to its reply: the table of contents. Nothing else happens between bytes in and bytes out.
//!
//! It is the same for every service: a [`Tenant`] says which operation a request is, what it needs and what its errors
//! look like.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use http::Request;
use http::header::EXPECT;
use hyper::body::{Body, Incoming};
use tavola_engine::panic_message;
use tavola_wire::uri::Address;
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, RefusalReason, StorageError};

use crate::arrival::Arrival;
use crate::auth::accounts::Account;
use crate::auth::cors;
use crate::connection::Connection;
use crate::context::RequestContext;
use crate::error::Result;
use crate::net::stall_timeout::StallTimeout;
use crate::operations::OperationIndex;
use crate::request::body;
use crate::request::head::{RequestHead, host, raw_query};
use crate::request::notes::RequestNotes;
use crate::request::reply::Reply;
use crate::tenant::{Operation, Tenant};

/// Answers one request, whatever it is: an error becomes its reply, a panic 500.
pub(crate) async fn answer<T: Tenant>(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Reply {
    let (parts, mut body) = request.into_parts();
    let (connection, state) = (&*connection, &*connection.state);
    let (id, started) = (state.ids.next(), Instant::now());
    let notes = RequestNotes::default();
    let arrival = Arrival { connection, state, id, started, parts: &parts, notes: &notes };
    let mut operation_index = OperationIndex::Unrecognized;
    let mut stall_timeout = StallTimeout::new(state.settings.limits.transfer_timeout);
    let answered = arrival.answer::<T>(&mut body, &mut stall_timeout, &mut operation_index);
    let reply = match AssertUnwindSafe(answered).catch_unwind().await {
        Ok(reply) => reply,
        Err(panic) => arrival.panicked::<T>(operation_index, panic_message(&*panic)),
    };
    // A client that asked whether to send its body has been told enough by a reply.
    if !body.is_end_stream() && !parts.headers.contains_key(EXPECT) {
        Box::pin(body::discard(&mut body, &mut stall_timeout)).await;
    }
    arrival.finish::<T>(operation_index, reply)
}

impl Arrival<'_> {
    /// Address and account, then the operation; every error becomes a reply in the form that the client reads.
    async fn answer<T: Tenant>(
        &self,
        body: &mut Incoming,
        stall_timeout: &mut StallTimeout,
        operation_index: &mut OperationIndex,
    ) -> Reply {
        let rules = self.state.settings.address_rules;
        let Connection { peer, signed_query, .. } = self.connection;
        let recalled = signed_query.recall(raw_query(self.parts));
        let head = match RequestHead::parse(T::SERVICE, self.parts, *peer, rules, recalled.as_ref())
        {
            Ok(head) => head,
            Err(error) => {
                let mut reply = self.failure::<T>(&error, None, *operation_index);
                self.add_cors_headers::<T>(&mut reply);
                return reply;
            }
        };
        let Some(account) = self.state.auth.accounts.find(&head.address.account_name()) else {
            // As Azurite answers; at the live service there is no name to resolve then.
            let unknown = StorageError::new(ErrorCode::ResourceNotFound)
                .refused_for(RefusalReason::UnknownAccount);
            let reply = self.error::<T>(&unknown, Some(&head), *operation_index);
            return self.with_common::<T>(reply, head.version);
        };
        let account = &account;
        let served = self.serve::<T>(&head, account, body, stall_timeout, operation_index).await;
        let mut reply = match served {
            Ok(reply) => self.with_common::<T>(reply, head.version),
            Err(error) => self.failure::<T>(&error, Some(&head), *operation_index),
        };
        // ORDER: last, because a rule may expose the headers that every reply has.
        if *operation_index != OperationIndex::Preflight {
            cors::add_headers(account, head.service, self.parts, &mut reply);
        }
        reply
    }

    /// Lets a browser show the refusal of a head that cannot be read, if it can be read as far as its account.
    fn add_cors_headers<T: Tenant>(&self, reply: &mut Reply) {
        let rules = self.state.settings.address_rules;
        let Ok(address) = Address::parse(host(self.parts), self.parts.uri.path(), rules) else {
            return;
        };
        if let Some(account) = self.state.auth.accounts.find(&address.account_name()) {
            cors::add_headers(&account, T::SERVICE, self.parts, reply);
        }
    }

    /// Authenticate, route, authorize, admit the body, run.
    async fn serve<T: Tenant>(
        &self,
        head: &RequestHead<'_>,
        account: &Arc<Account>,
        body: &mut Incoming,
        stall_timeout: &mut StallTimeout,
        operation_index: &mut OperationIndex,
    ) -> Result<Reply> {
        let state = self.state;
        let verb = T::verb(head)?;
        if verb == Verb::Options {
            *operation_index = OperationIndex::Preflight;
            return cors::preflight(account, head);
        }
        #[cfg(feature = "test-hooks")]
        crate::test_hooks::panic_if_asked(head);
        let identity = self.identify::<T>(head, account).await?;
        let operation = T::route(verb, head, account)?;
        *operation_index = OperationIndex::Of(operation.index());
        let spec = operation.spec();
        if head.address.secondary && !spec.effect.may_read_only() {
            return Err(ErrorCode::InsufficientAccountPermissions.into());
        }
        if !state.settings.loose {
            T::refuse_unserved_options(head)?;
        }
        let permit = identity.authorize(operation.access(head))?;
        let memory = &state.memory_budget;
        let admitted = body::admit(body, spec.body, stall_timeout, memory).await;
        let (body, stream) = admitted.map_err(|error| refusal(&operation, head, error))?.split();
        state.metrics.request_bytes.inc_by(body.len() as u64);
        self.notes.add_request_bytes(body.len() as u64);
        let (id, started, notes) = (self.id, self.started, self.notes);
        let context = RequestContext { id, state, head, account, started, notes, body };
        let mut reply = operation.run(&context, permit, stream).await?;
        if spec.effect.is_repeatable() {
            reply.body_mut().reserve(memory)?;
        } else {
            // What has been done has to be answered, or clients would do it again.
            reply.body_mut().reserve_regardless(memory);
        }
        Ok(reply)
    }
}

/// Why a request is refused whose body was not taken: parameters come before the body, however large that is.
fn refusal(
    operation: &impl Operation,
    head: &RequestHead<'_>,
    error: StorageError,
) -> StorageError {
    if error.code() != ErrorCode::RequestBodyTooLarge {
        return error;
    }
    operation.check_parameters(head).err().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableService;

    fn size_of_future<F: Future, A, B>(_: fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// Every request moves its future a few times.
    #[test]
    fn the_future_of_a_request_stays_small() {
        let size = size_of_future(answer::<TableService>);
        assert!(size <= 4096, "{size} bytes");
    }
}
