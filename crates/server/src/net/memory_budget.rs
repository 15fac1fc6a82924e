//! The memory that requests and replies on their way may use, over all connections.
//!
//! Each message has a limit of its own, but twenty thousand connections times the largest body would be more than
//! any machine has. So all of them draw on one budget, by what has arrived rather than by what was announced:
//! announcing costs nothing. A request that comes when it is used up is told 503 `ServerBusy`, and is tried again; a
//! page of a query that has begun ends where it is.
//!
//! Large messages leave a quarter of it alone: clients with many large ones must not stop the small ones, which are
//! nearly all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tavola_wire::ErrorCode;

use crate::error::Result;

/// Messages up to this size are not counted: the state of a request is of that size anyway, and the number of
/// requests at a time is limited.
pub(crate) const UNCOUNTED_BYTES: usize = 4 * 1024;
/// Messages up to this size may use the whole budget: a property of the largest size fits.
const SMALL_BYTES: usize = 64 * 1024;
/// A message in the making reserves this much more than it needs, so that it does not ask for every row.
const AHEAD_BYTES: usize = 16 * 1024;

/// The budget.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used: AtomicUsize,
    bytes_max: usize,
}

impl MemoryBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { used: AtomicUsize::new(0), bytes_max }
    }

    /// What is reserved now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The reservation of a new message: of nothing, until it grows.
    pub(crate) fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// What a large message can have at most, if nobody else has anything.
    pub(crate) fn message_max(&self) -> usize {
        self.limit_for(usize::MAX)
    }

    /// How far the budget may be used by a message of this size.
    fn limit_for(&self, bytes: usize) -> usize {
        let reserve = if bytes <= SMALL_BYTES { 0 } else { self.bytes_max / 4 };
        self.bytes_max - reserve
    }
}

/// What one message has reserved; given back on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Reservation {
    /// One of the same budget, of nothing.
    pub(crate) fn another(&self) -> Self {
        self.budget.reservation()
    }

    /// Reserves what a message of this size needs, beyond what it has reserved before.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is not that much left; what has been reserved before stays.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let Some(more) = self.missing(bytes) else { return Ok(()) };
        let limit = self.budget.limit_for(bytes);
        let used = &self.budget.used;
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|used| *used <= limit)
        })
        .map_err(|_| ErrorCode::ServerBusy)?;
        self.bytes = bytes;
        Ok(())
    }

    /// The same for a message that will grow on: a little more, if there is room.
    ///
    /// # Errors
    /// As [`Reservation::grow_to`].
    pub(crate) fn grow_ahead_to(&mut self, bytes: usize) -> Result<()> {
        match self.missing(bytes) {
            None => Ok(()),
            Some(_) => self.grow_to(bytes + AHEAD_BYTES).or_else(|_| self.grow_to(bytes)),
        }
    }

    /// The same, but never refused: others wait until the budget is not overdrawn any more. For replies to what has
    /// been done, which has to be told, or clients would do it again.
    pub(crate) fn grow_regardless_to(&mut self, bytes: usize) {
        if let Some(more) = self.missing(bytes) {
            self.budget.used.fetch_add(more, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    /// Gives back what a message of this size does not need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.budget.used.fetch_sub(spare, Ordering::Relaxed);
        self.bytes -= spare;
    }

    /// The same bytes, which give the memory back with their last clone: those of a reply when it has been written.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        struct Reserved {
            bytes: Bytes,
            _reservation: Reservation,
        }
        impl AsRef<[u8]> for Reserved {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        if self.bytes == 0 {
            return bytes;
        }
        Bytes::from_owner(Reserved { bytes, _reservation: self })
    }

    /// What there is to reserve for a message of this size; `None` if that is enough which is.
    fn missing(&self, bytes: usize) -> Option<usize> {
        (bytes > UNCOUNTED_BYTES && bytes > self.bytes).then(|| bytes - self.bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn budget(bytes: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::new(bytes))
    }

    fn reserved(budget: &Arc<MemoryBudget>, bytes: usize) -> Result<Reservation> {
        let mut reservation = budget.reservation();
        reservation.grow_to(bytes).map(|()| reservation)
    }

    #[test]
    fn a_reservation_grows_with_its_message_and_comes_back() {
        let budget = budget(8 * MIB);
        let mut reservation = budget.reservation();
        for (bytes, used) in [(UNCOUNTED_BYTES, 0), (MIB, MIB), (3 * MIB, 3 * MIB), (1, 3 * MIB)] {
            reservation.grow_to(bytes).unwrap();
            assert_eq!(budget.used(), used);
        }
        drop(reservation);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_done_is_answered_although_there_is_no_room() {
        let budget = budget(8 * MIB);
        let large = reserved(&budget, 6 * MIB).unwrap();
        let mut reply = budget.reservation();
        reply.grow_regardless_to(3 * MIB);
        assert_eq!(budget.used(), 9 * MIB);
        assert_eq!(reserved(&budget, SMALL_BYTES).unwrap_err().code(), ErrorCode::ServerBusy);
        drop((reply, large));
        assert_eq!(budget.used(), 0);
        budget.reservation().grow_regardless_to(UNCOUNTED_BYTES);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn large_messages_leave_room_for_small_ones() {
        let budget = budget(8 * MIB);
        let _large = reserved(&budget, 6 * MIB).unwrap();
        assert_eq!(reserved(&budget, MIB).unwrap_err().code(), ErrorCode::ServerBusy);
        assert_eq!(budget.used(), 6 * MIB, "what is refused leaves nothing behind");
        let mut small = Vec::new();
        while budget.used() < 8 * MIB {
            small.push(reserved(&budget, SMALL_BYTES).unwrap());
        }
        assert!(reserved(&budget, SMALL_BYTES).is_err());
        assert!(reserved(&budget, UNCOUNTED_BYTES).is_ok());
    }

    #[test]
    fn what_is_reserved_ahead_is_used_before_more_is_and_can_be_given_back() {
        let budget = budget(8 * MIB);
        let mut page = budget.reservation();
        page.grow_ahead_to(UNCOUNTED_BYTES).unwrap();
        assert_eq!(budget.used(), 0);
        for bytes in [MIB, MIB + 1, MIB + AHEAD_BYTES] {
            page.grow_ahead_to(bytes).unwrap();
            assert_eq!(budget.used(), MIB + AHEAD_BYTES);
        }
        page.shrink_to(MIB + 1);
        assert_eq!(budget.used(), MIB + 1);
        page.shrink_to(2 * MIB);
        assert_eq!(budget.used(), MIB + 1);
        drop(page);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_cannot_be_reserved_ahead_is_reserved_as_needed() {
        let budget = budget(8 * MIB);
        let mut large = budget.reservation();
        large.grow_ahead_to(6 * MIB).unwrap();
        assert_eq!(budget.used(), 6 * MIB);
        assert_eq!(large.grow_ahead_to(6 * MIB + 1).unwrap_err().code(), ErrorCode::ServerBusy);
        assert_eq!(budget.used(), 6 * MIB, "what has been reserved stays");
        budget.reservation().grow_ahead_to(SMALL_BYTES).expect("small ones find room");
        assert!(budget.reservation().grow_ahead_to(SMALL_BYTES + 1).is_err());
    }

    #[test]
    fn bytes_give_their_memory_back_with_their_last_clone() {
        let budget = budget(8 * MIB);
        let bytes = reserved(&budget, MIB).unwrap().attach(Bytes::from(vec![7; MIB]));
        let slice = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(budget.used(), MIB);
        assert_eq!(&slice[..], [7; 10]);
        drop(slice);
        assert_eq!(budget.used(), 0);
    }
}
