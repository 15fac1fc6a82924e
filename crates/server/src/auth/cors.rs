//! Cross-origin requests: the preflight, and the headers on real ones.

use http::header::{
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, ORIGIN,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use tavola_wire::{Service, cors};

use crate::auth::accounts::Account;
use crate::error::Result;
use crate::request::head::{RequestHead, header_text};
use crate::request::reply::Reply;
use crate::request::respond::{empty, text};

const ALLOW_ORIGIN: HeaderName = HeaderName::from_static("access-control-allow-origin");
const ALLOW_METHODS: HeaderName = HeaderName::from_static("access-control-allow-methods");
const ALLOW_HEADERS: HeaderName = HeaderName::from_static("access-control-allow-headers");
const ALLOW_CREDENTIALS: HeaderName = HeaderName::from_static("access-control-allow-credentials");
const EXPOSE_HEADERS: HeaderName = HeaderName::from_static("access-control-expose-headers");
const MAX_AGE: HeaderName = HeaderName::from_static("access-control-max-age");
/// What every answer may have, and HTTP adds only when it is written.
const FRAMING: [&str; 3] = ["Content-Length", "Date", "Transfer-Encoding"];
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// Answers `OPTIONS`, for anyone.
///
/// # Errors
/// 400 `InvalidHeaderValue`, 403 `CorsPreflightFailure`.
pub(crate) fn preflight(account: &Account, head: &RequestHead<'_>) -> Result<Reply> {
    let properties = account.properties(head.service);
    let answer = cors::preflight(
        &properties.cors,
        head.header(&ORIGIN),
        head.header(&ACCESS_CONTROL_REQUEST_METHOD),
        head.header(&ACCESS_CONTROL_REQUEST_HEADERS),
    )?;
    let mut reply = empty(StatusCode::OK);
    let headers = reply.headers_mut();
    headers.insert(ALLOW_ORIGIN, text(&answer.allow_origin));
    headers.insert(ALLOW_METHODS, text(&answer.allow_methods));
    if let Some(allowed) = &answer.allow_headers {
        headers.insert(ALLOW_HEADERS, text(allowed));
    }
    headers.insert(MAX_AGE, HeaderValue::from(answer.max_age_seconds));
    if answer.allow_credentials {
        headers.insert(ALLOW_CREDENTIALS, TRUE);
    }
    Ok(reply)
}

/// Lets the browser show the reply to the page that asked, if a rule of the account allows it.
pub(crate) fn add_headers(account: &Account, service: Service, parts: &Parts, reply: &mut Reply) {
    if !account.has_cors_rules(service) {
        return;
    }
    let (properties, method) = (account.properties(service), parts.method.as_str());
    if cors::vary_origin(&properties.cors, method) {
        reply.headers_mut().insert(http::header::VARY, HeaderValue::from_static("Origin"));
    }
    let origin = header_text(parts, &ORIGIN);
    let is_full = service.has_full_cors();
    let answer = match origin {
        Some(origin) => cors::actual(&properties.cors, origin, method),
        None if is_full => cors::without_origin(&properties.cors, method),
        None => None,
    };
    let Some(answer) = answer else { return };
    // As recorded of queues: the code of an error takes the place of its type, and what frames a body is named as well.
    let is_named =
        |name: &&HeaderName| !is_full || !is_error(reply.status()) || **name != CONTENT_TYPE;
    let names = reply.headers().keys().filter(is_named).map(HeaderName::as_str);
    let framing = if is_full { &FRAMING[..] } else { &[] };
    let exposed = answer.expose_headers(names.chain(framing.iter().copied()));
    let exposed = exposed.filter(|_| origin.is_some() || !is_error(reply.status()));
    let headers = reply.headers_mut();
    headers.insert(ALLOW_ORIGIN, text(&answer.allow_origin));
    if let Some(exposed) = exposed {
        headers.insert(EXPOSE_HEADERS, text(&exposed));
    }
    if answer.allow_credentials {
        headers.insert(ALLOW_CREDENTIALS, TRUE);
    }
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}
