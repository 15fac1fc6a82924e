//! The memory that requests and replies on their way may hold, over all connections.
//!
//! Each message has a limit of its own, but twenty thousand connections times the largest body would be more than
//! any machine has. So all of them draw on one budget, by what has arrived rather than by what was announced:
//! announcing costs nothing. Whoever comes when it is used up is told 503 `ServerBusy`, and retries; a page of a query
//! that has begun ends where it is.
//!
//! Large messages leave a quarter of it alone: those who hold many large ones must not stop the small ones, which
//! are nearly all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Extensions;
use tavola_wire::ErrorCode;

use crate::error::Result;

/// Messages up to this size are not counted: the state of a request is of that size anyway, and the number of
/// requests at a time is limited.
const UNCOUNTED_BYTES: usize = 4 * 1024;
/// Messages up to this size may use the whole budget: a property of the largest size fits.
const SMALL_BYTES: usize = 64 * 1024;
/// A message in the making takes so much more than it needs, so that it does not ask for every row.
const AHEAD_BYTES: usize = 16 * 1024;

/// The budget.
#[derive(Debug)]
pub struct MemoryBudget {
    used: AtomicUsize,
    bytes_max: usize,
}

/// A message in the making, which takes of the budget as it grows.
#[derive(Debug)]
pub struct Growing {
    memory: Arc<MemoryBudget>,
    held: Option<Held>,
}

/// What one message has taken; given back on drop.
#[derive(Debug)]
pub struct Held {
    memory: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    pub fn new(bytes_max: usize) -> Self {
        Self { used: AtomicUsize::new(0), bytes_max }
    }

    /// What is held now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes what a message needs that has grown to so many bytes, beyond what it has taken before.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is not so much left.
    pub fn take(self: &Arc<Self>, held: &mut Option<Held>, bytes: usize) -> Result<()> {
        if bytes <= UNCOUNTED_BYTES {
            return Ok(());
        }
        let more = bytes - held.as_ref().map_or(0, |held| held.bytes);
        let reserve = if bytes <= SMALL_BYTES { 0 } else { self.bytes_max / 4 };
        let limit = self.bytes_max - reserve;
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(more).filter(|used| *used <= limit)
            })
            .map_err(|_| ErrorCode::ServerBusy)?;
        match held {
            Some(held) => held.bytes = bytes,
            None => *held = Some(Held { memory: self.clone(), bytes }),
        }
        Ok(())
    }

    /// The same bytes, which hold their share of the budget until the last clone is gone: for a reply, when it has
    /// been written.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is not so much left.
    pub fn hold(self: &Arc<Self>, bytes: Bytes) -> Result<Bytes> {
        let mut held = None;
        self.take(&mut held, bytes.len())?;
        Ok(match held {
            Some(held) => carrying(bytes, held),
            None => bytes,
        })
    }

    /// Like [`MemoryBudget::hold`], but never refused: others wait until the budget is not overdrawn any more.
    pub fn hold_regardless(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        if bytes.len() <= UNCOUNTED_BYTES {
            return bytes;
        }
        self.used.fetch_add(bytes.len(), Ordering::Relaxed);
        let held = Held { memory: self.clone(), bytes: bytes.len() };
        carrying(bytes, held)
    }
}

impl Growing {
    pub fn new(memory: &Arc<MemoryBudget>) -> Self {
        Self { memory: memory.clone(), held: None }
    }

    /// Takes what is needed for so many bytes.
    ///
    /// # Errors
    /// 503 `ServerBusy` when there is not so much left; what has been taken before stays.
    pub fn grow_to(&mut self, bytes: usize) -> Result<()> {
        if bytes <= self.held.as_ref().map_or(UNCOUNTED_BYTES, |held| held.bytes) {
            return Ok(());
        }
        let Self { memory, held } = self;
        memory.take(held, bytes + AHEAD_BYTES).or_else(|_| memory.take(held, bytes))
    }

    /// What a message of so many bytes has taken, for as long as it lives; what was taken ahead is given back.
    pub fn finish(self, bytes: usize) -> Option<Held> {
        let mut held = self.held?;
        let ahead = held.bytes.saturating_sub(bytes);
        held.memory.used.fetch_sub(ahead, Ordering::Relaxed);
        held.bytes -= ahead;
        Some(held)
    }
}

/// What a reply holds, on its way to where the reply is sent. Extensions must be cloneable.
#[derive(Clone)]
struct OfReply(Arc<Held>);

