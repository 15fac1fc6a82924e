//! Messages: as they are sent, received and looked at.

use std::borrow::Cow;
use std::ops::Deref;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tavola_wire::queue::answers::MessageAnswer;

use super::MessageEncoding;
use crate::core::error::{Result, conversion};
use crate::core::response::ResponseInfo;
use crate::table::value::DateTime;

/// What it takes to change or delete a message: its id, and the receipt of whoever sent, received or changed it last.
///
/// Every change gives a new receipt and ends the old one, so that [`update_message`](super::QueueClient::update_message)
/// changes it in place. Both are texts that can be kept or handed on.
///
/// ```
/// use tavola_client::queue::MessageReceipt;
///
/// let receipt = MessageReceipt {
///     message_id: "3f2504e0-4f89-41d3-9a0c-0305e82c3301".into(),
///     pop_receipt: "AgAAAAMAAAAAAAAAVNNsH1Dq2AE=".into(),
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageReceipt {
    /// The service's name for the message.
    pub message_id: String,
    /// The proof that it is ours, for now.
    pub pop_receipt: String,
}

/// How long a message is kept.
///
/// ```
/// use std::time::Duration;
/// use tavola_client::queue::TimeToLive;
///
/// let an_hour = TimeToLive::For(Duration::from_secs(3600));
/// assert_ne!(an_hour, TimeToLive::Forever);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeToLive {
    /// For that long, up to 68 years; parts of a second count as a whole one.
    For(Duration),
    /// Until it is deleted.
    Forever,
}

/// A message that was sent.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::queue::SentMessage;
///
/// let sent: SentMessage = orders.send_message("order 17", None).await?;
/// println!("{} by request {:?}", sent.receipt.message_id, sent.request_id());
/// // The sender can take it back, as long as nobody has received it.
/// orders.delete_message(&sent.receipt, None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// For changing or deleting it.
    pub receipt: MessageReceipt,
    /// When it was sent.
    pub inserted_at: DateTime,
    /// When it ends by itself.
    pub expires_at: DateTime,
    /// When it can be received.
    pub next_visible_at: DateTime,
    info: ResponseInfo,
}

impl SentMessage {
    pub(super) fn new(answer: &MessageAnswer, info: ResponseInfo) -> Result<Self> {
        let (receipt, next_visible_at) = claimed(answer)?;
        let (inserted_at, expires_at) = (answer.insertion_time, answer.expiration_time);
        Ok(Self { receipt, inserted_at, expires_at, next_visible_at, info })
    }
}

impl Deref for SentMessage {
    type Target = ResponseInfo;

    fn deref(&self) -> &ResponseInfo {
        &self.info
    }
}

/// A message that was received: hidden from others until it is visible again, and gone only when it is deleted. The rest of
/// it is that of a [`PeekedMessage`].
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::queue::Message;
///
/// let messages: Vec<Message> = orders.receive_messages(None).await?;
/// for message in messages {
///     println!("{}: {}, hidden until {}", message.id, message.text()?, message.next_visible_at.to_iso());
///     orders.delete_message(&message.receipt, None).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// For changing or deleting it.
    pub receipt: MessageReceipt,
    /// When others can receive it, unless it is deleted or changed before.
    pub next_visible_at: DateTime,
    message: PeekedMessage,
}

impl Message {
    pub(super) fn new(answer: MessageAnswer, encoding: MessageEncoding) -> Result<Self> {
        let (receipt, next_visible_at) = claimed(&answer)?;
        Ok(Self { receipt, next_visible_at, message: PeekedMessage::new(answer, encoding) })
    }

    /// Without the receipt.
    pub(super) fn into_peeked(self) -> PeekedMessage {
        self.message
    }
}

impl Deref for Message {
    type Target = PeekedMessage;

    fn deref(&self) -> &PeekedMessage {
        &self.message
    }
}

