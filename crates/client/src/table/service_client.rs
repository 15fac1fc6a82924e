//! The client of an account: its tables, its settings, its signatures.

use std::sync::Arc;

use azure_core::http::{Method, Url};
use tavola_wire::auth::sas::AccountSasSpec;
use tavola_wire::xml::service_properties::{ServiceProperties, ServicePropertiesUpdate};
use tavola_wire::xml::stats::{self, ServiceStats};

use super::query::{self, TablePager};
use super::spec::{ODATA, TABLE_SERVICE, check_table_name};
use super::{ListTablesOptions, TableClient, TableClientOptions};
use crate::core::builder::ClientBuilder;
use crate::core::credential::Credential;
use crate::core::error::{ErrorExt, Result, conversion};
use crate::core::options::CallOptions;
use crate::core::pipeline::{Call, PROPERTIES, STATS, ServicePipeline};
use crate::core::response::ResponseInfo;

/// Works with the tables of an account.
///
/// ```no_run
/// # async fn run() -> azure_core::Result<()> {
/// use tavola_client::{SharedKeyCredential, TableServiceClient};
///
/// let service = TableServiceClient::new(
///     "http://127.0.0.1:10002/devstoreaccount1",
///     SharedKeyCredential::development(),
///     None,
/// )?;
/// let people = service.table_client("people")?;
/// people.create_if_not_exists(None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TableServiceClient {
    pipeline: Arc<ServicePipeline>,
}

