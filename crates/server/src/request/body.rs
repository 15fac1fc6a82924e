//! Reading a request's body, within limits of size, speed and memory: whole, or as a stream of pieces.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tavola_wire::ErrorCode;
use tokio::time::{Instant, timeout};

use crate::error::Result;
use crate::net::memory_budget::MemoryBudget;
use crate::net::stall_timeout::StallTimeout;
use crate::net::stream_window::{PIECE_BYTES_MAX, StreamWindow};

/// Most clients write all of a body before they read, and would meet a closed connection instead of the answer.
/// So what is refused is still taken in and thrown away, up to this many bytes.
const DISCARD_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a piece counts for at least then: one of a few bytes takes as much work as a larger one.
const DISCARD_PIECE_BYTES_MIN: usize = 256;

/// How an operation takes its body, and how long that may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyLimit {
    Whole(usize),
    #[cfg_attr(not(test), expect(dead_code, reason = "no operation takes one yet; blobs will"))]
    Stream(u64),
}

/// The body of a request, as its operation takes it.
#[derive(Debug)]
pub(crate) enum RequestBody<'a, B> {
    /// With its last clone it gives back the memory that is reserved for it.
    Whole(Bytes),
    Stream(BodyStream<'a, B>),
}

impl<'a, B> RequestBody<'a, B> {
    /// The whole body, or the stream that is in its place.
    pub(crate) fn split(self) -> (Bytes, Option<BodyStream<'a, B>>) {
        match self {
            Self::Whole(bytes) => (bytes, None),
            Self::Stream(stream) => (Bytes::new(), Some(stream)),
        }
    }
}

/// Reads a body that is taken whole, or makes a stream ready to be read. `stall_timeout` is that of the whole body: what
/// is used up here is not there for [`discard`].
///
/// # Errors
/// 413 `RequestBodyTooLarge`, 500 `OperationTimedOut` when it takes too long to come, 400 when it breaks off, 503
/// `ServerBusy` when too many others are on their way.
pub(crate) async fn admit<'a, B: Body<Data = Bytes> + Unpin>(
    body: &'a mut B,
    limit: BodyLimit,
    stall_timeout: &'a mut StallTimeout,
    budget: &Arc<MemoryBudget>,
) -> Result<RequestBody<'a, B>> {
    let bytes_max = match limit {
        BodyLimit::Whole(bytes_max) => bytes_max as u64,
        BodyLimit::Stream(bytes_max) => bytes_max,
    };
    if body.size_hint().lower() > bytes_max {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    Ok(match limit {
        BodyLimit::Whole(_) if body.is_end_stream() => RequestBody::Whole(Bytes::new()),
        BodyLimit::Whole(bytes_max) => {
            RequestBody::Whole(read(body, bytes_max, stall_timeout, budget).await?)
        }
        BodyLimit::Stream(bytes_max) => {
            let window = StreamWindow::reserve(budget, body.size_hint().exact())?;
            let unread = Bytes::new();
            RequestBody::Stream(BodyStream {
                body,
                unread,
                bytes_left: bytes_max,
                stall_timeout,
                window,
            })
        }
    })
}

/// Reads the whole body.
async fn read<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    bytes_max: usize,
    stall_timeout: &mut StallTimeout,
    budget: &Arc<MemoryBudget>,
) -> Result<Bytes> {
    let mut reservation = budget.reservation();
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(data) = next(body, stall_timeout).await? {
        let length = all.len() + first.len() + data.len();
        if length > bytes_max {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
        reservation.grow_to(length)?;
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
    Ok(reservation.attach(if all.is_empty() { first } else { all.freeze() }))
}

/// A body that is read piece by piece.
#[derive(Debug)]
pub(crate) struct BodyStream<'a, B> {
    body: &'a mut B,
    /// What has come of a piece that was too large for one.
    unread: Bytes,
    bytes_left: u64,
    stall_timeout: &'a mut StallTimeout,
    window: StreamWindow,
}

impl<B: Body<Data = Bytes> + Unpin> BodyStream<'_, B> {
    /// The next piece; `None` at the end. It waits until earlier pieces have been dropped: two of the largest may be
    /// kept at a time, and the peer is not read from meanwhile.
    ///
    /// # Errors
    /// 413 `RequestBodyTooLarge`, 500 `OperationTimedOut` when it takes too long to come, 400 when it breaks off.
    #[cfg_attr(not(test), expect(dead_code, reason = "no operation takes one yet; blobs will"))]
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        self.window.room().await;
        while self.unread.is_empty() {
            let Some(data) = next(self.body, self.stall_timeout).await? else {
                return Ok(None);
            };
            let bytes_left = self.bytes_left.checked_sub(data.len() as u64);
            self.bytes_left = bytes_left.ok_or(ErrorCode::RequestBodyTooLarge)?;
            self.unread = data;
        }
        let piece = self.unread.split_to(self.unread.len().min(PIECE_BYTES_MAX));
        Ok(Some(self.window.attach(piece)))
    }
}

