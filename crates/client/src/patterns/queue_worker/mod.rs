//! A worker: takes the messages of a queue, several at a time, and does for each what has to be done.
//!
//! The service hides a message that was received and shows it again unless it is deleted. [`QueueWorker`] does what everybody
//! needs around that: it keeps messages hidden while they are worked on, deletes them when the work is done, lets those that
//! failed wait longer each time, and puts those that fail again and again into a queue of their own, where somebody can look
//! at them. It ends when it is told to, with nothing half-done.
//!
//! **Use it** for work that may be done later and has to be done: sending, copying, indexing, whatever spans two partitions or two
//! services. **Do not use it** for work whose order matters (messages overtake each other), or whose answer somebody waits for.
//!
//! **Cost**: a message is a request to send, one to receive (or a 32nd of one) and one to delete; one more for each half of the
//! visibility timeout that the work takes, and one for each failure. An empty queue is asked every few seconds.
//! **Half-done**: whatever the work leaves half-done when its process ends. Each message is worked on *at least once*: a worker
//! that dies after its work and before the deletion leaves a message that is worked on again. So the work must be one that can
//! be repeated: insert-or-replace instead of insert, delete-if-exists instead of delete, a marker for what cannot
//! (`docs/design.md` shows how). A message whose claim is lost is not waited for: its work is dropped, and somebody else does it.
//!
//! [`QueueWorker`] shows it; [`eventually_consistent`](super::eventually_consistent) stands on it.

mod error;
mod job;
mod run;

use std::sync::Arc;
use std::time::Duration;

use crate::ErrorExt;
use crate::error::{Result, refused};
use crate::queue::{
    BATCH_MAX, Backoff, ClaimedMessage, Message, MessageEncoding, MessageHandle, MessageUpdate,
    POLL, QueueClient, ReceiveMessagesOptions, SendMessageOptions, StopSignal, TimeToLive,
    VISIBILITY_TIMEOUT,
};

pub use error::WorkerError;
pub use job::{JobError, JobResult};

/// Messages under way at a time, unless told otherwise.
const CONCURRENCY: usize = 8;
/// How often a message is tried, unless told otherwise: as often as Azure Functions do it.
const ATTEMPTS_MAX: u32 = 5;
/// The pauses after failures, unless told otherwise.
const RETRY: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5 * 60) };
/// Behind the name of the queue, in that of its dead letters: where Azure Functions and its tools look for them.
const DEAD_LETTERS_SUFFIX: &str = "-poison";

/// Works on the messages of a queue.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::patterns::queue_worker::{JobError, QueueWorker};
/// use tavola_client::queue::{Backoff, StopSignal};
///
/// # async fn pack(order: &str) -> std::io::Result<()> { Ok(()) }
/// let worker = QueueWorker::new(orders)
///     .concurrency(16)
///     // Hidden for a minute at a time, for as long as it is worked on.
///     .visibility_timeout(Duration::from_secs(60))
///     // Four tries, after pauses of 2, 4 and 8 seconds; then it goes to `orders-poison`.
///     .max_attempts(4)
///     .retry(Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) })
///     .poll(Backoff { first: Duration::from_millis(50), longest: Duration::from_secs(1) })
///     // Any future will do; `tokio::signal::ctrl_c` in a program at a terminal.
///     .stop(StopSignal::new(tokio::time::sleep(Duration::from_secs(3600))))
///     // Work that is not done by then is given up; its messages appear again.
///     .shutdown_timeout(Duration::from_secs(20));
/// let report = worker
///     .run(|message| async move {
///         let order = message.text().map_err(JobError::poison)?.into_owned();
///         // Any error of std is a failure to try again.
///         pack(&order).await?;
///         Ok(())
///     })
///     .await?;
/// println!("{} done, {} failures", report.done, report.retried);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QueueWorker {
    queue: QueueClient,
    dead_letters: Option<QueueClient>,
    concurrency: usize,
    visibility_timeout: Duration,
    max_attempts: u32,
    retry: Backoff,
    poll: Backoff,
    stop: Option<StopSignal>,
    shutdown_timeout: Option<Duration>,
}

/// What a worker did.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::patterns::queue_worker::{QueueWorker, WorkerReport};
///
/// // What there is, and no more.
/// let report: WorkerReport = QueueWorker::new(orders).drain(|_| async { Ok(()) }).await?;
/// println!(
///     "{} done, {} to be tried again, {} given up, {} taken by others",
///     report.done, report.retried, report.dead_lettered, report.lost
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Messages whose work was done, and that are deleted.
    pub done: usize,
    /// Failures, after which the message was or will be tried again.
    pub retried: usize,
    /// Messages that went to the dead letters.
    pub dead_lettered: usize,
    /// Messages that were not ours any more before their work was done, or given up at the end.
    pub lost: usize,
}

