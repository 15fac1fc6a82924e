//! Sending, receiving, looking at, changing and deleting messages.

use std::time::Duration;

use azure_core::http::Method;
use serde::Serialize;
use tavola_wire::ErrorCode;
use tavola_wire::queue::answers::{self, MessageAnswer};

use super::{
    Message, MessageReceipt, MessageUpdate, PeekMessagesOptions, PeekedMessage, QueueClient,
    ReceiveMessagesOptions, SendMessageOptions, SentMessage, TimeToLive, UpdatedMessage,
};
use crate::core::error::{ErrorExt, Result, conversion};
use crate::core::options::CallOptions;
use crate::core::pipeline::Call;
use crate::core::response::{Answer, ResponseInfo};

/// The largest number of seconds that a parameter can have.
const SECONDS_MAX: u64 = i32::MAX as u64;

impl QueueClient {
    /// Sends a message: a text, or any bytes with [`MessageEncoding::Base64`](super::MessageEncoding::Base64).
    ///
    /// A lost answer makes the client send it again, so that it can come twice.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// let sent = orders.send_message("order 17", None).await?;
    /// println!("{} until {}", sent.receipt.message_id, sent.expires_at.to_iso());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound`, `RequestBodyTooLarge` above 64 KiB, and bytes that the encoding does not take.
    pub async fn send_message(
        &self,
        body: impl AsRef<[u8]>,
        options: Option<SendMessageOptions>,
    ) -> Result<SentMessage> {
        let options = options.unwrap_or_default();
        let text = self.encoding.encode(body.as_ref())?;
        self.put_message(answers::write_message(&text).into_bytes(), &options).await
    }

    /// Sends a type of serde in JSON, for [`PeekedMessage::json`] to read.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Order {
    ///     id: u32,
    /// }
    ///
    /// orders.send_json(&Order { id: 17 }, None).await?;
    /// for message in orders.receive_messages(None).await? {
    ///     println!("order {}", message.json::<Order>()?.id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`QueueClient::send_message`], and a value that JSON does not take.
    pub async fn send_json<T: Serialize>(
        &self,
        value: &T,
        options: Option<SendMessageOptions>,
    ) -> Result<SentMessage> {
        let body = serde_json::to_vec(value)
            .map_err(|error| conversion(format!("the value is no JSON: {error}")))?;
        self.send_message(body, options).await
    }

    async fn put_message(
        &self,
        body: Vec<u8>,
        options: &SendMessageOptions,
    ) -> Result<SentMessage> {
        let hidden = options.visibility_timeout.map(|timeout| whole_seconds(timeout).to_string());
        let kept = options.time_to_live.map(|kept| match kept {
            TimeToLive::For(duration) => whole_seconds(duration).to_string(),
            TimeToLive::Forever => "-1".to_owned(),
        });
        let query =
            given([("visibilitytimeout", hidden.as_deref()), ("messagettl", kept.as_deref())]);
        let resource = self.messages_resource();
        let call =
            Call { query: &query, body, ..Call::new("send_message", Method::Post, &resource) };
        let answer = self.pipeline.send(call, &options.call_options()).await?;
        let sent = parse(&answer)?.pop();
        let sent = sent.ok_or_else(|| conversion("the answer names no message"))?;
        SentMessage::new(&sent, answer.info)
    }

    /// Receives messages, the oldest first, and hides them from others for a while; none if there are none to see. Fewer than
    /// asked for do not mean that there are no more.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// for message in orders.receive_messages(None).await? {
    ///     println!("{}", message.text()?);
    ///     orders.delete_message(&message.receipt, None).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound`. After a lost answer the messages are hidden although nobody has them, until their time is over.
    pub async fn receive_messages(
        &self,
        options: Option<ReceiveMessagesOptions>,
    ) -> Result<Vec<Message>> {
        let options = options.unwrap_or_default();
        let count = options.max_messages.map(|count| count.to_string());
        let hidden = options.visibility_timeout.map(|timeout| whole_seconds(timeout).to_string());
        let query =
            given([("numofmessages", count.as_deref()), ("visibilitytimeout", hidden.as_deref())]);
        let resource = self.messages_resource();
        let call = Call { query: &query, ..Call::new("receive_messages", Method::Get, &resource) };
        let answer = self.pipeline.send(call, &options.call_options()).await?;
        let messages = parse(&answer)?.into_iter();
        messages.map(|message| Message::new(message, self.encoding)).collect()
    }

    /// Looks at messages, in the order in which they would be received, and leaves them as they are.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// match orders.peek_messages(None).await?.first() {
    ///     Some(first) => println!("{} waits since {}", first.id, first.inserted_at.to_iso()),
    ///     None => println!("nothing to do"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound`.
    pub async fn peek_messages(
        &self,
        options: Option<PeekMessagesOptions>,
    ) -> Result<Vec<PeekedMessage>> {
        let options = options.unwrap_or_default();
        let count = options.max_messages.map(|count| count.to_string());
        let query = given([("peekonly", Some("true")), ("numofmessages", count.as_deref())]);
        let resource = self.messages_resource();
        let call = Call { query: &query, ..Call::new("peek_messages", Method::Get, &resource) };
        let answer = self.pipeline.send(call, &options.call_options()).await?;
        let messages = parse(&answer)?.into_iter();
        Ok(messages.map(|message| PeekedMessage::new(message, self.encoding)).collect())
    }

