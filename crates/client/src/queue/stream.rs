//! Messages one after the other, each kept hidden while it is worked on.

use std::collections::VecDeque;
use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{Either, join_all, select};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use tavola_wire::queue::parameters::SEVEN_DAYS;
use tokio::time::{Instant, sleep, timeout};

use super::{Backoff, ClaimedMessage, MessageStreamOptions, QueueClient, ReceiveMessagesOptions};
use crate::core::error::Result;
use crate::core::stop::StopSignal;

/// How long a message is hidden at a time, unless told otherwise: what the service does, too.
pub(crate) const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the service hides a message that is received, at least and at most.
const HIDDEN_MIN: Duration = Duration::from_secs(1);
pub(crate) const HIDDEN_MAX: Duration = Duration::from_secs(SEVEN_DAYS.unsigned_abs());
/// The pauses of those who wait for messages, unless told otherwise.
pub(crate) const POLL: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(10) };
/// How long a request that is under way at the stop is waited for. Messages that nobody gets of it appear again.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Messages that one request receives at most.
pub(crate) const BATCH_MAX: u8 = 32;

impl QueueClient {
    /// The messages of the queue as a stream that waits for more, until it is told to [stop](MessageStreamOptions::stop) or
    /// dropped. Each message is kept hidden from others for as long as its [`ClaimedMessage`] lives.
    ///
    /// An error does not end the stream: the next message is asked for after a pause. End it yourself if it is one that does
    /// not pass. For several messages at a time, retries and poison messages there is
    /// [`QueueWorker`](crate::patterns::queue_worker::QueueWorker).
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// use tavola_client::TryStreamExt;
    ///
    /// let mut messages = orders.messages(None);
    /// while let Some(message) = messages.try_next().await? {
    ///     println!("{}", message.text()?);
    ///     message.complete().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn messages(&self, options: Option<MessageStreamOptions>) -> MessageStream {
        let options = options.unwrap_or_default();
        let batch = options.batch.unwrap_or(1).clamp(1, BATCH_MAX);
        let source = Source::new(
            self.clone(),
            options.visibility_timeout.unwrap_or(VISIBILITY_TIMEOUT),
            options.poll.unwrap_or(POLL),
            options.stop,
        );
        let start = (source, VecDeque::new());
        let messages = stream::unfold(start, move |(mut source, mut waiting)| async move {
            let item = next(&mut source, &mut waiting, batch).await?;
            Some((item, (source, waiting)))
        });
        MessageStream(messages.fuse().boxed())
    }
}

/// A stream of messages; see [`QueueClient::messages`].
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::TryStreamExt;
/// use tavola_client::queue::{MessageStream, MessageStreamOptions, StopSignal};
///
/// // Ends after the first message, in a program with a better reason after the signal of a terminal.
/// let (enough, stop) = futures::channel::oneshot::channel::<()>();
/// let options = MessageStreamOptions { stop: Some(StopSignal::new(stop)), ..Default::default() };
/// let mut messages: MessageStream = orders.messages(Some(options));
/// if let Some(first) = messages.try_next().await? {
///     first.complete().await?;
/// }
/// drop(enough);
/// assert!(messages.try_next().await?.is_none());
/// # Ok(())
/// # }
/// ```
pub struct MessageStream(BoxStream<'static, Result<ClaimedMessage>>);

impl Stream for MessageStream {
    type Item = Result<ClaimedMessage>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageStream")
    }
}

async fn next(
    source: &mut Source,
    waiting: &mut VecDeque<ClaimedMessage>,
    batch: u8,
) -> Option<Result<ClaimedMessage>> {
    loop {
        if source.is_stopped() {
            release(waiting.drain(..)).await;
            return None;
        }
        match waiting.pop_front() {
            Some(message) if message.is_lost() => {}
            Some(message) => return Some(Ok(message)),
            None => match source.wait(batch).await {
                Ok(Claims::Some(messages)) => waiting.extend(messages),
                Ok(Claims::None | Claims::Stopped) => {}
                Err(error) => return Some(Err(error)),
            },
        }
    }
}

