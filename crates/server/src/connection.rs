//! What the requests of one connection share.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::auth::signed_query::LastSignedQuery;
use crate::services::Services;

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

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
}
