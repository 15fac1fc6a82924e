//! Tokens of a table, which they name themselves, or of a range of its entities.

use super::access::{Access, EntityOperation};
use super::fields::{Field, SasFields};
use super::need::{Need, check_permissions};
use super::ranges::KeyRangeLimit;
use super::refused;
use super::values::{Permissions, SasVersion};
use crate::error::Result;
use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;
use crate::service::Service;

impl EntityOperation {
    pub(super) fn permissions(self) -> Permissions {
        match self {
            Self::Get | Self::Query => Permissions::READ,
            Self::Insert => Permissions::ADD,
            Self::Update => Permissions::UPDATE,
            Self::Upsert => Permissions::ADD | Permissions::UPDATE,
            Self::Delete => Permissions::DELETE,
        }
    }
}

/// Reads what only a table token says.
pub(super) fn parse(fields: &SasFields<'_>) -> Result<KeyRangeLimit> {
    // Here an empty value is a bound, namely the empty key.
    KeyRangeLimit::new(
        fields.get(Field::StartPartitionKey),
        fields.get(Field::StartRowKey),
        fields.get(Field::EndPartitionKey),
        fields.get(Field::EndRowKey),
    )
}

/// Appends the string to sign. The last line has no newline.
pub(super) fn push_string_to_sign(
    out: &mut String,
    fields: &SasFields<'_>,
    account: &str,
    version: SasVersion,
) {
    version.push_service_start(out, fields, Service::Table, account);
    let name = out.len();
    out.push_str(fields.text(Field::Table));
    // Table names are ASCII letters and digits, so ASCII folding is all of it.
    out[name..].make_ascii_lowercase();
    version.push_service_end(out, fields);
    let bounds =
        [Field::StartPartitionKey, Field::StartRowKey, Field::EndPartitionKey, Field::EndRowKey];
    fields.push_lines(out, bounds);
}

pub(super) fn allows(table: &str, granted: Permissions, access: Access<'_>) -> Result<()> {
    let Access::Entity { table: addressed, operation } = access else {
        return Err(ErrorCode::AuthorizationFailure.into());
    };
    if !table.eq_ignore_ascii_case(addressed) {
        return Err(refused(RefusalReason::OtherResource, "the token is for another table"));
    }
    check_permissions(granted, Need::all(operation.permissions()))
}
