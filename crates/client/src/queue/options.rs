//! The options of calls to queues. All have defaults, and every call takes `None` for them.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_core::http::ClientMethodOptions;

use super::{Backoff, TimeToLive};
use crate::core::options::{CallOptions, ServiceClientOptions};
use crate::core::pager::Continuation;
use crate::core::stop::StopSignal;

/// Options of a client.
///
/// ```
/// # fn main() -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::queue::{QueueClientOptions, QueueServiceClient};
///
/// let options =
///     QueueClientOptions { deadline: Some(Duration::from_secs(20)), ..Default::default() };
/// let service =
///     QueueServiceClient::from_connection_string("UseDevelopmentStorage=true", Some(options))?;
/// # Ok(())
/// # }
/// ```
pub type QueueClientOptions = ServiceClientOptions;

/// Names and values that are kept with a queue. Names are letters of ASCII, digits and `_`, begin with no digit, and travel in
/// lower case, because they are names of headers; values are ASCII. A value of another client that is not is shown as the text
/// that it is in UTF-8, or else in Latin-1; it cannot be written back.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::queue::Metadata;
///
/// let metadata = Metadata::from([("team".to_owned(), "billing".to_owned())]);
/// orders.set_metadata(&metadata, None).await?;
/// # Ok(())
/// # }
/// ```
pub type Metadata = BTreeMap<String, String>;

/// Options of making a queue.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::queue::{CreateQueueOptions, Metadata};
///
/// let metadata = Metadata::from([("team".to_owned(), "billing".to_owned())]);
/// orders.create(Some(CreateQueueOptions { metadata, ..Default::default() })).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CreateQueueOptions {
    /// What is kept with the queue.
    pub metadata: Metadata,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long the call may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

/// Options of listing queues.
///
/// ```no_run
/// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::queue::ListQueuesOptions;
///
/// let orders = ListQueuesOptions {
///     prefix: Some("orders-".into()),
///     include_metadata: true,
///     ..Default::default()
/// };
/// let mut queues = service.list_queues(Some(orders));
/// while let Some(queue) = queues.try_next().await? {
///     println!("{} {:?}", queue.name, queue.metadata);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ListQueuesOptions {
    /// How the names begin; all unless set.
    pub prefix: Option<String>,
    /// Asks for the metadata of each queue.
    pub include_metadata: bool,
    /// Queues in a page, at most 5,000. This does not limit the whole: take as many from the stream as are wanted.
    pub page_size: Option<u16>,
    /// Where to go on: the [continuation](crate::Pager::continuation) of an earlier pager with the same prefix.
    pub continuation: Option<Continuation>,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long each page may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

/// Options of sending a message.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::queue::{SendMessageOptions, TimeToLive};
///
/// let tomorrow = SendMessageOptions {
///     visibility_timeout: Some(Duration::from_secs(24 * 3600)),
///     time_to_live: Some(TimeToLive::Forever),
///     ..Default::default()
/// };
/// orders.send_message("remind 17", Some(tomorrow)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SendMessageOptions {
    /// How long nobody can receive it, up to 7 days; at once unless set. Parts of a second count as a whole one.
    pub visibility_timeout: Option<Duration>,
    /// How long it is kept; 7 days unless set.
    pub time_to_live: Option<TimeToLive>,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long the call may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

/// Options of receiving messages.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::queue::ReceiveMessagesOptions;
///
/// let options = ReceiveMessagesOptions {
///     max_messages: Some(32),
///     visibility_timeout: Some(Duration::from_secs(60)),
///     ..Default::default()
/// };
/// let messages = orders.receive_messages(Some(options)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReceiveMessagesOptions {
    /// Messages to receive, at most 32; 1 unless set.
    pub max_messages: Option<u8>,
    /// How long nobody else can receive them, from 1 second to 7 days; 30 seconds unless set. Parts of a second count as a
    /// whole one.
    pub visibility_timeout: Option<Duration>,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long the call may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

/// Options of looking at messages.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::queue::PeekMessagesOptions;
///
/// let options = PeekMessagesOptions { max_messages: Some(32), ..Default::default() };
/// let waiting = orders.peek_messages(Some(options)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct PeekMessagesOptions {
    /// Messages to look at, at most 32; 1 unless set.
    pub max_messages: Option<u8>,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long the call may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

/// Options of a [stream of messages](super::QueueClient::messages).
///
/// ```
/// use std::time::Duration;
/// use tavola_client::queue::{Backoff, MessageStreamOptions, StopSignal};
///
/// let options = MessageStreamOptions {
///     // Received by one request, and handed out one by one.
///     batch: Some(16),
///     visibility_timeout: Some(Duration::from_secs(60)),
///     poll: Some(Backoff { first: Duration::from_millis(50), longest: Duration::from_secs(1) }),
///     // Any future will do; `tokio::signal::ctrl_c` in a program at a terminal.
///     stop: Some(StopSignal::new(std::future::pending::<()>())),
/// };
/// ```
#[derive(Clone, Debug, Default)]
pub struct MessageStreamOptions {
    /// Messages that are received by one request, at most 32; 1 unless set. Those that wait to be handed out are kept hidden,
    /// too.
    pub batch: Option<u8>,
    /// How long a message is hidden at a time, from 1 second to 7 days; 30 seconds unless set. It is hidden anew after half of it, for as long as its
    /// [`ClaimedMessage`](super::ClaimedMessage) lives; after a crash others wait for that long.
    pub visibility_timeout: Option<Duration>,
    /// The pauses between questions to an empty queue, or to a service that does not answer; from 0.1 to 10 seconds unless
    /// set.
    pub poll: Option<Backoff>,
    /// Ends the stream: nothing more is received, and what was not handed out can be received by others at once. The service
    /// counts it as received.
    pub stop: Option<StopSignal>,
}

/// Declares how the options of a call give those that every call has.
macro_rules! call_options {
    ($($options:ident)+) => {
        $(impl $options {
            pub(super) fn call_options(&self) -> CallOptions {
                CallOptions { method_options: self.method_options.clone(), deadline: self.deadline }
            }
        })+
    };
}

call_options! {
    CreateQueueOptions ListQueuesOptions SendMessageOptions ReceiveMessagesOptions PeekMessagesOptions
}
