//! Clients, put together setting by setting.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::policies::Policy;
use azure_core::http::{ExponentialRetryOptions, HttpClient, RetryOptions, Transport};

use super::credential::Credential;
use super::error::{Result, refused};
use super::options::ServiceClientOptions;
use super::pipeline::ServicePipeline;
use super::service::ServiceSpec;
use super::transport::{TransportOptions, new_transport};

/// Builds a client; see [`TableServiceClient::builder`](crate::TableServiceClient::builder) and
/// [`TableClient::builder`](crate::TableClient::builder).
///
/// ```no_run
/// # fn main() -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::{ClientBuilder, SharedKeyCredential, TableServiceClient};
///
/// let builder: ClientBuilder<TableServiceClient> = TableServiceClient::builder();
/// let service = builder
///     .endpoint("https://tavola.example:10002/contoso")
///     .credential(SharedKeyCredential::new("contoso", "a2V5")?)
///     // The certificate of a server that has made its own, in PEM or DER form.
///     .root_certificate(std::fs::read("cert.pem")?)
///     .connect_timeout(Duration::from_secs(2))
///     .connect_retries(0)
///     .attempt_timeout(Duration::from_secs(10))
///     .max_retries(4)
///     .deadline(Duration::from_secs(30))
///     .user_agent("payroll-2.1")
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is made before `build`"]
pub struct ClientBuilder<C> {
    service: &'static ServiceSpec,
    finish: Box<dyn FnOnce(ServicePipeline) -> Result<C> + Send>,
    address: Option<Address>,
    credential: Option<Credential>,
    transport: TransportOptions,
    options: ServiceClientOptions,
}

/// Where the service is. The two texts can be secrets.
enum Address {
    Endpoint(String),
    ConnectionString(String),
    SasUrl(String),
}

impl<C> ClientBuilder<C> {
    pub(crate) fn new(
        service: &'static ServiceSpec,
        finish: impl FnOnce(ServicePipeline) -> Result<C> + Send + 'static,
    ) -> Self {
        Self {
            service,
            finish: Box::new(finish),
            address: None,
            credential: None,
            transport: TransportOptions::default(),
            options: ServiceClientOptions::default(),
        }
    }

