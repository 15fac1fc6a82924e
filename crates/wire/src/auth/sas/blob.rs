//! Tokens of a container, a blob, a snapshot or a version of one: of what the request addresses, read as `sr` says.

use super::access::{Access, BlobAccess, BlobOperation};
use super::fields::{Field, SasFields};
use super::need::{Need, check_permissions};
use super::values::{Permissions, ResourceTypes, SasVersion};
use super::{malformed, refused};
use crate::error::Result;
use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;
use crate::service::Service;

/// What a request to the blob service addresses, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobAddress<'a> {
    /// Empty at the root of the service.
    pub container: &'a str,
    pub blob: Option<&'a str>,
    /// The parameter `snapshot`.
    pub snapshot: Option<&'a str>,
    /// The parameter `versionid`.
    pub version_id: Option<&'a str>,
}

/// What a token of the blob service opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobSasResource {
    /// A container and every blob in it.
    Container,
    Blob,
    Snapshot,
    Version,
}

/// What a token sets in the answers to reads, in place of what the blob has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeaders {
    pub cache_control: Option<String>,
    pub content_disposition: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_type: Option<String>,
}

/// What only a blob token says.
#[derive(Clone, Debug)]
pub(super) struct BlobSas {
    pub resource: BlobSasResource,
    /// The part of the signed resource behind the account.
    path: String,
    /// The snapshot or version that is signed.
    time: String,
}

impl BlobSas {
    pub(super) fn parse(
        fields: &SasFields<'_>,
        address: BlobAddress<'_>,
        version: SasVersion,
    ) -> Result<Self> {
        // Directories need a hierarchical namespace, and other letters are not known.
        let resource = match fields.text(Field::Resource) {
            "c" => BlobSasResource::Container,
            "b" => BlobSasResource::Blob,
            "bs" if version >= SasVersion::SNAPSHOT => BlobSasResource::Snapshot,
            "bv" if version >= SasVersion::BLOB_VERSION => BlobSasResource::Version,
            _ => return Err(malformed("sr is missing, newer than sv or not known")),
        };
        let time = match resource {
            BlobSasResource::Container | BlobSasResource::Blob => Some(""),
            BlobSasResource::Snapshot => address.snapshot,
            BlobSasResource::Version => address.version_id,
        };
        let time = time.ok_or_else(|| {
            refused(RefusalReason::OtherResource, "the token is for one snapshot or version")
        })?;
        let path = match (resource, address.blob) {
            (BlobSasResource::Container, _) => address.container.to_owned(),
            (_, Some(blob)) => [address.container, "/", blob].concat(),
            (_, None) => {
                return Err(refused(RefusalReason::OtherResource, "the token is for a blob"));
            }
        };
        // Blob names may have a newline; such a name could pass for other lines.
        if path.contains('\n') || time.contains('\n') {
            return Err(malformed(
                "the address has a newline, which would blur the string to sign",
            ));
        }
        Ok(Self { resource, path, time: time.to_owned() })
    }

    /// Appends the string to sign. The last line has no newline.
    pub(super) fn push_string_to_sign(
        &self,
        out: &mut String,
        fields: &SasFields<'_>,
        account: &str,
        version: SasVersion,
    ) {
        version.push_service_start(out, fields, Service::Blob, account);
        out.push_str(&self.path);
        version.push_service_end(out, fields);
        if version >= SasVersion::SNAPSHOT {
            fields.push_lines(out, [Field::Resource]);
            out.push('\n');
            out.push_str(&self.time);
        }
        if version >= SasVersion::ENCRYPTION_SCOPE {
            fields.push_lines(out, [Field::EncryptionScope]);
        }
        if version >= SasVersion::RESPONSE_HEADERS {
            let headers = [
                Field::CacheControl,
                Field::ContentDisposition,
                Field::ContentEncoding,
                Field::ContentLanguage,
                Field::ContentType,
            ];
            fields.push_lines(out, headers);
        }
    }
}

