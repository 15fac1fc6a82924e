//! The service's error codes, each with its status and text, and the error that carries one to the client.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::refusal::RefusalReason;

/// The element that says why somebody is not authenticated.
pub(crate) const AUTHENTICATION_ERROR_DETAIL: &str = "AuthenticationErrorDetail";

/// Declares the closed set of codes: name on the wire, status, text.
macro_rules! error_codes {
    ($($code:ident $status:literal $message:literal)*) => {
        /// A code of the services, as clients match on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($code),* }

        impl ErrorCode {
            /// Every code, for tables and tests.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$code),*];

            /// The code as it is written on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$code => stringify!($code)),* }
            }

            /// The HTTP status that the code travels with.
            pub fn status(self) -> u16 {
                match self { $(Self::$code => $status),* }
            }

            /// The text that is sent when the error has no detail of its own.
            pub fn message(self) -> &'static str {
                match self { $(Self::$code => $message),* }
            }
        }
    };
}

error_codes! {
    // Tables and entities
    TableAlreadyExists 409 "The table specified already exists."
    TableBeingDeleted 409 "The specified table is being deleted. Try operation later."
    TableNotFound 404 "The table specified does not exist."
    ResourceNotFound 404 "The specified resource does not exist."
    EntityAlreadyExists 409 "The specified entity already exists."
    // Not Azure's: no client takes it for the existing row of `EntityAlreadyExists`.
    UniqueIndexViolation 409 "Another entity has the same values in a unique index."
    UpdateConditionNotSatisfied 412 "The update condition specified in the request was not satisfied."

    // Queues and messages
    QueueAlreadyExists 409 "The specified queue already exists."
    QueueBeingDeleted 409 "The specified queue is being deleted."
    QueueDisabled 409 "The specified queue has been disabled by the administrator."
    QueueNotEmpty 409 "The specified queue is not empty."
    QueueNotFound 404 "The specified queue does not exist."
    MessageNotFound 404 "The specified message does not exist."
    MessageTooLarge 400 "The message exceeds the maximum allowed size."
    PopReceiptMismatch 400 "The specified pop receipt did not match the pop receipt for a dequeued message."
    InvalidMarker 400 "The specified marker is invalid."

    // Metadata
    InvalidMetadata 400 "The specified metadata is invalid. It includes characters that are not permitted."
    EmptyMetadataKey 400 "The key for one of the metadata key-value pairs is empty."
    MetadataTooLarge 400 "The size of the specified metadata exceeds the maximum size permitted."

    // Payloads and limits
    PropertiesNeedValue 400 "The values are not specified for all properties in the entity."
    PropertyNameInvalid 400 "The property name is invalid."
    PropertyNameTooLong 400 "The property name exceeds the maximum allowed length (255)."
    PropertyValueTooLarge 400 "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    EntityTooLarge 400 "The entity is larger than the maximum allowed size (1MB)."
    TooManyProperties 400 "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
    DuplicatePropertiesSpecified 400 "A property is specified more than one time."
    InvalidValueType 400 "The value specified is invalid."
    InvalidInput 400 "One of the request inputs is not valid."
    // The misspelling is on the wire, and clients look for it.
    InvalidResourceName 400 "The specifed resource name contains invalid characters."
    OutOfRangeInput 400 "One of the request inputs is out of range."
    RequestBodyTooLarge 413 "The request body is too large and exceeds the maximum permissible limit."

    // Entity group transactions
    InvalidDuplicateRow 400 "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    CommandsInBatchActOnDifferentPartitions 400 "All commands in a batch must operate on same entity group."

    // XML bodies
    InvalidXmlDocument 400 "XML specified is not syntactically valid."
    InvalidXmlNodeValue 400 "The value provided for one of the XML nodes in the request body was not in the correct format."
    MissingRequiredXmlNode 400 "A required XML node was not specified in the request body."
    UnsupportedXmlNode 400 "One of the XML nodes specified in the request body is not supported."

    // Query string, headers, verbs, formats
    InvalidQueryParameterValue 400 "Value for one of the query parameters specified in the request URI is invalid."
    OutOfRangeQueryParameterValue 400 "One of the query parameters specified in the request URI is outside the permissible range."
    MissingRequiredQueryParameter 400 "A query parameter that's mandatory for this request is not specified."
    UnsupportedQueryParameter 400 "One of the query parameters specified in the request URI is not supported."
    InvalidHeaderValue 400 "The value for one of the HTTP headers is not in the correct format."
    MissingRequiredHeader 400 "An HTTP header that's mandatory for this request is not specified."
    UnsupportedHeader 400 "One of the HTTP headers specified in the request is not supported."
    InvalidUri 400 "The requested URI does not represent any resource on the server."
    RequestUrlFailedToParse 400 "The url in the request could not be parsed."
    HostInformationNotPresent 400 "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."
    XMethodNotUsingPost 400 "The request uses X-HTTP-Method with an HTTP verb other than POST."
    XMethodIncorrectValue 400 "The specified X-HTTP-Method is invalid."
    XMethodIncorrectCount 400 "More than one X-HTTP-Method is specified."
    MethodNotAllowed 405 "The requested method is not allowed on the specified resource."
    UnsupportedHttpVerb 405 "The resource doesn't support the specified HTTP verb."
    MissingContentLengthHeader 411 "The Content-Length header was not specified."
    JsonFormatNotSupported 415 "JSON format is not supported."
    AtomFormatNotSupported 415 "Atom format is not supported."
    JsonVerboseFormatNotSupported 415 "JSON verbose format is not supported."
    MediaTypeNotSupported 415 "None of the provided media types are supported"
    NotImplemented 501 "The requested operation is not implemented on the specified resource."

    // Authentication and authorization
    InvalidAuthenticationInfo 400 "Authentication information is not given in the correct format. Check the value of Authorization header."
    NoAuthenticationInformation 401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    AuthenticationFailed 403 "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    AuthorizationFailure 403 "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch 403 "This request is not authorized to perform this operation using this permission."
    AuthorizationResourceTypeMismatch 403 "This request is not authorized to perform this operation using this resource type."
    AuthorizationServiceMismatch 403 "This request is not authorized to perform this operation using this service."
    AuthorizationProtocolMismatch 403 "This request is not authorized to perform this operation using this protocol."
    AuthorizationSourceIPMismatch 403 "This request is not authorized to perform this operation using this source IP."
    InsufficientAccountPermissions 403 "Write operations are not allowed."
    AccountIsDisabled 403 "The specified account is disabled."
    CorsPreflightFailure 403 "CORS not enabled or no matching rule found for this request."

    // The server itself
    InternalError 500 "The server encountered an internal error. Please retry the request."
    OperationTimedOut 500 "The operation could not be completed within the permitted time."
    ServerBusy 503 "The server is currently unable to receive requests. Please retry your request."
}

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
    fn every_code_has_an_error_status_and_a_text() {
        for code in ErrorCode::ALL {
            assert!((400..600).contains(&code.status()), "{code:?}");
            assert!(!code.message().is_empty(), "{code:?}");
        }
    }

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
