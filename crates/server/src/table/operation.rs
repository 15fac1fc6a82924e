//! The operations of the table service: the table of them, which one a request is, and what each needs.
//!
//! Routes are written by hand, because the protocol's live in parentheses, `comp=` and headers.

use tavola_wire::auth::sas::{self, EntityOperation};
use tavola_wire::table::batch::BATCH_BYTES_MAX;
use tavola_wire::table::names::TableName;
use tavola_wire::table::{ResourcePath, UrlKey};
use tavola_wire::uri::QueryString;
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, StorageError};

use crate::auth::permit::Access;
use crate::error::Result;
use crate::operations::operations;
use crate::request::body::BodyLimit;

/// The largest body of the protocol is that of an entity group transaction.
const BODY: BodyLimit = BodyLimit::Whole(BATCH_BYTES_MAX);

operations! {
    /// An operation of the table service and what it addresses.
    #[derive(Clone, Debug)]
    pub(crate) enum TableOperation<'a> as TableOperationKind {
        QueryTables                     => Read, BODY;
        GetTable(TableName<'a>)         => Read, BODY;
        CreateTable                     => Write, BODY;
        DeleteTable(TableName<'a>)      => Write, BODY;
        GetTableAcl(TableName<'a>)      => Read, BODY;
        SetTableAcl(TableName<'a>)      => Write, BODY;
        QueryEntities(TableName<'a>)    => Read, BODY;
        InsertEntity(TableName<'a>)     => Write, BODY;
        GetEntity(EntityAddress<'a>)    => Read, BODY;
        UpdateEntity(EntityAddress<'a>) => Write, BODY;
        MergeEntity(EntityAddress<'a>)  => Write, BODY;
        DeleteEntity(EntityAddress<'a>) => Write, BODY;
        NoEntity(NoEntity<'a>)          => Read, BODY;
        Batch                           => ByBody, BODY;
        GetServiceProperties            => Read, BODY;
        SetServiceProperties            => Write, BODY;
        GetServiceStats                 => Read, BODY;
    }
}

/// One entity, as a URL names it.
#[derive(Clone, Debug)]
pub(crate) struct EntityAddress<'a> {
    pub table: TableName<'a>,
    pub partition_key: UrlKey<'a>,
    pub row_key: UrlKey<'a>,
}

/// A path behind the name of a table that names no entity. The table is looked for before the client is told.
#[derive(Clone, Debug)]
pub(crate) struct NoEntity<'a> {
    pub table: TableName<'a>,
    /// What the verb would have done, which is what it needs permission for.
    pub attempt: EntityOperation,
    pub fault: PathFault,
}

/// What is wrong with the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// `/t('key')`, `/t/Tables('t')`.
    KeyCount,
    /// `GET /t/Tables`, `/t/$count`.
    Segment,
}

/// The operation that a verb on a resource is.
///
/// # Errors
/// 400 for a query that does not go with the resource, 405 for a verb that does not.
pub(super) fn route<'a>(
    verb: Verb,
    resource: ResourcePath<'a>,
    query: &QueryString<'_>,
) -> Result<TableOperation<'a>> {
    match (query.restype(), query.comp()) {
        (None, None) => data_operation(verb, resource),
        (None, Some("acl")) => acl_operation(verb, resource),
        (Some("service"), Some(comp)) => service_operation(verb, &resource, comp),
        _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
    }
}

fn data_operation(verb: Verb, resource: ResourcePath<'_>) -> Result<TableOperation<'_>> {
    Ok(match (verb, resource) {
        (Verb::Get, ResourcePath::Tables) => TableOperation::QueryTables,
        (Verb::Post, ResourcePath::Tables) => TableOperation::CreateTable,
        (Verb::Get, ResourcePath::Table(name)) => TableOperation::GetTable(name),
        (Verb::Delete, ResourcePath::Table(name)) => TableOperation::DeleteTable(name),
        (Verb::Get, ResourcePath::TableEntities(table)) => TableOperation::QueryEntities(table),
        // Recorded: a segment behind the table does not keep `POST /t/Tables` from inserting into `t`.
        (Verb::Post, ResourcePath::TableEntities(table) | ResourcePath::BelowTable(table)) => {
            TableOperation::InsertEntity(table)
        }
        (Verb::Get, ResourcePath::BelowTable(table)) => {
            let (attempt, fault) = (EntityOperation::Query, PathFault::Segment);
            TableOperation::NoEntity(NoEntity { table, attempt, fault })
        }
        (verb, ResourcePath::MismatchedKeys(table)) => {
            let attempt = match verb {
                Verb::Get => EntityOperation::Get,
                Verb::Put | Verb::Merge => EntityOperation::Update,
                Verb::Delete => EntityOperation::Delete,
                Verb::Post => EntityOperation::Insert,
                Verb::Head | Verb::Options => return Err(ErrorCode::MethodNotAllowed.into()),
            };
            TableOperation::NoEntity(NoEntity { table, attempt, fault: PathFault::KeyCount })
        }
        (Verb::Post, ResourcePath::Batch) => TableOperation::Batch,
        (verb, ResourcePath::Entity { table, partition_key, row_key }) => {
            let address = EntityAddress { table, partition_key, row_key };
            match verb {
                Verb::Get => TableOperation::GetEntity(address),
                Verb::Put => TableOperation::UpdateEntity(address),
                Verb::Merge => TableOperation::MergeEntity(address),
                Verb::Delete => TableOperation::DeleteEntity(address),
                Verb::Post | Verb::Head | Verb::Options => {
                    return Err(ErrorCode::MethodNotAllowed.into());
                }
            }
        }
        (Verb::Get, ResourcePath::ServiceRoot | ResourcePath::Metadata) => {
            return Err(ErrorCode::NotImplemented.into());
        }
        _ => return Err(ErrorCode::MethodNotAllowed.into()),
    })
}

fn acl_operation(verb: Verb, resource: ResourcePath<'_>) -> Result<TableOperation<'_>> {
    let ResourcePath::TableEntities(table) = resource else {
        return Err(ErrorCode::InvalidQueryParameterValue.into());
    };
    match verb {
        Verb::Get => Ok(TableOperation::GetTableAcl(table)),
        Verb::Put => Ok(TableOperation::SetTableAcl(table)),
        _ => Err(ErrorCode::UnsupportedHttpVerb.into()),
    }
}

fn service_operation<'a>(
    verb: Verb,
    resource: &ResourcePath<'a>,
    comp: &str,
) -> Result<TableOperation<'a>> {
    if !matches!(resource, ResourcePath::ServiceRoot) {
        return Err(ErrorCode::InvalidQueryParameterValue.into());
    }
    match (verb, comp) {
        (Verb::Get, "properties") => Ok(TableOperation::GetServiceProperties),
        (Verb::Put, "properties") => Ok(TableOperation::SetServiceProperties),
        (Verb::Get, "stats") => Ok(TableOperation::GetServiceStats),
        (_, "properties" | "stats") => Err(ErrorCode::UnsupportedHttpVerb.into()),
        _ => Err(StorageError::new(ErrorCode::InvalidQueryParameterValue)),
    }
}

/// What an operation needs. Without a condition (`If-Match`) an update may insert, which is another permission.
pub(super) fn access<'a>(operation: &'a TableOperation<'_>, has_condition: bool) -> Access<'a> {
    let entity = |table: &'a TableName<'_>, operation| sas::Access::Entity {
        table: table.as_str(),
        operation,
    };
    Access::To(match operation {
        TableOperation::QueryTables | TableOperation::GetTable(_) => sas::Access::QueryTables,
        TableOperation::CreateTable => sas::Access::CreateTable,
        TableOperation::DeleteTable(_) => sas::Access::DeleteTable,
        TableOperation::GetTableAcl(_) | TableOperation::SetTableAcl(_) => sas::Access::TableAcl,
        TableOperation::QueryEntities(table) => entity(table, EntityOperation::Query),
        TableOperation::InsertEntity(table) => entity(table, EntityOperation::Insert),
        TableOperation::GetEntity(address) => entity(&address.table, EntityOperation::Get),
        TableOperation::UpdateEntity(address) | TableOperation::MergeEntity(address) => {
            entity(&address.table, entity_operation(Verb::Put, has_condition))
        }
        TableOperation::DeleteEntity(address) => {
            entity(&address.table, entity_operation(Verb::Delete, has_condition))
        }
        TableOperation::NoEntity(path) => entity(&path.table, path.attempt),
        TableOperation::GetServiceProperties => sas::Access::GetServiceProperties,
        TableOperation::SetServiceProperties => sas::Access::SetServiceProperties,
        TableOperation::GetServiceStats => sas::Access::GetServiceStats,
        TableOperation::Batch => return Access::OfEachPart,
    })
}

/// What a change of an entity needs permission for, alone or in a batch: without a condition it may insert.
pub(super) fn entity_operation(verb: Verb, has_condition: bool) -> EntityOperation {
    match verb {
        Verb::Delete => EntityOperation::Delete,
        _ if has_condition => EntityOperation::Update,
        _ => EntityOperation::Upsert,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(method: &str, path: &str, query: &str) -> String {
        let resource = ResourcePath::parse(path, "acct");
        let routed = Verb::resolve(method, None).and_then(|verb| {
            let query = QueryString::parse(query)?;
            route(verb, resource?, &query)
        });
        match routed {
            Ok(operation) => TableOperation::SPECS[operation.index()].name.to_owned(),
            Err(error) => format!("{} {}", error.status(), error.code().as_str()),
        }
    }

    #[test]
    fn every_operation_has_its_route() {
        let entity = "/tbl(PartitionKey='p',RowKey='r')";
        for (method, path, query, expected) in [
            ("GET", "/Tables", "", "QueryTables"),
            ("GET", "/Tables()", "$top=1", "QueryTables"),
            ("POST", "/Tables", "", "CreateTable"),
            ("GET", "/Tables('tbl')", "", "GetTable"),
            ("DELETE", "/Tables('tbl')", "", "DeleteTable"),
            ("GET", "/tbl", "comp=acl", "GetTableAcl"),
            ("PUT", "/tbl", "comp=acl", "SetTableAcl"),
            ("GET", "/tbl()", "", "QueryEntities"),
            ("GET", "/tbl", "", "QueryEntities"),
            ("POST", "/tbl", "", "InsertEntity"),
            ("POST", "/tbl()", "", "InsertEntity"),
            ("GET", entity, "", "GetEntity"),
            ("PUT", entity, "", "UpdateEntity"),
            ("PATCH", entity, "", "MergeEntity"),
            ("MERGE", entity, "", "MergeEntity"),
            ("DELETE", entity, "", "DeleteEntity"),
            ("POST", "/tbl/Tables", "", "InsertEntity"),
            ("GET", "/tbl/Tables", "", "NoEntity"),
            ("GET", "/tbl/$count", "", "NoEntity"),
            ("DELETE", "/tbl/Tables('tbl')", "", "NoEntity"),
            ("GET", "/tbl('p')", "", "NoEntity"),
            ("POST", "/$batch", "", "Batch"),
            ("GET", "/", "restype=service&comp=properties", "GetServiceProperties"),
            ("PUT", "/", "restype=service&comp=properties", "SetServiceProperties"),
            ("GET", "/", "restype=service&comp=stats", "GetServiceStats"),
        ] {
            assert_eq!(name(method, path, query), expected, "{method} {path}?{query}");
        }
    }

    #[test]
    fn what_is_no_operation_is_refused() {
        for (method, path, query, expected) in [
            ("PUT", "/Tables", "", "405 MethodNotAllowed"),
            ("DELETE", "/tbl", "", "405 MethodNotAllowed"),
            ("POST", "/tbl(PartitionKey='p',RowKey='r')", "", "405 MethodNotAllowed"),
            ("TRACE", "/tbl", "", "405 UnsupportedHttpVerb"),
            ("DELETE", "/tbl", "comp=acl", "405 UnsupportedHttpVerb"),
            ("GET", "/tbl", "restype=service&comp=properties", "400 InvalidQueryParameterValue"),
            ("GET", "/", "restype=service&comp=other", "400 InvalidQueryParameterValue"),
            ("GET", "/tbl", "comp=metadata", "400 InvalidQueryParameterValue"),
            ("GET", "/$metadata", "", "501 NotImplemented"),
            ("PUT", "/tbl/Tables", "", "405 MethodNotAllowed"),
            ("DELETE", "/tbl/Tables", "", "405 MethodNotAllowed"),
            ("GET", "/tbl/Tables", "comp=acl", "400 InvalidQueryParameterValue"),
        ] {
            assert_eq!(name(method, path, query), expected, "{method} {path}?{query}");
        }
    }
}
