//! What went wrong: the service's answer inside an [`azure_core::Error`], and questions to ask of it.
//!
//! Every call returns [`azure_core::Result`], as the clients of the official SDK do. [`ErrorExt`] adds what a client of
//! storage needs to know: the service's code, the operation of a batch that failed, whether trying again can help, and
//! whether a write that failed may have happened all the same.

use std::error::Error as StdError;
use std::fmt;

use azure_core::error::ErrorKind;
use azure_core::http::StatusCode;
use tavola_wire::ErrorCode;

use super::response::Answer;
pub use super::result::Result;
pub(crate) use super::result::{conversion, refused};
use super::service::ServiceSpec;
use super::transport_error::{Failure, TransportError};

/// Bytes shown of a body that is no error of the service: a proxy's page, mostly.
const FOREIGN_BODY_SHOWN: usize = 200;

/// What the service answered instead of success.
///
/// ```
/// use tavola_client::{ErrorExt, ServiceError};
///
/// /// A line for a log, with what the service's support asks for.
/// fn line(error: &azure_core::Error) -> String {
///     let Some(answer) = error.service_error() else { return format!("no answer: {error}") };
///     let (status, code, message) = (answer.status(), answer.code(), answer.message());
///     format!("{status} {code}: {message}{}", place(answer))
/// }
///
/// fn place(answer: &ServiceError) -> String {
///     format!(
///         " (operation {:?}, request {:?}, ours {:?})",
///         answer.failed_operation(),
///         answer.request_id(),
///         answer.client_request_id()
///     )
/// }
/// # let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "gone");
/// # assert_eq!(line(&error), "no answer: gone");
/// ```
#[derive(Clone, Debug)]
pub struct ServiceError {
    status: StatusCode,
    code: String,
    message: String,
    failed_operation: Option<usize>,
    request_id: Option<String>,
    client_request_id: Option<String>,
    maybe_applied: bool,
}

impl ServiceError {
    /// The HTTP status, of the failed operation in case of a batch.
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

    /// The place of the operation that failed a batch, such as a transaction, counted from zero.
    pub fn failed_operation(&self) -> Option<usize> {
        self.failed_operation
    }

    /// The service's name for the request, for its log and its support.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The client's name for the request.
    pub fn client_request_id(&self) -> Option<&str> {
        self.client_request_id.as_deref()
    }

    /// Reads an answer that is no success.
    pub(crate) fn from_answer(service: &ServiceSpec, answer: &Answer) -> Self {
        let mut error = Self::from_part(service, answer, answer.raw.status(), answer.body());
        if error.code.is_empty() {
            error.code = answer.header("x-ms-error-code").unwrap_or_default().to_owned();
        }
        error
    }

    /// Reads a part of an answer, such as that to one operation of a batch.
    pub(crate) fn from_part(
        service: &ServiceSpec,
        answer: &Answer,
        status: StatusCode,
        body: &[u8],
    ) -> Self {
        let (code, message) = (service.read_error)(body).unwrap_or_else(|| {
            let start = &body[..body.len().min(FOREIGN_BODY_SHOWN)];
            (String::new(), String::from_utf8_lossy(start).into_owned())
        });
        let message = message.split("\nRequestId:").next().unwrap_or_default().to_owned();
        Self {
            status,
            code,
            message,
            failed_operation: None,
            request_id: answer.info.request_id().map(str::to_owned),
            client_request_id: answer.info.client_request_id().map(str::to_owned),
            maybe_applied: answer.maybe_applied,
        }
    }

    /// The same error as that of one operation, with what the service said about it.
    pub(crate) fn of_operation(mut self, index: Option<usize>, message: String) -> Self {
        (self.failed_operation, self.message) = (index, message);
        self
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", u16::from(self.status), self.code, self.message)?;
        if let Some(index) = self.failed_operation {
            write!(f, " operation={index}")?;
        }
        Ok(())
    }
}

impl StdError for ServiceError {}

