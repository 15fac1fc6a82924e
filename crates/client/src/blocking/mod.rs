//! The clients for programs without an async runtime. Each call returns when it is done.
//!
//! Needs the cargo feature `blocking`. The clients drive a runtime of their own, on a thread of its own. They cannot be used
//! inside of another runtime, where they would stop everything else: there each call returns an error that says so. Use the
//! async clients there.
//!
//! What is not here is done with the async client in [`TableServiceClient::run`] and [`TableClient::run`]. Queues are in
//! [`queue`].

pub mod queue;

use std::sync::Arc;

use futures::StreamExt;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::bulk::{BulkOptions, BulkReport};
use crate::core::error::{Result, refused};
use crate::{
    CallOptions, Continuation, EntityPage, GetEntityOptions, IfMatch, ListTablesOptions, Operation,
    Page, Pager, PartitionRange, QueryExplanation, QueryOptions, ResponseInfo, Stored,
    TableClientOptions, TableEntity, TablePage, Transaction, TransactionResponse, UpdateMode,
    WriteResponse,
};

/// Works with the tables of an account; see [`crate::TableServiceClient`].
///
/// ```no_run
/// # fn main() -> tavola_client::Result<()> {
/// use tavola_client::blocking::TableServiceClient;
///
/// let service = TableServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
/// service.create_table("people", None)?;
/// assert!(!service.create_table_if_not_exists("people", None)?);
/// for name in service.list_tables(None) {
///     println!("{}", name?);
/// }
/// let people = service.table_client("people")?;
/// service.delete_table("people", None)?;
/// assert!(!service.delete_table_if_exists("people", None)?);
///
/// // Settings come from the builder of the async client, whose other calls can be run too.
/// let service = tavola_client::TableServiceClient::builder().connection_string("UseDevelopmentStorage=true");
/// let service = TableServiceClient::new(service.build()?)?;
/// let properties = service.run(|client| async move { client.get_properties(None).await })??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TableServiceClient {
    client: crate::TableServiceClient,
    driver: Arc<Driver>,
}

impl TableServiceClient {
    /// Drives an async client.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn new(client: crate::TableServiceClient) -> Result<Self> {
        Ok(Self { client, driver: Driver::start()? })
    }

    /// As [`crate::TableServiceClient::from_connection_string`].
    ///
    /// # Errors
    /// A connection string that does not add up, and a call inside of a runtime.
    pub fn from_connection_string(text: &str, options: Option<TableClientOptions>) -> Result<Self> {
        Self::new(crate::TableServiceClient::from_connection_string(text, options)?)
    }

    /// As [`crate::TableServiceClient::table_client`]; shares connections and runtime.
    ///
    /// # Errors
    /// A name that no table can have.
    pub fn table_client(&self, name: impl Into<String>) -> Result<TableClient> {
        Ok(TableClient { client: self.client.table_client(name)?, driver: self.driver.clone() })
    }

    /// As [`crate::TableServiceClient::create_table`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn create_table(&self, name: &str, options: Option<CallOptions>) -> Result<ResponseInfo> {
        self.driver.run(self.client.create_table(name, options))?
    }

    /// As [`crate::TableServiceClient::create_table_if_not_exists`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn create_table_if_not_exists(
        &self,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        self.driver.run(self.client.create_table_if_not_exists(name, options))?
    }

    /// As [`crate::TableServiceClient::delete_table`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn delete_table(&self, name: &str, options: Option<CallOptions>) -> Result<ResponseInfo> {
        self.driver.run(self.client.delete_table(name, options))?
    }

    /// As [`crate::TableServiceClient::delete_table_if_exists`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn delete_table_if_exists(&self, name: &str, options: Option<CallOptions>) -> Result<bool> {
        self.driver.run(self.client.delete_table_if_exists(name, options))?
    }

    /// As [`crate::TableServiceClient::list_tables`].
    pub fn list_tables(&self, options: Option<ListTablesOptions>) -> Items<TablePage> {
        Items::new(self.client.list_tables(options), self.driver.clone())
    }

    /// Runs anything that the async client can do.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn run<F: Future>(
        &self,
        work: impl FnOnce(crate::TableServiceClient) -> F,
    ) -> Result<F::Output> {
        self.driver.run(work(self.client.clone()))
    }
}

