//! What a verified token allows: asked once per operation, answered with the service's own code.
//!
//! Permissions are asked before the body is read ([`Grant::allows`]), keys once they are known
//! ([`Grant::allows_key`]); scans take [`Grant::key_range`] and narrow themselves, for a query
//! outside of the range is no error but an empty answer. Which letters an operation needs is said in the file of its
//! service.

use super::access::{Access, EntityOperation};
use super::blob::{self, BlobSasResource, ResponseHeaders};
use super::ranges::KeyRangeLimit;
use super::values::{Permissions, ResourceTypes};
use super::{account, queue, table};
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;

/// What the holder of a valid token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    Account {
        resource_types: ResourceTypes,
        permissions: Permissions,
    },
    Table {
        table: String,
        permissions: Permissions,
        range: KeyRangeLimit,
    },
    /// In the queue that the request addresses, with which the token was verified.
    Queue {
        permissions: Permissions,
    },
    /// In the container or on the blob that the request addresses, with which the token was verified.
    Blob {
        resource: BlobSasResource,
        permissions: Permissions,
        headers: ResponseHeaders,
        encryption_scope: Option<String>,
    },
}

impl Grant {
    /// Tells whether the operation is allowed, as far as it does not depend on keys.
    ///
    /// # Errors
    /// 403: `AuthorizationFailure` for what no such token can do,
    /// `AuthorizationResourceTypeMismatch`, `AuthorizationPermissionMismatch`, and
    /// `AuthenticationFailed` for another table than the token's.
    pub fn allows(&self, access: Access<'_>) -> Result<()> {
        match self {
            Self::Account { resource_types, permissions } => {
                account::allows(*resource_types, *permissions, access)
            }
            Self::Table { table, permissions, .. } => table::allows(table, *permissions, access),
            Self::Queue { permissions } => queue::allows(*permissions, access),
            Self::Blob { resource, permissions, .. } => {
                blob::allows(*resource, *permissions, access)
            }
        }
    }

    /// Tells whether the entity is within the token's range.
    ///
    /// # Errors
    /// 404 `ResourceNotFound` for reads, as if the entity were not there; 403
    /// `AuthorizationFailure` for writes.
    pub fn allows_key(
        &self,
        operation: EntityOperation,
        partition_key: &str,
        row_key: &str,
    ) -> Result<()> {
        if self.key_range().is_none_or(|range| range.contains(partition_key, row_key)) {
            return Ok(());
        }
        match operation {
            EntityOperation::Get | EntityOperation::Query => {
                Err(out_of_range(ErrorCode::ResourceNotFound))
            }
            EntityOperation::Insert
            | EntityOperation::Update
            | EntityOperation::Upsert
            | EntityOperation::Delete => Err(out_of_range(ErrorCode::AuthorizationFailure)),
        }
    }

    /// The range that scans are narrowed to; `None` when the token has no bounds.
    pub fn key_range(&self) -> Option<&KeyRangeLimit> {
        match self {
            Self::Table { range, .. } => Some(range).filter(|range| !range.is_unbounded()),
            Self::Account { .. } | Self::Queue { .. } | Self::Blob { .. } => None,
        }
    }

    /// Whether a blob that exists may be replaced: to create one takes less.
    pub fn may_overwrite(&self) -> bool {
        match self {
            Self::Account { permissions, .. } | Self::Blob { permissions, .. } => {
                permissions.contains(Permissions::WRITE)
            }
            Self::Table { .. } | Self::Queue { .. } => false,
        }
    }
}

