//! The body of an error where the client speaks XML: the OData error document, not the one of the
//! blob service.

use super::document::{self, DECLARATION, escape};

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

/// Reads code and message, as a client does; `None` if the body is no such document.
pub fn parse(body: &[u8]) -> Option<(String, String)> {
    let root = document::parse(body).ok()?;
    let child = |name: &str| {
        // The blob service and some proxies write the names with a capital letter.
        let found = root.children.iter().find(|child| child.name.eq_ignore_ascii_case(name));
        found.and_then(|child| child.leaf_text().ok()).map(str::to_owned)
    };
    Some((child("code")?, child("message").unwrap_or_default()))
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

    #[test]
    fn a_client_reads_what_the_service_writes() {
        let body = write("InvalidInput", "a < b", "id", "t");
        let (code, message) = parse(body.as_bytes()).unwrap();
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("InvalidInput", "a < b\nRequestId:id\nTime:t")
        );
        assert_eq!(parse(b"<html>"), None);
        assert_eq!(parse(b"<html><body>no</body></html>"), None);
    }
}
