//! The client of a table: its entities, one by one, in transactions and in queries.

use std::sync::Arc;

use azure_core::http::headers::ETAG;
use azure_core::http::{ClientMethodOptions, Etag, Method, RawResponse};
use tavola_wire::auth::sas::TableSasSpec;
use tavola_wire::uri::percent::write_entity_link;

use super::query::{self, EntityPager, decode, select_text};
use super::{CallOptions, GetEntityOptions, IfMatch, QueryOptions, TableClientOptions, UpdateMode};
use crate::core::credential::Credential;
use crate::core::error::{ErrorExt, Result, conversion, refused};
use crate::core::pipeline::{Call, Core, Format, check_table_name};
use crate::table::encryption::EncryptionPolicy;
use crate::table::entity::{Entity, Stored, TableEntity, check_keys, json};
use crate::table::transaction::{self, Transaction};

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
    pub(super) core: Arc<Core>,
    pub(super) name: Arc<str>,
    encryption: Option<Arc<EncryptionPolicy>>,
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
        Ok(Self::with_core(Arc::new(Core::new(endpoint, credential.into(), options)?), name.into()))
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
        Ok(Self::with_core(Arc::new(Core::from_connection_string(text, options)?), name.into()))
    }

    pub(super) fn with_core(core: Arc<Core>, name: String) -> Self {
        Self { core, name: name.into(), encryption: None }
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

    /// Adds an entity.
    ///
    /// Trying again after a lost answer can find the entity of the first attempt: see
    /// [`may_have_been_applied`](ErrorExt::may_have_been_applied).
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::{Entity, ErrorExt};
    ///
    /// match people.insert_entity(&Entity::new("Sales", "00010").with("Age", 34), None).await {
    ///     Ok(etag) => println!("version {etag}"),
    ///     Err(error) if error.is_already_there() => println!("taken: {error}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `EntityAlreadyExists`, `TableNotFound`, or an entity that the service does not take.
    pub async fn insert_entity<T: TableEntity>(
        &self,
        entity: &T,
        options: Option<CallOptions>,
    ) -> Result<Etag> {
        let entity = self.outgoing(entity).await?;
        let call = Call {
            method: Method::Post,
            resource: &self.name,
            query: &[],
            headers: &[("prefer", "return-no-content")],
            body: json::write_entity(&entity),
            format: Format::Json,
        };
        etag(&self.send(call, options).await?)
    }

    /// Adds an entity, or changes the one that has its keys. Doing it twice is doing it once.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::{Entity, UpdateMode};
    ///
    /// let jens = Entity::new("Sales", "00010").with("Age", 34);
    /// people.upsert_entity(&jens, UpdateMode::Replace, None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TableNotFound`, or an entity that the service does not take; a merge while
    /// [encryption](TableClient::with_encryption) is on.
    pub async fn upsert_entity<T: TableEntity>(
        &self,
        entity: &T,
        mode: UpdateMode,
        options: Option<CallOptions>,
    ) -> Result<Etag> {
        self.put(entity, mode, None, options).await
    }

    /// Changes an entity that is there.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::{Entity, ErrorExt, UpdateMode};
    ///
    /// let mut jens = people.get_entity::<Entity>("Sales", "00010", None).await?;
    /// jens.set("Age", 35);
    /// // Only if nobody changed it since: the version that was read goes along.
    /// match people.update_entity(&jens.value, UpdateMode::Replace, &jens, None).await {
    ///     Err(error) if error.is_precondition_failed() => println!("read it again, then decide"),
    ///     result => println!("version {}", result?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ResourceNotFound` when it is not, `UpdateConditionNotSatisfied` when somebody changed it since; a merge while
    /// [encryption](TableClient::with_encryption) is on.
    pub async fn update_entity<T: TableEntity>(
        &self,
        entity: &T,
        mode: UpdateMode,
        if_match: impl Into<IfMatch>,
        options: Option<CallOptions>,
    ) -> Result<Etag> {
        self.put(entity, mode, Some(if_match.into()), options).await
    }

    /// Deletes an entity.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::IfMatch;
    ///
    /// people.delete_entity("Sales", "00010", IfMatch::Any, None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ResourceNotFound` when there is none, `UpdateConditionNotSatisfied` when somebody changed it since.
    pub async fn delete_entity(
        &self,
        partition_key: &str,
        row_key: &str,
        if_match: impl Into<IfMatch>,
        options: Option<CallOptions>,
    ) -> Result<()> {
        check_keys(partition_key, row_key)?;
        let if_match = if_match.into();
        let call = Call {
            method: Method::Delete,
            resource: &self.entity_link(partition_key, row_key),
            query: &[],
            headers: &[("if-match", if_match.as_str())],
            body: Vec::new(),
            format: Format::Json,
        };
        self.send(call, options).await?;
        Ok(())
    }

    /// Reads an entity by its keys: the cheapest question there is.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::Entity;
    ///
    /// let jens = people.get_entity::<Entity>("Sales", "00010", None).await?;
    /// println!("{} is {}", jens.get::<String>("FirstName")?, jens.get::<i32>("Age")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ResourceNotFound` when there is none, `TableNotFound`.
    pub async fn get_entity<T: TableEntity>(
        &self,
        partition_key: &str,
        row_key: &str,
        options: Option<GetEntityOptions>,
    ) -> Result<Stored<T>> {
        check_keys(partition_key, row_key)?;
        let GetEntityOptions { select, method_options } = options.unwrap_or_default();
        let select = self.selected(select).map(|names| select_text(&names));
        let query = select.as_deref().map(|names| [("$select", names)]);
        let call = Call {
            method: Method::Get,
            resource: &self.entity_link(partition_key, row_key),
            query: query.as_ref().map_or(&[], |query| &query[..]),
            headers: &[],
            body: Vec::new(),
            format: Format::Json,
        };
        let response = self.core.send(call, &method_options).await?;
        decode(json::read_entity(response.body())?, self.encryption.as_deref()).await
    }

    /// Reads an entity by its keys, if there is one.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::Entity;
    ///
    /// match people.get_entity_if_exists::<Entity>("Sales", "00010", None).await? {
    ///     Some(jens) => println!("version {}", jens.etag),
    ///     None => println!("nobody has this id"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TableNotFound`.
    pub async fn get_entity_if_exists<T: TableEntity>(
        &self,
        partition_key: &str,
        row_key: &str,
        options: Option<GetEntityOptions>,
    ) -> Result<Option<Stored<T>>> {
        match self.get_entity(partition_key, row_key, options).await {
            Ok(stored) => Ok(Some(stored)),
            Err(error) if error.code() == Some(crate::ErrorCode::ResourceNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The entities that a query finds, as a stream in the order of their keys.
    ///
    /// Takes [`QueryOptions`], a [`Filter`](crate::Filter), or `None` for everything.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use futures::TryStreamExt;
    /// use tavola_client::{Entity, filter};
    ///
    /// let mut adults = people.query_entities::<Entity>(filter!(PartitionKey == "Sales" && Age >= 18));
    /// while let Some(employee) = adults.try_next().await? {
    ///     println!("{}", employee.row_key());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query_entities<T: TableEntity + Send + 'static>(
        &self,
        options: impl Into<Option<QueryOptions>>,
    ) -> EntityPager<T> {
        let mut options = options.into().unwrap_or_default();
        options.select = self.selected(options.select);
        query::query_entities(self.core.clone(), &self.name, options, self.encryption.clone())
    }

    /// Does all of a transaction or nothing of it.
    ///
    /// Gives the new versions in the order of the operations; a deleted entity has none.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::{Entity, ErrorExt, IfMatch, Transaction, UpdateMode};
    ///
    /// let mut transaction = Transaction::new();
    /// transaction.insert(&Entity::new("Sales", "00010").with("Age", 34))?;
    /// transaction.upsert(&Entity::new("Sales", "00011").with("Age", 28), UpdateMode::Merge)?;
    /// transaction.delete("Sales", "00012", IfMatch::Any)?;
    /// match people.submit_transaction(&transaction, None).await {
    ///     Ok(etags) => assert_eq!(etags.len(), 3),
    ///     Err(error) => println!("operation {:?}: {error}", error.failed_operation()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of the first operation that failed; [`failed_operation`](ErrorExt::failed_operation) tells which.
    pub async fn submit_transaction(
        &self,
        transaction: &Transaction,
        options: Option<CallOptions>,
    ) -> Result<Vec<Option<Etag>>> {
        let options = options.unwrap_or_default().method_options;
        transaction::submit(
            &self.core,
            &self.name,
            transaction,
            self.encryption.as_deref(),
            &options,
        )
        .await
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
        let credential = self
            .core
            .shared_key()
            .ok_or_else(|| refused("only a client with the account's key can make signatures"))?;
        let spec = TableSasSpec { table: self.name.to_string(), ..spec.clone() };
        Ok(spec.sign(credential.account(), credential.key()))
    }

    async fn put<T: TableEntity>(
        &self,
        entity: &T,
        mode: UpdateMode,
        if_match: Option<IfMatch>,
        options: Option<CallOptions>,
    ) -> Result<Etag> {
        if mode == UpdateMode::Merge
            && let Some(policy) = &self.encryption
        {
            policy.refuse_merge()?;
        }
        let entity = self.outgoing(entity).await?;
        let headers = if_match.as_ref().map(|if_match| [("if-match", if_match.as_str())]);
        let call = Call {
            method: method_of(mode),
            resource: &self.entity_link(entity.partition_key(), entity.row_key()),
            query: &[],
            headers: headers.as_ref().map_or(&[], |headers| &headers[..]),
            body: json::write_entity(&entity),
            format: Format::Json,
        };
        etag(&self.send(call, options).await?)
    }

    /// The entity as it travels: checked, and encrypted where it is to be.
    async fn outgoing<T: TableEntity>(&self, value: &T) -> Result<Entity> {
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
    fn selected(&self, select: Option<Vec<String>>) -> Option<Vec<String>> {
        let mut names = select?;
        if self.encryption.is_some() {
            names.extend(crate::table::encryption::METADATA_PROPERTIES.map(str::to_owned));
        }
        Some(names)
    }

    async fn send(&self, call: Call<'_>, options: Option<CallOptions>) -> Result<RawResponse> {
        let options: ClientMethodOptions<'static> = options.unwrap_or_default().method_options;
        self.core.send(call, &options).await
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

fn etag(response: &RawResponse) -> Result<Etag> {
    let etag = response.headers().get_optional_str(&ETAG);
    etag.map(Etag::from).ok_or_else(|| conversion("the answer has no ETag"))
}
