//! The table service: one file per operation, with parsed input, the keys it touches and the reply.
//!
//! [`entity_change`] is the heart: what inserting, replacing, merging and deleting an entity mean, as one pure
//! function that single requests and transactions share.

mod acl;
mod any_table;
mod batch;
mod change_set;
mod create_table;
mod delete_table;
mod entity_change;
mod entity_page;
mod errors;
mod get_entity;
mod get_table;
pub(crate) mod index_scan;
mod index_view;
mod insert_entity;
mod no_entity;
mod odata;
mod operation;
mod query_entities;
mod query_tables;
mod query_workload;
mod service_properties;
mod service_stats;
pub(crate) mod system;
mod update_entity;

use std::sync::Arc;

use http::header::IF_MATCH;
use hyper::body::Incoming;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::auth::sas::{Addressed, VerifiedSas};
use tavola_wire::table::ResourcePath;
use tavola_wire::table::names::TableName;
use tavola_wire::verb::Verb;
use tavola_wire::{Service, StorageError};

use crate::auth::accounts::Account;
use crate::auth::permit::{Access, Permit};
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::operations::OperationSpec;
use crate::request::body::BodyStream;
use crate::request::head::RequestHead;
use crate::request::reply::Reply;
use crate::state::ServerState;
use crate::storage;
use crate::tenant::{FailedRequest, Operation, Tenant};

pub(crate) use operation::TableOperation;

pub(crate) struct TableService;

impl Tenant for TableService {
    const SERVICE: Service = Service::Table;
    type Operation<'a> = TableOperation<'a>;

    fn verb(head: &RequestHead<'_>) -> Result<Verb> {
        head.tunnelled_verb()
    }

    fn route<'a>(
        verb: Verb,
        head: &'a RequestHead<'a>,
        account: &Account,
    ) -> Result<TableOperation<'a>> {
        let resource = ResourcePath::parse(head.address.resource_path, &account.name)?;
        operation::route(verb, resource, &head.query)
    }

    /// Its signatures name the table that they are for.
    fn addressed<'a>(_: &'a RequestHead<'a>) -> Addressed<'a> {
        Addressed::Table
    }

    async fn policies(
        state: &ServerState,
        account: &Account,
        _: &RequestHead<'_>,
        token: &VerifiedSas<'static>,
    ) -> Result<Arc<[SignedIdentifier]>> {
        let name = token.policy_table().map(TableName::parse);
        let Some(Ok(name)) = name else { return Ok([].into()) };
        match state.catalogue.find(account.id, &name).await {
            Ok(table) => Ok(table.policies.clone()),
            Err(storage::Error::NotFound) => Ok([].into()),
            Err(error) => Err(storage_failure(error)),
        }
    }

    fn refuse_unserved_options(head: &RequestHead<'_>) -> Result<()> {
        head.query.refuse_unserved_options()
    }

    fn error(error: &StorageError, failed: &FailedRequest<'_>) -> Reply {
        odata::error(error, failed)
    }
}

impl Operation for TableOperation<'_> {
    const SPECS: &'static [OperationSpec] = Self::SPECS;

    fn index(&self) -> usize {
        self.index()
    }

    fn access(&self, head: &RequestHead<'_>) -> Access<'_> {
        operation::access(self, head.has_header(&IF_MATCH))
    }

    /// The operations that do most per request are boxed: the others would carry their size through every move.
    async fn run(
        self,
        context: &RequestContext<'_>,
        permit: Permit<'_>,
        _: Option<BodyStream<'_, Incoming>>,
    ) -> Result<Reply> {
        let body = &context.body;
        match self {
            Self::QueryTables => Box::pin(query_tables::run(context, permit)).await,
            Self::GetTable(name) => get_table::run(context, permit, &name).await,
            Self::CreateTable => Box::pin(create_table::run(context, permit, body)).await,
            Self::DeleteTable(name) => Box::pin(delete_table::run(context, permit, &name)).await,
            Self::GetTableAcl(name) => acl::get(context, permit, &name).await,
            Self::SetTableAcl(name) => Box::pin(acl::set(context, permit, &name, body)).await,
            Self::QueryEntities(table) => {
                Box::pin(query_entities::run(context, permit, &table)).await
            }
            Self::InsertEntity(table) => insert_entity::run(context, permit, &table, body).await,
            Self::GetEntity(address) => get_entity::run(context, permit, &address).await,
            Self::UpdateEntity(address) => {
                update_entity::run(context, permit, Verb::Put, &address, body).await
            }
            Self::MergeEntity(address) => {
                update_entity::run(context, permit, Verb::Merge, &address, body).await
            }
            Self::DeleteEntity(address) => {
                update_entity::run(context, permit, Verb::Delete, &address, body).await
            }
            Self::NoEntity(path) => no_entity::run(context, permit, &path).await,
            Self::Batch => Box::pin(batch::run(context, permit, body)).await,
            Self::GetServiceProperties => Ok(service_properties::get(context, permit)),
            Self::SetServiceProperties => service_properties::set(context, permit, body).await,
            Self::GetServiceStats => service_stats::run(context, permit),
        }
    }
}
