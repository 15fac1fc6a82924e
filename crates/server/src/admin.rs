//! `/health`, `/ready` and `/metrics`, on a port of their own: no account, no signature, no data.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use crate::request::reply::{Reply, ReplyBody};
use crate::state::ServerState;

/// The content type of the OpenMetrics text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers one request of the admin port.
pub(crate) fn answer(state: &Arc<ServerState>, request: &Request<Incoming>) -> Reply {
    let get = request.method() == Method::GET || request.method() == Method::HEAD;
    let (status, content_type, body) = match request.uri().path() {
        _ if !get => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "method not allowed\n".into()),
        // Alive: the process answers.
        "/health" => (StatusCode::OK, "text/plain", "ok\n".into()),
        // Ready: the service takes requests, writes among them.
        "/ready" => match state.obstacle() {
            None => (StatusCode::OK, "text/plain", "ready\n".into()),
            Some(why) => {
                (StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("not ready: {why}\n"))
            }
        },
        "/metrics" => (StatusCode::OK, OPENMETRICS, state.metrics.encode()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "not found\n".into()),
    };
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .body(ReplyBody::from(body))
        .expect("a fixed set of valid headers")
}
