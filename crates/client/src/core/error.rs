//! What went wrong: the service's answer inside an [`azure_core::Error`], and questions to ask of it.
//!
//! Every call returns [`azure_core::Result`], as the clients of the official SDK do. [`ErrorExt`] adds what a table
//! client needs to know: the service's code, the operation of a transaction that failed, whether trying again can
//! help, and whether a write that failed may have happened all the same.

use std::error::Error as StdError;
use std::fmt;

use azure_core::error::ErrorKind;
use azure_core::http::{RawResponse, StatusCode};
use serde::Deserialize;
use tavola_wire::ErrorCode;
use tavola_wire::xml;

/// The result of every call.
///
/// ```
/// use tavola_client::{ConnectionString, Result};
///
/// fn host(text: &str) -> Result<Option<String>> {
///     Ok(ConnectionString::parse(text)?.endpoint.host_str().map(str::to_owned))
/// }
/// # assert_eq!(host("UseDevelopmentStorage=true").unwrap().as_deref(), Some("127.0.0.1"));
/// ```
pub type Result<T, E = azure_core::Error> = std::result::Result<T, E>;

/// What the service answered instead of success.
///
/// ```
/// use tavola_client::{ErrorExt, TableError};
///
/// /// A line for a log, with what the service's support asks for.
/// fn line(error: &azure_core::Error) -> String {
///     let Some(answer) = error.table_error() else { return format!("no answer: {error}") };
///     let (status, code, message) = (answer.status(), answer.code(), answer.message());
///     format!("{status} {code}: {message}{}", place(answer))
/// }
///
/// fn place(answer: &TableError) -> String {
///     format!(" (operation {:?}, request {:?})", answer.failed_operation(), answer.request_id())
/// }
/// # let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "gone");
/// # assert_eq!(line(&error), "no answer: gone");
/// ```
#[derive(Clone, Debug)]
pub struct TableError {
    status: StatusCode,
    code: String,
    message: String,
    failed_operation: Option<usize>,
    request_id: Option<String>,
    maybe_applied: bool,
}

impl TableError {
    /// The HTTP status, of the failed operation in case of a transaction.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The service's code as it was sent, such as `EntityAlreadyExists`.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The service's words, without the request id that it appends.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The place of the operation that failed a transaction, counted from zero.
    pub fn failed_operation(&self) -> Option<usize> {
        self.failed_operation
    }

    /// The service's name for the request, for its log and its support.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    pub(crate) fn from_response(response: &RawResponse, maybe_applied: bool) -> Self {
        let header = |name: &'static str| {
            response.headers().get_optional_str(&name.into()).map(str::to_owned)
        };
        let mut error = Self::from_body(response.status(), response.body());
        if error.code.is_empty() {
            error.code = header("x-ms-error-code").unwrap_or_default();
        }
        error.request_id = header("x-ms-request-id");
        error.maybe_applied = maybe_applied;
        error
    }

    /// Reads the body of a failed part of a transaction of so many operations.
    pub(crate) fn from_part(
        status: u16,
        body: &[u8],
        operations: usize,
        outer: &RawResponse,
        maybe_applied: bool,
    ) -> Self {
        let mut error = Self::from_body(status.into(), body);
        let prefix = error.message.split_once(':');
        let index = prefix.and_then(|(index, rest)| Some((index.parse().ok()?, rest.to_owned())));
        match index {
            Some((index, rest)) => {
                error.failed_operation = Some(index).filter(|index| *index < operations);
                error.message = rest;
            }
            // The service leaves the index out when there is one operation only.
            None => error.failed_operation = (operations == 1).then_some(0),
        }
        let request_id = outer.headers().get_optional_str(&"x-ms-request-id".into());
        error.request_id = request_id.map(str::to_owned);
        error.maybe_applied = maybe_applied;
        error
    }

    fn from_body(status: StatusCode, body: &[u8]) -> Self {
        let (code, message) =
            parse_json(body).or_else(|| xml::error::parse(body)).unwrap_or_else(|| {
                (String::new(), String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned())
            });
        let message = message.split("\nRequestId:").next().unwrap_or_default().to_owned();
        Self {
            status,
            code,
            message,
            failed_operation: None,
            request_id: None,
            maybe_applied: false,
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", u16::from(self.status), self.code, self.message)?;
        if let Some(index) = self.failed_operation {
            write!(f, " operation={index}")?;
        }
        Ok(())
    }
}

