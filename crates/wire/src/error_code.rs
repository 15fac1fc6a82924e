//! The error codes of the services, each with its status and text.

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
}
