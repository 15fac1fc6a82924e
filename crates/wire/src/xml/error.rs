//! The bodies of errors in XML: the OData error document of tables, and the plain one of queues and blobs.

use super::document::{self, DECLARATION, escape, write_leaf};
use super::reader::BYTE_ORDER_MARK;
use super::syntax::only_xml;
use crate::error::{AUTHENTICATION_ERROR_DETAIL, StorageError};
use crate::error_code::ErrorCode;

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

/// Writes the document of queues and blobs, with what the error says beside its message.
pub fn write_plain(error: &StorageError, request_id: &str, time: &str) -> String {
    let mut out = [BYTE_ORDER_MARK, DECLARATION, "<Error>"].concat();
    write_leaf(&mut out, "Code", error.code().as_str());
    let message = [error.message(), "\nRequestId:", request_id, "\nTime:", time].concat();
    write_leaf(&mut out, "Message", &message);
    let has_elements = error.elements().next().is_some();
    for (name, text) in error.elements() {
        write_element(&mut out, name, text);
    }
    let told = error.explanation().filter(|_| error.is_authentication_failure() && !has_elements);
    if let Some(explanation) = told {
        write_element(&mut out, AUTHENTICATION_ERROR_DETAIL, &explanation);
    }
    // Of a document that is well-formed and means nothing, the live service says this much.
    if error.code() == ErrorCode::InvalidXmlDocument && !has_elements {
        out.push_str("<LineNumber>0</LineNumber><LinePosition>0</LinePosition><Reason />");
    }
    out.push_str("</Error>");
    out
}

fn write_element(out: &mut String, name: &str, text: &str) {
    if text.is_empty() {
        out.extend(["<", name, " />"]);
    } else {
        write_leaf(out, name, &only_xml(text));
    }
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

    /// The lengths are those of recorded answers, with the byte order mark.
    #[test]
    fn plain_documents_are_as_long_as_the_recorded_ones() {
        let id = "6b5d71c1-e003-0088-6150-ea1328000000";
        let time = "2026-11-16T12:00:00.1234567Z";
        let length = |error: StorageError| write_plain(&error, id, time).len();
        assert_eq!(length(ErrorCode::QueueAlreadyExists.into()), 222);
        assert_eq!(length(ErrorCode::MessageNotFound.into()), 221);
        assert_eq!(length(ErrorCode::AuthorizationFailure.into()), 246);
        let receipt = StorageError::new(ErrorCode::InvalidQueryParameterValue)
            .element("QueryParameterName", "popreceipt")
            .element("QueryParameterValue", "invalid")
            .element("Reason", "Invalid pop receipt format");
        assert_eq!(length(receipt), 417);
        let document = write_plain(&ErrorCode::InvalidXmlDocument.into(), id, time);
        let end =
            "</Message><LineNumber>0</LineNumber><LinePosition>0</LinePosition><Reason /></Error>";
        assert!(document.ends_with(end), "{document}");
    }

    #[test]
    fn those_who_are_not_authenticated_are_told_why() {
        let told = |error: StorageError| {
            let document = write_plain(&error, "id", "time");
            let start = document.find("</Message>").unwrap() + "</Message>".len();
            document[start..].to_owned()
        };
        let failed = || StorageError::new(ErrorCode::AuthenticationFailed);
        assert_eq!(told(failed().caused_by("a secret")), "</Error>");
        let element = |text: &str| {
            format!("<AuthenticationErrorDetail>{text}</AuthenticationErrorDetail></Error>")
        };
        assert_eq!(told(failed().explained_by("too late")), element("too late"));
        let both = failed().explained_by("too late").authentication_detail("as the service says");
        assert_eq!(told(both), element("as the service says"));
        let hostile = failed().authentication_detail("a\u{1}</Error>\n");
        assert_eq!(told(hostile), element("a\u{fffd}&lt;/Error&gt;\n"));
        let other = StorageError::new(ErrorCode::InvalidInput).explained_by("no reason to tell");
        assert_eq!(told(other), "</Error>");
    }

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
