//! What one HTTP/2 connection has been given and has not taken yet, and when enough is enough.
//!
//! HTTP/2 lets a client open a hundred requests and take none of the replies, by leaving its flow-control window
//! shut, while the socket is as writable as ever and every ping is answered. HTTP/1 needs none of this: it has
//! one reply at a time, which [`Transport`](crate::net::transport) watches over, and hyper ends it when it is idle.
//!
//! Two things are watched. The connection has to move: while replies wait, [`StallTimeout`] runs out, and the bytes that the
//! socket takes renew it. That alone would let a client hold one large reply while it takes small ones, so each reply has
//! a time limit as well.
//!
//! That a reply has been taken is seen when its last byte has: hyper hands it on as one piece and keeps it until then.
//! Replies that wait together are sent in turns, a frame of each, so that of ten equal ones the first ends when all are
//! nearly through, however fast the line is. So each reply has the time that a line of the lowest speed needs for it and
//! for the share of all others that may go out before its end, also of those that come later.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::config::Limits;
use crate::net::memory_budget::carrying;
use crate::net::stall_timeout::{StallTimeout, time_for};

/// What goes out of a reply in one turn, by default and with nearly all clients: the payload of a frame.
const TURN_BYTES: usize = 16 * 1024;

/// What one reply is given time for on account of others, at most. It bounds how long a client that goes on to take
/// others can hold a reply: a little more than twenty minutes. No client waits that long for an answer.
const SHARED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The requests of a connection, from their first byte until their replies have been taken.
#[derive(Debug)]
pub(crate) struct Exchanges {
    stall_max: Duration,
    idle_max: Duration,
    /// Bytes that the socket has taken since it was opened.
    written: Arc<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u64,
    open: BTreeMap<u64, Option<Unsent>>,
    idle_since: Instant,
    progress: Progress,
}

/// How the connection has moved since there were replies to send.
#[derive(Debug)]
struct Progress {
    stall_timeout: StallTimeout,
    looked: Instant,
    /// What the socket had taken by then.
    written: u64,
}

impl Progress {
    fn new(stall_max: Duration, now: Instant, written: u64) -> Self {
        Self { stall_timeout: StallTimeout::new(stall_max), looked: now, written }
    }

    /// Whether the time to move on is used up.
    fn has_stalled(&mut self, now: Instant, written: u64) -> bool {
        let moved = usize::try_from(written - self.written).unwrap_or(usize::MAX);
        self.stall_timeout.moved(moved);
        self.stall_timeout.waited(now.saturating_duration_since(self.looked));
        (self.looked, self.written) = (now, written);
        self.stall_timeout.left().is_zero()
    }
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

    /// Takes account of a later reply: it gets as many turns as this one, or as it needs.
    fn share_with(&mut self, other_bytes: usize) {
        let share = other_bytes.min(self.bytes.max(TURN_BYTES));
        self.shared_bytes = self.shared_bytes.saturating_add(share);
    }
}

/// What to do with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Fine,
    /// Nothing has happened for long: it may be closed in order.
    Idle,
    /// A reply waits for too long: it is cut off.
    Stalled,
}

impl Exchanges {
    /// `written` counts what the socket takes.
    pub(crate) fn new(limits: &Limits, written: Arc<AtomicU64>, now: Instant) -> Self {
        let progress = Progress::new(limits.transfer_timeout, now, 0);
        let state = State { next: 0, open: BTreeMap::new(), idle_since: now, progress };
        Self {
            stall_max: limits.transfer_timeout,
            idle_max: limits.head_timeout,
            written,
            state: Mutex::new(state),
        }
    }

