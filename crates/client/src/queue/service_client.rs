//! The client of an account: its queues, its settings, its signatures.

use std::sync::Arc;

use azure_core::http::{Method, StatusCode, Url};
use tavola_wire::Service;
use tavola_wire::auth::sas::{AccountSasSpec, Services};
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};
use tavola_wire::xml::stats::{self, ServiceStats};

use super::list::{self, QueuePager};
use super::metadata::headers_of;
use super::spec::{QUEUE_SERVICE, check_queue_name};
use super::{CreateQueueOptions, ListQueuesOptions, QueueClient, QueueClientOptions};
use crate::core::builder::ClientBuilder;
use crate::core::credential::Credential;
use crate::core::error::{ErrorExt, Result, conversion};
use crate::core::options::CallOptions;
use crate::core::pipeline::{Call, PROPERTIES, STATS, ServicePipeline};
use crate::core::response::ResponseInfo;

/// Works with the queues of an account.
///
/// ```no_run
/// # async fn run() -> tavola_client::Result<()> {
/// use tavola_client::SharedKeyCredential;
/// use tavola_client::queue::QueueServiceClient;
///
/// let service = QueueServiceClient::new(
///     "http://127.0.0.1:10001/devstoreaccount1",
///     SharedKeyCredential::development(),
///     None,
/// )?;
/// let orders = service.queue_client("orders")?;
/// orders.create_if_not_exists(None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QueueServiceClient {
    pipeline: Arc<ServicePipeline>,
}

