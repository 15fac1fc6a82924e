//! The table itself: making it, deleting it, and who may use it.

use azure_core::http::Method;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::xml::acl;

use super::entity::json;
use super::spec::{ODATA, check_table_name};
use super::{TableClient, TableServiceClient};
use crate::core::error::{ErrorExt, Result, conversion};
use crate::core::options::CallOptions;
use crate::core::pipeline::Call;
use crate::core::response::{Answer, ResponseInfo};

impl TableClient {
    /// Makes the table.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// people.create(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TableAlreadyExists`, `TableBeingDeleted`.
    pub async fn create(&self, options: Option<CallOptions>) -> Result<ResponseInfo> {
        self.service().create_table(&self.name, options).await
    }

    /// Makes the table if there is none; tells whether it did.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// let is_new = people.create_if_not_exists(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TableBeingDeleted`.
    pub async fn create_if_not_exists(&self, options: Option<CallOptions>) -> Result<bool> {
        self.service().create_table_if_not_exists(&self.name, options).await
    }

    /// Deletes the table with all its entities.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::ErrorExt;
    ///
    /// match people.delete(None).await {
    ///     Err(error) if error.is_not_found() => println!("it was gone"),
    ///     result => println!("{}", result?.status()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ResourceNotFound` when there is none.
    pub async fn delete(&self, options: Option<CallOptions>) -> Result<ResponseInfo> {
        self.service().delete_table(&self.name, options).await
    }

    /// Deletes the table if there is one; tells whether there was.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
    /// let was_there = people.delete_if_exists(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not.
    pub async fn delete_if_exists(&self, options: Option<CallOptions>) -> Result<bool> {
        self.service().delete_table_if_exists(&self.name, options).await
    }

    /// Tells whether there is such a table.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// if !people.exists(None).await? {
    ///     println!("there is no table {}", people.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A credential that may not ask.
    pub async fn exists(&self, options: Option<CallOptions>) -> Result<bool> {
        match self.find("exists", options).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The name in the letters that the table was made with.
    pub(super) async fn name_as_made(&self, options: Option<CallOptions>) -> Result<String> {
        check_table_name(&self.name)?;
        json::read_table(self.find("name_as_made", options).await?.body())
    }

    async fn find(&self, operation: &'static str, options: Option<CallOptions>) -> Result<Answer> {
        let resource = format!("Tables('{}')", self.name);
        let call = Call { format: ODATA, ..Call::new(operation, Method::Get, &resource) };
        self.pipeline.send(call, &options.unwrap_or_default()).await
    }

    /// Reads the stored access policies, which signatures can refer to.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// for policy in people.get_access_policies(None).await? {
    ///     println!("{}: {:?}", policy.id, policy.access_policy);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `TableNotFound`, or a client without the account's key.
    pub async fn get_access_policies(
        &self,
        options: Option<CallOptions>,
    ) -> Result<Vec<SignedIdentifier>> {
        let call = self.acl_call("get_access_policies", Method::Get, Vec::new());
        let response = self.pipeline.send(call, &options.unwrap_or_default()).await?;
        acl::parse(response.body()).map_err(|error| conversion(error.message().to_owned()))
    }

    /// Replaces the stored access policies, of which there are at most five. Removing one revokes every signature
    /// that refers to it.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::{AccessPolicy, DateTime, Permissions, SignedIdentifier, TableSasSpec};
    ///
    /// let readers = SignedIdentifier {
    ///     id: "readers".into(),
    ///     access_policy: Some(AccessPolicy {
    ///         start: None,
    ///         expiry: DateTime::parse_iso("2030-01-01"),
    ///         permission: Some(Permissions::READ),
    ///     }),
    /// };
    /// people.set_access_policies(&[readers], None).await?;
    /// let token = people.sas(&TableSasSpec::with_policy("people", "readers"))?;
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
        let xml = acl::write(policies);
        let body = xml.trim_start_matches('\u{feff}').as_bytes().to_vec();
        let call = self.acl_call("set_access_policies", Method::Put, body);
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    fn acl_call(&self, operation: &'static str, method: Method, body: Vec<u8>) -> Call<'_> {
        Call { query: &[("comp", "acl")], body, ..Call::new(operation, method, &self.name) }
    }

    fn service(&self) -> TableServiceClient {
        TableServiceClient::with_pipeline(self.pipeline.clone())
    }
}
