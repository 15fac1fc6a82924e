//! From a request to its reply: the table of contents. Nothing else happens between bytes in and bytes out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use http::Request;
use http::header::{ACCEPT, EXPECT};
use http::request::Parts;
use hyper::body::{Body, Incoming};
use tavola_engine::panic_message;
use tavola_wire::ServiceVersion;
use tavola_wire::table::ResourcePath;
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, StorageError};

use crate::auth;
use crate::auth::accounts::Account;
use crate::auth::cors;
use crate::connection::Connection;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::body::{self, BodyLimit};
use crate::request::head::{RequestHead, error_format, raw_query};
use crate::request::ids::Id;
use crate::request::redact;
use crate::request::respond::{self, ErrorFormat, Reply};
use crate::state::ServerState;
use crate::table;
use crate::table::operation::{self, Operation, OperationName};

/// Answers one request, whatever it is: an error becomes its reply, a panic 500.
pub(crate) async fn answer(connection: Arc<Connection>, request: Request<Incoming>) -> Reply {
    let (parts, mut body) = request.into_parts();
    let (connection, state) = (&*connection, &*connection.state);
    let (id, started) = (state.ids.next(), Instant::now());
    let arrival = Arrival { connection, state, id, started, parts: &parts };
    let mut name = OperationName::Unrecognized;
    let dispatched = arrival.dispatch(&mut body, &mut name);
    let reply = match AssertUnwindSafe(dispatched).catch_unwind().await {
        Ok(reply) => reply,
        Err(panic) => arrival.panicked(name, panic_message(&*panic)),
    };
    // A client that asked whether to send its body has been told enough by a reply.
    if !body.is_end_stream() && !parts.headers.contains_key(EXPECT) {
        Box::pin(body::discard(&mut body, &state.settings.limits)).await;
    }
    arrival.finish(name, reply)
}

/// A request that has come in.
struct Arrival<'a> {
    connection: &'a Connection,
    state: &'a ServerState,
    id: Id,
    started: Instant,
    parts: &'a Parts,
}

