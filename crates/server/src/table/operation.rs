//! Which operation a request is: a pure function of method, path, query and headers.
//!
//! Done by hand, because the protocol's routes live in parentheses, `comp=` and headers.

use tavola_wire::table::names::TableName;
use tavola_wire::table::{ResourcePath, UrlKey};
use tavola_wire::uri::QueryString;
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, StorageError};

use crate::error::Result;

/// An operation of the table service and what it addresses.
#[derive(Clone, Debug)]
pub(crate) enum Operation<'a> {
    QueryTables,
    GetTable(TableName<'a>),
    CreateTable,
    DeleteTable(TableName<'a>),
    GetTableAcl(TableName<'a>),
    SetTableAcl(TableName<'a>),
    QueryEntities(TableName<'a>),
    InsertEntity(TableName<'a>),
    GetEntity(EntityAddress<'a>),
    UpdateEntity(EntityAddress<'a>),
    MergeEntity(EntityAddress<'a>),
    DeleteEntity(EntityAddress<'a>),
    Batch,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
}

/// One entity, as a URL names it.
#[derive(Clone, Debug)]
pub(crate) struct EntityAddress<'a> {
    pub table: TableName<'a>,
    pub partition_key: UrlKey<'a>,
    pub row_key: UrlKey<'a>,
}

/// The operation's name in metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum OperationName {
    QueryTables,
    GetTable,
    CreateTable,
    DeleteTable,
    GetTableAcl,
    SetTableAcl,
    QueryEntities,
    InsertEntity,
    GetEntity,
    UpdateEntity,
    MergeEntity,
    DeleteEntity,
    Batch,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    Preflight,
    /// A request that named no operation.
    Unrecognized,
}

impl OperationName {
    pub(crate) const ALL: [OperationName; 18] = [
        Self::QueryTables,
        Self::GetTable,
        Self::CreateTable,
        Self::DeleteTable,
        Self::GetTableAcl,
        Self::SetTableAcl,
        Self::QueryEntities,
        Self::InsertEntity,
        Self::GetEntity,
        Self::UpdateEntity,
        Self::MergeEntity,
        Self::DeleteEntity,
        Self::Batch,
        Self::GetServiceProperties,
        Self::SetServiceProperties,
        Self::GetServiceStats,
        Self::Preflight,
        Self::Unrecognized,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::QueryTables => "QueryTables",
            Self::GetTable => "GetTable",
            Self::CreateTable => "CreateTable",
            Self::DeleteTable => "DeleteTable",
            Self::GetTableAcl => "GetTableAcl",
            Self::SetTableAcl => "SetTableAcl",
            Self::QueryEntities => "QueryEntities",
            Self::InsertEntity => "InsertEntity",
            Self::GetEntity => "GetEntity",
            Self::UpdateEntity => "UpdateEntity",
            Self::MergeEntity => "MergeEntity",
            Self::DeleteEntity => "DeleteEntity",
            Self::Batch => "Batch",
            Self::GetServiceProperties => "GetServiceProperties",
            Self::SetServiceProperties => "SetServiceProperties",
            Self::GetServiceStats => "GetServiceStats",
            Self::Preflight => "Preflight",
            Self::Unrecognized => "Unrecognized",
        }
    }
}

impl Operation<'_> {
    pub(crate) fn name(&self) -> OperationName {
        match self {
            Self::QueryTables => OperationName::QueryTables,
            Self::GetTable(_) => OperationName::GetTable,
            Self::CreateTable => OperationName::CreateTable,
            Self::DeleteTable(_) => OperationName::DeleteTable,
            Self::GetTableAcl(_) => OperationName::GetTableAcl,
            Self::SetTableAcl(_) => OperationName::SetTableAcl,
            Self::QueryEntities(_) => OperationName::QueryEntities,
            Self::InsertEntity(_) => OperationName::InsertEntity,
            Self::GetEntity(_) => OperationName::GetEntity,
            Self::UpdateEntity(_) => OperationName::UpdateEntity,
            Self::MergeEntity(_) => OperationName::MergeEntity,
            Self::DeleteEntity(_) => OperationName::DeleteEntity,
            Self::Batch => OperationName::Batch,
            Self::GetServiceProperties => OperationName::GetServiceProperties,
            Self::SetServiceProperties => OperationName::SetServiceProperties,
            Self::GetServiceStats => OperationName::GetServiceStats,
        }
    }

    /// Whether it may be asked of the secondary. A batch may hold a query alone, so it decides later.
    pub(crate) fn reads_only(&self) -> bool {
        matches!(
            self,
            Self::QueryTables
                | Self::GetTable(_)
                | Self::GetTableAcl(_)
                | Self::QueryEntities(_)
                | Self::GetEntity(_)
                | Self::Batch
                | Self::GetServiceProperties
                | Self::GetServiceStats
        )
    }
}

/// The operation that a verb on a resource is.
///
/// # Errors
/// 400 for a query that does not go with the resource, 405 for a verb that does not.
pub(crate) fn operation<'a>(
    verb: Verb,
    resource: ResourcePath<'a>,
    query: &QueryString<'_>,
) -> Result<Operation<'a>> {
    match (query.restype(), query.comp()) {
        (None, None) => data_operation(verb, resource),
        (None, Some("acl")) => acl_operation(verb, resource),
        (Some("service"), Some(comp)) => service_operation(verb, &resource, comp),
        _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
    }
}

fn data_operation(verb: Verb, resource: ResourcePath<'_>) -> Result<Operation<'_>> {
    Ok(match (verb, resource) {
        (Verb::Get, ResourcePath::Tables) => Operation::QueryTables,
        (Verb::Post, ResourcePath::Tables) => Operation::CreateTable,
        (Verb::Get, ResourcePath::Table(name)) => Operation::GetTable(name),
        (Verb::Delete, ResourcePath::Table(name)) => Operation::DeleteTable(name),
        (Verb::Get, ResourcePath::TableEntities(table)) => Operation::QueryEntities(table),
        (Verb::Post, ResourcePath::TableEntities(table)) => Operation::InsertEntity(table),
        (Verb::Post, ResourcePath::Batch) => Operation::Batch,
        (verb, ResourcePath::Entity { table, partition_key, row_key }) => {
            let address = EntityAddress { table, partition_key, row_key };
            match verb {
                Verb::Get => Operation::GetEntity(address),
                Verb::Put => Operation::UpdateEntity(address),
                Verb::Merge => Operation::MergeEntity(address),
                Verb::Delete => Operation::DeleteEntity(address),
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

fn acl_operation(verb: Verb, resource: ResourcePath<'_>) -> Result<Operation<'_>> {
    let ResourcePath::TableEntities(table) = resource else {
        return Err(ErrorCode::InvalidQueryParameterValue.into());
    };
    match verb {
        Verb::Get => Ok(Operation::GetTableAcl(table)),
        Verb::Put => Ok(Operation::SetTableAcl(table)),
        _ => Err(ErrorCode::UnsupportedHttpVerb.into()),
    }
}

fn service_operation<'a>(
    verb: Verb,
    resource: &ResourcePath<'a>,
    comp: &str,
) -> Result<Operation<'a>> {
    if !matches!(resource, ResourcePath::ServiceRoot) {
        return Err(ErrorCode::InvalidQueryParameterValue.into());
    }
    match (verb, comp) {
        (Verb::Get, "properties") => Ok(Operation::GetServiceProperties),
        (Verb::Put, "properties") => Ok(Operation::SetServiceProperties),
        (Verb::Get, "stats") => Ok(Operation::GetServiceStats),
        (_, "properties" | "stats") => Err(ErrorCode::UnsupportedHttpVerb.into()),
        _ => Err(StorageError::new(ErrorCode::InvalidQueryParameterValue)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(method: &str, path: &str, query: &str) -> String {
        let resource = ResourcePath::parse(path, "acct");
        let routed = Verb::resolve(method, None).and_then(|verb| {
            operation(verb, resource?, &QueryString::parse(query)?)
                .map(|operation| operation.name())
        });
        match routed {
            Ok(name) => name.as_str().to_owned(),
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
        ] {
            assert_eq!(name(method, path, query), expected, "{method} {path}?{query}");
        }
    }
}