impl Held {
    /// Goes with a reply that has taken its share while it was made.
    pub fn go_with(self, reply: &mut Extensions) {
        reply.insert(OfReply(Arc::new(self)));
    }

    /// What came with a reply.
    pub fn that_came_with(reply: &mut Extensions) -> Option<Arc<Self>> {
        reply.remove::<OfReply>().map(|OfReply(held)| held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The same bytes; `guard` is dropped with the last clone of them.
pub(crate) fn carrying<G: Send + 'static>(bytes: Bytes, guard: G) -> Bytes {
    struct Carrying<G> {
        bytes: Bytes,
        _guard: G,
    }
    impl<G> AsRef<[u8]> for Carrying<G> {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    Bytes::from_owner(Carrying { bytes, _guard: guard })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn budget(bytes: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::new(bytes))
    }

    #[test]
    fn what_a_message_takes_grows_with_it_and_comes_back() {
        let memory = budget(8 * MIB);
        let mut held = None;
        for bytes in [UNCOUNTED_BYTES, MIB, 3 * MIB] {
            memory.take(&mut held, bytes).unwrap();
        }
        assert_eq!(memory.used(), 3 * MIB);
        drop(held);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_is_done_is_answered_although_there_is_no_room() {
        let memory = budget(8 * MIB);
        let mut large = None;
        memory.take(&mut large, 6 * MIB).unwrap();
        let reply = memory.hold_regardless(vec![0; 3 * MIB].into());
        assert_eq!(memory.used(), 9 * MIB);
        let mut other = None;
        assert_eq!(memory.take(&mut other, SMALL_BYTES).unwrap_err().code(), ErrorCode::ServerBusy);
        drop((reply, large));
        assert_eq!(memory.used(), 0);
        assert_eq!(memory.hold_regardless(Bytes::from_static(b"small")), "small");
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn large_messages_leave_room_for_small_ones() {
        let memory = budget(8 * MIB);
        let mut large = None;
        memory.take(&mut large, 6 * MIB).unwrap();
        let mut other = None;
        assert_eq!(memory.take(&mut other, MIB).unwrap_err().code(), ErrorCode::ServerBusy);
        assert!(other.is_none());
        let mut small = Vec::new();
        while memory.used() < 8 * MIB {
            let mut held = None;
            memory.take(&mut held, SMALL_BYTES).unwrap();
            small.push(held);
        }
        assert!(memory.take(&mut None, SMALL_BYTES).is_err());
        assert!(memory.take(&mut None, UNCOUNTED_BYTES).is_ok());
    }

    #[test]
    fn what_grows_takes_ahead_and_gives_back_what_it_does_not_need() {
        let memory = budget(8 * MIB);
        let mut growing = Growing::new(&memory);
        growing.grow_to(UNCOUNTED_BYTES).unwrap();
        assert_eq!(memory.used(), 0);
        for bytes in [MIB, MIB + 1, MIB + AHEAD_BYTES] {
            growing.grow_to(bytes).unwrap();
            assert_eq!(memory.used(), MIB + AHEAD_BYTES);
        }
        let held = growing.finish(MIB + 1);
        assert_eq!(memory.used(), MIB + 1);
        drop(held);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn what_grows_takes_what_there_is() {
        let memory = budget(8 * MIB);
        let mut large = Growing::new(&memory);
        large.grow_to(6 * MIB).unwrap();
        assert_eq!(large.grow_to(6 * MIB + 1).unwrap_err().code(), ErrorCode::ServerBusy);
        assert_eq!(memory.used(), 6 * MIB, "what has been taken stays");
        Growing::new(&memory).grow_to(SMALL_BYTES).expect("small ones find room");
        assert!(Growing::new(&memory).grow_to(SMALL_BYTES + 1).is_err());
    }

    #[test]
    fn a_share_goes_with_a_reply() {
        let memory = budget(8 * MIB);
        let mut growing = Growing::new(&memory);
        growing.grow_to(MIB).unwrap();
        let mut extensions = Extensions::new();
        growing.finish(MIB).unwrap().go_with(&mut extensions);
        assert_eq!(memory.used(), MIB);
        let held = Held::that_came_with(&mut extensions).unwrap();
        assert!(Held::that_came_with(&mut extensions).is_none());
        drop(held);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_reply_holds_until_its_last_clone_is_gone() {
        let memory = budget(8 * MIB);
        let bytes = memory.hold(Bytes::from(vec![7; MIB])).unwrap();
        let slice = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(memory.used(), MIB);
        assert_eq!(&slice[..], [7; 10]);
        drop(slice);
        assert_eq!(memory.used(), 0);
    }
}
