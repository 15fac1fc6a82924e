//! Queues: one client for those of an account, one for the messages of a queue, for Azure and Tavola alike.
//!
//! A queue carries work from those who have it to those who do it. A message that was received is hidden for a while, and
//! appears again unless it is deleted: so no work is lost when a worker dies, and some is done twice. Whatever a worker does
//! has to stand that; [`patterns::queue_worker`](crate::patterns::queue_worker) does the rest, and
//! [`patterns::eventually_consistent`](crate::patterns::eventually_consistent) shows how changes are made that can be
//! repeated.
//!
//! ```no_run
//! # async fn run() -> tavola_client::Result<()> {
//! use std::time::Duration;
//! use tavola_client::queue::{QueueServiceClient, ReceiveMessagesOptions};
//!
//! let service = QueueServiceClient::builder().connection_string("UseDevelopmentStorage=true").build()?;
//! let orders = service.queue_client("orders")?;
//! orders.create_if_not_exists(None).await?;
//! orders.send_message("order 17", None).await?;
//!
//! // Hidden from others for a minute, in which the work has to be done.
//! let options = ReceiveMessagesOptions {
//!     max_messages: Some(32),
//!     visibility_timeout: Some(Duration::from_secs(60)),
//!     ..Default::default()
//! };
//! for message in orders.receive_messages(Some(options)).await? {
//!     println!("{}, try number {}", message.text()?, message.dequeue_count);
//!     orders.delete_message(&message.receipt, None).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [stream](QueueClient::messages) receives one message after the other and keeps them hidden for as long as they are
//! worked on. Names, options, errors, retries and signatures are those of the table client.

mod admin;
mod backoff;
mod claim;
mod claimed_message;
mod encoding;
mod list;
mod message;
mod messages;
mod metadata;
mod options;
mod queue_client;
mod service_client;
mod spec;
mod stream;

pub use crate::core::stop::StopSignal;
pub use admin::QueueProperties;
pub use backoff::Backoff;
pub use claimed_message::{ClaimedMessage, MessageHandle};
pub use encoding::MessageEncoding;
pub use list::{QueueItem, QueuePage, QueuePager};
pub use message::{
    Message, MessageReceipt, MessageUpdate, PeekedMessage, SentMessage, TimeToLive, UpdatedMessage,
};
pub use options::{
    CreateQueueOptions, ListQueuesOptions, MessageStreamOptions, Metadata, PeekMessagesOptions,
    QueueClientOptions, ReceiveMessagesOptions, SendMessageOptions,
};
pub use queue_client::QueueClient;
pub use service_client::QueueServiceClient;
pub use stream::MessageStream;

pub(crate) use messages::is_lost;
pub(crate) use stream::{BATCH_MAX, Claims, HIDDEN_MAX, POLL, Source, VISIBILITY_TIMEOUT};

/// What the signature of a queue is made of.
///
/// ```
/// # fn main() -> tavola_client::Result<()> {
/// use tavola_client::queue::{QueueClient, QueueSasSpec};
/// use tavola_client::{DateTime, Permissions};
///
/// let orders = QueueClient::from_connection_string("UseDevelopmentStorage=true", "orders", None)?;
/// let expiry = DateTime::parse_iso("2030-01-01").unwrap();
/// // Those who have it can send, and nothing else.
/// let token = orders.sas(&QueueSasSpec::new("orders", Permissions::ADD, expiry))?;
/// assert!(token.starts_with("sv=2019-02-02&sp=a&se=2030-01-01T00%3A00%3A00Z&sig="));
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use tavola_wire::auth::sas::QueueSasSpec;
