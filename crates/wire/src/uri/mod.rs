//! Request URLs: from the bytes on the request line to an account, a path and its options.
//!
//! The order is fixed: [`address`] finds the account and leaves the resource path raw, the service
//! decodes and parses that path once, [`query`] does the same for the query string. Signatures are
//! computed over raw bytes, so nothing here changes or re-encodes what the client sent.

pub mod address;
pub mod percent;
pub mod query;

pub use address::{Address, AddressRules};
pub use query::QueryString;

use crate::error::StorageError;
use crate::error_code::ErrorCode;

/// The answer to a path or query string that cannot be read.
pub(crate) fn syntax_error() -> StorageError {
    StorageError::with_detail(ErrorCode::InvalidInput, "Bad Request - Error in query syntax.")
}
