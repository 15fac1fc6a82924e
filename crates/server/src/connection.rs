//! What the requests of one connection share.

use std::sync::Arc;

use crate::auth::signed_query::LastSignedQuery;
use crate::net::sniff::Protocol;
use crate::request::head::Peer;
use crate::state::ServerState;

#[derive(Debug)]
pub(crate) struct Connection {
    pub state: Arc<ServerState>,
    pub peer: Peer,
    pub signed_query: LastSignedQuery,
    number: u32,
    protocol: Protocol,
}

impl Connection {
    pub(crate) fn new(state: Arc<ServerState>, peer: Peer, protocol: Protocol) -> Arc<Self> {
        let (number, signed_query) = (state.solitude.number(), LastSignedQuery::default());
        Arc::new(Self { state, peer, signed_query, number, protocol })
    }

    /// Notes a request; true if there seems to be no other at the same time.
    pub(crate) fn note_request(&self) -> bool {
        // HTTP/2 has many requests at a time on one connection.
        self.state.solitude.note(self.number) && self.protocol == Protocol::Http1
    }
}
