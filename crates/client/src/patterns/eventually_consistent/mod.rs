//! Eventually consistent transactions: several changes over partitions, tables or services, all of which are made in the end.
//!
//! The service changes entities of one partition together, and nothing else. A change that spans more is a message in a queue and a
//! list of steps: a worker does one step after the other and deletes the message when the last one is done. If it dies before,
//! the message appears again, and a worker does all steps again. So each step has to be one that can be repeated: insert or
//! replace, delete if it is there.
//!
//! The guide's example is archiving: an employee goes from the table `Current` to the table `Archive`. The client places a message
//! (1); a worker receives it (2), reads the entity from `Current` (3), inserts or replaces it in `Archive` (4), deletes it from
//! `Current` (5), and deletes the message (6). [`Archive`] is exactly that; [`EventualTransaction`] is the general form,
//! whose steps can be anything: tables, blobs, files, a search index, a mail.
//!
//! **Use it** for changes that have to happen together and need not be seen together. **Do not use it** where a reader must never
//! see half of it, or where a later step can be refused for good (no credit left): steps are repeated until they succeed, and
//! nothing is undone. Check what can refuse before the message is sent.
//!
//! **Cost**: three requests to the queue, and those of the steps; all steps once more for each failure. **Half-done**: all that
//! lies between two steps, and for as long as the worker is away: after step 4 and before step 5 the employee is in both
//! tables. Choose the order so that this is the harmless half: an entity that is there twice is better than one that is nowhere.
//! A message that fails again and again goes to the [dead letters](super::queue_worker::QueueWorker::dead_letters), half-done as it is,
//! until somebody mends the reason and [sends it again](super::queue_worker::QueueWorker::redrive).
//!
//! [`EventualTransaction`] shows it.

mod archive;
mod revocable;

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::queue_worker::{JobError, JobResult};
use crate::Result;
use crate::queue::{
    MessageHandle, PeekedMessage, QueueClient, SendMessageOptions, SentMessage, TimeToLive,
};

pub use archive::Archive;

/// A transaction of several steps, each of which can be repeated.
///
/// ```no_run
/// # async fn run(
/// #     staff: tavola_client::TableClient, badges: tavola_client::TableClient,
/// #     queue: tavola_client::queue::QueueClient,
/// # ) -> tavola_client::Result<()> {
/// use serde::{Deserialize, Serialize};
/// use tavola_client::patterns::eventually_consistent::EventualTransaction;
/// use tavola_client::patterns::queue_worker::QueueWorker;
/// use tavola_client::{Entity, IfMatch, UpdateMode};
///
/// /// What the steps need to know.
/// #[derive(Serialize, Deserialize)]
/// struct Leaver {
///     department: String,
///     id: String,
/// }
///
/// let leave = EventualTransaction::new("leave", queue.clone())
///     .step("mark", move |leaver: std::sync::Arc<Leaver>| {
///         let staff = staff.clone();
///         async move {
///             let mark = Entity::new(&*leaver.department, &*leaver.id).with("Left", true);
///             staff.upsert_entity(&mark, UpdateMode::Merge, None).await?;
///             Ok(())
///         }
///     })
///     .step("badge", move |leaver: std::sync::Arc<Leaver>| {
///         let badges = badges.clone();
///         async move {
///             badges.delete_entity_if_exists("badge", &leaver.id, IfMatch::Any, None).await?;
///             Ok(())
///         }
///     });
///
/// // Somewhere, in any number: the workers.
/// let worker = QueueWorker::new(queue);
/// tokio::spawn({
///     let leave = leave.clone();
///     async move { worker.run(leave.job()).await }
/// });
///
/// // From here on it happens, whoever dies.
/// leave.begin(&Leaver { department: "Sales".into(), id: "000456".into() }).await?;
/// # Ok(())
/// # }
/// ```
pub struct EventualTransaction<T> {
    name: Arc<str>,
    queue: QueueClient,
    steps: Arc<Vec<Step<T>>>,
}

struct Step<T> {
    name: String,
    work: Work<T>,
}

type Work<T> = Arc<dyn Fn(Arc<T>) -> BoxFuture<'static, JobResult> + Send + Sync>;

impl<T> Clone for Step<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), work: self.work.clone() }
    }
}

