//! The services of this server. This is the one file that ties a [`Service`] to its types; everything else is written
//! against [`Tenant`](crate::tenant::Tenant), or asks the value.

use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use tavola_wire::Service;

use crate::connection::Connection;
use crate::error::Result;
use crate::handle;
use crate::operations::OperationSpec;
use crate::queue::{QueueOperation, QueueService};
use crate::request::reply::Reply;
use crate::state::ServerState;
use crate::table::{self, TableOperation, TableService};

/// The services that this server has, in the order in which they are started and told.
pub const SERVICES: [Service; 2] = [Service::Table, Service::Queue];

/// Answers one request of a service.
pub(crate) async fn answer(
    service: Service,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Reply {
    match service {
        Service::Table => handle::answer::<TableService>(connection, request).await,
        Service::Queue => handle::answer::<QueueService>(connection, request).await,
        Service::Blob => unreachable!("start() refuses what is not served"),
    }
}

/// What services look at once, before they are served.
pub(crate) async fn prepare(state: &ServerState) -> Result<()> {
    table::system::warn_of_shadowed_names(state).await
}

/// The services with their operations, as they are counted.
pub(crate) fn operations() -> Vec<(Service, &'static [OperationSpec])> {
    vec![(Service::Queue, QueueOperation::SPECS), (Service::Table, TableOperation::SPECS)]
}
