//! A message that is kept hidden for as long as it is worked on, and what its work sees of it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::claim::{Claim, renew};
use super::{Message, PeekedMessage, QueueClient};
use crate::core::error::Result;

/// A message that was received, and that is hidden from others for as long as this value lives: it is renewed in the
/// background. What can be asked of it is that of its [`MessageHandle`].
///
/// [`complete`](ClaimedMessage::complete) deletes it, [`release`](ClaimedMessage::release) gives it to others. One that is
/// dropped appears again when its time is over. So does that of a process that ends.
///
/// It shows no receipt: each renewal ends the one before, and who uses one takes the message from the renewal.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::TryStreamExt;
/// use tavola_client::queue::ClaimedMessage;
///
/// let mut messages = orders.messages(None);
/// while let Some(message) = messages.try_next().await? {
///     let message: ClaimedMessage = message;
///     if message.dequeue_count > 1 {
///         // Not now: for others, in a minute.
///         message.release(Duration::from_secs(60)).await?;
///         continue;
///     }
///     println!("{}", message.text()?);
///     if message.is_lost() || !message.complete().await? {
///         println!("it was not ours any more, and somebody else may do it again");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ClaimedMessage {
    handle: MessageHandle,
    renewal: JoinHandle<()>,
}

impl ClaimedMessage {
    /// Takes care of a message that was asked for at this moment. If that is longer ago than it is hidden, the answer took
    /// that long, and the first renewal tells whether it is still ours.
    pub(super) fn new(
        queue: QueueClient,
        message: Message,
        asked_at: Instant,
        timeout: Duration,
    ) -> Self {
        let claim = Arc::new(Claim::new(queue, &message, asked_at, timeout));
        let renewal = tokio::spawn(renew(claim.clone()));
        Self { handle: MessageHandle { message: Arc::new(message.into_peeked()), claim }, renewal }
    }

    /// Deletes the message: the work is done. `false` if it was not ours any more, so that somebody else may do it again.
    ///
    /// # Errors
    /// A service that does not answer. The message may appear again.
    pub async fn complete(self) -> Result<bool> {
        // A renewal that is under way ends first: its receipt is the one that counts.
        let hold = self.handle.claim.hold().await;
        self.end();
        hold.delete().await
    }

    /// Gives the message to others after a pause of at most 7 days, or at once with a pause of zero. `false` if it was not ours
    /// any more. A message that [ends](super::PeekedMessage::expires_at) before the pause does is seen by nobody any more.
    ///
    /// # Errors
    /// A service that does not answer. The message appears when its time is over.
    pub async fn release(self, pause: Duration) -> Result<bool> {
        let mut hold = self.handle.claim.hold().await;
        self.end();
        hold.show_after(pause).await
    }

    /// What the work on the message sees of it.
    ///
    /// ```no_run
    /// # async fn run(message: tavola_client::queue::ClaimedMessage) -> tavola_client::Result<()> {
    /// let handle = message.handle();
    /// // On a task of its own, which learns when the message is somebody else's.
    /// let work = tokio::spawn(async move {
    ///     for number in 1..=3 {
    ///         if handle.is_lost() || !handle.update_body(format!("{number} of 3")).await? {
    ///             return Ok(false);
    ///         }
    ///     }
    ///     Ok::<_, tavola_client::Error>(true)
    /// });
    /// if work.await.expect("it does not panic")? {
    ///     message.complete().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn handle(&self) -> MessageHandle {
        self.handle.clone()
    }

    /// From here on nobody else changes the message. Whoever gives it away holds the lock meanwhile, or a handle that waits
    /// for it would hide the message again.
    fn end(&self) {
        self.renewal.abort();
        self.handle.claim.end();
    }

    /// How long the service will keep the message.
    pub(crate) fn time_left(&self) -> Duration {
        self.handle.claim.time_left()
    }

    /// The text as the service has it, with what was written into it since it was received.
    pub(crate) async fn latest_text(&self) -> String {
        let hold = self.handle.claim.hold().await;
        hold.text().unwrap_or_else(|| self.raw_text()).to_owned()
    }
}

impl Deref for ClaimedMessage {
    type Target = MessageHandle;

    fn deref(&self) -> &MessageHandle {
        &self.handle
    }
}

impl Drop for ClaimedMessage {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the work on a [`ClaimedMessage`] sees of it: what it says, whether it is still ours, and a way to write into it how
/// far the work is. It does not keep the message hidden: that ends with the [`ClaimedMessage`], and in a
/// [`QueueWorker`](crate::patterns::queue_worker::QueueWorker) with the work.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// # async fn pack(order: &str, box_number: u32) {}
/// use tavola_client::patterns::queue_worker::QueueWorker;
/// use tavola_client::queue::MessageHandle;
///
/// let worker = QueueWorker::new(orders);
/// worker
///     .run(|message: MessageHandle| async move {
///         // The order, and after a failure how many of its boxes are packed.
///         let (order, packed): (String, u32) = message.json()?;
///         for number in packed..3 {
///             pack(&order, number).await;
///             let progress = serde_json::to_vec(&(&order, number + 1))?;
///             if message.is_lost() || !message.update_body(progress).await? {
///                 break;
///             }
///         }
///         Ok(())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MessageHandle {
    message: Arc<PeekedMessage>,
    claim: Arc<Claim>,
}

impl MessageHandle {
    /// Writes into the message what it says from now on, for those who receive it the next time; hides it anew, too. `false`
    /// if it was not ours any more. What was received stays what the [`PeekedMessage`] shows.
    ///
    /// It goes on when nobody waits for its end any more.
    ///
    /// # Errors
    /// Bytes that the encoding of the client does not take, and a service that does not answer.
    pub async fn update_body(&self, body: impl AsRef<[u8]>) -> Result<bool> {
        self.claim.update_body(body.as_ref().to_vec()).await
    }

    /// Tells whether the message is not ours any more: it could not be renewed in time, somebody deleted it, or its
    /// [`ClaimedMessage`] is gone.
    pub fn is_lost(&self) -> bool {
        self.claim.is_lost()
    }

    /// Waits until the message is not ours any more.
    ///
    /// ```no_run
    /// # async fn run(message: tavola_client::queue::ClaimedMessage) -> tavola_client::Result<()> {
    /// # async fn pack(text: &str) {}
    /// use std::pin::pin;
    /// use futures::future::{Either, select};
    ///
    /// let text = message.text()?.into_owned();
    /// let is_packed = match select(pin!(pack(&text)), pin!(message.lost())).await {
    ///     Either::Left(_) => true,
    ///     Either::Right(_) => false,
    /// };
    /// if is_packed {
    ///     message.complete().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) {
        self.claim.lost().await;
    }
}

impl Deref for MessageHandle {
    type Target = PeekedMessage;

    fn deref(&self) -> &PeekedMessage {
        &self.message
    }
}
