//! What the requests of one connection share.

use std::sync::Arc;

use crate::head::Peer;
use crate::services::Services;
use crate::signed_query::LastSignedQuery;

#[derive(Debug)]
pub struct Connection {
    pub services: Arc<Services>,
    pub peer: Peer,
    pub signed_query: LastSignedQuery,
}

impl Connection {
    pub fn new(services: Arc<Services>, peer: Peer) -> Arc<Self> {
        Arc::new(Self { services, peer, signed_query: LastSignedQuery::default() })
    }
}