impl QueueWorker {
    /// A worker for this queue, with the usual settings.
    pub fn new(queue: QueueClient) -> Self {
        Self {
            queue,
            dead_letters: None,
            concurrency: CONCURRENCY,
            visibility_timeout: VISIBILITY_TIMEOUT,
            max_attempts: ATTEMPTS_MAX,
            retry: RETRY,
            poll: POLL,
            stop: None,
            shutdown_timeout: None,
        }
    }

    /// Messages under way at a time; 8 unless set. Each is a task of the runtime of its own.
    #[must_use]
    pub fn concurrency(mut self, count: usize) -> Self {
        self.concurrency = count.max(1);
        self
    }

    /// How long a message is hidden at a time, from 1 second to 7 days; 30 seconds unless set. It is renewed after half of it, for as long as the work
    /// takes. After a crash its messages wait for that long.
    #[must_use]
    pub fn visibility_timeout(mut self, timeout: Duration) -> Self {
        self.visibility_timeout = timeout;
        self
    }

    /// How often a message is tried before it goes to the dead letters; 5 times unless set. What counts is how often it was
    /// received: its worker may not survive it.
    #[must_use]
    pub fn max_attempts(mut self, count: u32) -> Self {
        self.max_attempts = count.max(1);
        self
    }

    /// The pauses before a message that failed is tried again; from 1 second to 5 minutes unless set.
    #[must_use]
    pub fn retry(mut self, pauses: Backoff) -> Self {
        self.retry = pauses;
        self
    }

    /// The pauses between questions to an empty queue; from 0.1 to 10 seconds unless set.
    #[must_use]
    pub fn poll(mut self, pauses: Backoff) -> Self {
        self.poll = pauses;
        self
    }

