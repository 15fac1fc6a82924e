//! What the table service's clients want to read, and replies in that form: OData JSON, with XML for a few operations.

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tavola_wire::explain;
use tavola_wire::table::json::push_error;
use tavola_wire::table::negotiate::{MetadataLevel, Preference, is_media_type};
use tavola_wire::{ErrorCode, StorageError, Ticks};

use crate::error::Result;
use crate::request::head::{RequestHead, header_text};
use crate::request::reply::{Reply, ReplyBody};
use crate::request::respond::{self, text};
use crate::table::operation::TableOperationKind::{CreateTable, InsertEntity};
use crate::tenant::FailedRequest;

const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_NONE: HeaderValue = HeaderValue::from_static(MetadataLevel::None.content_type());
const JSON_MINIMAL: HeaderValue = HeaderValue::from_static(MetadataLevel::Minimal.content_type());
const JSON_FULL: HeaderValue = HeaderValue::from_static(MetadataLevel::Full.content_type());

const PREFER: HeaderName = HeaderName::from_static("prefer");
const EXPLAIN: HeaderName = HeaderName::from_static(explain::EXPLAIN);
const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The metadata level of the reply's body.
pub(crate) fn level(head: &RequestHead<'_>) -> Result<MetadataLevel> {
    MetadataLevel::negotiate(head.query.format(), head.header(&ACCEPT))
}

pub(crate) fn preference(head: &RequestHead<'_>) -> Option<Preference> {
    head.header(&PREFER).and_then(Preference::parse)
}

/// Whether the client asks what its query cost.
pub(crate) fn wants_explanation(head: &RequestHead<'_>) -> bool {
    head.header(&EXPLAIN).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Refuses a body of another kind than the operation takes.
///
/// # Errors
/// 415 `MediaTypeNotSupported`.
pub(crate) fn expect_json(head: &RequestHead<'_>) -> Result<()> {
    match head.header(&CONTENT_TYPE) {
        Some(content_type) if is_media_type(content_type, "multipart/mixed") => {
            Err(ErrorCode::MediaTypeNotSupported.into())
        }
        Some(content_type) if is_media_type(content_type, "application/atom+xml") => {
            Err(ErrorCode::AtomFormatNotSupported.into())
        }
        _ => Ok(()),
    }
}

/// The service root as the client addressed it, for the metadata of a body; empty where it has none.
pub(crate) fn metadata_base(head: &RequestHead<'_>, level: MetadataLevel) -> String {
    match level {
        MetadataLevel::None => String::new(),
        MetadataLevel::Minimal | MetadataLevel::Full => head.base(),
    }
}

/// A success that has no body.
pub(crate) fn no_content() -> Reply {
    odata(StatusCode::NO_CONTENT, ReplyBody::Empty)
}

/// A success with a JSON body.
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

fn odata(status: StatusCode, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().reserve(respond::HEADERS_USUAL);
    reply.headers_mut().insert(CACHE_CONTROL, respond::NO_CACHE);
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

/// How the body of an error is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorFormat {
    Json(MetadataLevel),
    Xml,
}

/// The reply to a request that failed.
pub(crate) fn error(error: &StorageError, failed: &FailedRequest<'_>) -> Reply {
    let mut reply = match error_format(failed) {
        ErrorFormat::Xml => respond::xml_error(error, failed.id, failed.now),
        ErrorFormat::Json(level) => json_error(error, level, failed),
    };
    let creates = failed.operation == InsertEntity.into() || failed.operation == CreateTable.into();
    if let Some(head) = failed.head.filter(|_| creates) {
        set_preference_applied(&mut reply, preference(head));
    }
    reply
}

fn json_error(error: &StorageError, level: MetadataLevel, failed: &FailedRequest<'_>) -> Reply {
    let mut body = Vec::with_capacity(256);
    let (code, id) = (error.code(), failed.id.to_string());
    push_error(&mut body, code.as_str(), &error.explained_message(), &id, failed.now);
    if error.is_authentication_failure() {
        return unauthenticated(error, body);
    }
    let mut reply = json(respond::status_of(error), level, body);
    // As recorded: Create Table looks at its body, and so at the name, behind the front end.
    if is_front_end(code) && failed.operation != CreateTable.into() {
        reply.headers_mut().remove(CACHE_CONTROL);
    }
    reply
}

/// Authentication comes before everything that knows of OData, and it shows.
fn unauthenticated(error: &StorageError, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(ReplyBody::from(body));
    *reply.status_mut() = respond::status_of(error);
    reply.headers_mut().insert(CONTENT_TYPE, JSON);
    let code = HeaderValue::from_static(error.code().as_str());
    reply.headers_mut().insert(respond::ERROR_CODE, code);
    respond::set_reason(&mut reply, error);
    reply
}

/// XML where the operation is, JSON for everyone who reads it.
fn error_format(failed: &FailedRequest<'_>) -> ErrorFormat {
    let format = match failed.head {
        Some(head) if head.query.comp().is_some() || head.query.restype().is_some() => {
            return ErrorFormat::Xml;
        }
        Some(head) => head.query.format(),
        // The query could not even be read.
        None => None,
    };
    let accept = header_text(failed.parts, &ACCEPT);
    let wishes = format.or(accept).unwrap_or_default();
    let reads_json = wishes.is_empty() || wishes.contains("json") || wishes.contains("*/*");
    match reads_json {
        true => ErrorFormat::Json(MetadataLevel::for_errors(format, accept)),
        false if wishes.contains("xml") => ErrorFormat::Xml,
        false => ErrorFormat::Json(MetadataLevel::Minimal),
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