    /// Endpoint and credential from a [connection string](crate::ConnectionString).
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::TableServiceClient;
    ///
    /// let service =
    ///     TableServiceClient::builder().connection_string("UseDevelopmentStorage=true").build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connection_string(mut self, text: impl Into<String>) -> Self {
        self.address = Some(Address::ConnectionString(text.into()));
        self
    }

    /// The service's address; needs a [credential](ClientBuilder::credential) beside it.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.address = Some(Address::Endpoint(url.into()));
        self
    }

    /// An address that carries a shared access signature.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::TableServiceClient;
    ///
    /// let url = "https://contoso.table.core.windows.net/?sv=2019-02-02&ss=t&srt=sco&sp=r&sig=AAAA";
    /// let service = TableServiceClient::builder().sas_url(url).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sas_url(mut self, url: impl Into<String>) -> Self {
        self.address = Some(Address::SasUrl(url.into()));
        self
    }

    /// Who asks.
    pub fn credential(mut self, credential: impl Into<Credential>) -> Self {
        self.credential = Some(credential.into());
        self
    }

    /// A certificate to trust beside those of the system, in PEM or DER form. Can be called several times.
    pub fn root_certificate(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.transport.root_certificates.push(bytes.into());
        self
    }

    /// How long a connection may take to be made; 5 seconds unless set.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.transport.connect_timeout = limit;
        self
    }

    /// How often a connection that cannot be made is tried again, with short pauses; twice unless set.
    pub fn connect_retries(mut self, count: u32) -> Self {
        self.options.connect_retries = Some(count);
        self
    }

    /// How long one attempt of a call may take; 40 seconds unless set.
    pub fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.transport.request_timeout = limit;
        self
    }

    /// How long a call may take with all its retries; 100 seconds unless set. Each call can have one of its own in its
    /// options.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.options.deadline = Some(limit);
        self
    }

    /// How often a call is tried again that met a busy server or lost its connection, with pauses that grow from 0.2 to 30
    /// seconds; 8 unless set.
    pub fn max_retries(self, count: u32) -> Self {
        let options = ExponentialRetryOptions { max_retries: count, ..Default::default() };
        self.retry(match count {
            0 => RetryOptions::none(),
            _ => RetryOptions::exponential(options),
        })
    }

    /// The retries of `azure_core`, with their pauses.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::TableServiceClient;
    /// use tavola_client::azure_core::http::{FixedRetryOptions, RetryOptions};
    /// use tavola_client::azure_core::time::Duration;
    ///
    /// let every_second = FixedRetryOptions { delay: Duration::seconds(1), ..Default::default() };
    /// let service = TableServiceClient::builder()
    ///     .connection_string("UseDevelopmentStorage=true")
    ///     .retry(RetryOptions::fixed(every_second))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry(mut self, retry: RetryOptions) -> Self {
        self.options.client_options.retry = retry;
        self
    }

    /// The program's name in the header `User-Agent`, before that of this crate: one word of at most 24 characters.
    pub fn user_agent(mut self, application_id: impl Into<String>) -> Self {
        self.options.client_options.user_agent.application_id = Some(application_id.into());
        self
    }

    /// A policy of `azure_core` that sees every attempt.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use std::sync::Arc;
    /// use async_trait::async_trait;
    /// use tavola_client::TableServiceClient;
    /// use tavola_client::azure_core::http::policies::{Policy, PolicyResult};
    /// use tavola_client::azure_core::http::{Context, Request};
    ///
    /// #[derive(Debug)]
    /// struct PrintUrls;
    ///
    /// #[async_trait]
    /// impl Policy for PrintUrls {
    ///     async fn send(
    ///         &self,
    ///         context: &Context,
    ///         request: &mut Request,
    ///         next: &[Arc<dyn Policy>],
    ///     ) -> PolicyResult {
    ///         println!("{}", request.url());
    ///         next[0].send(context, request, &next[1..]).await
    ///     }
    /// }
    ///
    /// let service = TableServiceClient::builder()
    ///     .connection_string("UseDevelopmentStorage=true")
    ///     .policy(Arc::new(PrintUrls))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn policy(mut self, policy: Arc<dyn Policy>) -> Self {
        self.options.client_options.per_try_policies.push(policy);
        self
    }

    /// Another transport than the one of this crate, which then has timeouts and certificates of its own.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use tavola_client::{TableServiceClient, new_transport};
    ///
    /// // Two accounts that share their connections.
    /// let transport = new_transport(None)?;
    /// for account in ["contoso", "fabrikam"] {
    ///     let service = TableServiceClient::builder()
    ///         .connection_string(format!("AccountName={account};AccountKey=a2V5"))
    ///         .transport(transport.clone())
    ///         .build()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn transport(mut self, transport: Arc<dyn HttpClient>) -> Self {
        self.options.client_options.transport = Some(Transport::new(transport));
        self
    }

    /// The scope that tokens of Entra are asked for; that of Azure Storage unless set.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tavola_client::azure_core::credentials::TokenCredential;
    /// # fn connect(entra: Arc<dyn TokenCredential>) -> tavola_client::Result<()> {
    /// use tavola_client::TableServiceClient;
    ///
    /// let service = TableServiceClient::builder()
    ///     .endpoint("https://tavola.example/contoso")
    ///     .credential(entra)
    ///     .token_scope("api://tavola/.default")
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn token_scope(mut self, scope: impl Into<String>) -> Self {
        self.options.token_scope = Some(scope.into());
        self
    }

    /// Makes the client. Nothing is sent yet.
    ///
    /// # Errors
    /// No address or no credential, or one of the settings that cannot be.
    pub fn build(self) -> Result<C> {
        let Self { service, finish, address, credential, transport, mut options } = self;
        if options.client_options.transport.is_none() {
            let transport = new_transport(Some(transport))?;
            options.client_options.transport = Some(Transport::new(transport));
        }
        let pipeline = match (address, credential) {
            (Some(Address::Endpoint(url)), Some(credential)) => {
                ServicePipeline::new(service, &url, credential, Some(options))
            }
            (Some(Address::ConnectionString(text)), None) => {
                ServicePipeline::from_connection_string(service, &text, Some(options))
            }
            (Some(Address::SasUrl(url)), None) => {
                ServicePipeline::from_sas_url(service, &url, Some(options))
            }
            (Some(Address::Endpoint(_)), None) => Err(refused("an endpoint needs a credential")),
            (Some(_), Some(_)) => Err(refused(
                "a connection string or an address with a signature brings its own credential",
            )),
            (None, _) => Err(refused("the client has neither a connection string nor an endpoint")),
        };
        finish(pipeline?)
    }
}

impl<C> fmt::Debug for ClientBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("service", &self.service.name)
            .field("transport", &self.transport)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