/// Works with the entities of a table; see [`crate::TableClient`].
///
/// ```no_run
/// # fn main() -> tavola_client::Result<()> {
/// use tavola_client::blocking::TableClient;
/// use tavola_client::{Entity, IfMatch, Operation, Transaction, UpdateMode, filter};
///
/// let people = TableClient::from_connection_string("UseDevelopmentStorage=true", "people", None)?;
/// people.create_if_not_exists(None)?;
/// println!("in table {}: {}", people.name(), people.exists(None)?);
///
/// let jens = Entity::new("Sales", "00010").with("Age", 34);
/// people.insert_entity(&jens, None)?;
/// people.upsert_entity(&jens, UpdateMode::Merge, None)?;
/// let read = people.get_entity::<Entity>("Sales", "00010", None)?;
/// people.update_entity(&read.value, UpdateMode::Replace, &read, None)?;
/// for employee in people.query_entities::<Entity>(filter!(PartitionKey == "Sales")) {
///     println!("{}", employee?.row_key());
/// }
/// println!("{}", people.explain_query(filter!(Age > 30))?);
/// people.read_modify_write("Sales", "00010", |jens: &mut Entity| {
///     jens.set("Age", 35);
///     Ok(())
/// }, None)?;
///
/// let mut transaction = Transaction::new();
/// transaction.insert(&Entity::new("Sales", "00011"))?;
/// people.submit_transaction(&transaction, None)?;
/// let report = people.bulk([Operation::delete("Sales", "00011", IfMatch::Any)?], None)?;
///
/// people.delete_entity("Sales", "00010", IfMatch::Any, None)?;
/// assert!(!people.delete_entity_if_exists("Sales", "00010", IfMatch::Any, None)?);
/// assert!(people.get_entity_if_exists::<Entity>("Sales", "00010", None)?.is_none());
/// let ranges = people.split_partitions(4)?;
/// people.delete(None)?;
/// people.create(None)?;
/// people.delete_if_exists(None)?;
///
/// // Settings come from the builder of the async client, whose other calls can be run too.
/// let people = tavola_client::TableClient::builder("people").connection_string("UseDevelopmentStorage=true");
/// let people = TableClient::new(people.build()?)?;
/// let policies = people.run(|client| async move { client.get_access_policies(None).await })??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TableClient {
    client: crate::TableClient,
    driver: Arc<Driver>,
}

impl TableClient {
    /// Drives an async client.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn new(client: crate::TableClient) -> Result<Self> {
        Ok(Self { client, driver: Driver::start()? })
    }

    /// As [`crate::TableClient::from_connection_string`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn from_connection_string(
        text: &str,
        name: &str,
        options: Option<TableClientOptions>,
    ) -> Result<Self> {
        Self::new(crate::TableClient::from_connection_string(text, name, options)?)
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        self.client.name()
    }

    /// Runs anything that the async client can do.
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn run<F: Future>(&self, work: impl FnOnce(crate::TableClient) -> F) -> Result<F::Output> {
        self.driver.run(work(self.client.clone()))
    }

    /// As [`crate::TableClient::query_entities`].
    pub fn query_entities<T: TableEntity + Send + 'static>(
        &self,
        options: impl Into<Option<QueryOptions>>,
    ) -> Items<EntityPage<T>> {
        Items::new(self.client.query_entities(options), self.driver.clone())
    }

    /// As [`crate::TableClient::explain_query`].
    ///
    /// # Errors
    /// Those of the query, and a call inside of a runtime.
    pub fn explain_query(
        &self,
        options: impl Into<Option<QueryOptions>>,
    ) -> Result<QueryExplanation> {
        self.driver.run(self.client.explain_query(options))?
    }

    /// As [`crate::TableClient::bulk`].
    ///
    /// # Errors
    /// A call inside of a runtime.
    pub fn bulk(
        &self,
        operations: impl IntoIterator<Item = Operation>,
        options: Option<BulkOptions>,
    ) -> Result<BulkReport> {
        self.driver.run(self.client.bulk(operations, options))
    }

    /// As [`crate::TableClient::read_modify_write`].
    ///
    /// # Errors
    /// As there, and a call inside of a runtime.
    pub fn read_modify_write<T: TableEntity>(
        &self,
        partition_key: &str,
        row_key: &str,
        change: impl FnMut(&mut T) -> Result<()>,
        options: Option<CallOptions>,
    ) -> Result<Stored<T>> {
        self.driver.run(self.client.read_modify_write(partition_key, row_key, change, options))?
    }
}

