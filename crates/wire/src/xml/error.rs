//! The body of an error where the client speaks XML: the OData error document, not the one of the
//! blob service.

use super::document::{DECLARATION, escape};

/// Writes the document. `time` has seven fraction digits; the request id is the one of
/// `x-ms-request-id`.
pub fn write(code: &str, message: &str, request_id: &str, time: &str) -> String {
    [
        DECLARATION,
        r#"<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><m:code>"#,
        &escape(code),
        r#"</m:code><m:message xml:lang="en-US">"#,
        &escape(message),
        "\nRequestId:",
        &escape(request_id),
        "\nTime:",
        &escape(time),
        "</m:message></m:error>",
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    /// The recorded body in the reference, section 11.1.
    #[test]
    fn a_recorded_error() {
        let code = ErrorCode::InvalidResourceName;
        let body = write(
            code.as_str(),
            code.message(),
            "3e6aaced-7002-008b-679a-33ec3f000000",
            "2022-03-09T09:45:05.2588570Z",
        );
        assert_eq!(
            body,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>InvalidResourceName</m:code><m:message xml:lang=\"en-US\">The specifed resource name contains invalid characters.\nRequestId:3e6aaced-7002-008b-679a-33ec3f000000\nTime:2022-03-09T09:45:05.2588570Z</m:message></m:error>"
        );
    }

    #[test]
    fn a_message_cannot_break_out() {
        let body = write("InvalidInput", "a</m:message>&<b>", "id", "t");
        assert!(body.contains("a&lt;/m:message&gt;&amp;&lt;b&gt;\nRequestId:id\nTime:t<"));
    }
}
