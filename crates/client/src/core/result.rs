//! What every call answers with, and the errors that need nothing but a message.

use azure_core::error::ErrorKind;

/// The result of every call.
///
/// ```
/// use tavola_client::{ConnectionString, Result};
///
/// fn host(text: &str) -> Result<Option<String>> {
///     Ok(ConnectionString::for_tables(text)?.endpoint.host_str().map(str::to_owned))
/// }
/// # assert_eq!(host("UseDevelopmentStorage=true").unwrap().as_deref(), Some("127.0.0.1"));
/// ```
pub type Result<T, E = azure_core::Error> = std::result::Result<T, E>;

/// An error of the caller or of the data: what was given or received cannot be what it should be.
pub(crate) fn conversion(message: impl Into<String>) -> azure_core::Error {
    azure_core::Error::with_message(ErrorKind::DataConversion, message.into())
}

/// An error of use, which no request was made for.
pub(crate) fn refused(message: impl Into<String>) -> azure_core::Error {
    azure_core::Error::with_message(ErrorKind::Other, message.into())
}
