//! What one HTTP/2 connection has been given and has not taken yet, and when enough is enough.
//!
//! HTTP/2 lets a client open a hundred requests and take none of the replies, by leaving its flow-control window
//! shut, while the socket is as writable as ever and every ping is answered. HTTP/1 needs none of this: it has
//! one reply at a time, which [`Transport`](crate::transport) watches over, and hyper ends it when it is idle.
//!
//! That a reply has been taken is seen when its last byte has: hyper hands it on as one piece and keeps it until then.
//! Replies that wait together are sent in turns, a frame of each, so that of ten equal ones the first ends when all are
//! nearly through, however fast the line is. So each reply has the time that a line of the lowest speed needs for it and
//! for the share of all others that may go out before its end, also of those that come later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::config::Limits;
use crate::message_memory::carrying;
use crate::patience::time_for;

/// What goes out of a reply in one turn, by default and with nearly all clients: the payload of a frame.
const TURN_BYTES: usize = 16 * 1024;

/// What one reply is given time for on account of others, at most. It bounds how long a client that takes nothing can
/// hold many large replies: a little more than twenty minutes. No client waits that long for an answer.
const SHARED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The requests of a connection, from their first byte until their replies have been taken.
#[derive(Debug)]
pub struct Exchanges {
    stall_max: Duration,
    idle_max: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u64,
    open: BTreeMap<u64, Option<Unsent>>,
    idle_since: Instant,
}

/// A reply that is on its way.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    bytes: usize,
    since: Instant,
    /// Bytes of other replies that may go out before its last byte does.
    shared_bytes: usize,
}

impl Unsent {
    fn deadline(&self, stall_max: Duration) -> Instant {
        let shared_bytes = self.shared_bytes.min(SHARED_BYTES_MAX);
        self.since + stall_max + time_for(self.bytes + shared_bytes)
    }

    /// Takes account of another reply: it gets as many turns as this one, or as it needs.
    fn share_with(&mut self, other_bytes: usize) {
        let share = other_bytes.min(self.bytes.max(TURN_BYTES));
        self.shared_bytes = self.shared_bytes.saturating_add(share);
    }
}

/// What to do with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Fine,
    /// Nothing has happened for long: it may be closed in order.
    Idle,
    /// A reply waits for too long: it is cut off.
    Stalled,
}

impl Exchanges {
    pub fn new(limits: &Limits, now: Instant) -> Self {
        let state = State { next: 0, open: BTreeMap::new(), idle_since: now };
        Self {
            stall_max: limits.transfer_timeout,
            idle_max: limits.head_timeout,
            state: Mutex::new(state),
        }
    }