impl StdError for TableError {}

impl From<TableError> for azure_core::Error {
    fn from(error: TableError) -> Self {
        let kind = ErrorKind::HttpResponse {
            status: error.status,
            error_code: Some(error.code.clone()),
            raw_response: None,
        };
        let message = error.to_string();
        Self::with_error(kind, error, message)
    }
}

/// A request that got no answer, after an attempt that may have reached the service.
#[derive(Debug)]
pub(crate) struct Interrupted {
    maybe_applied: bool,
    source: azure_core::Error,
}

impl Interrupted {
    pub(crate) fn wrap(source: azure_core::Error, maybe_applied: bool) -> azure_core::Error {
        let (kind, message) = (source.kind().clone(), source.to_string());
        azure_core::Error::with_error(kind, Self { maybe_applied, source }, message)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request got no answer")
    }
}

impl StdError for Interrupted {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.source)
    }
}

/// Questions to an error of this client.
///
/// ```
/// use tavola_client::{ErrorCode, ErrorExt};
///
/// /// What to do about an error of a write.
/// fn advice(error: &azure_core::Error) -> &'static str {
///     if error.may_have_been_applied() {
///         "read the entity: this or an earlier attempt may have changed it"
///     } else if error.is_transient() {
///         "try again later"
///     } else if error.is_precondition_failed() {
///         "somebody was faster: read, and decide again"
///     } else if error.is_already_there() {
///         "choose another key"
///     } else if error.is_not_found() {
///         "make it first"
///     } else if error.code() == Some(ErrorCode::AuthenticationFailed) {
///         "look at the credential"
///     } else if let (Some(index), Some(answer)) = (error.failed_operation(), error.table_error()) {
///         println!("operation {index} of the transaction: {answer}");
///         "leave this operation out"
///     } else {
///         "read the message"
///     }
/// }
/// # let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "gone");
/// # assert_eq!(advice(&error), "try again later");
/// ```
pub trait ErrorExt {
    /// The service's answer, if the service answered.
    fn table_error(&self) -> Option<&TableError>;

    /// Tells whether a write that failed may have happened all the same: an attempt was sent and its answer was lost
    /// or said nothing. A repeated insert then finds its own entity (409), a repeated conditional update its own new
    /// ETag (412), a repeated delete nothing (404). Read the entity to know.
    fn may_have_been_applied(&self) -> bool;

    /// Tells whether the same request can succeed later: no connection, a timeout, a busy or failing server. The
    /// client has tried several times already when it returns such an error.
    fn is_transient(&self) -> bool;

    /// The service's code, if it is one of those that the protocol knows.
    fn code(&self) -> Option<ErrorCode> {
        let code = self.table_error()?.code();
        ErrorCode::ALL.iter().copied().find(|known| known.as_str() == code)
    }

    /// The place of the operation that failed a transaction, counted from zero.
    fn failed_operation(&self) -> Option<usize> {
        self.table_error()?.failed_operation()
    }

    /// There is no such entity or table.
    fn is_not_found(&self) -> bool {
        self.table_error().is_some_and(|error| error.status() == StatusCode::NotFound)
    }

    /// The entity was changed since its ETag was read.
    fn is_precondition_failed(&self) -> bool {
        self.table_error().is_some_and(|error| error.status() == StatusCode::PreconditionFailed)
    }

    /// The entity or table exists already.
    fn is_already_there(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::EntityAlreadyExists | ErrorCode::TableAlreadyExists))
    }
}

impl ErrorExt for azure_core::Error {
    fn table_error(&self) -> Option<&TableError> {
        find(self)
    }

