//! Reading a request's body, within limits.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tavola_wire::ErrorCode;

use crate::config::Limits;
use crate::error::Result;

/// Reads the whole body.
///
/// # Errors
/// 413 `RequestBodyTooLarge`, 500 `OperationTimedOut` when it takes too long to come, 400 when it breaks off.
pub async fn read(body: Incoming, limits: &Limits) -> Result<Bytes> {
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

async fn collect(mut body: Incoming, bytes_max: usize) -> Result<Bytes> {
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
