//! The claim to a message: its latest receipt, and the renewal that keeps it hidden.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::{Instant, sleep_until};

use super::messages::{is_lost, whole_seconds};
use super::{HIDDEN_MAX, Message, MessageReceipt, MessageUpdate, QueueClient};
use crate::core::error::{ErrorExt, Result, may_pass};
use crate::core::options::CallOptions;
use crate::core::task::uncancelled;
use crate::table::value::DateTime;

/// A renewal that failed is tried again after this part of the time that a claim lasts.
const RETRY_PART: u32 = 10;
/// A renewal takes at most this part of the time that a claim lasts, and no more and no less than these: it holds the receipt,
/// which whoever ends the work waits for.
const RENEWAL_PART: u32 = 4;
const RENEWAL_TIME_MAX: Duration = Duration::from_secs(30);
const RENEWAL_TIME_MIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Claim {
    /// How long the message is hidden at a time.
    timeout: Duration,
    /// Whoever has the lock may change the message.
    hold: Mutex<Hold>,
    /// When the message ends by itself, unless that is further away than there are moments.
    ends: Option<Instant>,
    is_lost: AtomicBool,
    loss: Notify,
}

/// What makes a message ours.
#[derive(Debug)]
pub(super) struct Hold {
    queue: QueueClient,
    /// The latest receipt.
    receipt: MessageReceipt,
    /// What was written into it since it was received.
    text: Option<String>,
    /// Until when it is hidden by the last change that was answered.
    until: Instant,
    /// Nobody else can have received it before.
    certain_until: Instant,
}

impl Claim {
    pub(super) fn new(
        queue: QueueClient,
        message: &Message,
        asked_at: Instant,
        timeout: Duration,
    ) -> Self {
        let (receipt, until) = (message.receipt.clone(), asked_at + timeout);
        Self {
            timeout,
            hold: Mutex::new(Hold { queue, receipt, text: None, until, certain_until: until }),
            ends: asked_at.checked_add(lifetime(message, timeout)),
            is_lost: AtomicBool::new(false),
            loss: Notify::new(),
        }
    }

    pub(super) async fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().await
    }

    /// On a task of its own: whoever stops to wait for it would keep the lock as long as the future is not dropped.
    pub(super) async fn update_body(self: &Arc<Self>, body: Vec<u8>) -> Result<bool> {
        let claim = Arc::clone(self);
        uncancelled(async move { claim.update_body_now(&body).await }).await?
    }

    async fn update_body_now(&self, body: &[u8]) -> Result<bool> {
        let mut hold = self.hold().await;
        if self.is_lost() {
            return Ok(false);
        }
        let text = hold.queue.encoding.encode(body)?.into_owned();
        let update = MessageUpdate::visible_after(self.timeout).with_body(body);
        match hold.update(update, self.timeout).await {
            Ok(()) => {
                hold.text = Some(text);
                Ok(true)
            }
            Err(error) if is_lost(&error) => {
                self.end();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// How long the service will keep the message.
    pub(super) fn time_left(&self) -> Duration {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.ends.map_or(Duration::MAX, left)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub(super) async fn lost(&self) {
        loop {
            let loss = self.loss.notified();
            if self.is_lost() {
                return;
            }
            loss.await;
        }
    }

    /// The message is not ours any more.
    pub(super) fn end(&self) {
        self.is_lost.store(true, Ordering::Release);
        self.loss.notify_waiters();
    }
}

impl Hold {
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Deletes the message; `false` if it was not ours any more.
    pub(super) async fn delete(&self) -> Result<bool> {
        match self.queue.delete_message(&self.receipt, None).await {
            Ok(_) => Ok(true),
            Err(error) if is_lost(&error) => Ok(self.is_made(&error)),
            Err(error) => Err(error),
        }
    }

    /// Shows the message to others after a pause; `false` if it was not ours any more.
    pub(super) async fn show_after(&mut self, pause: Duration) -> Result<bool> {
        let update = MessageUpdate::visible_after(pause.min(HIDDEN_MAX));
        match self.queue.update_message(&mut self.receipt, update, None).await {
            Ok(_) => Ok(true),
            Err(error) if is_lost(&error) => Ok(self.is_made(&error)),
            Err(error) => Err(error),
        }
    }

    /// Hides the message for that long from now, in the time that there is for it.
    async fn update(&mut self, update: MessageUpdate, timeout: Duration) -> Result<()> {
        let began = Instant::now();
        let deadline = Some(renewal_time(self.until.saturating_duration_since(began), timeout));
        let options = CallOptions { deadline, ..Default::default() };
        let updated = self.queue.update_message(&mut self.receipt, update, Some(options)).await;
        match updated {
            Ok(_) => {
                self.until = began + timeout;
                self.certain_until = self.until;
                Ok(())
            }
            Err(error) => {
                if error.may_have_been_applied() {
                    // There may be a receipt that we do not have.
                    self.certain_until = began;
                }
                Err(error)
            }
        }
    }

    /// Whether a change whose answer was lost has been made. Repeated, it found another receipt than ours, or nothing; that is its
    /// own doing, as long as it cannot be that of somebody else.
    fn is_made(&self, error: &azure_core::Error) -> bool {
        error.may_have_been_applied() && Instant::now() < self.certain_until
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
pub(super) async fn renew(claim: Arc<Claim>) {
    let timeout = claim.timeout;
    let mut next = claim.hold().await.until - timeout / 2;
    loop {
        sleep_until(next).await;
        let mut hold = claim.hold().await;
        let due = hold.until - timeout / 2;
        if due > Instant::now() {
            // Whoever wrote into it has hidden it anew.
            next = due;
            continue;
        }
        match hold.update(MessageUpdate::visible_after(timeout), timeout).await {
            Ok(()) => next = hold.until - timeout / 2,
            Err(error) if is_lost(&error) => break,
            Err(error) if may_pass(&error) => {
                next = Instant::now() + timeout / RETRY_PART;
                if next >= hold.until {
                    break;
                }
            }
            Err(error) => {
                // A signature without the permission to update, mostly.
                tracing::warn!(message = hold.receipt.message_id, %error, "cannot renew a message");
                let until = hold.until;
                // Whoever ends the work before that needs the receipt.
                drop(hold);
                sleep_until(until).await;
                break;
            }
        }
    }
    claim.end();
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