impl TableServiceClient {
    /// A client for the account at this endpoint: `https://account.table.core.windows.net`, or
    /// `http://host:port/account` as emulators and Tavola have it.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::{SharedKeyCredential, TableServiceClient};
    ///
    /// let credential = SharedKeyCredential::new("contoso", "a2V5")?;
    /// let endpoint = "https://contoso.table.core.windows.net";
    /// let service = TableServiceClient::new(endpoint, credential, None)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An endpoint that is no URL.
    pub fn new(
        endpoint: &str,
        credential: impl Into<Credential>,
        options: Option<TableClientOptions>,
    ) -> Result<Self> {
        let pipeline = ServicePipeline::new(&TABLE_SERVICE, endpoint, credential.into(), options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline)))
    }

    /// A client for the account that a [connection string](crate::ConnectionString) names.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::TableServiceClient;
    ///
    /// let service = TableServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
    /// assert_eq!(service.endpoint().as_str(), "http://127.0.0.1:10002/devstoreaccount1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A connection string that does not add up.
    pub fn from_connection_string(text: &str, options: Option<TableClientOptions>) -> Result<Self> {
        let pipeline = ServicePipeline::from_connection_string(&TABLE_SERVICE, text, options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline)))
    }

    /// A client for an endpoint whose URL carries a shared access signature.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::TableServiceClient;
    ///
    /// let url = "https://contoso.table.core.windows.net/?sv=2019-02-02&ss=t&srt=sco&sp=r&sig=AAAA";
    /// let service = TableServiceClient::from_sas_url(url, None)?;
    /// assert!(service.endpoint().query().is_none(), "the signature is not part of the address");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A text that is no URL or has no signature.
    pub fn from_sas_url(url: &str, options: Option<TableClientOptions>) -> Result<Self> {
        let pipeline = ServicePipeline::from_sas_url(&TABLE_SERVICE, url, options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline)))
    }

    /// Builds a client, setting by setting.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use std::time::Duration;
    /// use tavola_client::TableServiceClient;
    ///
    /// let service = TableServiceClient::builder()
    ///     .connection_string("UseDevelopmentStorage=true")
    ///     .attempt_timeout(Duration::from_secs(5))
    ///     .max_retries(3)
    ///     .user_agent("payroll-2.1")
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClientBuilder<Self> {
        ClientBuilder::new(&TABLE_SERVICE, |pipeline| Ok(Self::with_pipeline(Arc::new(pipeline))))
    }

    pub(super) fn with_pipeline(pipeline: Arc<ServicePipeline>) -> Self {
        Self { pipeline }
    }

    /// The address of the account.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::TableServiceClient;
    ///
    /// let text = "AccountName=contoso;AccountKey=a2V5";
    /// let service = TableServiceClient::from_connection_string(text, None)?;
    /// assert_eq!(service.endpoint().host_str(), Some("contoso.table.core.windows.net"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn endpoint(&self) -> &Url {
        self.pipeline.endpoint()
    }

    /// A client for one table, which need not exist yet. It shares the connections of this one.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::TableServiceClient;
    ///
    /// let service = TableServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
    /// assert_eq!(service.table_client("people")?.name(), "people");
    /// assert!(service.table_client("no-such-name").is_err(), "letters and digits only");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A name that no table can have.
    pub fn table_client(&self, name: impl Into<String>) -> Result<TableClient> {
        let name = name.into();
        check_table_name(&name)?;
        Ok(TableClient::with_pipeline(self.pipeline.clone(), &name))
    }

    /// A client for a table whose name is known to be one.
    pub(super) fn known_table(&self, name: &str) -> TableClient {
        TableClient::with_pipeline(self.pipeline.clone(), name)
    }

    /// Makes a table.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
    /// use tavola_client::ErrorExt;
    ///
    /// match service.create_table("people", None).await {
    ///     Err(error) if error.is_already_there() => println!("somebody made it before"),
    ///     result => println!("made by request {:?}", result?.request_id()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TableAlreadyExists`, `TableBeingDeleted`, or a name that no table can have.
    pub async fn create_table(
        &self,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<ResponseInfo> {
        check_table_name(name)?;
        let call = Call {
            headers: &[("prefer", "return-no-content")],
            body: format!("{{\"TableName\":\"{name}\"}}").into_bytes(),
            format: ODATA,
            ..Call::new("create_table", Method::Post, "Tables")
        };
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    /// Makes a table if there is none; tells whether it did.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
    /// if service.create_table_if_not_exists("people", None).await? {
    ///     println!("a new table");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`TableServiceClient::create_table`], without `TableAlreadyExists`.
    pub async fn create_table_if_not_exists(
        &self,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        match self.create_table(name, options).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_already_there() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a table with all its entities.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
    /// service.delete_table("people", None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ResourceNotFound` when there is none.
    pub async fn delete_table(
        &self,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<ResponseInfo> {
        check_table_name(name)?;
        let resource = format!("Tables('{name}')");
        let call = Call { format: ODATA, ..Call::new("delete_table", Method::Delete, &resource) };
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    /// Deletes a table if there is one; tells whether there was.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
    /// if !service.delete_table_if_exists("people", None).await? {
    ///     println!("it was gone");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not, or a name that no table can have.
    pub async fn delete_table_if_exists(
        &self,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        match self.delete_table(name, options).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names of the tables, as a stream.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
    /// use futures::TryStreamExt;
    ///
    /// let mut tables = service.list_tables(None);
    /// while let Some(name) = tables.try_next().await? {
    ///     println!("{name}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_tables(&self, options: Option<ListTablesOptions>) -> TablePager {
        query::list_tables(self.pipeline.clone(), options.unwrap_or_default())
    }

    /// Reads the service's settings: logging, metrics and CORS.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
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
    /// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
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
    /// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
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

    /// Makes a signature for the account: a query string to hand out, or to use as
    /// [`SasCredential`](crate::SasCredential).
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::{AccountSasSpec, DateTime, Permissions, ResourceTypes, TableServiceClient};
    ///
    /// let service = TableServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
    /// let expiry = DateTime::parse_iso("2030-01-01").unwrap();
    /// let token = service.sas(&AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, expiry))?;
    /// assert!(token.starts_with("sv=2019-02-02&ss=t&srt=sco&sp=r&se=2030-01-01T00%3A00%3A00Z&sig="));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A client without the account's key.
    pub fn sas(&self, spec: &AccountSasSpec) -> Result<String> {
        let credential = self.pipeline.signing_key()?;
        Ok(spec.sign(credential.account(), credential.key()))
    }
}
