//! The client of a table: how it is made, and what its operations share.

use std::sync::Arc;

use azure_core::http::Method;
use tavola_wire::auth::sas::TableSasSpec;
use tavola_wire::uri::percent::write_entity_link;

use super::encryption::EncryptionPolicy;
use super::entity::{Entity, TableEntity};
use super::options::{TableClientOptions, UpdateMode};
use super::spec::{TABLE_SERVICE, check_table_name};
use crate::core::builder::ClientBuilder;
use crate::core::credential::Credential;
use crate::core::error::{Result, refused};
use crate::core::pipeline::ServicePipeline;

/// Works with the entities of a table.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::{Entity, UpdateMode, filter};
///
/// let jens = Entity::new("Sales", "00010").with("FirstName", "Jens").with("Age", 34);
/// people.insert_entity(&jens, None).await?;
///
/// let mut read = people.get_entity::<Entity>("Sales", "00010", None).await?;
/// read.set("Age", 35);
/// people.update_entity(&*read, UpdateMode::Replace, &read, None).await?;
///
/// let mut sales = people.query_entities::<Entity>(filter!(PartitionKey == "Sales"));
/// while let Some(employee) = sales.try_next().await? {
///     println!("{}: {}", employee.row_key(), employee.get::<String>("FirstName")?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TableClient {
    pub(super) pipeline: Arc<ServicePipeline>,
    pub(super) name: Arc<str>,
    pub(super) encryption: Option<Arc<EncryptionPolicy>>,
}

