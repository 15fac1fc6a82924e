//! A message that is kept hidden for as long as it is worked on.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::messages::is_lost;
use super::{Message, MessageReceipt, MessageUpdate, QueueClient};
use crate::core::error::{ErrorExt, Result};
use crate::core::options::CallOptions;

/// A renewal that failed is tried again after this part of the time that a claim lasts.
const RETRY_PART: u32 = 10;

/// A message that was received, and that is hidden from others for as long as this value lives: it is renewed in the
/// background. It is used like the [`Message`] itself.
///
/// [`complete`](ClaimedMessage::complete) deletes it, [`release`](ClaimedMessage::release) gives it to others. One that is
/// dropped appears again when its time is over. So does that of a process that ends.
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
    message: Message,
    claim: Arc<Claim>,
    renewal: JoinHandle<()>,
}

#[derive(Debug)]
struct Claim {
    queue: QueueClient,
    /// The latest receipt. Whoever has the lock may change it.
    receipt: Mutex<MessageReceipt>,
    is_lost: AtomicBool,
    loss: Notify,
}

impl ClaimedMessage {
    /// Takes care of a message that was asked for at this moment.
    pub(super) fn new(
        queue: QueueClient,
        message: Message,
        asked_at: Instant,
        timeout: Duration,
    ) -> Self {
        let claim = Arc::new(Claim {
            queue,
            receipt: Mutex::new(message.receipt.clone()),
            is_lost: AtomicBool::new(false),
            loss: Notify::new(),
        });
        let renewal = tokio::spawn(renew(claim.clone(), asked_at, timeout));
        Self { message, claim, renewal }
    }

    /// Deletes the message: the work is done. `false` if it was not ours any more, so that somebody else may do it again.
    ///
    /// # Errors
    /// A service that does not answer. The message may appear again.
    pub async fn complete(self) -> Result<bool> {
        // A renewal that is under way ends first: its receipt is the one that counts.
        let receipt = self.claim.receipt.lock().await;
        self.renewal.abort();
        self.claim.queue.delete_message_if_exists(&receipt, None).await
    }

    /// Gives the message to others after a pause, or at once with a pause of zero. `false` if it was not ours any more.
    ///
    /// # Errors
    /// A service that does not answer. The message appears when its time is over.
    pub async fn release(self, pause: Duration) -> Result<bool> {
        let mut receipt = self.claim.receipt.lock().await;
        self.renewal.abort();
        let update = MessageUpdate::visible_after(pause);
        match self.claim.queue.update_message(&mut receipt, update, None).await {
            Ok(_) => Ok(true),
            Err(error) if is_lost(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Tells whether the message is not ours any more: it could not be renewed in time, or somebody deleted it.
    pub fn is_lost(&self) -> bool {
        self.claim.is_lost.load(Ordering::Acquire)
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
        loop {
            let loss = self.claim.loss.notified();
            if self.is_lost() {
                return;
            }
            loss.await;
        }
    }
}

impl Deref for ClaimedMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl Drop for ClaimedMessage {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Hides the message anew after half of its time, until somebody ends this or the message is lost.
async fn renew(claim: Arc<Claim>, asked_at: Instant, timeout: Duration) {
    let mut until = asked_at + timeout;
    let mut next = asked_at + timeout / 2;
    while next < until {
        sleep_until(next).await;
        let mut receipt = claim.receipt.lock().await;
        let (began, update) = (Instant::now(), MessageUpdate::visible_after(timeout));
        let deadline = Some(until.saturating_duration_since(began));
        let options = CallOptions { deadline, ..Default::default() };
        match claim.queue.update_message(&mut receipt, update, Some(options)).await {
            Ok(_) => (until, next) = (began + timeout, began + timeout / 2),
            Err(error) if is_lost(&error) => break,
            Err(error) if error.is_transient() => next = Instant::now() + timeout / RETRY_PART,
            Err(error) => {
                // A signature without the permission to update, mostly.
                tracing::warn!(message = receipt.message_id, %error, "cannot renew a message");
                // Whoever ends the work before that needs the receipt.
                drop(receipt);
                sleep_until(until).await;
                break;
            }
        }
    }
    claim.is_lost.store(true, Ordering::Release);
    claim.loss.notify_waiters();
}