/// A message that was looked at, and is there as before.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::queue::PeekedMessage;
///
/// let waiting: Vec<PeekedMessage> = orders.peek_messages(None).await?;
/// if let Some(first) = waiting.first() {
///     println!("{} since {}", first.id, first.inserted_at.to_iso());
///     // By the encoding of the client: its text, its bytes, a type of serde in JSON.
///     println!("{}, {} bytes", first.text()?, first.bytes()?.len());
///     let order: serde_json::Value = first.json()?;
///     // As the service has it.
///     println!("{}", first.raw_text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeekedMessage {
    /// The service's name for it.
    pub id: String,
    /// When it was sent.
    pub inserted_at: DateTime,
    /// When it ends by itself.
    pub expires_at: DateTime,
    /// How often it was received. In a [`Message`] this time is included, so that it is 1 for the first; a message that was
    /// looked at and never received has 0.
    pub dequeue_count: u32,
    raw_text: String,
    encoding: MessageEncoding,
}

impl PeekedMessage {
    pub(super) fn new(answer: MessageAnswer, encoding: MessageEncoding) -> Self {
        Self {
            id: answer.id,
            inserted_at: answer.insertion_time,
            expires_at: answer.expiration_time,
            dequeue_count: answer.dequeue_count.unwrap_or_default(),
            raw_text: answer.text.unwrap_or_default(),
            encoding,
        }
    }

    /// What was sent, as a text.
    ///
    /// # Errors
    /// A message that somebody sent in another encoding. The others that came with it are not concerned.
    pub fn text(&self) -> Result<Cow<'_, str>> {
        match self.bytes()? {
            Cow::Borrowed(_) => Ok(self.raw_text.as_str().into()),
            Cow::Owned(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(text.into()),
                Err(_) => Err(conversion("the message is no text")),
            },
        }
    }

    /// What was sent, as bytes.
    ///
    /// # Errors
    /// As [`PeekedMessage::text`].
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        self.encoding.decode(&self.raw_text)
    }

    /// What was sent with [`send_json`](super::QueueClient::send_json).
    ///
    /// # Errors
    /// As [`PeekedMessage::text`], and a text that is no such JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.bytes()?)
            .map_err(|error| conversion(format!("the message is another JSON: {error}")))
    }

    /// The text as the service has it, whatever the encoding.
    pub fn raw_text(&self) -> &str {
        &self.raw_text
    }
}

/// A change of a message; see [`update_message`](super::QueueClient::update_message).
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::queue::MessageUpdate;
///
/// for mut message in orders.receive_messages(None).await? {
///     // Another minute, and how far the work is.
///     let update = MessageUpdate::visible_after(Duration::from_secs(60)).with_body("order 17, packed");
///     orders.update_message(&mut message.receipt, update, None).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageUpdate {
    /// When others can receive it, from now: up to 7 days. Parts of a second count as a whole one.
    pub visibility_timeout: Duration,
    /// What it says from now on; as before unless set.
    pub body: Option<Vec<u8>>,
}

impl MessageUpdate {
    /// Hides a message for that long from now, or shows it with a duration of zero.
    pub fn visible_after(timeout: Duration) -> Self {
        Self { visibility_timeout: timeout, body: None }
    }

    /// Changes what it says, too.
    #[must_use]
    pub fn with_body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Some(body.as_ref().to_vec());
        self
    }
}

/// A message that was changed. Its new receipt is in the place of the old one.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::queue::{MessageUpdate, UpdatedMessage};
///
/// for mut message in orders.receive_messages(None).await? {
///     let update = MessageUpdate::visible_after(Duration::from_secs(60));
///     let updated: UpdatedMessage = orders.update_message(&mut message.receipt, update, None).await?;
///     println!("hidden until {} by {:?}", updated.next_visible_at.to_iso(), updated.request_id());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedMessage {
    /// When others can receive it.
    pub next_visible_at: DateTime,
    pub(super) info: ResponseInfo,
}

impl Deref for UpdatedMessage {
    type Target = ResponseInfo;

    fn deref(&self) -> &ResponseInfo {
        &self.info
    }
}

fn claimed(answer: &MessageAnswer) -> Result<(MessageReceipt, DateTime)> {
    let missing = || conversion("the answer has no receipt");
    let pop_receipt = answer.pop_receipt.clone().ok_or_else(missing)?;
    let next_visible_at = answer.time_next_visible.ok_or_else(missing)?;
    Ok((MessageReceipt { message_id: answer.id.clone(), pop_receipt }, next_visible_at))
}