impl Arrival<'_> {
    /// Address, account, then the operation; every error becomes a reply in the format that the client reads.
    async fn dispatch(&self, body: &mut Incoming, name: &mut OperationName) -> Reply {
        let rules = self.state.settings.address_rules;
        let Connection { peer, signed_query, .. } = self.connection;
        let recalled = signed_query.recall(raw_query(self.parts));
        let head = match RequestHead::parse(self.parts, *peer, rules, recalled.as_ref()) {
            Ok(head) => head,
            Err(error) => return self.early(&error),
        };
        let account = match self.state.accounts.find(head.address.account) {
            Ok(account) => account,
            Err(error) => {
                let reply = self.failure(&error, head.error_format());
                return self.with_common(reply, None);
            }
        };
        let outcome = match head.verb() {
            Ok(Verb::Options) => {
                *name = OperationName::Preflight;
                cors::preflight(account, &head)
            }
            Ok(verb) => self.serve(&head, account, verb, body, name).await,
            Err(error) => Err(error),
        };
        let reply = match outcome {
            Ok(reply) => reply,
            Err(error) => self.refusal(&error, &head, *name),
        };
        let mut reply = self.with_common(reply, head.version);
        // ORDER: last, because a rule may expose the headers that every reply has.
        if *name != OperationName::Preflight {
            cors::add_headers(account, &head, &mut reply);
        }
        reply
    }

    /// Authenticate, route, read the body, run; each operation asks for the permissions that it needs.
    async fn serve(
        &self,
        head: &RequestHead<'_>,
        account: &Arc<Account>,
        verb: Verb,
        body: &mut Incoming,
        name: &mut OperationName,
    ) -> Result<Reply> {
        let state = self.state;
        #[cfg(debug_assertions)]
        crate::fault::panic_if_asked(head);
        let identity =
            auth::authenticate(state, &self.connection.signed_query, account, head).await?;
        let resource = ResourcePath::parse(head.address.resource_path, &account.name)?;
        let operation = operation::operation(verb, resource, &head.query)?;
        *name = operation.name();
        if head.address.secondary && !operation.reads_only() {
            return Err(ErrorCode::InsufficientAccountPermissions.into());
        }
        if !state.settings.loose {
            head.query.refuse_unserved_options()?;
        }
        let memory = &state.memory_budget;
        let limits = &state.settings.limits;
        let limit = BodyLimit::Whole(limits.body_bytes_max);
        let body = body::admit(body, limit, limits.transfer_timeout, memory).await?.into_bytes();
        state.metrics.request_bytes.inc_by(body.len() as u64);
        let (id, started) = (self.id, self.started);
        let alone = self.connection.note_request();
        let context = RequestContext { id, state, head, account, identity, started, alone, body };
        let reads_only = operation.reads_only();
        let mut reply = run(&context, operation).await?;
        if reads_only {
            reply.body_mut().reserve(memory)?;
        } else {
            // What has been done has to be answered, or clients would do it again.
            reply.body_mut().reserve_regardless(memory);
        }
        Ok(reply)
    }

    /// The reply to an operation that failed.
    fn refusal(&self, error: &StorageError, head: &RequestHead<'_>, name: OperationName) -> Reply {
        let mut reply = self.failure(error, head.error_format());
        if matches!(name, OperationName::InsertEntity | OperationName::CreateTable) {
            respond::set_preference_applied(&mut reply, head.preference());
        }
        if error.status() == 401 {
            auth::bearer::challenge(self.state, &mut reply);
        }
        reply
    }

    /// The reply to a request that met a mistake of ours.
    fn panicked(&self, name: OperationName, message: &str) -> Reply {
        self.state.metrics.panics.inc();
        let (request_id, operation) = (&self.id, name.as_str());
        tracing::error!(%request_id, operation, message, "a request panicked");
        self.early(&ErrorCode::InternalError.into())
    }

    /// The reply to a request that was not read as far as its wishes.
    fn early(&self, error: &StorageError) -> Reply {
        self.with_common(self.failure(error, self.early_format()), None)
    }

    /// With the headers that every reply has.
    fn with_common(&self, mut reply: Reply, version: Option<ServiceVersion>) -> Reply {
        respond::set_common(&mut reply, &self.id, version, &self.parts.headers);
        reply
    }

    fn failure(&self, error: &StorageError, format: ErrorFormat) -> Reply {
        let request_id = &self.id;
        let source = std::error::Error::source(error).map(ToString::to_string);
        // What clients bring about by themselves must not fill the log: too slow a body, too many at a time.
        let is_ours = source.is_some() || error.code() == ErrorCode::InternalError;
        if error.status() >= 500 && is_ours {
            tracing::error!(%request_id, code = error.code().as_str(), source, "request failed");
        } else {
            tracing::debug!(%request_id, %error, "request refused");
        }
        respond::error(error, format, request_id, self.state.clock.now())
    }

    /// The format of an error when the query could not even be read.
    fn early_format(&self) -> ErrorFormat {
        let accept = self.parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        error_format(None, accept)
    }

    /// Counts and logs the request, and lets the reply go.
    fn finish(&self, name: OperationName, reply: Reply) -> Reply {
        let elapsed = self.started.elapsed();
        let status = reply.status().as_u16();
        self.state.metrics.answered(name, status, elapsed);
        self.state.metrics.response_bytes.inc_by(reply.body().size_hint().lower());
        // The query stays out of the log: it may hold a signature, and so may a path.
        tracing::debug!(
            request_id = %self.id,
            operation = name.as_str(),
            method = self.parts.method.as_str(),
            path = %redact::path(self.parts.uri.path()),
            status,
            elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
        reply
    }
}

/// The operations that do most per request are boxed: the others would carry their size through every move.
async fn run(context: &RequestContext<'_>, operation: Operation<'_>) -> Result<Reply> {
    let body = &context.body;
    match operation {
        Operation::QueryTables => Box::pin(table::query_tables::run(context)).await,
        Operation::GetTable(name) => table::get_table::run(context, &name).await,
        Operation::CreateTable => Box::pin(table::create_table::run(context, body)).await,
        Operation::DeleteTable(name) => Box::pin(table::delete_table::run(context, &name)).await,
        Operation::GetTableAcl(name) => table::acl::get(context, &name).await,
        Operation::SetTableAcl(name) => Box::pin(table::acl::set(context, &name, body)).await,
        Operation::QueryEntities(table) => {
            Box::pin(table::query_entities::run(context, &table)).await
        }
        Operation::InsertEntity(table) => table::insert_entity::run(context, &table, body).await,
        Operation::GetEntity(address) => table::get_entity::run(context, &address).await,
        Operation::UpdateEntity(address) => {
            table::update_entity::run(context, Verb::Put, &address, body).await
        }
        Operation::MergeEntity(address) => {
            table::update_entity::run(context, Verb::Merge, &address, body).await
        }
        Operation::DeleteEntity(address) => {
            table::update_entity::run(context, Verb::Delete, &address, body).await
        }
        Operation::Batch => Box::pin(table::batch::run(context, body)).await,
        Operation::GetServiceProperties => table::service_properties::get(context),
        Operation::SetServiceProperties => table::service_properties::set(context, body).await,
        Operation::GetServiceStats => table::service_stats::run(context),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future, A, B>(_: fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// Every request moves its future a few times.
    #[test]
    fn the_future_of_a_request_stays_small() {
        let size = size_of_future(answer);
        assert!(size <= 4096, "{size} bytes");
    }
}
