//! Cuts off an HTTP/2 connection whose replies are not taken.
//!
//! HTTP/2 lets a client open a hundred requests and take none of the replies, by leaving its flow-control window
//! shut, while the socket is as writable as ever and every ping is answered. HTTP/1 needs none of this: it has
//! one reply at a time, which [`Transport`](crate::net::transport) watches over, and hyper ends it when it is idle.
//!
//! Two things are watched. The connection has to move: while bytes of replies wait to be sent, [`StallTimeout`] runs, and
//! the bytes that the socket takes renew it. That alone would let a client hold one large reply back while it takes
//! small ones, so each reply has a deadline as well.
//!
//! What waits is counted per reply: from when hyper takes a frame of its body until it drops the last byte of that frame,
//! which it does when it has been written. The deadline is set when a reply has something to send, and again whenever a frame
//! of it has gone; a whole reply is one frame, and a stream has a few under way.
//!
//! Replies that wait together are sent interleaved, a frame of each, so that of ten equal ones the first ends when all are
//! nearly through, however fast the line is. So the deadline is the time that a line of the lowest speed needs for what waits
//! of the reply and for the share of all others that may go out before its end, also of those that come later.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::config::Limits;
use crate::net::stall_timeout::{StallTimeout, time_for};

/// What goes out of a reply before another is served, by default and with nearly all clients: the payload of a frame.
const FRAME_BYTES: usize = 16 * 1024;

/// What one reply is given time for on account of others, at most. It bounds how long a client that goes on to take
/// others can hold a reply back: a little more than twenty minutes. No client waits that long for an answer.
const SHARED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Watches over one connection: its requests, from their first byte until their replies have been sent.
#[derive(Debug)]
pub(crate) struct H2Watchdog {
    stall_max: Duration,
    idle_max: Duration,
    /// Bytes that the socket has taken since it was opened.
    written: Arc<AtomicU64>,
    state: Mutex<State>,
}

/// What to do with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Healthy,
    /// Nothing has happened for long: it may be closed in order.
    Idle,
    /// A reply waits for too long: it is cut off.
    Stalled,
}

impl H2Watchdog {
    /// `written` counts what the socket takes.
    pub(crate) fn new(limits: &Limits, written: Arc<AtomicU64>) -> Self {
        let now = Instant::now();
        let progress = Progress::new(limits.transfer_timeout, now, 0);
        let state = State { next: 0, open: BTreeMap::new(), idle_since: now, progress };
        Self {
            stall_max: limits.transfer_timeout,
            idle_max: limits.head_timeout,
            written,
            state: Mutex::new(state),
        }
    }

