//! A reply: its head, and a body that is whole or a stream, with the memory that it has reserved.
//!
//! What is small enough to be made first is whole, and its length is known. What is not, like the content of a blob, is
//! a stream of pieces which are made as the client takes them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http::Response;
use hyper::body::{Body, Frame, SizeHint};

use crate::error::Result;
use crate::net::memory_budget::{MemoryBudget, Reservation, UNCOUNTED_BYTES};
use crate::net::stream_window::StreamWindow;

pub(crate) type Reply = Response<ReplyBody>;

/// The body of a reply.
#[derive(Debug, Default)]
pub(crate) enum ReplyBody {
    #[default]
    Empty,
    Whole {
        bytes: Bytes,
        /// Small ones are not counted.
        reservation: Option<Reservation>,
    },
    /// Boxed: nearly no reply is one, and each would carry its size.
    Stream(Box<ReplyStream>),
}

impl ReplyBody {
    /// A whole body that has reserved memory while it was made.
    pub(crate) fn reserved(bytes: impl Into<Bytes>, reservation: Reservation) -> Self {
        Self::Whole { bytes: bytes.into(), reservation: Some(reservation) }
    }

    /// A body that is made piece by piece, none larger than
    /// [`PIECE_BYTES_MAX`](crate::net::stream_window::PIECE_BYTES_MAX). A stream that ends early or fails breaks the
    /// reply off, so that no client takes a part for the whole.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is no memory for another stream.
    #[cfg_attr(not(test), expect(dead_code, reason = "queues reserve beforehand; blobs will not"))]
    pub(crate) fn stream(
        budget: &Arc<MemoryBudget>,
        length: Option<u64>,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Result<Self> {
        Ok(Self::stream_in(StreamWindow::reserve(budget, length)?, length, pieces))
    }

    /// The same in a window that was reserved before: what has been done has to be answered.
    pub(crate) fn stream_in(
        window: StreamWindow,
        length: Option<u64>,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Self {
        let pieces = Box::pin(pieces);
        Self::Stream(Box::new(ReplyStream { pieces, window, bytes_left: length, ended: false }))
    }

    /// Reserves memory for a whole body that has not done so while it was made.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is not that much left.
    pub(crate) fn reserve(&mut self, budget: &Arc<MemoryBudget>) -> Result<()> {
        if let Some((bytes, reservation)) = self.unreserved() {
            let mut reserved = budget.reservation();
            reserved.grow_to(bytes)?;
            *reservation = Some(reserved);
        }
        Ok(())
    }

    /// The same for a reply that has to be given although there is no room.
    pub(crate) fn reserve_regardless(&mut self, budget: &Arc<MemoryBudget>) {
        if let Some((bytes, reservation)) = self.unreserved() {
            reservation.insert(budget.reservation()).grow_regardless_to(bytes);
        }
    }

    /// How long a body is that has yet to reserve memory, and where to put that.
    fn unreserved(&mut self) -> Option<(usize, &mut Option<Reservation>)> {
        match self {
            Self::Whole { bytes, reservation: reservation @ None }
                if bytes.len() > UNCOUNTED_BYTES =>
            {
                Some((bytes.len(), reservation))
            }
            _ => None,
        }
    }
}

impl From<Bytes> for ReplyBody {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() {
            return Self::Empty;
        }
        Self::Whole { bytes, reservation: None }
    }
}

impl From<Vec<u8>> for ReplyBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for ReplyBody {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    /// A whole body is one frame: HTTP writes it with its length, and without copying it.
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if let Self::Stream(stream) = this {
            return stream
                .poll_piece(context)
                .map(|piece| piece.map(|piece| piece.map(Frame::data)));
        }
        Poll::Ready(match std::mem::take(this) {
            Self::Whole { bytes, reservation: Some(reservation) } => {
                Some(Ok(Frame::data(reservation.attach(bytes))))
            }
            Self::Whole { bytes, reservation: None } => Some(Ok(Frame::data(bytes))),
            Self::Empty | Self::Stream(_) => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole { .. } => false,
            Self::Stream(stream) => stream.ended || stream.bytes_left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole { bytes, .. } => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(stream) => {
                stream.bytes_left.map_or_else(SizeHint::new, SizeHint::with_exact)
            }
        }
    }
}

/// A body that is made while it is sent.
pub(crate) struct ReplyStream {
    pieces: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    window: StreamWindow,
    /// What is still to come, if the length was known.
    bytes_left: Option<u64>,
    ended: bool,
}

impl ReplyStream {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        ready!(self.window.poll_room(context));
        let piece = match ready!(self.pieces.as_mut().poll_next(context)) {
            Some(piece) => piece.and_then(|piece| self.counted(piece)).map(Some),
            None if self.bytes_left.is_none_or(|left| left == 0) => Ok(None),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        self.ended = !matches!(piece, Ok(Some(_)));
        if let Err(error) = &piece {
            tracing::error!(%error, "a reply broke off");
        }
        Poll::Ready(piece.transpose())
    }

