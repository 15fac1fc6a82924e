//! What may be under way of one streamed body at a time.
//!
//! A body of gigabytes goes through in pieces, and a peer that is slow must not make them pile up. So a stream reserves
//! room for a few pieces when it begins, when a client can still be told that there is none, and never needs more: the next
//! piece is made when earlier ones have been dropped, be it that the socket took them or that they were stored.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;

use crate::error::Result;
use crate::net::memory_budget::{MemoryBudget, Reservation};

/// The largest piece: large enough that what is done per piece does not count, and less than what a socket takes at once.
pub(crate) const PIECE_BYTES_MAX: usize = 64 * 1024;
/// What a piece counts for at least: be it ever so small, it keeps the buffer alive that it came in.
const PIECE_BYTES_MIN: usize = 8 * 1024;
/// Two pieces: one is written while the next is made. It counts as a large message, and so leaves room for small ones.
const WINDOW_BYTES: usize = 2 * PIECE_BYTES_MAX;

/// The window of one stream, shared with its pieces.
#[derive(Clone, Debug)]
pub(crate) struct StreamWindow(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Bytes of pieces that have not been dropped.
    under_way: AtomicUsize,
    waiting: AtomicWaker,
    _reservation: Reservation,
}

impl StreamWindow {
    /// For a body of this length, if it is known.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is no memory for another stream.
    pub(crate) fn reserve(budget: &Arc<MemoryBudget>, length: Option<u64>) -> Result<Self> {
        Self::reserve_beside(budget, length, 0)
    }

    /// The same with this many bytes more, of which pieces are made.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is no memory for another stream.
    pub(crate) fn reserve_beside(
        budget: &Arc<MemoryBudget>,
        length: Option<u64>,
        bytes: usize,
    ) -> Result<Self> {
        let length = length.and_then(|length| usize::try_from(length).ok());
        let window = length.map_or(WINDOW_BYTES, |length| length.min(WINDOW_BYTES));
        let mut reservation = budget.reservation();
        reservation.grow_to(window + bytes)?;
        Ok(Self(Arc::new(Shared {
            under_way: AtomicUsize::new(0),
            waiting: AtomicWaker::new(),
            _reservation: reservation,
        })))
    }

    /// Ready when there is room for a piece of the largest size.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.has_room() {
            return Poll::Ready(());
        }
        self.0.waiting.register(context.waker());
        // ORDER: again after registering, or a piece that was dropped in between would wake nobody.
        if self.has_room() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until there is room for a piece of the largest size.
    pub(crate) async fn room(&self) {
        poll_fn(|context| self.poll_room(context)).await;
    }

    /// The same bytes, which make room again with their last clone.
    pub(crate) fn attach(&self, piece: Bytes) -> Bytes {
        assert!(piece.len() <= PIECE_BYTES_MAX, "a piece of {} bytes", piece.len());
        self.0.under_way.fetch_add(weight(&piece), Ordering::AcqRel);
        Bytes::from_owner(Piece { bytes: piece, window: self.clone() })
    }

    fn has_room(&self) -> bool {
        self.0.under_way.load(Ordering::Acquire) + PIECE_BYTES_MAX <= WINDOW_BYTES
    }
}

fn weight(piece: &Bytes) -> usize {
    piece.len().max(PIECE_BYTES_MIN)
}

struct Piece {
    bytes: Bytes,
    window: StreamWindow,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let Shared { under_way, waiting, .. } = &*self.window.0;
        under_way.fetch_sub(weight(&self.bytes), Ordering::AcqRel);
        waiting.wake();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const MIB: usize = 1024 * 1024;

    fn piece() -> Bytes {
        Bytes::from(vec![7; PIECE_BYTES_MAX])
    }

    #[test]
    fn pieces_wait_for_earlier_ones_to_be_dropped() {
        let budget = Arc::new(MemoryBudget::new(MIB));
        let window = StreamWindow::reserve(&budget, None).unwrap();
        let (first, second) = (window.attach(piece()), window.attach(piece()));
        assert!(window.room().now_or_never().is_none());
        let slice = first.slice(1..2);
        drop(first);
        assert!(window.room().now_or_never().is_none(), "a part of it is left");
        drop(slice);
        assert!(window.room().now_or_never().is_some());
        drop(second);
    }

    #[test]
    fn tiny_pieces_do_not_pile_up() {
        let budget = Arc::new(MemoryBudget::new(MIB));
        let window = StreamWindow::reserve(&budget, None).unwrap();
        let mut pieces = Vec::new();
        while window.room().now_or_never().is_some() {
            pieces.push(window.attach(Bytes::from_static(b"a")));
        }
        assert!(pieces.len() <= WINDOW_BYTES / PIECE_BYTES_MIN, "{}", pieces.len());
    }

    #[test]
    fn what_pieces_are_made_of_is_reserved_beside_them() {
        let budget = Arc::new(MemoryBudget::new(MIB));
        let window = StreamWindow::reserve_beside(&budget, None, 1000).unwrap();
        assert_eq!(budget.used(), WINDOW_BYTES + 1000);
        drop(window);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_dropped_piece_wakes_the_stream() {
        let budget = Arc::new(MemoryBudget::new(MIB));
        let window = StreamWindow::reserve(&budget, None).unwrap();
        let pieces = [window.attach(piece()), window.attach(piece())];
        let waiting = tokio::spawn(async move { window.room().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(pieces);
        waiting.await.unwrap();
    }

    #[test]
    fn memory_is_reserved_once_and_given_back_with_the_last_piece() {
        let budget = Arc::new(MemoryBudget::new(MIB));
        let window = StreamWindow::reserve(&budget, None).unwrap();
        assert_eq!(budget.used(), WINDOW_BYTES);
        let last = window.attach(piece());
        assert_eq!(budget.used(), WINDOW_BYTES);
        drop(window);
        assert_eq!(budget.used(), WINDOW_BYTES);
        drop(last);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_short_stream_reserves_its_length_and_streams_leave_room_for_small_messages() {
        let budget = Arc::new(MemoryBudget::new(MIB));
        let short = StreamWindow::reserve(&budget, Some(10_000)).unwrap();
        assert_eq!(budget.used(), 10_000);
        drop(short);
        let mut streams = Vec::new();
        while let Ok(stream) = StreamWindow::reserve(&budget, Some(u64::MAX)) {
            streams.push(stream);
        }
        assert_eq!(streams.len(), 6);
        budget.reservation().grow_to(32 * 1024).expect("room for a small message");
    }
}
