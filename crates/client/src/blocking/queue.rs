//! Queues for programs without an async runtime.
//!
//! Streams of messages and workers need a runtime; their place is a program that has one.

use std::sync::Arc;

use serde::Serialize;

use super::{Driver, Items};
use crate::core::error::Result;
use crate::queue::{
    CreateQueueOptions, ListQueuesOptions, Message, MessageEncoding, MessageReceipt, MessageUpdate,
    Metadata, PeekMessagesOptions, PeekedMessage, QueueClientOptions, QueuePage, QueueProperties,
    ReceiveMessagesOptions, SendMessageOptions, SentMessage, UpdatedMessage,
};
use crate::{CallOptions, ResponseInfo};

/// Works with the queues of an account; see [`crate::queue::QueueServiceClient`].
///
/// ```no_run
/// # fn main() -> tavola_client::Result<()> {
/// use tavola_client::blocking::queue::QueueServiceClient;
///
/// let service = QueueServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
/// service.create_queue("orders", None)?;
/// assert!(!service.create_queue_if_not_exists("orders", None)?);
/// for queue in service.list_queues(None) {
///     println!("{}", queue?.name);
/// }
/// let orders = service.queue_client("orders")?;
/// service.delete_queue("orders", None)?;
/// assert!(!service.delete_queue_if_exists("orders", None)?);
///
/// // Settings come from the builder of the async client, whose other calls can be run too.
/// let service = tavola_client::queue::QueueServiceClient::builder();
/// let service = service.connection_string("UseDevelopmentStorage=true").build()?;
/// let service = QueueServiceClient::new(service)?;
/// let properties = service.run(|client| async move { client.get_properties(None).await })??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QueueServiceClient {
    client: crate::queue::QueueServiceClient,
    driver: Arc<Driver>,
}

impl QueueServiceClient {
    /// Drives an async client.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn new(client: crate::queue::QueueServiceClient) -> Result<Self> {
        Ok(Self { client, driver: Driver::start()? })
    }

    /// As [`crate::queue::QueueServiceClient::from_connection_string`].
    ///
    /// # Errors
    /// A connection string that does not add up, and a call inside of a runtime.
    pub fn from_connection_string(text: &str, options: Option<QueueClientOptions>) -> Result<Self> {
        Self::new(crate::queue::QueueServiceClient::from_connection_string(text, options)?)
    }

    /// As [`crate::queue::QueueServiceClient::queue_client`]; shares connections and runtime.
    ///
    /// # Errors
    /// A name that no queue can have.
    pub fn queue_client(&self, name: impl Into<String>) -> Result<QueueClient> {
        Ok(QueueClient { client: self.client.queue_client(name)?, driver: self.driver.clone() })
    }

    /// As [`crate::queue::QueueServiceClient::list_queues`].
    pub fn list_queues(&self, options: Option<ListQueuesOptions>) -> Items<QueuePage> {
        Items::new(self.client.list_queues(options), self.driver.clone())
    }

    /// Runs anything that the async client can do.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn run<F: Future>(
        &self,
        work: impl FnOnce(crate::queue::QueueServiceClient) -> F,
    ) -> Result<F::Output> {
        self.driver.run(work(self.client.clone()))
    }
}

/// Works with the messages of a queue; see [`crate::queue::QueueClient`].
///
/// ```no_run
/// # fn main() -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::blocking::queue::QueueClient;
/// use tavola_client::queue::{MessageEncoding, MessageUpdate, Metadata};
///
/// let orders = QueueClient::from_connection_string("UseDevelopmentStorage=true", "orders", None)?;
/// orders.create_if_not_exists(None)?;
/// println!("in queue {}: {}", orders.name(), orders.exists(None)?);
/// orders.set_metadata(&Metadata::new(), None)?;
///
/// orders.send_message("order 17", None)?;
/// orders.send_json(&17, None)?;
/// println!("{} wait", orders.get_properties(None)?.approximate_message_count);
/// let first = orders.peek_messages(None)?;
/// for mut message in orders.receive_messages(None)? {
///     let a_minute = MessageUpdate::visible_after(Duration::from_secs(60));
///     orders.update_message(&mut message.receipt, a_minute, None)?;
///     orders.delete_message(&message.receipt, None)?;
///     assert!(!orders.delete_message_if_exists(&message.receipt, None)?);
/// }
/// orders.clear_messages(None)?;
/// orders.delete(None)?;
/// orders.create(None)?;
/// orders.delete_if_exists(None)?;
///
/// // Settings come from the builder of the async client, whose other calls can be run too.
/// let orders = tavola_client::queue::QueueClient::builder("orders");
/// let orders = orders.connection_string("UseDevelopmentStorage=true").build()?;
/// let orders = QueueClient::new(orders)?.with_encoding(MessageEncoding::Base64);
/// let policies = orders.run(|client| async move { client.get_access_policies(None).await })??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QueueClient {
    client: crate::queue::QueueClient,
    driver: Arc<Driver>,
}

