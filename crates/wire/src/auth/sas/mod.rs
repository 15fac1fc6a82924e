//! Shared access signatures: tokens in the query string that carry their own permissions.
//!
//! The way of a token is one of types, so that no step can be left out: query pairs ->
//! [`SasToken::parse`] -> [`SasToken::verify`] (signature) -> [`VerifiedSas::grant`] (stored
//! policy, time, address, protocol, service) -> [`Grant`], which the server asks before each
//! operation. [`AccountSasSpec`] and [`TableSasSpec`] make tokens. User-delegation signatures are
//! refused: tables of this service have no Entra keys to delegate.

mod decision;
mod fields;
mod ranges;
mod spec;
mod token;
mod values;

pub use decision::{Access, EntityOperation, Grant};
pub use ranges::{KeyBound, KeyRangeLimit};
pub use spec::{AccountSasSpec, TableSasSpec};
pub use token::{RequestOrigin, START_SKEW_TICKS, SasToken, VerifiedSas};
pub use values::{IpRange, Permissions, Protocols, ResourceTypes, SasVersion};

use std::borrow::Cow;

use crate::error::{ErrorCode, StorageError};

/// The refusal of a token as such; the reason goes to the log, for the client learns nothing from
/// it.
fn refused(reason: impl Into<Cow<'static, str>>) -> StorageError {
    StorageError::new(ErrorCode::AuthenticationFailed).caused_by(reason.into())
}
