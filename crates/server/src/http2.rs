//! What one HTTP/2 connection has been given and has not taken yet, and when enough is enough.
//!
//! HTTP/2 lets a client open a hundred requests and take none of the replies, by leaving its flow-control window
//! shut, while the socket is as writable as ever and every ping is answered. HTTP/1 needs none of this: it has
//! one reply at a time, which [`Transport`](crate::transport) watches over, and hyper ends it when it is idle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::config::Limits;
use crate::message_memory::carrying;
use crate::patience::time_for;

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
    /// Bytes of all replies that have not been taken.
    unsent_bytes: usize,
    idle_since: Instant,
}

/// A reply that is on its way.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    bytes: usize,
    deadline: Instant,
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
        let state = State { next: 0, open: BTreeMap::new(), unsent_bytes: 0, idle_since: now };
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
        if unsent.any(|unsent| unsent.deadline <= now) {
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
            // The replies share a line: what waits before this one has to be taken as well.
            state.unsent_bytes += bytes.len();
            let deadline = now + self.exchanges.stall_max + time_for(state.unsent_bytes);
            let unsent = Unsent { bytes: bytes.len(), deadline };
            state.open.insert(self.id, Some(unsent));
        }
        carrying(bytes, self)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.exchanges.state();
        if let Some(Some(unsent)) = state.open.remove(&self.id) {
            state.unsent_bytes -= unsent.bytes;
        }
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

    #[test]
    fn a_reply_that_is_not_taken_stalls_the_connection() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        let a_second = Bytes::from(vec![0; BYTES_PER_SECOND_MIN as usize]);
        let first = begin(&exchanges).reply(a_second.clone(), now);
        // It waits behind the first.
        let second = begin(&exchanges).reply(a_second, now);
        assert_eq!(exchanges.judge(now + 10 * SECOND), Judgement::Fine);
        assert_eq!(exchanges.judge(now + 11 * SECOND), Judgement::Stalled);
        drop(first);
        assert_eq!(exchanges.judge(now + 11 * SECOND), Judgement::Fine);
        assert_eq!(exchanges.judge(now + 12 * SECOND), Judgement::Stalled);
        drop(second);
        assert_eq!(exchanges.judge(now + 12 * SECOND), Judgement::Fine);
        assert_eq!(exchanges.state().unsent_bytes, 0);
    }

    #[test]
    fn a_reply_without_a_body_ends_at_once() {
        let now = Instant::now();
        let exchanges = exchanges(now);
        begin(&exchanges).reply(Bytes::new(), now);
        assert!(exchanges.state().open.is_empty());
    }
}
