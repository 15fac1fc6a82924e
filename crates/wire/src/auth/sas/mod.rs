//! Shared access signatures: tokens in the query string that carry their own permissions.
//!
//! The way of a token is one of types, so that no step can be left out: query pairs ->
//! [`SasToken::parse`] -> [`SasToken::verify`] (signature) -> [`VerifiedSas::grant`] (stored
//! policy, time, address, protocol, service) -> [`Grant`], which the server asks before each
//! operation. An account token is the same for every service; what the token of one service signs and
//! opens stands in the file of its service. [`AccountSasSpec`], [`TableSasSpec`] and [`QueueSasSpec`] make tokens.
//! User-delegation signatures are refused: there are no Entra keys to delegate.

mod access;
mod account;
mod blob;
mod fields;
mod grant;
mod need;
mod queue;
mod ranges;
mod spec;
mod table;
mod token;
mod user_delegation;
mod values;

pub use access::{Access, BlobAccess, BlobOperation, EntityOperation, QueueAccess};
pub use blob::{BlobAddress, BlobSasResource, ResponseHeaders};
pub use grant::Grant;
pub use ranges::{KeyBound, KeyRangeLimit};
pub use spec::{AccountSasSpec, QueueSasSpec, TableSasSpec};
pub use token::{Addressed, RequestOrigin, START_SKEW_TICKS, SasToken, VerifiedSas};
pub use values::{IpRange, Permissions, Protocols, ResourceTypes, SasVersion, Services};

use std::borrow::Cow;

use crate::error::StorageError;
use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;

/// The refusal of a token that cannot be read. What is wrong with it is told: it is what the client sent.
pub(super) fn malformed(text: impl Into<Cow<'static, str>>) -> StorageError {
    refused(RefusalReason::MalformedCredentials, text)
}

/// The refusal of a token that can be read. The text says nothing that its holder does not know.
pub(super) fn refused(reason: RefusalReason, text: impl Into<Cow<'static, str>>) -> StorageError {
    StorageError::new(ErrorCode::AuthenticationFailed).explained_by(text.into()).refused_for(reason)
}
