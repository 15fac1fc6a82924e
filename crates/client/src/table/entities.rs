//! The entities of a table: one by one, in transactions and in queries.

use azure_core::http::Method;

use super::entity::{Stored, TableEntity, check_keys, json};
use super::explain::QueryExplanation;
use super::filter::{Filter, QueryCost};
use super::options::{GetEntityOptions, IfMatch, QueryOptions, UpdateMode};
use super::query::{self, EntityPager, decode, select_text};
use super::spec::ODATA;
use super::table_client::{TableClient, method_of};
use super::transaction::{self, Transaction, TransactionResponse};
use crate::ErrorCode;
use crate::core::error::{ErrorExt, Result};
use crate::core::options::CallOptions;
use crate::core::pipeline::Call;
use crate::core::response::{ResponseInfo, WriteResponse};

impl TableClient {
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
    ///     Ok(written) => println!("version {}", written.etag()),
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
    ) -> Result<WriteResponse> {
        let entity = self.outgoing(entity).await?;
        let call = Call {
            headers: &[("prefer", "return-no-content")],
            body: json::write_entity(&entity),
            format: ODATA,
            ..Call::new("insert_entity", Method::Post, &self.name)
        };
        self.pipeline.send(call, &options.unwrap_or_default()).await?.into_written()
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
    ) -> Result<WriteResponse> {
        self.put(entity, mode, None, "upsert_entity", options).await
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
    ///     result => println!("version {}", result?.etag()),
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
    ) -> Result<WriteResponse> {
        self.put(entity, mode, Some(if_match.into()), "update_entity", options).await
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
    ) -> Result<ResponseInfo> {
        check_keys(partition_key, row_key)?;
        let if_match = if_match.into();
        let link = self.entity_link(partition_key, row_key);
        let call = Call {
            headers: &[("if-match", if_match.as_str())],
            format: ODATA,
            ..Call::new("delete_entity", Method::Delete, &link)
        };
        Ok(self.pipeline.send(call, &options.unwrap_or_default()).await?.info)
    }

    /// Deletes an entity if it is there; tells whether it was.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
    /// use tavola_client::IfMatch;
    ///
    /// if !people.delete_entity_if_exists("Sales", "00010", IfMatch::Any, None).await? {
    ///     println!("it was gone");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `UpdateConditionNotSatisfied` when somebody changed it since, `TableNotFound`.
    pub async fn delete_entity_if_exists(
        &self,
        partition_key: &str,
        row_key: &str,
        if_match: impl Into<IfMatch>,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        match self.delete_entity(partition_key, row_key, if_match, options).await {
            Ok(_) => Ok(true),
            Err(error) if is_missing_entity(&error) => Ok(false),
            Err(error) => Err(error),
        }
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
        let GetEntityOptions { select, method_options, deadline } = options.unwrap_or_default();
        let select = self.selected(select).map(|names| select_text(&names));
        let query = select.as_deref().map(|names| [("$select", names)]);
        let link = self.entity_link(partition_key, row_key);
        let call = Call {
            query: query.as_ref().map_or(&[], |query| &query[..]),
            format: ODATA,
            ..Call::new("get_entity", Method::Get, &link)
        };
        let options = CallOptions { method_options, deadline };
        let answer = self.pipeline.send(call, &options).await?;
        let request_id = answer.info.request_id().map(Into::into);
        let stored = json::read_entity(answer.body())?.with_request_id(request_id);
        decode(stored, self.encryption.as_deref()).await
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
            Err(error) if is_missing_entity(&error) => Ok(None),
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
        query::query_entities(self.pipeline.clone(), &self.name, options, self.encryption.clone())
    }

    /// What a query costs: on Tavola what it really did, with the index that it used; elsewhere what the filter tells.
    ///
    /// The service runs the query up to the end of its first page and that is thrown away, so this costs what a page does.
    /// It is for tests and for finding out, not for every query: those have [`QueryOptions::explain`].
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::filter;
    ///
    /// // In a test: this query must not scan.
    /// let explanation = people.explain_query(filter!(Town == "Redmond" && LastName == "Smith")).await?;
    /// assert!(explanation.index().is_some(), "{explanation}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the query.
    pub async fn explain_query(
        &self,
        options: impl Into<Option<QueryOptions>>,
    ) -> Result<QueryExplanation> {
        let mut options = options.into().unwrap_or_default();
        options.select = self.selected(options.select);
        options.explain = true;
        let estimate = options.filter.as_ref().map_or(QueryCost::TableScan, Filter::cost);
        let report = query::explain(&self.pipeline, &self.name, &options).await?;
        Ok(QueryExplanation { estimate, report })
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
    ///     Ok(done) => assert_eq!(done.etags().len(), 3),
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
    ) -> Result<TransactionResponse> {
        let options = options.unwrap_or_default();
        transaction::submit(
            &self.pipeline,
            &self.name,
            transaction,
            self.encryption.as_deref(),
            &options,
        )
        .await
    }

    async fn put<T: TableEntity>(
        &self,
        entity: &T,
        mode: UpdateMode,
        if_match: Option<IfMatch>,
        operation: &'static str,
        options: Option<CallOptions>,
    ) -> Result<WriteResponse> {
        if mode == UpdateMode::Merge
            && let Some(policy) = &self.encryption
        {
            policy.refuse_merge()?;
        }
        let entity = self.outgoing(entity).await?;
        let headers = if_match.as_ref().map(|if_match| [("if-match", if_match.as_str())]);
        let link = self.entity_link(entity.partition_key(), entity.row_key());
        let call = Call {
            headers: headers.as_ref().map_or(&[], |headers| &headers[..]),
            body: json::write_entity(&entity),
            format: ODATA,
            ..Call::new(operation, method_of(mode), &link)
        };
        self.pipeline.send(call, &options.unwrap_or_default()).await?.into_written()
    }
}

/// A missing table is an error where a missing entity is none.
fn is_missing_entity(error: &azure_core::Error) -> bool {
    error.code() == Some(ErrorCode::ResourceNotFound)
}