    /// How often to look: often enough to keep to the limits, seldom enough to cost nothing.
    pub(crate) fn look_every(&self) -> Duration {
        (self.stall_max.min(self.idle_max) / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// A request has come.
    pub(crate) fn begin(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Exchange {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.open.insert(id, None);
        Exchange { exchanges: self.clone(), id, _permit: permit }
    }

    pub(crate) fn judge(&self, now: Instant) -> Judgement {
        let mut state = self.state();
        let mut unsent = state.open.values().flatten().peekable();
        let is_sending = unsent.peek().is_some();
        let is_late = unsent.any(|unsent| unsent.deadline(self.stall_max) <= now);
        let has_stalled = is_sending && state.progress.has_stalled(now, self.written());
        if is_late || has_stalled {
            Judgement::Stalled
        } else if state.open.is_empty() && state.idle_since + self.idle_max <= now {
            Judgement::Idle
        } else {
            Judgement::Fine
        }
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request of the connection; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Exchange {
    exchanges: Arc<Exchanges>,
    id: u64,
    _permit: OwnedSemaphorePermit,
}

impl Exchange {
    /// The same bytes, which end the exchange when they have been taken.
    pub(crate) fn reply(self, bytes: Bytes, now: Instant) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        {
            let mut state = self.exchanges.state();
            if state.open.values().flatten().next().is_none() {
                let (stall_max, written) = (self.exchanges.stall_max, self.exchanges.written());
                state.progress = Progress::new(stall_max, now, written);
            }
            let mut unsent = Unsent { bytes: bytes.len(), since: now, shared_bytes: 0 };
            for other in state.open.values_mut().flatten() {
                // What waits already may have all of the client's window, and goes out first then.
                unsent.shared_bytes = unsent.shared_bytes.saturating_add(other.bytes);
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
    use crate::net::stall_timeout::BYTES_PER_SECOND_MIN;

    const SECOND: Duration = Duration::from_secs(1);

    /// A connection and its time.
    struct Line {
        exchanges: Arc<Exchanges>,
        written: Arc<AtomicU64>,
        now: Instant,
    }

    impl Line {
        fn new() -> Self {
            let limits = Limits {
                transfer_timeout: 10 * SECOND,
                head_timeout: 60 * SECOND,
                ..Limits::default()
            };
            let (written, now) = (Arc::default(), Instant::now());
            let exchanges = Arc::new(Exchanges::new(&limits, Arc::clone(&written), now));
            Self { exchanges, written, now }
        }

        fn begin(&self) -> Exchange {
            let permits = Arc::new(Semaphore::new(1));
            self.exchanges.begin(permits.try_acquire_owned().unwrap())
        }

        fn reply(&self, bytes: Bytes) -> Bytes {
            self.begin().reply(bytes, self.now)
        }

        /// Lets seconds pass in which the client takes so many bytes each, as long as it is not given up.
        fn pass(&mut self, seconds: u32, bytes_per_second: u32) -> Judgement {
            let mut judgement = Judgement::Fine;
            for _ in 0..seconds {
                self.now += SECOND;
                self.written.fetch_add(bytes_per_second.into(), Ordering::Relaxed);
                judgement = self.exchanges.judge(self.now);
                if judgement == Judgement::Stalled {
                    break;
                }
            }
            judgement
        }
    }

    fn bytes_of(seconds: u32) -> Bytes {
        Bytes::from(vec![0; (seconds * BYTES_PER_SECOND_MIN) as usize])
    }

    #[test]
    fn a_connection_without_requests_becomes_idle() {
        let mut line = Line::new();
        assert_eq!(line.pass(59, 0), Judgement::Fine);
        assert_eq!(line.pass(1, 0), Judgement::Idle);
        // A request that is being answered has its own limits.
        let exchange = line.begin();
        assert_eq!(line.pass(1000, 0), Judgement::Fine);
        drop(exchange);
        line.now = Instant::now();
        assert_eq!(line.pass(59, 0), Judgement::Fine);
    }

    /// However many and large the replies are.
    #[test]
    fn who_takes_nothing_is_given_up_at_once() {
        for replies in [1, 100] {
            let mut line = Line::new();
            line.pass(50, 0);
            let replies: Vec<_> = (0..replies).map(|_| line.reply(bytes_of(250))).collect();
            assert_eq!(line.pass(9, 0), Judgement::Fine);
            assert_eq!(line.pass(1, 0), Judgement::Stalled);
            drop(replies);
            assert_ne!(line.pass(1, 0), Judgement::Stalled);
        }
    }

    #[test]
    fn a_trickle_is_given_up_and_a_slow_line_is_not() {
        let mut line = Line::new();
        let _reply = line.reply(bytes_of(100));
        assert_eq!(line.pass(90, BYTES_PER_SECOND_MIN), Judgement::Fine);
        assert_eq!(line.pass(30, BYTES_PER_SECOND_MIN / 2), Judgement::Stalled);
    }

    /// Replies that are taken do not excuse one that is not.
    #[test]
    fn a_reply_that_is_never_taken_is_given_up_although_others_are() {
        let mut line = Line::new();
        let _held = line.reply(bytes_of(5));
        assert_eq!(line.pass(14, 10 * BYTES_PER_SECOND_MIN), Judgement::Fine);
        assert_eq!(line.pass(1, 10 * BYTES_PER_SECOND_MIN), Judgement::Stalled);
    }

    /// Large replies that a slow line takes in turns: none ends before all are nearly through.
    #[test]
    fn replies_that_come_later_share_the_line() {
        let mut line = Line::new();
        let mut replies = Vec::new();
        for _ in 0..50 {
            replies.push(line.reply(bytes_of(20)));
        }
        assert_eq!(line.pass(50 * 20, BYTES_PER_SECOND_MIN), Judgement::Fine);
        // Not for ever.
        assert_eq!(line.pass(10, BYTES_PER_SECOND_MIN), Judgement::Stalled);
    }

    /// A client's window may be full with what waits already; what comes later does not excuse for long.
    #[test]
    fn a_small_reply_waits_for_large_ones_before_it() {
        let mut line = Line::new();
        let large = [(); 3].map(|()| line.reply(bytes_of(100)));
        let small = line.reply(Bytes::from_static(b"small"));
        assert_eq!(line.pass(300, BYTES_PER_SECOND_MIN), Judgement::Fine);
        drop((large, small));
        let _small = line.reply(Bytes::from_static(b"small"));
        let _large = [(); 3].map(|()| line.reply(bytes_of(100)));
        assert_eq!(line.pass(14, BYTES_PER_SECOND_MIN), Judgement::Stalled);
    }

    #[test]
    fn the_time_for_many_large_replies_is_bounded() {
        let mut line = Line::new();
        let large = Bytes::from(vec![0; 4 * 1024 * 1024]);
        let _replies: Vec<_> = (0..100).map(|_| line.reply(large.clone())).collect();
        assert_eq!(line.pass(20 * 60, BYTES_PER_SECOND_MIN), Judgement::Fine);
        assert_eq!(line.pass(2 * 60, BYTES_PER_SECOND_MIN), Judgement::Stalled);
    }

    #[test]
    fn a_reply_without_a_body_ends_at_once() {
        let line = Line::new();
        line.reply(Bytes::new());
        assert!(line.exchanges.state().open.is_empty());
    }
}
