//! Reading a request's body, within limits of size, speed and memory.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use tavola_wire::ErrorCode;

use crate::config::Limits;
use crate::error::Result;
use crate::net::memory_budget::{Held, MemoryBudget};
use crate::net::stall_timeout::StallTimeout;

/// Most clients write all of a body before they read, and would meet a closed connection instead of the answer.
/// So what is refused is still taken in and thrown away, up to this many bytes.
const DISCARD_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a piece counts for at least then: one of a few bytes takes as much work as a larger one.
const DISCARD_PIECE_BYTES_MIN: usize = 256;

/// How much of a body an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLimit {
    /// All of it in memory, up to that many bytes.
    Whole(usize),
}

/// A body that has been read, and its share of the memory for messages.
#[derive(Debug, Default)]
pub(crate) struct RequestBody {
    pub bytes: Bytes,
    pub held: Option<Held>,
}

/// Reads the whole body.
///
/// # Errors
/// 413 `RequestBodyTooLarge`, 500 `OperationTimedOut` when it takes too long to come, 400 when it breaks off, 503
/// `ServerBusy` when too many others are on their way.
pub(crate) async fn read(
    body: &mut Incoming,
    limit: BodyLimit,
    limits: &Limits,
    memory: &Arc<MemoryBudget>,
) -> Result<RequestBody> {
    if body.is_end_stream() {
        return Ok(RequestBody::default());
    }
    let BodyLimit::Whole(bytes_max) = limit;
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    let mut held = None;
    let mut stall_timeout = StallTimeout::new(limits.transfer_timeout);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(data) = next(body, &mut stall_timeout).await? {
        let length = all.len() + first.len() + data.len();
        if length > bytes_max {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
        memory.take(&mut held, length)?;
        // Most bodies come in one piece, which is not copied.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    let bytes = if all.is_empty() { first } else { all.freeze() };
    Ok(RequestBody { bytes, held })
}

/// Takes in what is left of the body of a request that has been refused.
pub(crate) async fn discard(body: &mut Incoming, limits: &Limits) {
    let mut left = DISCARD_BYTES_MAX;
    let mut stall_timeout = StallTimeout::new(limits.transfer_timeout);
    // What goes on for longer, or comes too slowly, ends with the connection.
    while let Ok(Some(data)) = next(body, &mut stall_timeout).await {
        let Some(rest) = left.checked_sub(data.len().max(DISCARD_PIECE_BYTES_MIN)) else { return };
        left = rest;
    }
}

/// The next piece, empty for trailers; `None` at the end.
async fn next(body: &mut Incoming, stall_timeout: &mut StallTimeout) -> Result<Option<Bytes>> {
    let start = Instant::now();
    let frame = tokio::time::timeout(stall_timeout.left(), body.frame())
        .await
        .map_err(|_| ErrorCode::OperationTimedOut)?;
    let Some(frame) = frame else { return Ok(None) };
    let data = frame.map(Frame::into_data).map_err(|_| ErrorCode::InvalidInput)?;
    let data = data.unwrap_or_default();
    stall_timeout.waited(start.elapsed());
    stall_timeout.moved(data.len());
    Ok(Some(data))
}