impl From<ServiceError> for azure_core::Error {
    fn from(error: ServiceError) -> Self {
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
    /// Gives an error of the pipeline its first cause as its message, and what is known of its attempts.
    pub(crate) fn wrap(source: azure_core::Error, maybe_applied: bool) -> azure_core::Error {
        let (kind, message) = match find::<TransportError>(&source) {
            Some(cause) if cause.is_connect() => (ErrorKind::Connection, cause.to_string()),
            Some(cause) => (ErrorKind::Io, cause.to_string()),
            None => (source.kind().clone(), innermost(&source)),
        };
        azure_core::Error::with_error(kind, Self { maybe_applied, source }, message)
    }
}

/// The message of the first error, which the retry policy hides behind its own.
fn innermost(error: &azure_core::Error) -> String {
    let mut innermost = error;
    while let Some(inner) = innermost.downcast_ref::<azure_core::Error>() {
        innermost = inner;
    }
    innermost.to_string()
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
///         "read it: this or an earlier attempt may have changed it"
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
///     } else if let (Some(index), Some(answer)) = (error.failed_operation(), error.service_error()) {
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
    fn service_error(&self) -> Option<&ServiceError>;

    /// Tells whether a write that failed may have happened all the same: an attempt was sent and its answer was lost
    /// or said nothing. A repeated insert then finds what it inserted itself (409), a repeated conditional update its own
    /// new ETag (412), a repeated delete nothing (404). Read to know.
    fn may_have_been_applied(&self) -> bool;

    /// Tells whether the same request can succeed later: no connection, a timeout, a busy or failing server. The
    /// client has tried several times already when it returns such an error. A certificate that is not trusted is none of
    /// these.
    fn is_transient(&self) -> bool;

    /// The service's code, if it is one of those that the protocol knows.
    fn code(&self) -> Option<ErrorCode> {
        let code = self.service_error()?.code();
        ErrorCode::ALL.iter().copied().find(|known| known.as_str() == code)
    }

    /// The place of the operation that failed a batch, such as a transaction, counted from zero.
    fn failed_operation(&self) -> Option<usize> {
        self.service_error()?.failed_operation()
    }

    /// There is no such thing.
    fn is_not_found(&self) -> bool {
        self.service_error().is_some_and(|error| error.status() == StatusCode::NotFound)
    }

    /// It was changed since its ETag was read.
    fn is_precondition_failed(&self) -> bool {
        self.service_error().is_some_and(|error| error.status() == StatusCode::PreconditionFailed)
    }

    /// There is one of this name already: the code ends in `AlreadyExists`.
    fn is_already_there(&self) -> bool {
        self.service_error().is_some_and(|error| error.code().ends_with("AlreadyExists"))
    }
}

impl ErrorExt for azure_core::Error {
    fn service_error(&self) -> Option<&ServiceError> {
        find(self)
    }

    fn may_have_been_applied(&self) -> bool {
        self.service_error().is_some_and(|error| error.maybe_applied)
            || find::<Interrupted>(self).is_some_and(|interrupted| interrupted.maybe_applied)
    }

    fn is_transient(&self) -> bool {
        if find::<TransportError>(self).is_some_and(|error| error.failure() == Failure::NoTrust) {
            return false;
        }
        match self.kind() {
            ErrorKind::Io | ErrorKind::Connection => true,
            ErrorKind::HttpResponse { status, .. } => is_transient_status(*status),
            _ => false,
        }
    }
}

/// Whether work that goes on for long tries again after such an error. A service of tokens that does not answer looks like one
/// that refuses, and is away for a while more often than it changes its mind.
pub(crate) fn may_pass(error: &azure_core::Error) -> bool {
    let has_no_token = matches!(error.kind(), ErrorKind::Credential);
    error.is_transient() || has_no_token && error.service_error().is_none()
}

/// The statuses that are retried, by the pipeline and in our own classification alike.
pub(crate) fn is_transient_status(status: StatusCode) -> bool {
    matches!(u16::from(status), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Looks for a kind of error along the chain of causes.
pub(crate) fn find<T: StdError + 'static>(error: &azure_core::Error) -> Option<&T> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use azure_core::http::RawResponse;
    use azure_core::http::headers::Headers;

    use super::*;
    use crate::table::TABLE_SERVICE;

    const BODY: &str = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"The specified entity already exists.\nRequestId:1\nTime:2"}}}"#;

    fn error(status: StatusCode, body: &'static str, maybe_applied: bool) -> ServiceError {
        let mut headers = Headers::new();
        headers.insert("x-ms-request-id", "fc61");
        let raw = RawResponse::from_bytes(status, headers, body);
        let answer = Answer::new(raw, Some("ours".to_owned()), maybe_applied);
        ServiceError::from_answer(&TABLE_SERVICE, &answer)
    }

    #[test]
    fn xml_and_foreign_bodies_are_read_too() {
        let xml = r#"<?xml version="1.0"?><m:error xmlns:m="x"><m:code>AuthenticationFailed</m:code><m:message>No.</m:message></m:error>"#;
        let denied = error(StatusCode::Forbidden, xml, false);
        assert_eq!((denied.code(), denied.message()), ("AuthenticationFailed", "No."));
        assert_eq!((denied.request_id(), denied.client_request_id()), (Some("fc61"), Some("ours")));
        let foreign = error(StatusCode::BadGateway, "<html>", false);
        assert_eq!((foreign.code(), foreign.message()), ("", "<html>"));
        assert!(azure_core::Error::from(foreign).is_transient());
    }

    #[test]
    fn the_answer_is_found_under_added_context() {
        let error = azure_core::Error::from(error(StatusCode::Conflict, BODY, true));
        let error = error.with_context("while importing");
        assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
        assert!(error.is_already_there() && error.may_have_been_applied());
        assert_eq!(
            error.service_error().unwrap().message(),
            "The specified entity already exists."
        );
    }
}