impl TableClient {
    /// A client for a table of the account at this endpoint.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::{SasCredential, TableClient};
    ///
    /// let endpoint = "https://contoso.table.core.windows.net";
    /// let token = SasCredential::new("sv=2019-02-02&tn=people&sp=r&se=2030-01-01&sig=AAAA");
    /// let people = TableClient::new(endpoint, "people", token, None)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An endpoint that is no URL, a name that no table can have.
    pub fn new(
        endpoint: &str,
        name: &str,
        credential: impl Into<Credential>,
        options: Option<TableClientOptions>,
    ) -> Result<Self> {
        check_table_name(name)?;
        let pipeline = ServicePipeline::new(&TABLE_SERVICE, endpoint, credential.into(), options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline), name))
    }

    /// A client for a table of the account that a [connection string](crate::ConnectionString) names.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::TableClient;
    ///
    /// let people = TableClient::from_connection_string("UseDevelopmentStorage=true", "people", None)?;
    /// assert_eq!(people.name(), "people");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A connection string that does not add up, a name that no table can have.
    pub fn from_connection_string(
        text: &str,
        name: &str,
        options: Option<TableClientOptions>,
    ) -> Result<Self> {
        check_table_name(name)?;
        let pipeline = ServicePipeline::from_connection_string(&TABLE_SERVICE, text, options)?;
        Ok(Self::with_pipeline(Arc::new(pipeline), name))
    }

    /// Builds a client for a table, setting by setting.
    ///
    /// ```
    /// # fn main() -> tavola_client::Result<()> {
    /// use std::time::Duration;
    /// use tavola_client::TableClient;
    ///
    /// let people = TableClient::builder("people")
    ///     .connection_string("UseDevelopmentStorage=true")
    ///     .deadline(Duration::from_secs(10))
    ///     .build()?;
    /// assert_eq!(people.name(), "people");
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(name: impl Into<String>) -> ClientBuilder<Self> {
        let name = name.into();
        ClientBuilder::new(&TABLE_SERVICE, move |pipeline| {
            check_table_name(&name)?;
            Ok(Self::with_pipeline(Arc::new(pipeline), &name))
        })
    }

    pub(super) fn with_pipeline(pipeline: Arc<ServicePipeline>, name: &str) -> Self {
        Self { pipeline, name: name.into(), encryption: None }
    }

    /// Another table of the same account.
    pub(super) fn sibling(&self, name: &str) -> Self {
        Self::with_pipeline(self.pipeline.clone(), name)
    }

    /// The same table, with some properties encrypted before they leave the client; see
    /// [`encryption`](crate::encryption).
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::TableClient;
    /// use tavola_client::encryption::{EncryptionPolicy, KeyRing};
    ///
    /// let people = TableClient::from_connection_string("UseDevelopmentStorage=true", "people", None)?;
    /// let policy = EncryptionPolicy::new(Arc::new(KeyRing::new("2026", [7; 32])));
    /// // Entities that are written from here on have the properties encrypted that their type marks.
    /// let people = people.with_encryption(policy);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_encryption(mut self, policy: EncryptionPolicy) -> Self {
        self.encryption = Some(Arc::new(policy));
        self
    }

    /// The same table as the service sees it.
    pub(crate) fn without_encryption(&self) -> Self {
        Self { encryption: None, ..self.clone() }
    }

    /// Whether both write the same rows. Names of tables differ in more than the case.
    pub(crate) fn is_same_table(&self, other: &Self) -> bool {
        self.pipeline.url("") == other.pipeline.url("")
            && self.name.eq_ignore_ascii_case(&other.name)
    }

    /// Account and table as messages name them, for programs that reach the account by other addresses and write the name
    /// in other letters.
    pub(crate) fn qualified_name(&self) -> String {
        format!("{}/{}", self.pipeline.account(), self.name).to_ascii_lowercase()
    }

    /// The name of the table.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::TableClient;
    ///
    /// let people = TableClient::from_connection_string("UseDevelopmentStorage=true", "people", None)?;
    /// println!("in table {}", people.name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a signature for this table: a query string to hand out, or to use as
    /// [`SasCredential`](crate::SasCredential). The spec's table is set to this one.
    ///
    /// ```
    /// # fn main() -> azure_core::Result<()> {
    /// use tavola_client::{DateTime, KeyRangeLimit, Permissions, TableClient, TableSasSpec};
    ///
    /// let table = TableClient::from_connection_string("UseDevelopmentStorage=true", "people", None)?;
    /// let expiry = DateTime::parse_iso("2030-01-01").unwrap();
    /// let spec = TableSasSpec {
    ///     // The partitions from Marketing to Sales, and no others.
    ///     range: KeyRangeLimit::new(Some("Marketing"), None, Some("Sales"), None).unwrap(),
    ///     ..TableSasSpec::new("people", Permissions::READ, expiry)
    /// };
    /// assert!(table.sas(&spec)?.contains("&spk=Marketing&epk=Sales&"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A client without the account's key.
    pub fn sas(&self, spec: &TableSasSpec) -> Result<String> {
        let credential = self.pipeline.signing_key()?;
        let spec = TableSasSpec { table: self.name.to_string(), ..spec.clone() };
        Ok(spec.sign(credential.account(), credential.key()))
    }

    /// The entity as it travels: checked, and encrypted where it is to be.
    pub(super) async fn outgoing<T: TableEntity>(&self, value: &T) -> Result<Entity> {
        let entity = value.to_entity()?;
        entity.check_keys()?;
        match &self.encryption {
            Some(policy) => policy.encrypt(entity, value.encrypted_properties()).await,
            None if !value.encrypted_properties().is_empty() => Err(refused(
                "the type has properties to encrypt and the client has no keys for them",
            )),
            None => Ok(entity),
        }
    }

    /// The properties to ask for; what decryption needs comes along.
    pub(super) fn selected(&self, select: Option<Vec<String>>) -> Option<Vec<String>> {
        let mut names = select?;
        if self.encryption.is_some() {
            names.extend(super::encryption::METADATA_PROPERTIES.map(str::to_owned));
        }
        Some(names)
    }

    pub(super) fn entity_link(&self, partition_key: &str, row_key: &str) -> String {
        entity_link(&self.name, partition_key, row_key)
    }
}

pub(crate) fn entity_link(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut link = Vec::new();
    write_entity_link(table, partition_key, row_key, &mut link);
    String::from_utf8(link).expect("a link is ASCII")
}

pub(crate) fn method_of(mode: UpdateMode) -> Method {
    match mode {
        UpdateMode::Merge => Method::Patch,
        UpdateMode::Replace => Method::Put,
    }
}