/// What a message says.
#[derive(Debug, Serialize, Deserialize)]
struct Begun<T> {
    transaction: String,
    data: T,
}

impl<T> EventualTransaction<T> {
    /// A transaction without steps, whose messages go to this queue. The name is in each message, so that one of another
    /// transaction is not taken for one of this.
    pub fn new(name: &str, queue: QueueClient) -> Self {
        Self { name: name.into(), queue, steps: Arc::default() }
    }

    /// Adds a step, after the others. It is done *at least once*, and after a failure again: it must be one that can be
    /// repeated. The name is for logs.
    #[must_use]
    pub fn step<F, R>(mut self, name: impl Into<String>, work: F) -> Self
    where
        F: Fn(Arc<T>) -> R + Send + Sync + 'static,
        R: Future<Output = JobResult> + Send + 'static,
    {
        let work: Work<T> = Arc::new(move |data| work(data).boxed());
        Arc::make_mut(&mut self.steps).push(Step { name: name.into(), work });
        self
    }

    /// The queue of its messages.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     leave: tavola_client::patterns::eventually_consistent::EventualTransaction<String>,
    /// # ) -> tavola_client::Result<()> {
    /// use tavola_client::patterns::queue_worker::QueueWorker;
    ///
    /// let worker = QueueWorker::new(leave.queue().clone());
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue(&self) -> &QueueClient {
        &self.queue
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> EventualTransaction<T> {
    /// Begins the transaction: places the message. When this returns, the steps will be done.
    ///
    /// # Errors
    /// Those of sending a message. If [`may_have_been_applied`](crate::ErrorExt::may_have_been_applied) says so, it was
    /// perhaps begun; beginning it again does no harm.
    pub async fn begin(&self, data: &T) -> Result<SentMessage> {
        #[derive(Serialize)]
        struct Begins<'a, T> {
            transaction: &'a str,
            data: &'a T,
        }
        // It is there until it is done, however long the workers are away.
        let time_to_live = Some(TimeToLive::Forever);
        let options = SendMessageOptions { time_to_live, ..Default::default() };
        let begins = Begins { transaction: &self.name, data };
        self.queue.send_json(&begins, Some(options)).await
    }

    /// Does all steps for a message: what a worker calls.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     leave: tavola_client::patterns::eventually_consistent::EventualTransaction<String>,
    /// # ) -> tavola_client::Result<()> {
    /// for message in leave.queue().receive_messages(None).await? {
    ///     match leave.apply(&message).await {
    ///         Ok(()) => drop(leave.queue().delete_message(&message.receipt, None).await?),
    ///         Err(error) => println!("again later: {error}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of the first step that failed, with its name; those after it are not done. A message that is none of this
    /// transaction's.
    pub async fn apply(&self, message: &PeekedMessage) -> JobResult {
        let begun: Begun<T> = message.json().map_err(JobError::poison)?;
        if begun.transaction != *self.name {
            let other = format!("the message is one of the transaction {}", begun.transaction);
            return Err(JobError::poison(other));
        }
        let data = Arc::new(begun.data);
        for step in self.steps.iter() {
            (step.work)(data.clone()).await.map_err(|error| error.in_step(&step.name))?;
        }
        Ok(())
    }

    /// [`apply`](EventualTransaction::apply) as a job for a [`QueueWorker`](super::queue_worker::QueueWorker).
    pub fn job(
        &self,
    ) -> impl Fn(MessageHandle) -> BoxFuture<'static, JobResult> + Send + Sync + use<T> {
        let transaction = self.clone();
        move |message| {
            let transaction = transaction.clone();
            async move { transaction.apply(&message).await }.boxed()
        }
    }
}

impl<T> Clone for EventualTransaction<T> {
    fn clone(&self) -> Self {
        let Self { name, queue, steps } = self;
        Self { name: name.clone(), queue: queue.clone(), steps: steps.clone() }
    }
}

impl<T> fmt::Debug for EventualTransaction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<_> = self.steps.iter().map(|step| step.name.as_str()).collect();
        f.debug_struct("EventualTransaction")
            .field("name", &self.name)
            .field("queue", &self.queue.name())
            .field("steps", &steps)
            .finish()
    }
}
