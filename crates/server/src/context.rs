//! What an operation knows of the request it serves, passed explicitly.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tavola_wire::Ticks;

use crate::auth::accounts::Account;
use crate::request::head::RequestHead;
use crate::request::ids::Id;
use crate::request::notes::RequestNotes;
use crate::state::ServerState;

/// One request: who asks for what, and everything needed to answer.
pub(crate) struct RequestContext<'a> {
    pub id: Id,
    pub state: &'a ServerState,
    pub head: &'a RequestHead<'a>,
    pub account: &'a Arc<Account>,
    pub started: Instant,
    /// For metrics and logs.
    pub notes: &'a RequestNotes,
    /// The request's body, empty where it is a stream. Its last clone gives back what is reserved for it.
    pub body: Bytes,
}

impl RequestContext<'_> {
    /// A moment for what the request writes, which no other write has. Asked for once a request.
    pub(crate) fn stamp(&self) -> Ticks {
        self.state.clock.stamp()
    }
}