    /// How often to look: often enough to keep to the limits, seldom enough to cost nothing.
    pub fn look_every(&self) -> Duration {
        (self.stall_max.min(self.idle_max) / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// A request has come.
    pub fn begin(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Exchange {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.open.insert(id, None);
        Exchange { exchanges: self.clone(), id, _permit: permit }
    }

    pub fn judge(&self, now: Instant) -> Judgement {
        let state = self.state();
        let mut unsent = state.open.values().flatten();
        if unsent.any(|unsent| unsent.deadline(self.stall_max) <= now) {
            Judgement::Stalled
        } else if state.open.is_empty() && state.idle_since + self.idle_max <= now {
            Judgement::Idle
        } else {
            Judgement::Fine
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request of the connection; it ends when this is dropped.
#[derive(Debug)]
pub struct Exchange {
    exchanges: Arc<Exchanges>,
    id: u64,
    _permit: OwnedSemaphorePermit,
}

impl Exchange {
    /// The same bytes, which end the exchange when they have been taken.
    pub fn reply(self, bytes: Bytes, now: Instant) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        {
            let mut state = self.exchanges.state();
            let mut unsent = Unsent { bytes: bytes.len(), since: now, shared_bytes: 0 };
            for other in state.open.values_mut().flatten() {
                unsent.share_with(other.bytes);
                other.share_with(unsent.bytes);
            }
            state.open.insert(self.id, Some(unsent));
        }
        carrying(bytes, self)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.exchanges.state();
        state.open.remove(&self.id);
        if state.open.is_empty() {
            state.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;
    use crate::patience::BYTES_PER_SECOND_MIN;

    const SECOND: Duration = Duration::from_secs(1);

    fn exchanges(now: Instant) -> Arc<Exchanges> {
        let limits = Limits {
            transfer_timeout: 10 * SECOND,
            head_timeout: 60 * SECOND,
            ..Limits::default()
        };
        Arc::new(Exchanges::new(&limits, now))
    }

    fn begin(exchanges: &Arc<Exchanges>) -> Exchange {
        let permits = Arc::new(Semaphore::new(1));
        exchanges.begin(permits.try_acquire_owned().unwrap())
    }

    #[test]
    fn a_connection_without_requests_becomes_idle() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        assert_eq!(exchanges.judge(now + 59 * SECOND), Judgement::Fine);
        assert_eq!(exchanges.judge(now + 60 * SECOND), Judgement::Idle);
        // A request that is being answered has its own limits.
        let exchange = begin(&exchanges);
        assert_eq!(exchanges.judge(now + 1000 * SECOND), Judgement::Fine);
        drop(exchange);
        assert_eq!(exchanges.judge(now + 59 * SECOND), Judgement::Fine);
    }

    fn bytes_of(seconds: u32) -> Bytes {
        Bytes::from(vec![0; (seconds * BYTES_PER_SECOND_MIN) as usize])
    }

    #[test]
    fn a_reply_that_is_not_taken_stalls_the_connection() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        let reply = begin(&exchanges).reply(bytes_of(5), now);
        assert_eq!(exchanges.judge(now + 14 * SECOND), Judgement::Fine);
        assert_eq!(exchanges.judge(now + 15 * SECOND), Judgement::Stalled);
        drop(reply);
        assert_eq!(exchanges.judge(now + 15 * SECOND), Judgement::Fine);
    }

    /// Large replies that a slow line takes in turns: none ends before all are nearly through.
    #[test]
    fn replies_that_come_later_share_the_line() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        let replies: Vec<_> = (0..50)
            .map(|number| begin(&exchanges).reply(bytes_of(20), now + number * SECOND / 10))
            .collect();
        // At the lowest speed.
        let all_taken = 50 * 20 * SECOND;
        assert_eq!(exchanges.judge(now + all_taken), Judgement::Fine);
        // But nobody may take nothing for ever.
        assert_eq!(exchanges.judge(now + all_taken + 10 * SECOND), Judgement::Stalled);
        drop(replies);
        assert_ne!(exchanges.judge(now + all_taken + 10 * SECOND), Judgement::Stalled);
    }

    /// Small replies have their turns between those of large ones: who does not take them takes nothing.
    #[test]
    fn a_small_reply_does_not_wait_for_large_ones() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        let _large = [(); 3].map(|()| begin(&exchanges).reply(bytes_of(100), now));
        let small = begin(&exchanges).reply(Bytes::from_static(b"small"), now);
        assert_eq!(exchanges.judge(now + 13 * SECOND), Judgement::Fine);
        assert_eq!(exchanges.judge(now + 14 * SECOND), Judgement::Stalled);
        drop(small);
        assert_eq!(exchanges.judge(now + 300 * SECOND), Judgement::Fine);
    }

    #[test]
    fn the_time_for_many_large_replies_is_bounded() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        let large = Bytes::from(vec![0; 4 * 1024 * 1024]);
        let _replies: Vec<_> =
            (0..100).map(|_| begin(&exchanges).reply(large.clone(), now)).collect();
        assert_eq!(exchanges.judge(now + 20 * 60 * SECOND), Judgement::Fine);
        assert_eq!(exchanges.judge(now + 22 * 60 * SECOND), Judgement::Stalled);
    }

    #[test]
    fn a_reply_without_a_body_ends_at_once() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        begin(&exchanges).reply(Bytes::new(), now);
        assert!(exchanges.state().open.is_empty());
    }
}
