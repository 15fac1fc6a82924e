//! Replies as all services make them: the headers that every one has, XML bodies, errors in XML.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, SERVER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use tavola_wire::{Service, ServiceVersion, StorageError, Ticks, xml};

use super::ids::Id;
use super::reply::{Reply, ReplyBody};

pub(crate) const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const XML: HeaderValue = HeaderValue::from_static("application/xml");

/// Named when the request names no version.
const DEFAULT_VERSION: HeaderValue = HeaderValue::from_static("2019-02-02");

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
pub(crate) const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
pub(crate) const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
pub(crate) const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");

/// Room for the headers of a reply, so that the map is made once.
pub(crate) const HEADERS_USUAL: usize = 16;
/// The reason of a status line is cut off here: texts of the service are shorter, and clients limit the line.
const REASON_BYTES_MAX: usize = 512;
/// A client's own request id is echoed up to this length.
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// A success with an XML body.
pub(crate) fn xml(body: impl Into<ReplyBody>) -> Reply {
    let mut reply = Response::new(body.into());
    reply.headers_mut().insert(CONTENT_TYPE, XML);
    reply
}

/// A success without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::Empty);
    *reply.status_mut() = status;
    reply
}

/// The reply to a request that failed, as an XML document in the form of tables.
pub(crate) fn xml_error(error: &StorageError, id: &Id, now: Ticks) -> Reply {
    let code = error.code().as_str();
    let message = error.explained_message();
    let body = xml::error::write(code, &message, &id.to_string(), &now.to_iso_padded());
    plain_error(error, body)
}

/// The reply to a request that failed, with this XML document.
pub(crate) fn plain_error(error: &StorageError, body: String) -> Reply {
    let code = error.code().as_str();
    let mut reply = xml(body);
    *reply.status_mut() = status_of(error);
    reply.headers_mut().insert(ERROR_CODE, HeaderValue::from_static(code));
    set_reason(&mut reply, error);
    reply
}

/// The reply to one request of a connection that has too many.
pub(crate) fn too_many_requests() -> Reply {
    let mut reply = empty(StatusCode::SERVICE_UNAVAILABLE);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

/// The first line of the message as reason of the status line, which some clients show instead of the body. HTTP/2 has
/// none.
pub(crate) fn set_reason(reply: &mut Reply, error: &StorageError) {
    let line = error.message().lines().next().unwrap_or_default();
    // A message may quote what a stranger sent.
    let visible = |byte: u8| if byte == b' ' || byte.is_ascii_graphic() { byte } else { b'?' };
    let line: Bytes = line.bytes().take(REASON_BYTES_MAX).map(visible).collect();
    if let Ok(reason) = ReasonPhrase::try_from(line) {
        reply.extensions_mut().insert(reason);
    }
}

pub(crate) fn status_of(error: &StorageError) -> StatusCode {
    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A header value from text that was made here: URLs and ETags hold visible ASCII only.
pub(crate) fn text(value: &str) -> HeaderValue {
    ascii(value.as_bytes())
}

/// A header value from visible ASCII.
fn ascii(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The headers that every reply has.
pub(crate) fn set_common(
    reply: &mut Reply,
    service: Service,
    id: &Id,
    version: Option<ServiceVersion>,
    request_headers: &HeaderMap,
) {
    let headers = reply.headers_mut();
    headers.insert(SERVER, product(service));
    headers.insert(REQUEST_ID, ascii(&id.text()));
    headers.insert(VERSION, version_value(version));
    let client_id = request_headers.get(CLIENT_REQUEST_ID);
    if let Some(id) = client_id.filter(|id| id.len() <= CLIENT_REQUEST_ID_BYTES_MAX) {
        headers.insert(CLIENT_REQUEST_ID, id.clone());
    }
}

/// What a service calls itself, and we.
fn product(service: Service) -> HeaderValue {
    macro_rules! product {
        ($name:literal) => {
            HeaderValue::from_static(concat!($name, " Tavola/", env!("CARGO_PKG_VERSION")))
        };
    }
    match service {
        Service::Blob => product!("Windows-Azure-Blob/1.0"),
        Service::Queue => product!("Windows-Azure-Queue/1.0"),
        Service::Table => product!("Windows-Azure-Table/1.0"),
    }
}

/// The version that the request names, which is nearly always the usual one.
fn version_value(version: Option<ServiceVersion>) -> HeaderValue {
    match version {
        Some(version) if DEFAULT_VERSION != version.as_str() => text(version.as_str()),
        _ => DEFAULT_VERSION,
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::ErrorCode;

    use super::*;

    #[test]
    fn a_reason_is_one_line_of_visible_ascii() {
        let reason = |message: &str| {
            let mut reply = empty(StatusCode::BAD_REQUEST);
            let error = StorageError::with_detail(ErrorCode::InvalidInput, message.to_owned());
            set_reason(&mut reply, &error);
            let reason = reply.extensions().get::<ReasonPhrase>().expect("a reason").as_bytes();
            String::from_utf8(reason.to_vec()).unwrap()
        };
        assert_eq!(reason("Said.\r\nX-Other: header"), "Said.");
        assert_eq!(reason("a\rX-Other: \0\u{e9}\t\x7f"), "a?X-Other: ?????");
        assert_eq!(reason(&"x".repeat(10_000)).len(), REASON_BYTES_MAX);
        assert_eq!(reason(""), "");
    }
}