    /// How often to check: often enough to keep to the limits, seldom enough to cost nothing.
    pub(crate) fn check_interval(&self) -> Duration {
        (self.stall_max.min(self.idle_max) / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// A request has come.
    pub(crate) fn begin(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Exchange {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.open.insert(id, Sending::default());
        Exchange { watchdog: self.clone(), id, _permit: permit }
    }

    pub(crate) fn check(&self) -> Verdict {
        let (now, written) = (Instant::now(), self.written());
        let mut state = self.state();
        let deadlines = state.open.values().filter_map(|sending| sending.deadline(self.stall_max));
        let first_deadline = deadlines.min();
        let is_late = first_deadline.is_some_and(|deadline| deadline <= now);
        let has_stalled = first_deadline.is_some() && state.progress.has_stalled(now, written);
        if is_late || has_stalled {
            Verdict::Stalled
        } else if state.open.is_empty() && state.idle_since + self.idle_max <= now {
            Verdict::Idle
        } else {
            Verdict::Healthy
        }
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request of the connection. It ends when this is dropped, which bodies and frames do last.
#[derive(Debug)]
pub(crate) struct Exchange {
    watchdog: Arc<H2Watchdog>,
    id: u64,
    _permit: OwnedSemaphorePermit,
}

impl Exchange {
    /// The same body, watched until its last byte has been sent.
    pub(crate) fn reply<B: Body>(self, body: B) -> WatchedBody<B> {
        // A reply without a body has been sent with its head.
        let exchange = (!body.is_end_stream()).then(|| Arc::new(self));
        WatchedBody { body, exchange }
    }

    /// A frame waits to be sent, and more may follow it.
    fn wait_for(&self, bytes: usize, bytes_to_come: u64) {
        let bytes_to_come = usize::try_from(bytes_to_come).unwrap_or(usize::MAX);
        let now = Instant::now();
        let mut state = self.watchdog.state();
        if !state.is_sending() {
            let (stall_max, written) = (self.watchdog.stall_max, self.watchdog.written());
            state.progress = Progress::new(stall_max, now, written);
        }
        state.wait_for(self.id, bytes, bytes_to_come, now);
    }

    /// A frame has been sent, or will never be.
    fn sent(&self, bytes: usize) {
        self.watchdog.state().sent(self.id, bytes, Instant::now());
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.watchdog.state();
        state.open.remove(&self.id);
        if state.open.is_empty() {
            state.idle_since = Instant::now();
        }
    }
}

/// The body of a reply, which tells the watchdog what becomes of its frames.
#[derive(Debug)]
pub(crate) struct WatchedBody<B> {
    body: B,
    exchange: Option<Arc<Exchange>>,
}

impl<B> WatchedBody<B> {
    /// A body that nobody watches: that of a request which was not begun.
    pub(crate) fn unwatched(body: B) -> Self {
        Self { body, exchange: None }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let Some(exchange) = &self.exchange else { return Poll::Ready(frame) };
        let to_come = self.body.size_hint();
        let to_come = to_come.exact().unwrap_or(u64::MAX);
        let watched = |bytes: Bytes| {
            if bytes.is_empty() {
                return bytes;
            }
            exchange.wait_for(bytes.len(), to_come);
            Bytes::from_owner(WatchedBytes { bytes, exchange: exchange.clone() })
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(watched))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A frame's bytes, which tell when they are gone.
struct WatchedBytes {
    bytes: Bytes,
    exchange: Arc<Exchange>,
}

impl AsRef<[u8]> for WatchedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for WatchedBytes {
    fn drop(&mut self) {
        self.exchange.sent(self.bytes.len());
    }
}

#[derive(Debug)]
struct State {
    next: u64,
    open: BTreeMap<u64, Sending>,
    idle_since: Instant,
    progress: Progress,
}

impl State {
    /// Whether bytes of any reply wait to be sent.
    fn is_sending(&self) -> bool {
        self.open.values().any(|sending| sending.since.is_some())
    }

    fn wait_for(&mut self, id: u64, bytes: usize, bytes_to_come: usize, now: Instant) {
        let mut sending = self.open.get(&id).copied().unwrap_or_default();
        let is_first = !sending.has_begun;
        sending.has_begun = true;
        sending.waiting_bytes = sending.waiting_bytes.saturating_add(bytes);
        sending.bytes_to_come = bytes_to_come;
        if sending.since.is_none() {
            sending.since = Some(now);
            sending.shared_bytes = self.share_of_others(id, sending.waiting_bytes);
        }
        self.open.insert(id, sending);
        if is_first {
            let all_bytes = bytes.saturating_add(bytes_to_come);
            for (_, other) in self.open.iter_mut().filter(|(other, _)| **other != id) {
                other.share_with(all_bytes);
            }
        }
    }

    fn sent(&mut self, id: u64, bytes: usize, now: Instant) {
        let Some(mut sending) = self.open.get(&id).copied() else { return };
        sending.waiting_bytes = sending.waiting_bytes.saturating_sub(bytes);
        sending.since = (sending.waiting_bytes > 0).then_some(now);
        sending.shared_bytes = self.share_of_others(id, sending.waiting_bytes);
        self.open.insert(id, sending);
    }

    /// What may go out of the others before the last of `bytes` does. What waits already may have all of the client's
    /// window, and goes out first then; what is still to come of a stream goes out frame by frame with it.
    fn share_of_others(&self, id: u64, bytes: usize) -> usize {
        let others = self.open.iter().filter(|(other, _)| **other != id);
        let shares = others.map(|(_, other)| {
            let to_come = if other.has_begun { interleaved(bytes, other.bytes_to_come) } else { 0 };
            other.waiting_bytes.saturating_add(to_come)
        });
        shares.fold(0, usize::saturating_add)
    }
}

/// What goes out of `other_bytes` while `bytes` do: a frame of each, one after the other.
fn interleaved(bytes: usize, other_bytes: usize) -> usize {
    other_bytes.min(bytes.max(FRAME_BYTES))
}

/// What is known of the reply to a request.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    has_begun: bool,
    /// Bytes that hyper has taken and the socket has not.
    waiting_bytes: usize,
    /// Bytes that hyper has not taken yet, as far as that is known.
    bytes_to_come: usize,
    /// Since when they wait: when there was nothing before, or a frame has gone.
    since: Option<Instant>,
    /// Bytes of other replies that may go out before them.
    shared_bytes: usize,
}

impl Sending {
    /// Until when what waits must have moved, if anything does.
    fn deadline(&self, stall_max: Duration) -> Option<Instant> {
        let shared_bytes = self.shared_bytes.min(SHARED_BYTES_MAX);
        Some(self.since? + stall_max + time_for(self.waiting_bytes + shared_bytes))
    }

    /// Takes account of a later reply.
    fn share_with(&mut self, other_bytes: usize) {
        let share = interleaved(self.waiting_bytes, other_bytes);
        self.shared_bytes = self.shared_bytes.saturating_add(share);
    }
}

/// How the connection has moved since there were bytes to send.
#[derive(Debug)]
struct Progress {
    stall_timeout: StallTimeout,
    checked: Instant,
    /// What the socket had taken by then.
    written: u64,
}

impl Progress {
    fn new(stall_max: Duration, now: Instant, written: u64) -> Self {
        Self { stall_timeout: StallTimeout::new(stall_max), checked: now, written }
    }

    /// Whether the time to move on is used up.
    fn has_stalled(&mut self, now: Instant, written: u64) -> bool {
        let moved = usize::try_from(written - self.written).unwrap_or(usize::MAX);
        self.stall_timeout.moved(moved);
        self.stall_timeout.waited(now.saturating_duration_since(self.checked));
        (self.checked, self.written) = (now, written);
        self.stall_timeout.left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use futures_util::FutureExt;
    use http_body_util::{BodyExt, Full};
    use tokio::sync::Semaphore;
    use tokio::time::advance;

    use super::*;
    use crate::net::stall_timeout::BYTES_PER_SECOND_MIN;

    const SECOND: Duration = Duration::from_secs(1);

    /// A connection, with the clock of a test that is paused.
    struct Line {
        watchdog: Arc<H2Watchdog>,
        written: Arc<AtomicU64>,
    }

    impl Line {
        fn new() -> Self {
            let limits = Limits {
                transfer_timeout: 10 * SECOND,
                head_timeout: 60 * SECOND,
                ..Limits::default()
            };
            let written = Arc::default();
            let watchdog = Arc::new(H2Watchdog::new(&limits, Arc::clone(&written)));
            Self { watchdog, written }
        }

        fn begin(&self) -> Exchange {
            let permits = Arc::new(Semaphore::new(1));
            self.watchdog.begin(permits.try_acquire_owned().unwrap())
        }

        /// A whole reply that waits to be sent; drop it, and it has been.
        fn reply(&self, bytes: Bytes) -> Bytes {
            next(&mut self.begin().reply(Full::new(bytes)))
        }

        /// Lets seconds pass in which the client takes that many bytes each, as long as it is not cut off.
        async fn pass(&self, seconds: u32, bytes_per_second: u32) -> Verdict {
            let mut verdict = Verdict::Healthy;
            for _ in 0..seconds {
                advance(SECOND).await;
                self.written.fetch_add(bytes_per_second.into(), Ordering::Relaxed);
                verdict = self.watchdog.check();
                if verdict == Verdict::Stalled {
                    break;
                }
            }
            verdict
        }

        fn open(&self) -> usize {
            self.watchdog.state().open.len()
        }
    }

    /// Takes the next frame of a body, as hyper does.
    fn next<B: Body<Data = Bytes, Error = Infallible> + Unpin>(body: &mut B) -> Bytes {
        let frame = body.frame().now_or_never().expect("ready").expect("a frame");
        frame.unwrap().into_data().expect("data")
    }

    /// A body without end, in pieces of a second each.
    struct Endless;

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(Some(Ok(Frame::data(bytes_of(1)))))
        }
    }

    fn bytes_of(seconds: u32) -> Bytes {
        Bytes::from(vec![0; (seconds * BYTES_PER_SECOND_MIN) as usize])
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_becomes_idle() {
        let line = Line::new();
        assert_eq!(line.pass(59, 0).await, Verdict::Healthy);
        assert_eq!(line.pass(1, 0).await, Verdict::Idle);
        // A request that is being answered has its own limits.
        let exchange = line.begin();
        assert_eq!(line.pass(1000, 0).await, Verdict::Healthy);
        drop(exchange);
        assert_eq!(line.pass(59, 0).await, Verdict::Healthy);
        assert_eq!(line.pass(1, 0).await, Verdict::Idle);
    }

    /// However many and large the replies are, and whether they are whole or streams.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut_off_at_once() {
        for replies in [1, 100] {
            let line = Line::new();
            line.pass(50, 0).await;
            let mut streams: Vec<_> = (0..replies).map(|_| line.begin().reply(Endless)).collect();
            let pieces: Vec<_> =
                streams.iter_mut().flat_map(|stream| [next(stream), next(stream)]).collect();
            let replies: Vec<_> = (0..replies).map(|_| line.reply(bytes_of(250))).collect();
            assert_eq!(line.pass(9, 0).await, Verdict::Healthy);
            assert_eq!(line.pass(1, 0).await, Verdict::Stalled);
            drop(replies);
            assert_eq!(line.pass(1, 0).await, Verdict::Stalled);
            drop(pieces);
            assert_ne!(line.pass(1, 0).await, Verdict::Stalled);
            assert_eq!(line.open(), streams.len());
            drop(streams);
            assert_eq!(line.open(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_is_cut_off_and_a_slow_line_is_not() {
        let line = Line::new();
        let _reply = line.reply(bytes_of(100));
        assert_eq!(line.pass(90, BYTES_PER_SECOND_MIN).await, Verdict::Healthy);
        assert_eq!(line.pass(30, BYTES_PER_SECOND_MIN / 2).await, Verdict::Stalled);
    }

    /// Replies that are taken do not excuse one that is not.
    #[tokio::test(start_paused = true)]
    async fn a_reply_that_is_never_taken_is_cut_off_although_others_are() {
        let line = Line::new();
        let _waiting = line.reply(bytes_of(5));
        assert_eq!(line.pass(14, 10 * BYTES_PER_SECOND_MIN).await, Verdict::Healthy);
        assert_eq!(line.pass(1, 10 * BYTES_PER_SECOND_MIN).await, Verdict::Stalled);
    }

    /// Large replies that a slow line takes interleaved: none ends before all are nearly through.
    #[tokio::test(start_paused = true)]
    async fn replies_that_come_later_share_the_line() {
        let line = Line::new();
        let mut replies = Vec::new();
        for _ in 0..50 {
            replies.push(line.reply(bytes_of(20)));
        }
        assert_eq!(line.pass(50 * 20, BYTES_PER_SECOND_MIN).await, Verdict::Healthy);
        // Not for ever.
        assert_eq!(line.pass(10, BYTES_PER_SECOND_MIN).await, Verdict::Stalled);
    }

    /// A client's window may be full with what waits already; what comes later does not excuse for long.
    #[tokio::test(start_paused = true)]
    async fn a_small_reply_waits_for_large_ones_before_it() {
        let line = Line::new();
        let large = [(); 3].map(|()| line.reply(bytes_of(100)));
        let small = line.reply(Bytes::from_static(b"small"));
        assert_eq!(line.pass(300, BYTES_PER_SECOND_MIN).await, Verdict::Healthy);
        drop((large, small));
        let _small = line.reply(Bytes::from_static(b"small"));
        let _large = [(); 3].map(|()| line.reply(bytes_of(100)));
        assert_eq!(line.pass(14, BYTES_PER_SECOND_MIN).await, Verdict::Stalled);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_many_large_replies_is_bounded() {
        let line = Line::new();
        let large = Bytes::from(vec![0; 4 * 1024 * 1024]);
        let _replies: Vec<_> = (0..100).map(|_| line.reply(large.clone())).collect();
        assert_eq!(line.pass(20 * 60, BYTES_PER_SECOND_MIN).await, Verdict::Healthy);
        assert_eq!(line.pass(2 * 60, BYTES_PER_SECOND_MIN).await, Verdict::Stalled);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_without_a_body_ends_at_once() {
        let line = Line::new();
        let body = line.begin().reply(Full::new(Bytes::new()));
        assert_eq!(line.open(), 0);
        assert!(body.is_end_stream());
    }

    /// hyper drops a body as soon as it has taken its last frame, which may wait for long after that.
    #[tokio::test(start_paused = true)]
    async fn an_exchange_lasts_until_its_last_byte_has_been_sent() {
        let line = Line::new();
        let bytes = line.reply(bytes_of(5));
        let slice = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(line.open(), 1);
        drop(slice);
        assert_eq!(line.open(), 0);
    }

    /// A stream that goes on for hours on a slow line, with two pieces under way at any time.
    #[tokio::test(start_paused = true)]
    async fn a_stream_on_a_slow_line_goes_on_for_as_long_as_it_takes() {
        let line = Line::new();
        let mut stream = line.begin().reply(Endless);
        let mut pieces: VecDeque<_> = [next(&mut stream), next(&mut stream)].into();
        for _ in 0..3 * 60 * 60 {
            assert_eq!(line.pass(1, BYTES_PER_SECOND_MIN).await, Verdict::Healthy);
            pieces.pop_front();
            pieces.push_back(next(&mut stream));
        }
        assert_eq!(line.pass(10, 0).await, Verdict::Stalled);
    }

    /// One stream is taken at full speed; a reply or another stream that is held back beside it is cut off.
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_taken_does_not_excuse_what_is_not() {
        for held_back_is_stream in [false, true] {
            let line = Line::new();
            let mut taken = line.begin().reply(Endless);
            let mut other = line.begin().reply(Endless);
            let _held_back =
                if held_back_is_stream { next(&mut other) } else { line.reply(bytes_of(1)) };
            // A second for itself, one for a frame of the other, and ten without anything.
            for second in 1..12 {
                for _ in 0..100 {
                    drop(next(&mut taken));
                }
                let verdict = line.pass(1, 100 * BYTES_PER_SECOND_MIN).await;
                assert_eq!(verdict, Verdict::Healthy, "{second}");
            }
            assert_eq!(line.pass(1, 100 * BYTES_PER_SECOND_MIN).await, Verdict::Stalled);
        }
    }

    /// Streams that a slow line takes interleaved.
    #[tokio::test(start_paused = true)]
    async fn streams_share_the_line() {
        const STREAMS: usize = 30;
        let line = Line::new();
        let mut streams: Vec<_> = (0..STREAMS).map(|_| line.begin().reply(Endless)).collect();
        let mut pieces: Vec<_> = streams.iter_mut().map(next).collect();
        for step in 0..10 * STREAMS {
            assert_eq!(line.pass(1, BYTES_PER_SECOND_MIN).await, Verdict::Healthy, "{step}");
            pieces[step % STREAMS] = next(&mut streams[step % STREAMS]);
        }
    }

    /// A source that is slow is no fault of the client.
    #[tokio::test(start_paused = true)]
    async fn a_stream_without_anything_to_send_waits() {
        let line = Line::new();
        let mut stream = line.begin().reply(Endless);
        drop(next(&mut stream));
        assert_eq!(line.pass(1000, 0).await, Verdict::Healthy);
        let _piece = next(&mut stream);
        assert_eq!(line.pass(9, 0).await, Verdict::Healthy);
        assert_eq!(line.pass(1, 0).await, Verdict::Stalled);
    }
}
