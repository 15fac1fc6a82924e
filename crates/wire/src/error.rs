//! The error that carries a code to the client, and what went wrong to the log.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;

/// The element that says why somebody is not authenticated.
pub(crate) const AUTHENTICATION_ERROR_DETAIL: &str = "AuthenticationErrorDetail";

/// What went wrong with a request: the code and detail for the caller, the source for the log.
#[derive(Debug)]
pub struct StorageError {
    code: ErrorCode,
    /// Replaces the code's own text.
    detail: Option<Cow<'static, str>>,
    /// Replaces the code's own status, for the few codes that travel with two.
    status: Option<u16>,
    /// Logged where the error is handled. Sent only if it is `told`.
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// Whether the source gives nothing away to a stranger, and helps who made a mistake.
    told: bool,
    /// Where the code alone does not say it.
    refusal: Option<RefusalReason>,
    /// What the error documents of queues and blobs say beside code and message, in their order.
    elements: Vec<(&'static str, Cow<'static, str>)>,
}

impl StorageError {
    pub fn new(code: ErrorCode) -> Self {
        Self {
            code,
            detail: None,
            status: None,
            source: None,
            told: false,
            refusal: None,
            elements: Vec::new(),
        }
    }

    /// An error whose text differs from the usual one of its code.
    pub fn with_detail(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { detail: Some(detail.into()), ..Self::new(code) }
    }

    /// 400 `InvalidInput` with the text that OData processing errors carry.
    pub fn processing() -> Self {
        Self::with_detail(
            ErrorCode::InvalidInput,
            "An error occurred while processing this request.",
        )
    }

    #[must_use]
    pub fn status_override(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// With a cause that is also told to the caller, below the text.
    #[must_use]
    pub fn explained_by(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { told: true, ..self.caused_by(source) }
    }

    /// With the reason why the caller is refused, where the code stands for several.
    #[must_use]
    pub fn refused_for(mut self, reason: RefusalReason) -> Self {
        self.refusal = Some(reason);
        self
    }

    /// Adds an element to the error document of queues and blobs.
    #[must_use]
    pub fn element(mut self, name: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        self.elements.push((name, text.into()));
        self
    }

    /// Adds why somebody is not authenticated, in the words of the live service. Queues and blobs tell it; tables tell
    /// nothing of the kind.
    #[must_use]
    pub fn authentication_detail(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.element(AUTHENTICATION_ERROR_DETAIL, text)
    }

    /// What was added with [`StorageError::element`].
    pub fn elements(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.elements.iter().map(|(name, text)| (*name, &**text))
    }

    /// With the elements of another error.
    #[must_use]
    pub fn with_elements_of(mut self, other: &Self) -> Self {
        self.elements.clone_from(&other.elements);
        self
    }

    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Why the caller was refused; `None` if it was not the caller that was wrong.
    pub fn refusal(&self) -> Option<RefusalReason> {
        self.refusal.or_else(|| RefusalReason::of_code(self.code))
    }

    /// What the caller may know of the cause.
    pub fn explanation(&self) -> Option<String> {
        self.source.as_ref().filter(|_| self.told).map(ToString::to_string)
    }

    /// The text for the caller with what it may know of the cause, on a line of its own.
    pub fn explained_message(&self) -> Cow<'_, str> {
        match self.explanation() {
            None => Cow::Borrowed(self.message()),
            Some(explanation) => Cow::Owned(format!("{}\n{explanation}", self.message())),
        }
    }

    pub fn status(&self) -> u16 {
        self.status.unwrap_or(self.code.status())
    }

    /// Whether the service does not know who asks, as opposed to what they may do.
    pub fn is_authentication_failure(&self) -> bool {
        matches!(
            self.code,
            ErrorCode::NoAuthenticationInformation
                | ErrorCode::InvalidAuthenticationInfo
                | ErrorCode::AuthenticationFailed
        )
    }

    /// The text for the caller, without request id and time.
    pub fn message(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.code.message())
    }
}

impl From<ErrorCode> for StorageError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message())
    }
}

impl StdError for StorageError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

pub type Result<T, E = StorageError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_explains_is_told() {
        let error = || StorageError::new(ErrorCode::AuthenticationFailed);
        assert_eq!(error().caused_by("a secret").explained_message(), error().message());
        let told = error().explained_by("too late").refused_for(RefusalReason::Expired);
        assert_eq!(told.explained_message(), format!("{}\ntoo late", error().message()));
        assert_eq!(told.refusal(), Some(RefusalReason::Expired));
        assert_eq!(error().refusal(), Some(RefusalReason::WrongKey));
        assert_eq!(StorageError::new(ErrorCode::TableNotFound).refusal(), None);
    }

    #[test]
    fn a_detail_replaces_the_text_and_keeps_the_code() {
        let error = StorageError::with_detail(
            ErrorCode::InvalidInput,
            "Syntax error at position 7 in 'aaa bbb ccc'.",
        );
        assert_eq!(error.status(), 400);
        assert_eq!(error.message(), "Syntax error at position 7 in 'aaa bbb ccc'.");
        assert_eq!(
            StorageError::new(ErrorCode::InvalidInput).message(),
            "One of the request inputs is not valid."
        );
    }
}
