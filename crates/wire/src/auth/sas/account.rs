//! Tokens of an account: for every service that `ss` names, every kind of resource that `srt` names.

use super::access::Access;
use super::fields::{Field, SasFields};
use super::malformed;
use super::need::{Need, check_permissions};
use super::values::{Permissions, ResourceTypes, SasVersion, Services};
use crate::error::Result;
use crate::error_code::ErrorCode;

/// What only an account token says.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccountSas {
    pub services: Services,
    pub resource_types: ResourceTypes,
}

impl AccountSas {
    /// Whether the fields are those of an account token.
    pub(super) fn is_named(fields: &SasFields<'_>) -> bool {
        fields.get(Field::Services).is_some() || fields.get(Field::ResourceTypes).is_some()
    }

    pub(super) fn parse(fields: &SasFields<'_>, version: SasVersion) -> Result<Self> {
        if version < SasVersion::ADDRESS_AND_PROTOCOL {
            return Err(malformed("sv is older than account signatures"));
        }
        let services = fields.parsed(Field::Services, Services::parse)?;
        let types = fields.parsed(Field::ResourceTypes, ResourceTypes::parse)?;
        Ok(Self {
            services: services.ok_or_else(|| malformed("ss is missing"))?,
            resource_types: types.ok_or_else(|| malformed("srt is missing"))?,
        })
    }
}

/// Appends the string to sign. Every line ends with a newline, the last one too.
pub(super) fn push_string_to_sign(
    out: &mut String,
    fields: &SasFields<'_>,
    account: &str,
    version: SasVersion,
) {
    out.push_str(account);
    let signed = [
        Field::Permissions,
        Field::Services,
        Field::ResourceTypes,
        Field::Start,
        Field::Expiry,
        Field::IpRange,
        Field::Protocols,
        Field::Version,
    ];
    fields.push_lines(out, signed);
    if version >= SasVersion::ENCRYPTION_SCOPE {
        fields.push_lines(out, [Field::EncryptionScope]);
    }
    out.push('\n');
}

pub(super) fn allows(types: ResourceTypes, granted: Permissions, access: Access<'_>) -> Result<()> {
    let (type_granted, need) = match access {
        Access::GetServiceProperties | Access::GetServiceStats => {
            (types.service, Need::all(Permissions::READ))
        }
        Access::SetServiceProperties => (types.service, Need::all(Permissions::WRITE)),
        Access::QueryTables => (types.container, Need::all(Permissions::LIST)),
        Access::CreateTable => (types.container, Need::CREATE_OR_WRITE),
        Access::DeleteTable => (types.container, Need::all(Permissions::DELETE)),
        Access::TableAcl => return Err(ErrorCode::AuthorizationFailure.into()),
        Access::Entity { operation, .. } => (types.object, Need::all(operation.permissions())),
        Access::Queue(queue) => queue.account_need(types)?,
        Access::Blob(blob) => blob.account_need(types)?,
    };
    if !type_granted {
        return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
    }
    check_permissions(granted, need)
}