    /// The queue for messages that cannot be worked on; `<queue>-poison` unless set. It is made when the first one comes.
    ///
    /// Its client needs the permission to add, and to make the queue if it is not there. A signature of the queue that is worked
    /// on gives neither: with one, make the queue, and give the worker a client for it. A message that cannot be copied stays where
    /// it is, and is copied later: once its attempts are used up, only the copying is tried again, and the work is not.
    ///
    /// It cannot be the queue that is worked on, which is told by the names of queue and account: hosts have several.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// use tavola_client::patterns::queue_worker::QueueWorker;
    ///
    /// let worker = QueueWorker::new(service.queue_client("orders")?)
    ///     .dead_letters(service.queue_client("dead-letters")?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn dead_letters(mut self, queue: QueueClient) -> Self {
        self.dead_letters = Some(queue);
        self
    }

    /// Ends the worker: nothing more is asked for, and what is under way is waited for. Messages that are just being received
    /// belong to that: given back, each would have used up an attempt without having been tried.
    #[must_use]
    pub fn stop(mut self, signal: StopSignal) -> Self {
        self.stop = Some(signal);
        self
    }

    /// How long work that is under way is waited for at the end; as long as it takes unless set. Others work
    /// again on the messages that are given up then. A question for messages that the service does not answer is given up after
    /// 5 seconds, and sooner if this is shorter.
    #[must_use]
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.shutdown_timeout = Some(limit);
        self
    }

    /// Works until the [stop signal](QueueWorker::stop) is given. A service that does not answer is asked again.
    ///
    /// Dropping the future ends the work at once and anywhere; its messages appear again.
    ///
    /// # Errors
    /// Those that do not pass: `QueueNotFound`, a credential that may not, dead letters in the queue itself. Work that is under
    /// way is waited for. A credential that gets no token is asked again, as the service is.
    pub async fn run<F, R>(&self, work: F) -> Result<WorkerReport, WorkerError>
    where
        F: Fn(MessageHandle) -> R + Send + Sync + 'static,
        R: Future<Output = JobResult> + Send + 'static,
    {
        run::run(self, Arc::new(work), false).await
    }

    /// Works until no message can be seen any more. Those that are hidden, or that have failed and wait, are not waited for.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// use tavola_client::patterns::queue_worker::QueueWorker;
    ///
    /// // Once a night.
    /// let report = QueueWorker::new(orders)
    ///     .drain(|message| async move {
    ///         println!("{}", message.text()?);
    ///         Ok(())
    ///     })
    ///     .await?;
    /// println!("{} done", report.done);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`QueueWorker::run`], and a service that does not answer: who drains a queue wants to know whether it is empty.
    pub async fn drain<F, R>(&self, work: F) -> Result<WorkerReport, WorkerError>
    where
        F: Fn(MessageHandle) -> R + Send + Sync + 'static,
        R: Future<Output = JobResult> + Send + 'static,
    {
        run::run(self, Arc::new(work), true).await
    }

    /// Sends the dead letters to the queue again, to be tried as if they were new: after the reason of their failure was
    /// mended. Tells how many.
    ///
    /// They are those that are there when it begins. What a worker buries from the next second on stays among the dead
    /// letters, so that this ends even if the reason is still there.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// use tavola_client::patterns::queue_worker::QueueWorker;
    ///
    /// let again = QueueWorker::new(orders).redrive().await?;
    /// println!("{again} messages get another chance");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of sending and deleting. A message that was sent stays sent, and one can be in both queues then.
    pub async fn redrive(&self) -> Result<usize> {
        let dead_letters = self.dead_letter_queue()?;
        let queue = self.queue.clone().with_encoding(MessageEncoding::Text);
        let (mut began, mut count) = (None, 0);
        loop {
            let messages = match receive_dead_letters(&dead_letters).await {
                Err(error) if error.is_not_found() => return Ok(count),
                messages => messages?,
            };
            let Some(first) = messages.first() else { return Ok(count) };
            let began = *began.get_or_insert_with(|| received_second(first));
            let is_older = |message: &Message| message.inserted_at.unix_seconds() <= began;
            let (older, newer): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_older);
            give_back(&dead_letters, newer).await;
            if older.is_empty() {
                return Ok(count);
            }
            for message in older {
                queue.send_message(message.raw_text(), Some(for_ever())).await?;
                dead_letters.delete_message_if_exists(&message.receipt, None).await?;
                count += 1;
            }
        }
    }

    /// Copies a message to the dead letters as it is.
    async fn bury(&self, message: &ClaimedMessage) -> Result<()> {
        let (queue, text) = (self.dead_letter_queue()?, message.latest_text().await);
        match queue.send_message(&text, Some(for_ever())).await {
            Err(error) if error.is_not_found() => {
                queue.create_if_not_exists(None).await?;
                queue.send_message(&text, Some(for_ever())).await?;
            }
            sent => drop(sent?),
        }
        Ok(())
    }

    /// Whatever the encoding, the text goes there as the service has it.
    ///
    /// # Errors
    /// A name that no queue can have, and the queue itself: what is buried there would be worked on for ever.
    fn dead_letter_queue(&self) -> Result<QueueClient> {
        let queue = match &self.dead_letters {
            Some(queue) if queue.is_same_queue(&self.queue) => {
                let name = queue.name();
                return Err(refused(format!(
                    "the dead letters are the queue itself: queue={name}"
                )));
            }
            Some(queue) => queue.clone(),
            None => self.queue.sibling(&format!("{}{DEAD_LETTERS_SUFFIX}", self.queue.name()))?,
        };
        Ok(queue.with_encoding(MessageEncoding::Text))
    }
}

/// What has to be done is kept until it is done, however long the workers are away.
fn for_ever() -> SendMessageOptions {
    SendMessageOptions { time_to_live: Some(TimeToLive::Forever), ..Default::default() }
}

async fn receive_dead_letters(dead_letters: &QueueClient) -> Result<Vec<Message>> {
    let options = ReceiveMessagesOptions {
        max_messages: Some(BATCH_MAX),
        visibility_timeout: Some(VISIBILITY_TIMEOUT),
        ..Default::default()
    };
    dead_letters.receive_messages(Some(options)).await
}

/// When a message was received, by the clock of the service, which is also that of its insertion.
fn received_second(message: &Message) -> i64 {
    message.next_visible_at.unix_seconds() - VISIBILITY_TIMEOUT.as_secs().cast_signed()
}

/// Shows messages that nobody wants now. They appear by themselves, later, if that fails.
async fn give_back(queue: &QueueClient, messages: Vec<Message>) {
    for mut message in messages {
        let at_once = MessageUpdate::visible_after(Duration::ZERO);
        if let Err(error) = queue.update_message(&mut message.receipt, at_once, None).await {
            tracing::debug!(message = message.id, %error, "cannot give a message back");
        }
    }
}