    /// The piece, with its part of the window, if it belongs to the body.
    fn counted(&mut self, piece: Bytes) -> io::Result<Bytes> {
        if let Some(left) = self.bytes_left {
            let left = left.checked_sub(piece.len() as u64);
            self.bytes_left =
                Some(left.ok_or_else(|| io::Error::other("more than was announced"))?);
        }
        Ok(self.window.attach(piece))
    }
}

impl std::fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyStream").field("bytes_left", &self.bytes_left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};
    use http_body_util::BodyExt;
    use tavola_wire::ErrorCode;

    use super::*;

    const MIB: usize = 1024 * 1024;

    fn budget() -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::new(8 * MIB))
    }

    fn next(body: &mut ReplyBody) -> Option<io::Result<Bytes>> {
        let frame = body.frame().now_or_never().expect("ready")?;
        Some(frame.map(|frame| frame.into_data().expect("data")))
    }

    fn pieces(pieces: &[&'static [u8]]) -> impl Stream<Item = io::Result<Bytes>> + use<> {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from_static(piece))).collect();
        stream::iter(pieces)
    }

    #[test]
    fn a_whole_body_is_one_frame_of_known_length() {
        for text in ["", "whole"] {
            let mut body = ReplyBody::from(text.to_owned());
            assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
            assert_eq!(body.is_end_stream(), text.is_empty());
            if !text.is_empty() {
                assert_eq!(next(&mut body).unwrap().unwrap(), text);
            }
            assert!(body.is_end_stream());
            assert!(next(&mut body).is_none());
        }
    }

    /// Also when the body has been taken out of the reply, until what was taken is gone.
    #[test]
    fn a_whole_body_reserves_memory_until_it_has_been_written() {
        let budget = budget();
        let mut body = ReplyBody::from(vec![7; MIB]);
        body.reserve(&budget).unwrap();
        assert_eq!(budget.used(), MIB);
        body.reserve(&budget).unwrap();
        body.reserve_regardless(&budget);
        assert_eq!(budget.used(), MIB, "once");
        let bytes = next(&mut body).unwrap().unwrap();
        drop(body);
        assert_eq!(budget.used(), MIB);
        drop(bytes);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_body_without_room_is_busy_unless_it_has_to_be_sent() {
        let budget = budget();
        let mut body = ReplyBody::from(vec![7; 7 * MIB]);
        assert_eq!(body.reserve(&budget).unwrap_err().code(), ErrorCode::ServerBusy);
        assert_eq!(budget.used(), 0);
        body.reserve_regardless(&budget);
        assert_eq!(budget.used(), 7 * MIB);
        let mut small = ReplyBody::from(vec![7; UNCOUNTED_BYTES]);
        small.reserve(&budget).unwrap();
        assert_eq!(budget.used(), 7 * MIB);
    }

    #[test]
    fn a_stream_of_known_length_ends_with_its_last_piece() {
        let budget = budget();
        let mut body = ReplyBody::stream(&budget, Some(5), pieces(&[b"abc", b"de"])).unwrap();
        assert_eq!(body.size_hint().exact(), Some(5));
        assert_eq!(next(&mut body).unwrap().unwrap(), "abc");
        assert!(!body.is_end_stream());
        assert_eq!(next(&mut body).unwrap().unwrap(), "de");
        assert!(body.is_end_stream());
        assert!(next(&mut body).is_none());
    }

    #[test]
    fn a_stream_of_unknown_length_ends_when_its_source_does() {
        let mut body = ReplyBody::stream(&budget(), None, pieces(&[b"abc"])).unwrap();
        assert_eq!(body.size_hint().exact(), None);
        assert_eq!(next(&mut body).unwrap().unwrap(), "abc");
        assert!(!body.is_end_stream());
        assert!(next(&mut body).is_none());
        assert!(body.is_end_stream());
    }

    #[test]
    fn a_stream_that_is_not_as_long_as_announced_fails() {
        for announced in [2, 4] {
            let body = ReplyBody::stream(&budget(), Some(announced), pieces(&[b"abc"])).unwrap();
            let collected = body.collect().now_or_never().expect("ready");
            assert!(collected.is_err(), "{announced}");
        }
        let broken = stream::iter([Ok(Bytes::from_static(b"a")), Err(io::Error::other("disk"))]);
        let body = ReplyBody::stream(&budget(), None, broken).unwrap();
        assert!(body.collect().now_or_never().expect("ready").is_err());
    }
}
