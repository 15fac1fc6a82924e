//! What the requests of one connection share.

use std::sync::Arc;

use crate::request::head::Peer;
use crate::request::signed_query::LastSignedQuery;
use crate::state::ServerState;

#[derive(Debug)]
pub(crate) struct Connection {
    pub state: Arc<ServerState>,
    pub peer: Peer,
    pub signed_query: LastSignedQuery,
}

impl Connection {
    pub(crate) fn new(state: Arc<ServerState>, peer: Peer) -> Arc<Self> {
        Arc::new(Self { state, peer, signed_query: LastSignedQuery::default() })
    }
}