    /// Changes when a message is visible, and what it says if the update has a body. The new receipt takes the place of the
    /// old one, which is of no use any more.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// use std::time::Duration;
    /// use tavola_client::queue::MessageUpdate;
    ///
    /// for mut message in orders.receive_messages(None).await? {
    ///     let a_minute = MessageUpdate::visible_after(Duration::from_secs(60));
    ///     orders.update_message(&mut message.receipt, a_minute, None).await?;
    ///     orders.delete_message(&message.receipt, None).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `MessageNotFound` for a message that is gone, or that somebody else has received or changed since. Also after a lost
    /// answer, when the first attempt had changed it: [`may_have_been_applied`](ErrorExt::may_have_been_applied) says so then.
    /// Nobody has its new receipt, and it can be received when its time is over.
    pub async fn update_message(
        &self,
        receipt: &mut MessageReceipt,
        update: MessageUpdate,
        options: Option<CallOptions>,
    ) -> Result<UpdatedMessage> {
        let hidden = whole_seconds(update.visibility_timeout).to_string();
        let body = match &update.body {
            Some(body) => answers::write_message(&self.encoding.encode(body)?).into_bytes(),
            None => Vec::new(),
        };
        let query = [("popreceipt", receipt.pop_receipt.as_str()), ("visibilitytimeout", &hidden)];
        let resource = self.message_resource(&receipt.message_id);
        let call =
            Call { query: &query, body, ..Call::new("update_message", Method::Put, &resource) };
        let answer = self.pipeline.send(call, &options.unwrap_or_default()).await?;
        let missing = || conversion("the answer has no receipt");
        let pop_receipt = answer.header("x-ms-popreceipt").ok_or_else(missing)?.to_owned();
        let moment = answer.header("x-ms-time-next-visible").ok_or_else(missing)?;
        let next_visible_at = answers::parse_http_date(moment)
            .map_err(|error| conversion(error.message().to_owned()))?;
        receipt.pop_receipt = pop_receipt;
        Ok(UpdatedMessage { next_visible_at, info: answer.info })
    }

    /// Deletes a message: the work is done.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// for message in orders.receive_messages(None).await? {
    ///     orders.delete_message(&message.receipt, None).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`QueueClient::update_message`].
    pub async fn delete_message(
        &self,
        receipt: &MessageReceipt,
        options: Option<CallOptions>,
    ) -> Result<ResponseInfo> {
        // Without an id the same request would delete all messages.
        if receipt.message_id.is_empty() {
            return Err(conversion("the receipt has no message id"));
        }
        let query = [("popreceipt", receipt.pop_receipt.as_str())];
        let resource = self.message_resource(&receipt.message_id);
        let call = Call { query: &query, ..Call::new("delete_message", Method::Delete, &resource) };
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    /// Deletes a message if it is still ours; tells whether it was. A repeated attempt after a lost answer finds nothing to
    /// delete, too.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// for message in orders.receive_messages(None).await? {
    ///     if !orders.delete_message_if_exists(&message.receipt, None).await? {
    ///         println!("it took too long, and somebody else may do it again");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not, a receipt that is none.
    pub async fn delete_message_if_exists(
        &self,
        receipt: &MessageReceipt,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        match self.delete_message(receipt, options).await {
            Ok(_) => Ok(true),
            Err(error) if is_lost(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes all messages, hidden ones too.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// orders.clear_messages(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound`.
    pub async fn clear_messages(&self, options: Option<CallOptions>) -> Result<ResponseInfo> {
        let resource = self.messages_resource();
        let call = Call::new("clear_messages", Method::Delete, &resource);
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    fn messages_resource(&self) -> String {
        format!("{}/messages", self.name)
    }

    fn message_resource(&self, id: &str) -> String {
        let mut resource = format!("{}/messages/", self.name);
        tavola_wire::uri::percent::push_encoded(id, &mut resource);
        resource
    }
}

/// Whether a message is not ours any more: gone, or received or changed by somebody else. Azurite has a code of its own for
/// the latter.
pub(crate) fn is_lost(error: &azure_core::Error) -> bool {
    error.is_not_found() || error.code() == Some(ErrorCode::PopReceiptMismatch)
}

fn parse(answer: &Answer) -> Result<Vec<MessageAnswer>> {
    answers::parse_messages(answer.body()).map_err(|error| conversion(error.message().to_owned()))
}

fn given<'a, const N: usize>(
    parameters: [(&'static str, Option<&'a str>); N],
) -> Vec<(&'static str, &'a str)> {
    parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The service counts whole seconds; a claim is rather too long than too short. What is longer than it can read is sent as
/// the longest that it can, so that it says what the limit is.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    seconds.min(SECONDS_MAX)
}
