//! A request that has come in: its reply when it fails, and what is counted and logged of it.

use std::time::{Duration, Instant};

use http::header::USER_AGENT;
use http::request::Parts;
use http::{Method, StatusCode};
use hyper::body::Body;
use tavola_wire::uri::Address;
use tavola_wire::{ErrorCode, ServiceVersion, StorageError};

use crate::auth::Credentials;
use crate::auth::accounts::Account;
use crate::auth::bearer;
use crate::auth::permit::Identity;
use crate::connection::Connection;
use crate::error::Result;
use crate::logs::access::Entry;
use crate::operations::OperationIndex;
use crate::request::head::{RequestHead, header_text, host, named_version};
use crate::request::ids::Id;
use crate::request::notes::{NotedFailure, RequestNotes};
use crate::request::redact::{self, shortened};
use crate::request::reply::Reply;
use crate::request::respond;
use crate::state::ServerState;
use crate::tenant::{FailedRequest, Operation, Tenant};

/// Whom the log calls refused, so that an operator can have these lines alone, or none of them.
const REFUSED: &str = "tavola::refused";
/// Of a text that a stranger chose, in a line that is there by default.
const LOGGED_BYTES_MAX: usize = 512;

pub(crate) struct Arrival<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) state: &'a ServerState,
    pub(crate) id: Id,
    pub(crate) started: Instant,
    pub(crate) parts: &'a Parts,
    pub(crate) notes: &'a RequestNotes,
}

