//! The client of a queue: how it is made, and what its operations share.

use std::sync::Arc;

use tavola_wire::auth::sas::QueueSasSpec;

use super::spec::{QUEUE_SERVICE, check_queue_name};
use super::{MessageEncoding, QueueClientOptions};
use crate::core::builder::ClientBuilder;
use crate::core::connection_string::parse_url;
use crate::core::credential::{Credential, SasCredential};
use crate::core::error::{Result, conversion};
use crate::core::pipeline::ServicePipeline;

/// Works with the messages of a queue.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// orders.send_message("order 17", None).await?;
/// for message in orders.receive_messages(None).await? {
///     println!("{}", message.text()?);
///     orders.delete_message(&message.receipt, None).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QueueClient {
    pub(super) pipeline: Arc<ServicePipeline>,
    pub(super) name: Arc<str>,
    pub(super) encoding: MessageEncoding,
}

impl QueueClient {
    /// A client for a queue of the account at this endpoint.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::SasCredential;
    /// use tavola_client::queue::QueueClient;
    ///
    /// let endpoint = "https://contoso.queue.core.windows.net";
    /// let token = SasCredential::new("sv=2019-02-02&sp=raup&se=2030-01-01&sig=AAAA");
    /// let orders = QueueClient::new(endpoint, "orders", token, None)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An endpoint that is no URL, a name that no queue can have.
    pub fn new(
        endpoint: &str,
        name: &str,
        credential: impl Into<Credential>,
        options: Option<QueueClientOptions>,
    ) -> Result<Self> {
        check_queue_name(name)?;
        let pipeline = ServicePipeline::new(&QUEUE_SERVICE, endpoint, credential.into(), options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline), name))
    }

    /// A client for a queue of the account that a [connection string](crate::ConnectionString) names.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueClient;
    ///
    /// let orders = QueueClient::from_connection_string("UseDevelopmentStorage=true", "orders", None)?;
    /// assert_eq!(orders.name(), "orders");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A connection string that does not add up, a name that no queue can have.
    pub fn from_connection_string(
        text: &str,
        name: &str,
        options: Option<QueueClientOptions>,
    ) -> Result<Self> {
        check_queue_name(name)?;
        let pipeline = ServicePipeline::from_connection_string(&QUEUE_SERVICE, text, options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline), name))
    }

    /// A client for the queue at a URL that carries a shared access signature.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueClient;
    ///
    /// let url = "https://contoso.queue.core.windows.net/orders?sv=2019-02-02&sp=a&se=2030-01-01&sig=AAAA";
    /// let orders = QueueClient::from_sas_url(url, None)?;
    /// assert_eq!(orders.name(), "orders");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A text that is no URL, names no queue or has no signature.
    pub fn from_sas_url(url: &str, options: Option<QueueClientOptions>) -> Result<Self> {
        let mut endpoint = parse_url(url)?;
        let token = endpoint.query().map(SasCredential::new);
        let token = token.ok_or_else(|| conversion("the URL has no shared access signature"))?;
        let path = endpoint.path().to_owned();
        let (account, name) = path.rsplit_once('/').unwrap_or_default();
        check_queue_name(name)?;
        endpoint.set_path(account);
        endpoint.set_query(None);
        Self::new(endpoint.as_str(), name, token, options)
    }

    /// Builds a client for a queue, setting by setting.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use std::time::Duration;
    /// use tavola_client::queue::QueueClient;
    ///
    /// let orders = QueueClient::builder("orders")
    ///     .connection_string("UseDevelopmentStorage=true")
    ///     .deadline(Duration::from_secs(10))
    ///     .build()?;
    /// assert_eq!(orders.name(), "orders");
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(name: impl Into<String>) -> ClientBuilder<Self> {
        let name = name.into();
        ClientBuilder::new(&QUEUE_SERVICE, move |pipeline| {
            check_queue_name(&name)?;
            Ok(Self::with_pipeline(Arc::new(pipeline), &name))
        })
    }

    pub(super) fn with_pipeline(pipeline: Arc<ServicePipeline>, name: &str) -> Self {
        Self { pipeline, name: name.into(), encoding: MessageEncoding::default() }
    }

    /// Another queue of the same account.
    pub(crate) fn sibling(&self, name: &str) -> Result<Self> {
        check_queue_name(name)?;
        Ok(Self { name: name.into(), ..self.clone() })
    }

    /// The same queue, with messages written and read in this encoding. Texts as they are unless set.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::{MessageEncoding, QueueClient};
    ///
    /// let images = QueueClient::from_connection_string("UseDevelopmentStorage=true", "images", None)?
    ///     .with_encoding(MessageEncoding::Base64);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_encoding(mut self, encoding: MessageEncoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// The name of the queue.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueClient;
    ///
    /// let orders = QueueClient::from_connection_string("UseDevelopmentStorage=true", "orders", None)?;
    /// println!("in queue {}", orders.name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether both are known to work on the same messages. An account has several addresses, but one name.
    pub(crate) fn is_same_queue(&self, other: &Self) -> bool {
        self.name == other.name && self.pipeline.account() == other.pipeline.account()
    }

    /// Makes a signature for this queue: a query string to hand out, or to use as
    /// [`SasCredential`](crate::SasCredential). The spec's queue is set to this one.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::{QueueClient, QueueSasSpec};
    /// use tavola_client::{DateTime, Permissions};
    ///
    /// let orders = QueueClient::from_connection_string("UseDevelopmentStorage=true", "orders", None)?;
    /// let expiry = DateTime::parse_iso("2030-01-01").unwrap();
    /// // A worker: receives and deletes, and keeps hidden what it works on.
    /// let work = Permissions::PROCESS | Permissions::UPDATE;
    /// assert!(orders.sas(&QueueSasSpec::new("orders", work, expiry))?.contains("&sp=up&"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A client without the account's key.
    pub fn sas(&self, spec: &QueueSasSpec) -> Result<String> {
        let credential = self.pipeline.signing_key()?;
        let spec = QueueSasSpec { queue: self.name.to_string(), ..spec.clone() };
        Ok(spec.sign(credential.account(), credential.key()))
    }
}