/// Declares calls that differ from those of the async client in nothing but their waiting.
macro_rules! calls {
    ($($name:ident $([$entity:ident])? ($($argument:ident: $kind:ty),*) -> $result:ty;)+) => {
        impl TableClient {
            $(
                #[doc = concat!("As [`crate::TableClient::", stringify!($name), "`].")]
                ///
                /// # Errors
                /// As there, and a call inside of a runtime.
                pub fn $name$(<$entity: TableEntity>)?(&self, $($argument: $kind),*) -> Result<$result> {
                    self.driver.run(self.client.$name($($argument),*))?
                }
            )+
        }
    };
}

calls! {
    create(options: Option<CallOptions>) -> ResponseInfo;
    create_if_not_exists(options: Option<CallOptions>) -> bool;
    delete(options: Option<CallOptions>) -> ResponseInfo;
    delete_if_exists(options: Option<CallOptions>) -> bool;
    exists(options: Option<CallOptions>) -> bool;
    insert_entity[T](entity: &T, options: Option<CallOptions>) -> WriteResponse;
    upsert_entity[T](entity: &T, mode: UpdateMode, options: Option<CallOptions>) -> WriteResponse;
    update_entity[T](
        entity: &T, mode: UpdateMode, if_match: impl Into<IfMatch>, options: Option<CallOptions>
    ) -> WriteResponse;
    delete_entity(
        partition_key: &str, row_key: &str, if_match: impl Into<IfMatch>, options: Option<CallOptions>
    ) -> ResponseInfo;
    delete_entity_if_exists(
        partition_key: &str, row_key: &str, if_match: impl Into<IfMatch>, options: Option<CallOptions>
    ) -> bool;
    get_entity[T](partition_key: &str, row_key: &str, options: Option<GetEntityOptions>) -> Stored<T>;
    get_entity_if_exists[T](
        partition_key: &str, row_key: &str, options: Option<GetEntityOptions>
    ) -> Option<Stored<T>>;
    submit_transaction(transaction: &Transaction, options: Option<CallOptions>) -> TransactionResponse;
    split_partitions(count: usize) -> Vec<PartitionRange>;
}

/// An iterator over a list that comes in pages; see [`Pager`].
///
/// ```no_run
/// # fn run(people: tavola_client::blocking::TableClient) -> tavola_client::Result<()> {
/// use tavola_client::blocking::Items;
/// use tavola_client::{Entity, EntityPage};
///
/// let mut everyone: Items<EntityPage<Entity>> = people.query_entities(None);
/// let first = everyone.next().transpose()?;
/// let position = everyone.continuation();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Items<P: Page> {
    pager: Pager<P>,
    driver: Arc<Driver>,
    is_refused: bool,
}

impl<P: Page> Items<P> {
    fn new(pager: Pager<P>, driver: Arc<Driver>) -> Self {
        Self { pager, driver, is_refused: false }
    }

    /// As [`Pager::continuation`].
    pub fn continuation(&self) -> Option<Continuation> {
        self.pager.continuation()
    }
}

impl<P: Page> Iterator for Items<P> {
    type Item = Result<P::Item>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_refused {
            return None;
        }
        match self.driver.run(self.pager.next()) {
            Ok(item) => item,
            Err(error) => {
                self.is_refused = true;
                Some(Err(error))
            }
        }
    }
}

/// The runtime behind the clients. It ends with the last of them.
#[derive(Debug)]
struct Driver(Option<Runtime>);

impl Driver {
    fn start() -> Result<Arc<Self>> {
        check_place()?;
        // One thread keeps the connections; the callers' threads do the rest.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Arc::new(Self(Some(runtime))))
    }

    fn run<F: Future>(&self, future: F) -> Result<F::Output> {
        check_place()?;
        Ok(self.0.as_ref().expect("it is taken by drop alone").block_on(future))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Waiting for the thread is not allowed inside of another runtime, where the last client may end.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn check_place() -> Result<()> {
    match Handle::try_current() {
        Err(_) => Ok(()),
        Ok(_) => Err(refused(
            "a blocking client was called inside of an async runtime: use the async client there, \
             or call from a thread of std::thread::spawn",
        )),
    }
}
