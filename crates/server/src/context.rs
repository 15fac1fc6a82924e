//! What an operation knows of the request it serves, passed explicitly.

use std::sync::Arc;
use std::time::Instant;

use tavola_wire::Ticks;

use crate::auth::Identity;
use crate::auth::accounts::Account;
use crate::head::RequestHead;
use crate::ids::Id;
use crate::message_memory::Held;
use crate::services::Services;

/// One request: who asks for what, and everything needed to answer.
pub struct RequestContext<'a> {
    pub id: Id,
    pub services: &'a Services,
    pub head: &'a RequestHead<'a>,
    pub account: &'a Arc<Account>,
    pub identity: Identity,
    pub started: Instant,
    /// Whether there seems to be no other request at the same time.
    pub alone: bool,
    /// What the request's body holds of the memory for messages.
    pub held: Option<Arc<Held>>,
}

impl RequestContext<'_> {
    /// A moment for what the request writes, which no other write has. Asked for once a request.
    pub fn stamp(&self) -> Ticks {
        self.services.clock.stamp()
    }
}