/// Gives messages that nobody began to others. They get them later if that fails.
async fn release(messages: impl IntoIterator<Item = ClaimedMessage>) {
    let releases = messages.into_iter().map(|message| async move {
        match timeout(STOP_TIMEOUT, message.release(Duration::ZERO)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "cannot release a message"),
            Err(_) => tracing::debug!("cannot release a message in time"),
        }
    });
    join_all(releases).await;
}

/// Receives messages, and pauses when there are none or the service fails.
pub(crate) struct Source {
    queue: QueueClient,
    visibility_timeout: Duration,
    poll: Backoff,
    stop: StopSignal,
    /// How long a question that is under way at the stop is waited for.
    stop_timeout: Duration,
    stopped_at: Option<Instant>,
    /// Questions in a row that gave nothing.
    idle: u32,
}

/// What a question gave.
pub(crate) enum Claims {
    Some(Vec<ClaimedMessage>),
    /// Nothing for now.
    None,
    /// Nothing any more.
    Stopped,
}

impl Source {
    pub(crate) fn new(
        queue: QueueClient,
        visibility_timeout: Duration,
        poll: Backoff,
        stop: Option<StopSignal>,
    ) -> Self {
        let stop = stop.unwrap_or_else(StopSignal::never);
        let visibility_timeout = visibility_timeout.clamp(HIDDEN_MIN, HIDDEN_MAX);
        let stop_timeout = STOP_TIMEOUT;
        Self { queue, visibility_timeout, poll, stop, stop_timeout, stopped_at: None, idle: 0 }
    }

    /// Waits no longer than that for a question that is under way at the stop.
    pub(crate) fn stop_timeout_at_most(&mut self, limit: Duration) {
        self.stop_timeout = self.stop_timeout.min(limit);
    }

    /// How long a question was waited for after the stop.
    pub(crate) fn waited_after_stop(&self) -> Duration {
        self.stopped_at.map_or(Duration::ZERO, |stopped_at| stopped_at.elapsed())
    }

    pub(crate) fn is_stopped(&mut self) -> bool {
        self.stop.is_given()
    }

    /// Waits until there will be nothing any more.
    pub(crate) async fn stopped(&self) {
        self.stop.wait().await;
    }

    /// Asks once. A question that was sent is not given up at once at the stop: its messages would be hidden and nobody would
    /// have them.
    pub(crate) async fn ask(&mut self, max_messages: u8) -> Result<Claims> {
        let asked_at = Instant::now();
        let options = ReceiveMessagesOptions {
            max_messages: Some(max_messages.clamp(1, BATCH_MAX)),
            visibility_timeout: Some(self.visibility_timeout),
            ..Default::default()
        };
        // Counted as a failure until it is none, so that an error is followed by a pause.
        self.idle = self.idle.saturating_add(1);
        let question = self.queue.receive_messages(Some(options));
        let mut stopped_at = None;
        let answer = {
            let stopped = async {
                self.stop.wait().await;
                stopped_at = Some(Instant::now());
                sleep(self.stop_timeout).await;
            };
            match select(pin!(question), pin!(stopped)).await {
                Either::Left((answer, _)) => Some(answer),
                Either::Right(_) => None,
            }
        };
        self.stopped_at = stopped_at;
        let Some(messages) = answer.transpose()? else { return Ok(Claims::Stopped) };
        if messages.is_empty() {
            return Ok(Claims::None);
        }
        self.idle = 0;
        let timeout = self.visibility_timeout;
        let claim = |message| ClaimedMessage::new(self.queue.clone(), message, asked_at, timeout);
        Ok(Claims::Some(messages.into_iter().map(claim).collect()))
    }

    /// Pauses as long as the last questions advise, then asks.
    pub(crate) async fn wait(&mut self, max_messages: u8) -> Result<Claims> {
        if self.idle > 0 {
            let pause = self.poll.random_pause(self.idle);
            if let Either::Right(_) = select(pin!(sleep(pause)), pin!(self.stop.wait())).await {
                return Ok(Claims::Stopped);
            }
        }
        match self.is_stopped() {
            true => Ok(Claims::Stopped),
            false => self.ask(max_messages).await,
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("queue", &self.queue.name()).finish_non_exhaustive()
    }
}