impl QueueClient {
    /// Drives an async client.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn new(client: crate::queue::QueueClient) -> Result<Self> {
        Ok(Self { client, driver: Driver::start()? })
    }

    /// As [`crate::queue::QueueClient::from_connection_string`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn from_connection_string(
        text: &str,
        name: &str,
        options: Option<QueueClientOptions>,
    ) -> Result<Self> {
        Self::new(crate::queue::QueueClient::from_connection_string(text, name, options)?)
    }

    /// As [`crate::queue::QueueClient::with_encoding`].
    #[must_use]
    pub fn with_encoding(mut self, encoding: MessageEncoding) -> Self {
        self.client = self.client.with_encoding(encoding);
        self
    }

    /// The name of the queue.
    pub fn name(&self) -> &str {
        self.client.name()
    }

    /// Runs anything that the async client can do.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn run<F: Future>(
        &self,
        work: impl FnOnce(crate::queue::QueueClient) -> F,
    ) -> Result<F::Output> {
        self.driver.run(work(self.client.clone()))
    }

    /// As [`crate::queue::QueueClient::send_json`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn send_json<T: Serialize>(
        &self,
        value: &T,
        options: Option<SendMessageOptions>,
    ) -> Result<SentMessage> {
        self.driver.run(self.client.send_json(value, options))?
    }
}

/// Declares calls that differ from those of the async client in nothing but their waiting.
macro_rules! calls {
    ($client:ident: $($name:ident ($($argument:ident: $kind:ty),*) -> $result:ty;)+) => {
        impl $client {
            $(
                #[doc = concat!("As [`crate::queue::", stringify!($client), "::", stringify!($name), "`].")]
                ///
                /// # Errors
                /// As there, and a call inside of a runtime.
                pub fn $name(&self, $($argument: $kind),*) -> Result<$result> {
                    self.driver.run(self.client.$name($($argument),*))?
                }
            )+
        }
    };
}

calls! {
    QueueServiceClient:
    create_queue(name: &str, options: Option<CreateQueueOptions>) -> ResponseInfo;
    create_queue_if_not_exists(name: &str, options: Option<CreateQueueOptions>) -> bool;
    delete_queue(name: &str, options: Option<CallOptions>) -> ResponseInfo;
    delete_queue_if_exists(name: &str, options: Option<CallOptions>) -> bool;
}

calls! {
    QueueClient:
    create(options: Option<CreateQueueOptions>) -> ResponseInfo;
    create_if_not_exists(options: Option<CreateQueueOptions>) -> bool;
    delete(options: Option<CallOptions>) -> ResponseInfo;
    delete_if_exists(options: Option<CallOptions>) -> bool;
    exists(options: Option<CallOptions>) -> bool;
    get_properties(options: Option<CallOptions>) -> QueueProperties;
    set_metadata(metadata: &Metadata, options: Option<CallOptions>) -> ResponseInfo;
    send_message(body: impl AsRef<[u8]>, options: Option<SendMessageOptions>) -> SentMessage;
    receive_messages(options: Option<ReceiveMessagesOptions>) -> Vec<Message>;
    peek_messages(options: Option<PeekMessagesOptions>) -> Vec<PeekedMessage>;
    update_message(
        receipt: &mut MessageReceipt, update: MessageUpdate, options: Option<CallOptions>
    ) -> UpdatedMessage;
    delete_message(receipt: &MessageReceipt, options: Option<CallOptions>) -> ResponseInfo;
    delete_message_if_exists(receipt: &MessageReceipt, options: Option<CallOptions>) -> bool;
    clear_messages(options: Option<CallOptions>) -> ResponseInfo;
}