impl Arrival<'_> {
    /// Who asks. A signature may refer to a policy, which the service keeps.
    pub(crate) async fn identify<T: Tenant>(
        &self,
        head: &RequestHead<'_>,
        account: &Account,
    ) -> Result<Identity> {
        let (auth, last) = (&self.state.auth, &self.connection.signed_query);
        match auth.authenticate(last, account, head, T::addressed(head)).await? {
            Credentials::Known(identity) => Ok(identity),
            Credentials::Signature(token) if token.has_policy() => {
                let policies = T::policies(self.state, account, head, &token).await?;
                auth.grant(head, &token, &policies)
            }
            Credentials::Signature(token) => auth.grant(head, &token, &[]),
        }
    }

    /// The whole reply to a request that failed.
    pub(crate) fn failure<T: Tenant>(
        &self,
        error: &StorageError,
        head: Option<&RequestHead<'_>>,
        operation: OperationIndex,
    ) -> Reply {
        let mut reply = self.error::<T>(error, head, operation);
        if reply.status() == StatusCode::UNAUTHORIZED {
            bearer::challenge(self.state.auth.bearer.as_ref(), &mut reply);
        }
        let version = head.map_or_else(|| named_version(self.parts), |head| head.version);
        self.with_common::<T>(reply, version)
    }

    /// The error in the form of the service.
    pub(crate) fn error<T: Tenant>(
        &self,
        error: &StorageError,
        head: Option<&RequestHead<'_>>,
        operation: OperationIndex,
    ) -> Reply {
        self.notes.set_failure(error, None);
        let id = &self.id;
        let source = std::error::Error::source(error).map(ToString::to_string);
        // What clients bring about by themselves must not fill the log: too slow a body, too many at a time.
        let is_ours = source.is_some() || error.code() == ErrorCode::InternalError;
        if error.status() >= 500 && is_ours {
            tracing::error!(request_id = %id, code = error.code().as_str(), source, "request failed");
        } else {
            // The detail is for the client alone: it may quote a filter, a key or a value.
            tracing::debug!(request_id = %id, code = error.code().as_str(), "request refused");
        }
        let now = self.state.clock.now();
        let failed = FailedRequest { parts: self.parts, head, operation, id, now };
        T::error(error, &failed)
    }

    /// The reply to a request that met a mistake of ours.
    pub(crate) fn panicked<T: Tenant>(&self, operation: OperationIndex, message: &str) -> Reply {
        self.state.metrics.panics.inc();
        let name = operation.label(T::Operation::SPECS);
        tracing::error!(request_id = %self.id, operation = name, message, "a request panicked");
        self.failure::<T>(&ErrorCode::InternalError.into(), None, OperationIndex::Unrecognized)
    }

    /// With the headers that every reply has.
    pub(crate) fn with_common<T: Tenant>(
        &self,
        mut reply: Reply,
        version: Option<ServiceVersion>,
    ) -> Reply {
        respond::set_common(&mut reply, T::SERVICE, &self.id, version, &self.parts.headers);
        reply
    }

    /// Counts and logs the request, and lets the reply go.
    pub(crate) fn finish<T: Tenant>(&self, operation: OperationIndex, reply: Reply) -> Reply {
        let (state, failure) = (self.state, self.notes.failure());
        let response_bytes = match self.parts.method {
            Method::HEAD => 0,
            _ => reply.body().size_hint().lower(),
        };
        let ended = Ended {
            service: T::SERVICE.name(),
            operation: operation.label(T::Operation::SPECS),
            // A batch that failed counts as what it was: its reply says 202.
            status: failure.map_or(reply.status().as_u16(), |failure| failure.status),
            failure,
            response_bytes,
            elapsed: self.started.elapsed(),
        };
        state.metrics.answered(T::SERVICE, operation, ended.status, ended.elapsed);
        state.metrics.response_bytes.inc_by(response_bytes);
        if let Some(failure) = failure {
            state.metrics.failed(T::SERVICE, failure.code, failure.refusal);
        }
        self.log(&ended);
        reply
    }

    fn log(&self, ended: &Ended<'_>) {
        let Ended { service, operation, status, failure, elapsed, .. } = *ended;
        // The query stays out of the log: it may hold a signature, and so may a path.
        tracing::debug!(
            request_id = %self.id,
            service,
            operation,
            method = self.parts.method.as_str(),
            path = %redact::path(self.parts.uri.path()),
            status,
            code = failure.map(|failure| failure.code.as_str()),
            part = failure.and_then(|failure| failure.part),
            elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
        self.log_refusal(ended);
        self.log_access(ended);
    }

    /// The one place that tells why callers are refused.
    fn log_refusal(&self, ended: &Ended<'_>) {
        let Some(failure) = ended.failure else { return };
        let Some(reason) = failure.refusal else { return };
        let Some(left_out) = self.state.refusal_log.admit(reason) else { return };
        tracing::info!(
            target: REFUSED,
            request_id = %self.id,
            reason = reason.as_str(),
            code = failure.code.as_str(),
            detail = failure.detail.as_deref().map(|text| shortened(text, LOGGED_BYTES_MAX)),
            account = shortened(self.account(), LOGGED_BYTES_MAX),
            service = ended.service,
            operation = ended.operation,
            part = failure.part,
            peer = %self.connection.peer.address,
            method = shortened(self.parts.method.as_str(), LOGGED_BYTES_MAX),
            path = shortened(&redact::path(self.parts.uri.path()), LOGGED_BYTES_MAX),
            left_out = Some(left_out).filter(|count| *count > 0),
            "request refused"
        );
    }

    fn log_access(&self, ended: &Ended<'_>) {
        let Some(log) = &self.state.access_log else { return };
        let Ended { service, operation, status, failure, response_bytes, elapsed } = *ended;
        log.write(&Entry {
            time: &self.state.clock.now().to_iso_padded(),
            peer: &self.connection.peer.address.to_string(),
            account: self.account(),
            service,
            operation,
            method: self.parts.method.as_str(),
            resource: &redact::path(self.parts.uri.path()),
            status,
            code: failure.map(|failure| failure.code.as_str()),
            part: failure.and_then(|failure| failure.part),
            refusal: failure.and_then(|failure| failure.refusal).map(|reason| reason.as_str()),
            rows: self.notes.rows(),
            request_bytes: self.notes.request_bytes(),
            response_bytes,
            duration: elapsed,
            request_id: &self.id.to_string(),
            client_request_id: header_text(self.parts, &respond::CLIENT_REQUEST_ID),
            user_agent: header_text(self.parts, &USER_AGENT),
        });
    }

    /// The account that the request addresses, served or not; empty if it cannot be read.
    fn account(&self) -> &str {
        let rules = self.state.settings.address_rules;
        let address = Address::parse(host(self.parts), self.parts.uri.path(), rules);
        address.map_or("", |address| address.account)
    }
}

/// A request that has been answered.
#[derive(Clone, Copy)]
struct Ended<'a> {
    service: &'static str,
    operation: &'static str,
    status: u16,
    failure: Option<&'a NotedFailure>,
    response_bytes: u64,
    elapsed: Duration,
}
