//! A message that is kept hidden for as long as it is worked on.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::messages::{is_lost, whole_seconds};
use super::{HIDDEN_MAX, Message, MessageReceipt, MessageUpdate, QueueClient};
use crate::core::error::{ErrorExt, Result};
use crate::core::options::CallOptions;
use crate::table::value::DateTime;

/// A renewal that failed is tried again after this part of the time that a claim lasts.
const RETRY_PART: u32 = 10;
/// A renewal takes at most this part of the time that a claim lasts, and no more and no less than these: it holds the receipt,
/// which whoever ends the work waits for.
const RENEWAL_PART: u32 = 4;
const RENEWAL_TIME_MAX: Duration = Duration::from_secs(30);
const RENEWAL_TIME_MIN: Duration = Duration::from_secs(1);

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
    /// Whoever has the lock may change the message.
    hold: Mutex<Hold>,
    /// When the message ends by itself, unless that is further away than there are moments.
    ends: Option<Instant>,
    is_lost: AtomicBool,
    loss: Notify,
}

/// What makes a message ours.
#[derive(Debug)]
struct Hold {
    /// The latest receipt.
    receipt: MessageReceipt,
    /// Nobody else can have received it before.
    certain_until: Instant,
}

impl Hold {
    /// Whether a change whose answer was lost has been made. Repeated, it found another receipt than ours, or nothing; that is its
    /// own doing, as long as it cannot be that of somebody else.
    fn is_made(&self, error: &azure_core::Error) -> bool {
        error.may_have_been_applied() && Instant::now() < self.certain_until
    }
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
        let hold = Hold { receipt: message.receipt.clone(), certain_until: asked_at + timeout };
        let claim = Arc::new(Claim {
            queue,
            hold: Mutex::new(hold),
            ends: asked_at.checked_add(lifetime(&message, timeout)),
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
        let hold = self.claim.hold.lock().await;
        self.renewal.abort();
        match self.claim.queue.delete_message(&hold.receipt, None).await {
            Ok(_) => Ok(true),
            Err(error) if is_lost(&error) => Ok(hold.is_made(&error)),
            Err(error) => Err(error),
        }
    }

    /// Gives the message to others after a pause of at most 7 days, or at once with a pause of zero. `false` if it was not ours
    /// any more. A message that [ends](super::PeekedMessage::expires_at) before the pause does is seen by nobody any more.
    ///
    /// # Errors
    /// A service that does not answer. The message appears when its time is over.
    pub async fn release(self, pause: Duration) -> Result<bool> {
        let mut hold = self.claim.hold.lock().await;
        self.renewal.abort();
        let update = MessageUpdate::visible_after(pause.min(HIDDEN_MAX));
        match self.claim.queue.update_message(&mut hold.receipt, update, None).await {
            Ok(_) => Ok(true),
            Err(error) if is_lost(&error) => Ok(hold.is_made(&error)),
            Err(error) => Err(error),
        }
    }

    /// How long the service will keep the message.
    pub(crate) fn time_left(&self) -> Duration {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.claim.ends.map_or(Duration::MAX, left)
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

/// From the moment that it was asked for, by the clock of the service.
fn lifetime(message: &Message, timeout: Duration) -> Duration {
    let hidden = i64::try_from(whole_seconds(timeout)).unwrap_or(i64::MAX);
    let received =
        message.next_visible_at.0.saturating_sub(hidden.saturating_mul(DateTime::PER_SECOND));
    let ticks = u64::try_from(message.expires_at.0.saturating_sub(received)).unwrap_or_default();
    Duration::from_secs(ticks / DateTime::PER_SECOND.unsigned_abs())
}

/// Hides the message anew after half of its time, until somebody ends this or the message is lost.
async fn renew(claim: Arc<Claim>, asked_at: Instant, timeout: Duration) {
    let mut until = asked_at + timeout;
    let mut next = asked_at + timeout / 2;
    loop {
        sleep_until(next).await;
        let mut hold = claim.hold.lock().await;
        let (began, update) = (Instant::now(), MessageUpdate::visible_after(timeout));
        let deadline = Some(renewal_time(until.saturating_duration_since(began), timeout));
        let options = CallOptions { deadline, ..Default::default() };
        match claim.queue.update_message(&mut hold.receipt, update, Some(options)).await {
            Ok(_) => {
                (until, next) = (began + timeout, began + timeout / 2);
                hold.certain_until = until;
            }
            Err(error) if is_lost(&error) => break,
            Err(error) if error.is_transient() => {
                if error.may_have_been_applied() {
                    // There may be a receipt that we do not have.
                    hold.certain_until = began;
                }
                next = Instant::now() + timeout / RETRY_PART;
                if next >= until {
                    break;
                }
            }
            Err(error) => {
                // A signature without the permission to update, mostly.
                tracing::warn!(message = hold.receipt.message_id, %error, "cannot renew a message");
                // Whoever ends the work before that needs the receipt.
                drop(hold);
                sleep_until(until).await;
                break;
            }
        }
    }
    claim.is_lost.store(true, Ordering::Release);
    claim.loss.notify_waiters();
}

/// How long a renewal may take when there is that much time left: never so long that there is none for another, and never so
/// short that it cannot succeed.
fn renewal_time(left: Duration, timeout: Duration) -> Duration {
    left.min(timeout / RENEWAL_PART).clamp(RENEWAL_TIME_MIN, RENEWAL_TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_has_some_time_and_not_all() {
        let seconds = Duration::from_secs;
        for (left, timeout, expected) in [
            (seconds(15), seconds(30), Duration::from_millis(7500)),
            (seconds(2), seconds(30), seconds(2)),
            (seconds(0), seconds(30), seconds(1)),
            (seconds(0), seconds(1), seconds(1)),
            (seconds(1800), seconds(3600), seconds(30)),
        ] {
            assert_eq!(renewal_time(left, timeout), expected, "{left:?} of {timeout:?}");
        }
    }
}