    fn may_have_been_applied(&self) -> bool {
        self.table_error().is_some_and(|error| error.maybe_applied)
            || find::<Interrupted>(self).is_some_and(|interrupted| interrupted.maybe_applied)
    }

    fn is_transient(&self) -> bool {
        match self.kind() {
            ErrorKind::Io | ErrorKind::Connection => true,
            ErrorKind::HttpResponse { status, .. } => is_transient_status(*status),
            _ => false,
        }
    }
}

/// The statuses that are retried, by the pipeline and in our own classification alike.
pub(crate) fn is_transient_status(status: StatusCode) -> bool {
    matches!(u16::from(status), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Looks for a kind of error along the chain of causes.
fn find<T: StdError + 'static>(error: &azure_core::Error) -> Option<&T> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// An error of the caller or of the data: what was given or received cannot be what it should be.
pub(crate) fn conversion(message: impl Into<String>) -> azure_core::Error {
    azure_core::Error::with_message(ErrorKind::DataConversion, message.into())
}

/// An error of use, which no request was made for.
pub(crate) fn refused(message: impl Into<String>) -> azure_core::Error {
    azure_core::Error::with_message(ErrorKind::Other, message.into())
}

fn parse_json(body: &[u8]) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(rename = "odata.error")]
        error: Detail,
    }
    #[derive(Deserialize)]
    struct Detail {
        code: String,
        message: Message,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Message {
        Localized { value: String },
        Plain(String),
    }
    let document: Document = serde_json::from_slice(body).ok()?;
    let message = match document.error.message {
        Message::Localized { value } | Message::Plain(value) => value,
    };
    Some((document.error.code, message))
}

#[cfg(test)]
mod tests {
    use azure_core::http::headers::Headers;

    use super::*;

    const BODY: &str = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"3:The specified entity already exists.\nRequestId:1\nTime:2"}}}"#;

    fn response(status: StatusCode, body: &'static str) -> RawResponse {
        let mut headers = Headers::new();
        headers.insert("x-ms-request-id", "fc61");
        RawResponse::from_bytes(status, headers, body)
    }

    #[test]
    fn the_answer_of_a_part_names_the_operation() {
        let outer = response(StatusCode::Accepted, "");
        let error: azure_core::Error =
            TableError::from_part(409, BODY.as_bytes(), 5, &outer, false).into();
        assert_eq!(error.failed_operation(), Some(3));
        assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
        assert_eq!(error.http_status(), Some(StatusCode::Conflict));
        let answer = error.table_error().unwrap();
        assert_eq!(answer.message(), "The specified entity already exists.");
        assert_eq!(answer.request_id(), Some("fc61"));
        assert!(!error.is_transient() && !error.may_have_been_applied());
    }

    #[test]
    fn an_index_that_cannot_be_is_not_believed() {
        let outer = response(StatusCode::Accepted, "");
        let error = TableError::from_part(409, BODY.as_bytes(), 2, &outer, false);
        assert_eq!(error.failed_operation(), None);
    }

    #[test]
    fn xml_and_foreign_bodies_are_read_too() {
        let xml = r#"<?xml version="1.0"?><m:error xmlns:m="x"><m:code>AuthenticationFailed</m:code><m:message>No.</m:message></m:error>"#;
        let error = TableError::from_response(&response(StatusCode::Forbidden, xml), false);
        assert_eq!((error.code(), error.message()), ("AuthenticationFailed", "No."));
        let error = TableError::from_response(&response(StatusCode::BadGateway, "<html>"), false);
        assert_eq!((error.code(), error.message()), ("", "<html>"));
        assert!(azure_core::Error::from(error).is_transient());
    }

    #[test]
    fn the_answer_is_found_under_added_context() {
        let error = TableError::from_response(&response(StatusCode::Conflict, BODY), true);
        let error = azure_core::Error::from(error).with_context("while importing");
        assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
        assert!(error.may_have_been_applied());
    }
}