fn out_of_range(code: ErrorCode) -> StorageError {
    StorageError::new(code).refused_for(RefusalReason::KeyRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTITY_OPERATIONS: [(EntityOperation, &str); 6] = [
        (EntityOperation::Get, "r"),
        (EntityOperation::Query, "r"),
        (EntityOperation::Insert, "a"),
        (EntityOperation::Update, "u"),
        (EntityOperation::Upsert, "au"),
        (EntityOperation::Delete, "d"),
    ];

    fn entity(operation: EntityOperation) -> Access<'static> {
        Access::Entity { table: "MyTable", operation }
    }

    fn account(types: &str, permissions: &str) -> Grant {
        Grant::Account {
            resource_types: ResourceTypes::parse(types).unwrap(),
            permissions: Permissions::parse_account(permissions).unwrap(),
        }
    }

    fn table(permissions: &str) -> Grant {
        Grant::Table {
            table: "mytable".into(),
            permissions: Permissions::parse_table(permissions).unwrap(),
            range: KeyRangeLimit::default(),
        }
    }

    fn code(result: Result<()>) -> Option<(ErrorCode, u16)> {
        result.err().map(|error| (error.code(), error.status()))
    }

    /// The table of the reference, section 10.5: operation, resource type, letters.
    #[test]
    fn account_tokens() {
        let mut rows = vec![
            (Access::GetServiceProperties, "s", "r"),
            (Access::SetServiceProperties, "s", "w"),
            (Access::GetServiceStats, "s", "r"),
            (Access::QueryTables, "c", "l"),
            (Access::CreateTable, "c", "c"),
            (Access::CreateTable, "c", "w"),
            (Access::DeleteTable, "c", "d"),
        ];
        rows.extend(ENTITY_OPERATIONS.map(|(op, letters)| (entity(op), "o", letters)));
        for (access, types, letters) in rows {
            assert_eq!(code(account(types, letters).allows(access)), None, "{access:?}");
            let other_types: String = "sco".replace(types, "");
            assert_eq!(
                code(account(&other_types, "rwdlacu").allows(access)),
                Some((ErrorCode::AuthorizationResourceTypeMismatch, 403)),
                "{access:?}"
            );
            for letter in letters.chars() {
                let mut others = "rwdlacu".replace(letter, "");
                if access == Access::CreateTable {
                    others = others.replace(['c', 'w'], "");
                }
                assert_eq!(
                    code(account("sco", &others).allows(access)),
                    Some((ErrorCode::AuthorizationPermissionMismatch, 403)),
                    "{access:?}"
                );
            }
        }
        assert_eq!(
            code(account("sco", "rwdlacu").allows(Access::TableAcl)),
            Some((ErrorCode::AuthorizationFailure, 403))
        );
    }

    #[test]
    fn table_tokens() {
        for (operation, letters) in ENTITY_OPERATIONS {
            assert_eq!(code(table(letters).allows(entity(operation))), None);
            for letter in letters.chars() {
                let others = "raud".replace(letter, "");
                assert_eq!(
                    code(table(&others).allows(entity(operation))),
                    Some((ErrorCode::AuthorizationPermissionMismatch, 403))
                );
            }
        }
        for access in [
            Access::GetServiceProperties,
            Access::SetServiceProperties,
            Access::GetServiceStats,
            Access::QueryTables,
            Access::CreateTable,
            Access::DeleteTable,
            Access::TableAcl,
        ] {
            let refusal = code(table("raud").allows(access));
            assert_eq!(refusal, Some((ErrorCode::AuthorizationFailure, 403)), "{access:?}");
        }
        let other = Access::Entity { table: "other", operation: EntityOperation::Get };
        assert_eq!(code(table("raud").allows(other)), Some((ErrorCode::AuthenticationFailed, 403)));
    }

    #[test]
    fn keys_outside_of_the_range() {
        let range = KeyRangeLimit::new(Some("b"), None, Some("b"), None).unwrap();
        let grant = Grant::Table {
            table: "t".into(),
            permissions: Permissions::TABLE_ALL,
            range: range.clone(),
        };
        assert_eq!(grant.key_range(), Some(&range));
        for (operation, _) in ENTITY_OPERATIONS {
            assert_eq!(code(grant.allows_key(operation, "b", "1")), None);
            let expected = match operation {
                EntityOperation::Get | EntityOperation::Query => (ErrorCode::ResourceNotFound, 404),
                _ => (ErrorCode::AuthorizationFailure, 403),
            };
            assert_eq!(code(grant.allows_key(operation, "c", "1")), Some(expected));
        }
        assert_eq!(table("r").key_range(), None);
        assert_eq!(code(account("o", "r").allows_key(EntityOperation::Get, "c", "1")), None);
    }
}
