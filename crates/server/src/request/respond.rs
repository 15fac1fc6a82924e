//! Replies: the headers that every one has, and the bodies of errors.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, SERVER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tavola_wire::ServiceVersion;
use tavola_wire::table::json::push_error;
use tavola_wire::table::negotiate::{MetadataLevel, Preference};
use tavola_wire::{ErrorCode, StorageError, Ticks, xml};

use crate::request::ids::Id;
pub(crate) use crate::request::reply::{Reply, ReplyBody};

const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const JSON_NONE: HeaderValue = HeaderValue::from_static(MetadataLevel::None.content_type());
const JSON_MINIMAL: HeaderValue = HeaderValue::from_static(MetadataLevel::Minimal.content_type());
const JSON_FULL: HeaderValue = HeaderValue::from_static(MetadataLevel::Full.content_type());
const XML: HeaderValue = HeaderValue::from_static("application/xml");
const PRODUCT: HeaderValue =
    HeaderValue::from_static(concat!("Windows-Azure-Table/1.0 Tavola/", env!("CARGO_PKG_VERSION")));

/// Named when the request names no version.
const DEFAULT_VERSION: HeaderValue = HeaderValue::from_static("2019-02-02");

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
pub(crate) const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
pub(crate) const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
pub(crate) const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Room for the headers of a reply, so that the map is made once.
const HEADERS_USUAL: usize = 16;
/// A client's own request id is echoed up to this length.
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// A success of an OData operation that has no body.
pub(crate) fn no_content() -> Reply {
    odata(StatusCode::NO_CONTENT, ReplyBody::Empty)
}

/// A success of an OData operation with a JSON body.
pub(crate) fn json(status: StatusCode, level: MetadataLevel, body: impl Into<ReplyBody>) -> Reply {
    let mut reply = odata(status, body.into());
    let content_type = match level {
        MetadataLevel::None => JSON_NONE,
        MetadataLevel::Minimal => JSON_MINIMAL,
        MetadataLevel::Full => JSON_FULL,
    };
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// A success of `$batch`.
pub(crate) fn multipart(content_type: &str, body: Vec<u8>) -> Reply {
    let mut reply = odata(StatusCode::ACCEPTED, body.into());
    reply.headers_mut().insert(CONTENT_TYPE, text(content_type));
    reply
}

/// A success of an XML operation with a body.
pub(crate) fn xml(body: impl Into<ReplyBody>) -> Reply {
    let mut reply = Response::new(body.into());
    reply.headers_mut().insert(CONTENT_TYPE, XML);
    reply
}

/// A success of an XML operation without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::Empty);
    *reply.status_mut() = status;
    reply
}

fn odata(status: StatusCode, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().reserve(HEADERS_USUAL);
    reply.headers_mut().insert(CACHE_CONTROL, NO_CACHE);
    reply.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    reply
}

pub(crate) fn set_etag(reply: &mut Reply, timestamp: Ticks) {
    let etag = HeaderValue::try_from(timestamp.to_etag());
    reply.headers_mut().insert(ETAG, etag.expect("an ETag is visible ASCII"));
}

/// `Location` of a new resource and, when the client wanted no body, the same as `DataServiceId`.
pub(crate) fn set_location(reply: &mut Reply, url: &str, preference: Option<Preference>) {
    let url = text(url);
    if preference == Some(Preference::ReturnNoContent) {
        reply.headers_mut().insert(DATA_SERVICE_ID, url.clone());
    }
    reply.headers_mut().insert(LOCATION, url);
}

pub(crate) fn set_preference_applied(reply: &mut Reply, preference: Option<Preference>) {
    if let Some(preference) = preference {
        let applied = HeaderValue::from_static(preference.as_str());
        reply.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
}

/// A header value from text that was made here: URLs and ETags hold visible ASCII only.
pub(crate) fn text(value: &str) -> HeaderValue {
    ascii(value.as_bytes())
}

/// A header value from visible ASCII.
fn ascii(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// How the body of an error is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Json(MetadataLevel),
    Xml,
}

/// The reply to a request that failed.
pub(crate) fn error(error: &StorageError, format: ErrorFormat, id: &Id, now: Ticks) -> Reply {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = error.code();
    let id = id.to_string();
    match format {
        ErrorFormat::Xml => {
            let body = xml::error::write(code.as_str(), error.message(), &id, &now.to_iso_padded());
            let mut reply = xml(body);
            *reply.status_mut() = status;
            reply.headers_mut().insert(ERROR_CODE, HeaderValue::from_static(code.as_str()));
            reply
        }
        ErrorFormat::Json(level) => {
            let mut body = Vec::with_capacity(256);
            push_error(&mut body, code.as_str(), error.message(), &id, now);
            let mut reply = json(status, level, body);
            if is_front_end(code) {
                reply.headers_mut().remove(CACHE_CONTROL);
            }
            reply
        }
    }
}

/// Errors that the live service raises before it reaches the storage layer have no `Cache-Control`.
pub(crate) fn is_front_end(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::InvalidResourceName
            | ErrorCode::OutOfRangeInput
            | ErrorCode::TableNotFound
            | ErrorCode::InvalidInput
            | ErrorCode::NotImplemented
    )
}

/// The headers that every reply has.
pub(crate) fn set_common(
    reply: &mut Reply,
    id: &Id,
    version: Option<ServiceVersion>,
    request_headers: &HeaderMap,
) {
    let headers = reply.headers_mut();
    headers.insert(SERVER, PRODUCT);
    headers.insert(REQUEST_ID, ascii(&id.text()));
    headers.insert(VERSION, version_value(version));
    let client_id = request_headers.get(CLIENT_REQUEST_ID);
    if let Some(id) = client_id.filter(|id| id.len() <= CLIENT_REQUEST_ID_BYTES_MAX) {
        headers.insert(CLIENT_REQUEST_ID, id.clone());
    }
}

/// The version that the request names, which is nearly always the usual one.
fn version_value(version: Option<ServiceVersion>) -> HeaderValue {
    match version {
        Some(version) if DEFAULT_VERSION != version.as_str() => text(version.as_str()),
        _ => DEFAULT_VERSION,
    }
}