impl ResponseHeaders {
    /// What a verified token says; nothing where its version does not sign it.
    pub(super) fn of(fields: &SasFields<'_>, version: SasVersion) -> Self {
        if version < SasVersion::RESPONSE_HEADERS {
            return Self::default();
        }
        let value = |field| fields.present(field).map(str::to_owned);
        Self {
            cache_control: value(Field::CacheControl),
            content_disposition: value(Field::ContentDisposition),
            content_encoding: value(Field::ContentEncoding),
            content_language: value(Field::ContentLanguage),
            content_type: value(Field::ContentType),
        }
    }
}

/// The encryption scope that writes with the token must use, where its version signs one.
pub(super) fn encryption_scope(fields: &SasFields<'_>, version: SasVersion) -> Option<String> {
    let scope = fields.present(Field::EncryptionScope);
    scope.filter(|_| version >= SasVersion::ENCRYPTION_SCOPE).map(str::to_owned)
}

impl BlobAccess {
    /// Whether an account token is for such resources, and which letters it needs.
    ///
    /// # Errors
    /// 403 `AuthorizationFailure` for what only the owner may do.
    pub(super) fn account_need(self, types: ResourceTypes) -> Result<(bool, Need)> {
        Ok(match self {
            Self::ListContainers => (types.service, Need::all(Permissions::LIST)),
            Self::AccountInformation => (true, Need::all(Permissions::NONE)),
            Self::CreateContainer => (types.container, Need::CREATE_OR_WRITE),
            Self::GetContainer => (types.container, Need::all(Permissions::READ)),
            Self::WriteContainer => (types.container, Need::all(Permissions::WRITE)),
            Self::BreakContainerLease => (types.container, Need::WRITE_OR_DELETE),
            Self::DeleteContainer => (types.container, Need::all(Permissions::DELETE)),
            Self::ContainerAcl => return Err(ErrorCode::AuthorizationFailure.into()),
            Self::ListBlobs => (types.container, Need::all(Permissions::LIST)),
            Self::FindBlobs => (types.object, Need::all(Permissions::FIND)),
            Self::FindBlobsInContainer => (types.container, Need::all(Permissions::FIND)),
            Self::Blob(operation) => (types.object, operation.need()),
        })
    }

    /// What a token of this resource needs; `None` for what no such token can do.
    fn service_need(self, resource: BlobSasResource) -> Option<Need> {
        let is_container = resource == BlobSasResource::Container;
        match self {
            Self::AccountInformation => Some(Need::all(Permissions::NONE)),
            Self::ListBlobs if is_container => Some(Need::all(Permissions::LIST)),
            Self::FindBlobsInContainer if is_container => Some(Need::all(Permissions::FIND)),
            Self::Blob(operation) => Some(operation.need()),
            _ => None,
        }
    }
}

impl BlobOperation {
    fn need(self) -> Need {
        match self {
            Self::Read => Need::all(Permissions::READ),
            Self::Create => Need::CREATE_OR_WRITE,
            Self::Write => Need::all(Permissions::WRITE),
            Self::Append => Need::either(Permissions::ADD, Permissions::WRITE),
            Self::BreakLease => Need::WRITE_OR_DELETE,
            Self::Delete => Need::all(Permissions::DELETE),
            Self::DeleteVersion => Need::all(Permissions::DELETE_VERSION),
            Self::DeletePermanently => Need::all(Permissions::DELETE_PERMANENTLY),
            Self::Tags => Need::all(Permissions::TAGS),
            Self::Immutability => Need::all(Permissions::IMMUTABILITY),
        }
    }
}

pub(super) fn allows(
    resource: BlobSasResource,
    granted: Permissions,
    access: Access<'_>,
) -> Result<()> {
    let need = match access {
        Access::Blob(access) => access.service_need(resource),
        _ => None,
    };
    check_permissions(granted, need.ok_or(ErrorCode::AuthorizationFailure)?)
}

#[cfg(test)]
#[path = "blob_tests.rs"]
mod tests;
