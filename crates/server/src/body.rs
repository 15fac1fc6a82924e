//! Reading a request's body, within limits.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tavola_wire::ErrorCode;

use crate::config::Limits;
use crate::error::Result;

/// Most clients write all of a body before they read, and would meet a closed connection instead of the answer.
/// So what is refused is still taken in and thrown away, up to so many times the largest body.
const DISCARD_FACTOR: usize = 8;

/// Reads the whole body.
///
/// # Errors
/// 413 `RequestBodyTooLarge`, 500 `OperationTimedOut` when it takes too long to come, 400 when it breaks off.
pub async fn read(body: &mut Incoming, limits: &Limits) -> Result<Bytes> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    match tokio::time::timeout(limits.body_timeout, collect(body, limits.body_bytes_max)).await {
        Ok(read) => read,
        Err(_) => Err(ErrorCode::OperationTimedOut.into()),
    }
}

/// Takes in what is left of the body of a request that has been refused.
pub async fn discard(body: &mut Incoming, limits: &Limits) {
    let mut left = limits.body_bytes_max * DISCARD_FACTOR;
    let taken = async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(length) else { return };
            left = rest;
        }
    };
    // A body that takes longer ends with the connection.
    let _ = tokio::time::timeout(limits.body_timeout, taken).await;
}

async fn collect(body: &mut Incoming, bytes_max: usize) -> Result<Bytes> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| ErrorCode::InvalidInput)?.into_data() else { continue };
        if all.len() + first.len() + data.len() > bytes_max {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
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
    Ok(if all.is_empty() { first } else { all.freeze() })
}