/// Takes in what is left of the body of a request that has been refused. One that was refused because its body stalled
/// has no time left: it is answered at once.
pub(crate) async fn discard<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    stall_timeout: &mut StallTimeout,
) {
    let mut left = DISCARD_BYTES_MAX;
    // What goes on for longer, or comes too slowly, ends with the connection.
    while let Ok(Some(data)) = next(body, stall_timeout).await {
        let Some(rest) = left.checked_sub(data.len().max(DISCARD_PIECE_BYTES_MIN)) else { return };
        left = rest;
    }
}

/// The next piece, empty for trailers; `None` at the end.
async fn next<B: Body<Data = Bytes> + Unpin>(
    body: &mut B,
    stall_timeout: &mut StallTimeout,
) -> Result<Option<Bytes>> {
    let start = Instant::now();
    let frame = timeout(stall_timeout.left(), body.frame()).await;
    stall_timeout.waited(start.elapsed());
    let frame = frame.map_err(|_| ErrorCode::OperationTimedOut)?;
    let Some(frame) = frame else { return Ok(None) };
    let data = frame.map(Frame::into_data).map_err(|_| ErrorCode::InvalidInput)?;
    let data = data.unwrap_or_default();
    stall_timeout.moved(data.len());
    Ok(Some(data))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io;
    use std::time::Duration;

    use futures_util::{FutureExt, Stream, stream};
    use http_body_util::{Full, StreamBody};
    use tokio::time::sleep;

    use super::*;
    use crate::net::stall_timeout::BYTES_PER_SECOND_MIN;

    const MIB: usize = 1024 * 1024;
    const SECOND: Duration = Duration::from_secs(1);

    fn a_second() -> StallTimeout {
        StallTimeout::new(SECOND)
    }

    fn budget() -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::new(8 * MIB))
    }

    fn in_pieces(
        pieces: impl IntoIterator<Item = usize, IntoIter: Send + 'static>,
    ) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let pieces = pieces.into_iter().map(|bytes| Ok(Frame::data(Bytes::from(vec![7; bytes]))));
        StreamBody::new(stream::iter(pieces))
    }

    /// A piece every second.
    fn every_second(bytes: usize) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
        stream::unfold((), move |()| async move {
            sleep(SECOND).await;
            Some((Ok(Frame::data(Bytes::from(vec![7; bytes]))), ()))
        })
    }

    #[tokio::test]
    async fn a_whole_body_gives_its_memory_back_with_its_last_clone() {
        let budget = budget();
        for pieces in [vec![], vec![100], vec![MIB], vec![100, MIB, 5]] {
            let length = pieces.iter().sum::<usize>();
            let mut body = in_pieces(pieces);
            let limit = BodyLimit::Whole(2 * MIB);
            let whole = admit(&mut body, limit, &mut a_second(), &budget).await.unwrap().split().0;
            assert_eq!(whole.len(), length);
            let clone = whole.clone();
            drop(whole);
            assert_eq!(budget.used(), if length > 4096 { length } else { 0 });
            drop(clone);
            assert_eq!(budget.used(), 0);
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused_when_it_is_announced_or_has_come() {
        let budget = budget();
        let code = |error: tavola_wire::StorageError| error.code();
        for limit in [BodyLimit::Whole(MIB), BodyLimit::Stream(MIB as u64)] {
            let mut announced = Full::new(Bytes::from(vec![7; MIB + 1]));
            let refused =
                admit(&mut announced, limit, &mut a_second(), &budget).await.err().map(code);
            assert_eq!(refused, Some(ErrorCode::RequestBodyTooLarge), "{limit:?}");
            let mut endless = in_pieces(std::iter::repeat(MIB / 16));
            let refused = match admit(&mut endless, limit, &mut a_second(), &budget).await {
                Ok(RequestBody::Stream(mut stream)) => loop {
                    match stream.next().await {
                        Ok(piece) => assert!(piece.is_some()),
                        Err(error) => break error,
                    }
                },
                Ok(RequestBody::Whole(_)) => panic!("it has no end"),
                Err(error) => error,
            };
            assert_eq!(refused.code(), ErrorCode::RequestBodyTooLarge, "{limit:?}");
            assert_eq!(budget.used(), 0);
        }
    }

    #[tokio::test]
    async fn a_stream_hands_out_bounded_pieces_as_earlier_ones_are_dropped() {
        let budget = budget();
        let mut body = in_pieces([3 * PIECE_BYTES_MAX, 0, 10]);
        let mut stall_timeout = a_second();
        let limit = BodyLimit::Stream(1 << 40);
        let RequestBody::Stream(mut stream) =
            admit(&mut body, limit, &mut stall_timeout, &budget).await.unwrap()
        else {
            panic!("a stream was asked for");
        };
        let used = budget.used();
        let mut kept = vec![stream.next().await.unwrap().unwrap()];
        kept.push(stream.next().await.unwrap().unwrap());
        assert!(stream.next().now_or_never().is_none(), "two are kept");
        kept.pop();
        assert_eq!(stream.next().await.unwrap().unwrap().len(), PIECE_BYTES_MAX);
        assert_eq!(stream.next().await.unwrap().unwrap().len(), 10);
        assert!(stream.next().await.unwrap().is_none());
        assert_eq!(budget.used(), used, "nothing but what was reserved at its start");
        drop((stream, kept));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_is_given_up_and_a_slow_line_is_not() {
        let budget = budget();
        let limit = BodyLimit::Stream(u64::MAX);
        let slow = BYTES_PER_SECOND_MIN as usize;
        for (bytes, is_given_up) in [(slow / 2, true), (slow, false)] {
            let mut body = StreamBody::new(Box::pin(every_second(bytes)));
            let mut stall_timeout = StallTimeout::new(10 * SECOND);
            let admitted = admit(&mut body, limit, &mut stall_timeout, &budget).await.unwrap();
            let RequestBody::Stream(mut stream) = admitted else { panic!("a stream") };
            let mut ended = None;
            for _ in 0..100 {
                match stream.next().await {
                    Ok(piece) => assert_eq!(piece.unwrap().len(), bytes),
                    Err(error) => ended = Some(error.code()),
                }
            }
            assert_eq!(ended, is_given_up.then_some(ErrorCode::OperationTimedOut));
        }
    }

    /// The time for a body runs once: what was waited for in vain is not waited for again to throw it away.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalled_is_not_waited_for_again() {
        let mut body = StreamBody::new(stream::pending::<io::Result<Frame<Bytes>>>());
        let (mut stall_timeout, started) = (a_second(), Instant::now());
        let limit = BodyLimit::Whole(MIB);
        let refused = admit(&mut body, limit, &mut stall_timeout, &budget()).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::OperationTimedOut);
        discard(&mut body, &mut stall_timeout).await;
        assert!(started.elapsed() < 2 * SECOND, "{:?}", started.elapsed());
    }

    /// What has come before is no excuse for a body that breaks off.
    #[tokio::test]
    async fn a_stream_that_breaks_off_is_an_error() {
        let frames = [Ok(Frame::data(Bytes::from_static(b"a"))), Err(io::Error::other("gone"))];
        let mut body = StreamBody::new(stream::iter(frames));
        let (limit, mut stall_timeout) = (BodyLimit::Stream(10), a_second());
        let admitted = admit(&mut body, limit, &mut stall_timeout, &budget()).await.unwrap();
        let RequestBody::Stream(mut stream) = admitted else { panic!("a stream") };
        assert_eq!(stream.next().await.unwrap().unwrap(), "a");
        assert_eq!(stream.next().await.unwrap_err().code(), ErrorCode::InvalidInput);
    }
}