impl QueueServiceClient {
    /// A client for the account at this endpoint: `https://account.queue.core.windows.net`, or
    /// `http://host:port/account` as emulators and Tavola have it.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::SharedKeyCredential;
    /// use tavola_client::queue::QueueServiceClient;
    ///
    /// let credential = SharedKeyCredential::new("contoso", "a2V5")?;
    /// let endpoint = "https://contoso.queue.core.windows.net";
    /// let service = QueueServiceClient::new(endpoint, credential, None)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An endpoint that is no URL.
    pub fn new(
        endpoint: &str,
        credential: impl Into<Credential>,
        options: Option<QueueClientOptions>,
    ) -> Result<Self> {
        let pipeline = ServicePipeline::new(&QUEUE_SERVICE, endpoint, credential.into(), options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline)))
    }

    /// A client for the account that a [connection string](crate::ConnectionString) names.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueServiceClient;
    ///
    /// let service = QueueServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
    /// assert_eq!(service.endpoint().as_str(), "http://127.0.0.1:10001/devstoreaccount1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A connection string that does not add up.
    pub fn from_connection_string(text: &str, options: Option<QueueClientOptions>) -> Result<Self> {
        let pipeline = ServicePipeline::from_connection_string(&QUEUE_SERVICE, text, options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline)))
    }

    /// A client for an endpoint whose URL carries a shared access signature.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueServiceClient;
    ///
    /// let url = "https://contoso.queue.core.windows.net/?sv=2019-02-02&ss=q&srt=sco&sp=r&sig=AAAA";
    /// let service = QueueServiceClient::from_sas_url(url, None)?;
    /// assert!(service.endpoint().query().is_none(), "the signature is not part of the address");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A text that is no URL or has no signature.
    pub fn from_sas_url(url: &str, options: Option<QueueClientOptions>) -> Result<Self> {
        let pipeline = ServicePipeline::from_sas_url(&QUEUE_SERVICE, url, options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline)))
    }

    /// Builds a client, setting by setting.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use std::time::Duration;
    /// use tavola_client::queue::QueueServiceClient;
    ///
    /// let service = QueueServiceClient::builder()
    ///     .connection_string("UseDevelopmentStorage=true")
    ///     .attempt_timeout(Duration::from_secs(5))
    ///     .max_retries(3)
    ///     .user_agent("payroll-2.1")
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClientBuilder<Self> {
        ClientBuilder::new(&QUEUE_SERVICE, |pipeline| Ok(Self::with_pipeline(Arc::new(pipeline))))
    }

    pub(super) fn with_pipeline(pipeline: Arc<ServicePipeline>) -> Self {
        Self { pipeline }
    }

    /// The address of the account.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueServiceClient;
    ///
    /// let text = "AccountName=contoso;AccountKey=a2V5";
    /// let service = QueueServiceClient::from_connection_string(text, None)?;
    /// assert_eq!(service.endpoint().host_str(), Some("contoso.queue.core.windows.net"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn endpoint(&self) -> &Url {
        self.pipeline.endpoint()
    }

    /// A client for one queue, which need not exist yet. It shares the connections of this one.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueServiceClient;
    ///
    /// let service = QueueServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
    /// assert_eq!(service.queue_client("orders")?.name(), "orders");
    /// assert!(service.queue_client("No_such_name").is_err(), "lower-case letters, digits and dashes only");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A name that no queue can have.
    pub fn queue_client(&self, name: impl Into<String>) -> Result<QueueClient> {
        let name = name.into();
        check_queue_name(&name)?;
        Ok(QueueClient::with_pipeline(self.pipeline.clone(), &name))
    }

    /// Makes a queue. One that is there already and has the same metadata is a success, too: the status tells, which is 201
    /// for a new queue and 204 for an old one.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// use tavola_client::StatusCode;
    ///
    /// let made = service.create_queue("orders", None).await?;
    /// println!("new: {}", made.status() == StatusCode::Created);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueAlreadyExists` for one with other metadata, `QueueBeingDeleted`, a name that no queue can have, or metadata that
    /// no header can carry.
    pub async fn create_queue(
        &self,
        name: &str,
        options: Option<CreateQueueOptions>,
    ) -> Result<ResponseInfo> {
        check_queue_name(name)?;
        let options = options.unwrap_or_default();
        let headers = headers_of(&options.metadata)?;
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let call = Call { headers: &headers, ..Call::new("create_queue", Method::Put, name) };
        Ok(self.pipeline.send(call, &options.call_options()).await?.info)
    }

    /// Makes a queue if there is none, whatever metadata it has; tells whether it did.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// if service.create_queue_if_not_exists("orders", None).await? {
    ///     println!("a new queue");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`QueueServiceClient::create_queue`], without `QueueAlreadyExists`.
    pub async fn create_queue_if_not_exists(
        &self,
        name: &str,
        options: Option<CreateQueueOptions>,
    ) -> Result<bool> {
        match self.create_queue(name, options).await {
            Ok(info) => Ok(info.status() == StatusCode::Created),
            Err(error) if error.is_already_there() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a queue with all its messages. Azure does not make one of this name again for some 30 seconds.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// service.delete_queue("orders", None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound` when there is none.
    pub async fn delete_queue(
        &self,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<ResponseInfo> {
        check_queue_name(name)?;
        let call = Call::new("delete_queue", Method::Delete, name);
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    /// Deletes a queue if there is one; tells whether there was.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// if !service.delete_queue_if_exists("orders", None).await? {
    ///     println!("it was gone");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not, or a name that no queue can have.
    pub async fn delete_queue_if_exists(
        &self,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        match self.delete_queue(name, options).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The queues, as a stream in the order of their names.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// use futures::TryStreamExt;
    ///
    /// let mut queues = service.list_queues(None);
    /// while let Some(queue) = queues.try_next().await? {
    ///     println!("{}", queue.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_queues(&self, options: Option<ListQueuesOptions>) -> QueuePager {
        list::list_queues(self.pipeline.clone(), options.unwrap_or_default())
    }

    /// Reads the service's settings: logging, metrics and CORS.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// let properties = service.get_properties(None).await?;
    /// println!("{} CORS rules", properties.cors.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not.
    pub async fn get_properties(&self, options: Option<CallOptions>) -> Result<ServiceProperties> {
        let call = Call::of_service("get_properties", Method::Get, &PROPERTIES);
        let response = self.pipeline.send(call, &options.unwrap_or_default()).await?;
        let update = ServicePropertiesUpdate::parse(response.body())
            .map_err(|error| conversion(error.message().to_owned()))?;
        Ok(update.apply(&ServiceProperties::default()))
    }

    /// Changes the service's settings. The service may take up to 30 seconds to follow.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// use tavola_client::RetentionPolicy;
    ///
    /// // All settings are replaced, so change those that are there.
    /// let mut properties = service.get_properties(None).await?;
    /// properties.logging.delete = true;
    /// properties.logging.retention = RetentionPolicy { days: Some(7) };
    /// service.set_properties(&properties, None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidXmlDocument` for settings that the service does not take.
    pub async fn set_properties(
        &self,
        properties: &ServiceProperties,
        options: Option<CallOptions>,
    ) -> Result<ResponseInfo> {
        let xml = properties.to_xml();
        let body = xml.trim_start_matches('\u{feff}').as_bytes().to_vec();
        let call = Call { body, ..Call::of_service("set_properties", Method::Put, &PROPERTIES) };
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    /// Asks the readable copy how far it is behind.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::queue::QueueServiceClient) -> tavola_client::Result<()> {
    /// use tavola_client::ServiceStats;
    ///
    /// if let ServiceStats::Live { last_sync } = service.get_stats(None).await? {
    ///     println!("the copy has everything up to {}", last_sync.to_iso());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An account without a readable copy.
    pub async fn get_stats(&self, options: Option<CallOptions>) -> Result<ServiceStats> {
        let call = Call::of_service("get_stats", Method::Get, &STATS);
        let response = self.pipeline.send_to_secondary(call, &options.unwrap_or_default()).await?;
        stats::parse(response.body()).map_err(|error| conversion(error.message().to_owned()))
    }

    /// Makes a signature for the queues of the account: a query string to hand out, or to use as
    /// [`SasCredential`](crate::SasCredential). The spec's services are set to queues.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueServiceClient;
    /// use tavola_client::{AccountSasSpec, DateTime, Permissions, ResourceTypes};
    ///
    /// let service = QueueServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
    /// let expiry = DateTime::parse_iso("2030-01-01").unwrap();
    /// let token = service.sas(&AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, expiry))?;
    /// assert!(token.starts_with("sv=2019-02-02&ss=q&srt=sco&sp=r&se=2030-01-01T00%3A00%3A00Z&sig="));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A client without the account's key.
    pub fn sas(&self, spec: &AccountSasSpec) -> Result<String> {
        let credential = self.pipeline.signing_key()?;
        let spec = AccountSasSpec { services: Services::of(Service::Queue), ..spec.clone() };
        Ok(spec.sign(credential.account(), credential.key()))
    }
}
