//! What the requests of one connection share.

use std::sync::Arc;

use crate::head::Peer;
use crate::services::Services;
use crate::signed_query::LastSignedQuery;
use crate::sniff::Protocol;

#[derive(Debug)]
pub struct Connection {
    pub services: Arc<Services>,
    pub peer: Peer,
    pub signed_query: LastSignedQuery,
    number: u32,
    protocol: Protocol,
}

impl Connection {
    pub fn new(services: Arc<Services>, peer: Peer, protocol: Protocol) -> Arc<Self> {
        let (number, signed_query) = (services.solitude.number(), LastSignedQuery::default());
        Arc::new(Self { services, peer, signed_query, number, protocol })
    }

    /// Notes a request; true if there seems to be no other at the same time.
    pub fn note_request(&self) -> bool {
        // HTTP/2 has many requests at a time on one connection.
        self.services.solitude.note(self.number) && self.protocol == Protocol::Http1
    }
}
