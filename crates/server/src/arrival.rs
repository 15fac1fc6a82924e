//! A request that has come in: its reply when it fails, and what is counted and logged of it.

use std::time::Instant;

use http::request::Parts;
use http::{Method, StatusCode};
use hyper::body::Body;
use tavola_wire::{ErrorCode, ServiceVersion, StorageError};

use crate::auth::Credentials;
use crate::auth::accounts::Account;
use crate::auth::bearer;
use crate::auth::permit::Identity;
use crate::connection::Connection;
use crate::error::Result;
use crate::operations::OperationIndex;
use crate::request::head::RequestHead;
use crate::request::ids::Id;
use crate::request::reply::Reply;
use crate::request::{redact, respond};
use crate::state::ServerState;
use crate::tenant::{FailedRequest, Operation, Tenant};

pub(crate) struct Arrival<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) state: &'a ServerState,
    pub(crate) id: Id,
    pub(crate) started: Instant,
    pub(crate) parts: &'a Parts,
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
        self.with_common::<T>(reply, head.and_then(|head| head.version))
    }

    /// The error in the form of the service.
    pub(crate) fn error<T: Tenant>(
        &self,
        error: &StorageError,
        head: Option<&RequestHead<'_>>,
        operation: OperationIndex,
    ) -> Reply {
        let id = &self.id;
        let source = std::error::Error::source(error).map(ToString::to_string);
        // What clients bring about by themselves must not fill the log: too slow a body, too many at a time.
        let is_ours = source.is_some() || error.code() == ErrorCode::InternalError;
        if error.status() >= 500 && is_ours {
            tracing::error!(request_id = %id, code = error.code().as_str(), source, "request failed");
        } else {
            tracing::debug!(request_id = %id, %error, "request refused");
        }
        let operation = operation.name(T::Operation::SPECS);
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
        let elapsed = self.started.elapsed();
        let status = reply.status().as_u16();
        self.state.metrics.answered(T::SERVICE, operation, status, elapsed);
        if self.parts.method != Method::HEAD {
            self.state.metrics.response_bytes.inc_by(reply.body().size_hint().lower());
        }
        // The query stays out of the log: it may hold a signature, and so may a path.
        tracing::debug!(
            request_id = %self.id,
            service = T::SERVICE.name(),
            operation = operation.label(T::Operation::SPECS),
            method = self.parts.method.as_str(),
            path = %redact::path(self.parts.uri.path()),
            status,
            elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
        reply
    }
}
