//! The queue itself: making it, deleting it, what is kept with it, and who may use it.

use azure_core::http::Method;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::xml::acl;

use super::metadata::{headers_of, metadata_of};
use super::{CreateQueueOptions, Metadata, QueueClient, QueueServiceClient};
use crate::core::error::{ErrorExt, Result, conversion};
use crate::core::options::CallOptions;
use crate::core::pipeline::Call;
use crate::core::response::ResponseInfo;

/// What the service says about a queue.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::queue::QueueProperties;
///
/// let properties: QueueProperties = orders.get_properties(None).await?;
/// let team = properties.metadata.get("team");
/// println!("about {} messages, kept for {team:?}", properties.approximate_message_count);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueProperties {
    /// How many messages there are, hidden ones included. Never below the true number.
    pub approximate_message_count: u64,
    /// What is kept with the queue.
    pub metadata: Metadata,
}

impl QueueClient {
    /// Makes the queue; see [`QueueServiceClient::create_queue`].
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// orders.create(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueAlreadyExists` for one with other metadata, `QueueBeingDeleted`.
    pub async fn create(&self, options: Option<CreateQueueOptions>) -> Result<ResponseInfo> {
        self.service().create_queue(&self.name, options).await
    }

    /// Makes the queue if there is none, whatever metadata it has; tells whether it did.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// let is_new = orders.create_if_not_exists(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueBeingDeleted`.
    pub async fn create_if_not_exists(&self, options: Option<CreateQueueOptions>) -> Result<bool> {
        self.service().create_queue_if_not_exists(&self.name, options).await
    }

    /// Deletes the queue with all its messages.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// use tavola_client::ErrorExt;
    ///
    /// match orders.delete(None).await {
    ///     Err(error) if error.is_not_found() => println!("it was gone"),
    ///     result => println!("{}", result?.status()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound` when there is none.
    pub async fn delete(&self, options: Option<CallOptions>) -> Result<ResponseInfo> {
        self.service().delete_queue(&self.name, options).await
    }

    /// Deletes the queue if there is one; tells whether there was.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// let was_there = orders.delete_if_exists(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not.
    pub async fn delete_if_exists(&self, options: Option<CallOptions>) -> Result<bool> {
        self.service().delete_queue_if_exists(&self.name, options).await
    }

    /// Tells whether there is such a queue.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// if !orders.exists(None).await? {
    ///     println!("there is no queue {}", orders.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not ask.
    pub async fn exists(&self, options: Option<CallOptions>) -> Result<bool> {
        match self.get_properties(options).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads how many messages there are, and the metadata.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// let properties = orders.get_properties(None).await?;
    /// println!("about {} messages", properties.approximate_message_count);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound`.
    pub async fn get_properties(&self, options: Option<CallOptions>) -> Result<QueueProperties> {
        let query = [("comp", "metadata")];
        let call = Call { query: &query, ..Call::new("get_properties", Method::Get, &self.name) };
        let answer = self.pipeline.send(call, &options.unwrap_or_default()).await?;
        let count = answer.header("x-ms-approximate-messages-count");
        let count = count.and_then(|count| count.parse().ok());
        Ok(QueueProperties {
            approximate_message_count: count.unwrap_or_default(),
            metadata: metadata_of(answer.raw.headers()),
        })
    }

    /// Replaces the metadata.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// let mut metadata = orders.get_properties(None).await?.metadata;
    /// metadata.insert("team".into(), "billing".into());
    /// orders.set_metadata(&metadata, None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Metadata that no header can carry, `MetadataTooLarge`, `QueueNotFound`.
    pub async fn set_metadata(
        &self,
        metadata: &Metadata,
        options: Option<CallOptions>,
    ) -> Result<ResponseInfo> {
        let headers = headers_of(metadata)?;
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let call = Call {
            query: &[("comp", "metadata")],
            headers: &headers,
            ..Call::new("set_metadata", Method::Put, &self.name)
        };
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    /// Reads the stored access policies, which signatures can refer to.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// for policy in orders.get_access_policies(None).await? {
    ///     println!("{}: {:?}", policy.id, policy.access_policy);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `QueueNotFound`, or a client without the account's key.
    pub async fn get_access_policies(
        &self,
        options: Option<CallOptions>,
    ) -> Result<Vec<SignedIdentifier>> {
        let call = self.acl_call("get_access_policies", Method::Get, Vec::new());
        let response = self.pipeline.send(call, &options.unwrap_or_default()).await?;
        acl::parse_queue(response.body()).map_err(|error| conversion(error.message().to_owned()))
    }

    /// Replaces the stored access policies, of which there are at most five. Removing one revokes every signature
    /// that refers to it.
    ///
    /// ```no_run
    /// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
    /// use tavola_client::queue::QueueSasSpec;
    /// use tavola_client::{AccessPolicy, DateTime, Permissions, SignedIdentifier};
    ///
    /// let senders = SignedIdentifier {
    ///     id: "senders".into(),
    ///     access_policy: Some(AccessPolicy {
    ///         start: None,
    ///         expiry: DateTime::parse_iso("2030-01-01"),
    ///         permission: Some(Permissions::ADD),
    ///     }),
    /// };
    /// orders.set_access_policies(&[senders], None).await?;
    /// let token = orders.sas(&QueueSasSpec::with_policy("orders", "senders"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidXmlDocument` for more than five or an id twice, or a client without the account's key.
    pub async fn set_access_policies(
        &self,
        policies: &[SignedIdentifier],
        options: Option<CallOptions>,
    ) -> Result<ResponseInfo> {
        let xml = acl::write_queue(policies);
        let body = xml.trim_start_matches('\u{feff}').as_bytes().to_vec();
        let call = self.acl_call("set_access_policies", Method::Put, body);
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    fn acl_call(&self, operation: &'static str, method: Method, body: Vec<u8>) -> Call<'_> {
        Call { query: &[("comp", "acl")], body, ..Call::new(operation, method, &self.name) }
    }

    fn service(&self) -> QueueServiceClient {
        QueueServiceClient::with_pipeline(self.pipeline.clone())
    }
}
