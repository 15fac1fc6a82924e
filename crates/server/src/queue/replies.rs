//! Replies in the form that the queue service's clients read: XML, and plain errors.

use http::StatusCode;
use http::header::CACHE_CONTROL;
use tavola_wire::queue::body;
use tavola_wire::{ErrorCode, ServiceVersion, StorageError, xml};

use crate::request::reply::{Reply, ReplyBody};
use crate::request::respond;
use crate::tenant::FailedRequest;

/// The answer to a read.
pub(super) fn document(body: impl Into<ReplyBody>) -> Reply {
    uncached(respond::xml(body))
}

/// Every success of a GET says that it is not to be cached.
pub(super) fn uncached(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CACHE_CONTROL, respond::NO_CACHE);
    reply
}

pub(super) fn no_content() -> Reply {
    respond::empty(StatusCode::NO_CONTENT)
}

/// The reply to a request that failed.
pub(super) fn error(error: &StorageError, failed: &FailedRequest<'_>) -> Reply {
    let other = if is_hidden(error, failed) {
        Some(StorageError::new(ErrorCode::ResourceNotFound))
    } else if error.code() == ErrorCode::RequestBodyTooLarge {
        // Of a whole body as of a text, whoever finds it.
        Some(body::too_large())
    } else {
        None
    };
    let error = other.as_ref().unwrap_or(error);
    let time = failed.now.to_iso_padded();
    let body = xml::error::write_plain(error, &failed.id.to_string(), &time);
    respond::plain_error(error, body)
}

/// To those who show no credentials, older versions say that there is nothing, whatever there is.
fn is_hidden(error: &StorageError, failed: &FailedRequest<'_>) -> bool {
    let version = failed.head.and_then(|head| head.version);
    error.code() == ErrorCode::NoAuthenticationInformation
        && version.is_some_and(|version| version < ServiceVersion::FIRST_WITH_CHALLENGE)
}
