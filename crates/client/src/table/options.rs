//! The options of clients and calls. All have defaults, and every call takes `None` for them.

use std::time::Duration;

use azure_core::http::{ClientMethodOptions, Etag};

use crate::core::options::{CallOptions, ServiceClientOptions};
use crate::core::pager::Continuation;
use crate::core::response::WriteResponse;
use crate::table::entity::Stored;
use crate::table::filter::Filter;

/// Options of a client.
///
/// ```
/// # fn main() -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::{TableClientOptions, TableServiceClient};
///
/// let options =
///     TableClientOptions { deadline: Some(Duration::from_secs(20)), ..Default::default() };
/// let service =
///     TableServiceClient::from_connection_string("UseDevelopmentStorage=true", Some(options))?;
/// # Ok(())
/// # }
/// ```
pub type TableClientOptions = ServiceClientOptions;

/// Options of reading one entity.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::{Entity, GetEntityOptions};
///
/// let options = GetEntityOptions { select: Some(vec!["Age".into()]), ..Default::default() };
/// let jens = people.get_entity::<Entity>("Sales", "00010", Some(options)).await?;
/// println!("{}", jens.get::<i32>("Age")?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct GetEntityOptions {
    /// The properties to read; all unless set. The keys and the timestamp always come along.
    pub select: Option<Vec<String>>,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long the call may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

/// Options of a query.
///
/// ```
/// use tavola_client::{QueryOptions, filter};
///
/// let options = QueryOptions {
///     filter: Some(filter!(PartitionKey == "Sales" && Age >= 30)),
///     select: Some(vec!["FirstName".into(), "Age".into()]),
///     ..Default::default()
/// };
/// # assert_eq!(options.filter.unwrap().to_string(), "PartitionKey eq 'Sales' and Age ge 30");
/// ```
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// Which entities; all unless set.
    pub filter: Option<Filter>,
    /// The properties to read; all unless set. The keys and the timestamp always come along.
    pub select: Option<Vec<String>>,
    /// Entities in a page, at most 1000. This does not limit the whole: take as many from the stream as are wanted.
    pub page_size: Option<u16>,
    /// Where to go on: the [continuation](crate::Pager::continuation) of an earlier pager with the same filter.
    pub continuation: Option<Continuation>,
    /// Asks a Tavola server what the query cost; see [`EntityPage::report`](super::EntityPage::report). Others ignore it.
    pub explain: bool,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long each page may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

impl QueryOptions {
    pub(super) fn call_options(&self) -> CallOptions {
        CallOptions { method_options: self.method_options.clone(), deadline: self.deadline }
    }
}

impl From<Filter> for QueryOptions {
    fn from(filter: Filter) -> Self {
        Self { filter: Some(filter), ..Self::default() }
    }
}

impl From<Filter> for Option<QueryOptions> {
    fn from(filter: Filter) -> Self {
        Some(filter.into())
    }
}

/// Options of listing tables.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::{ListTablesOptions, filter};
///
/// let logs = ListTablesOptions {
///     filter: Some(filter!(TableName.starts_with("logs"))),
///     ..Default::default()
/// };
/// let names: Vec<String> = service.list_tables(Some(logs)).try_collect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ListTablesOptions {
    /// Which tables, by their property `TableName`; all unless set.
    pub filter: Option<Filter>,
    /// Tables in a page, at most 1000.
    pub page_size: Option<u16>,
    /// Where to go on: the continuation of an earlier pager with the same filter.
    pub continuation: Option<Continuation>,
    /// The context of the call.
    pub method_options: ClientMethodOptions<'static>,
    /// How long each page may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}

impl ListTablesOptions {
    pub(super) fn call_options(&self) -> CallOptions {
        CallOptions { method_options: self.method_options.clone(), deadline: self.deadline }
    }
}

/// What happens to the properties that an update does not name.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::{Entity, UpdateMode};
///
/// let jens = Entity::new("Sales", "00010");
/// people.upsert_entity(&jens.clone().with("Age", 34), UpdateMode::Replace, None).await?;
/// people.upsert_entity(&jens.clone().with("Phone", "1"), UpdateMode::Merge, None).await?;
/// // Both properties are there now, and this leaves the phone alone there.
/// people.upsert_entity(&jens.with("Phone", "2"), UpdateMode::Replace, None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMode {
    /// They stay.
    Merge,
    /// They go.
    Replace,
}

/// Which version of an entity a change is meant for.
///
/// ```
/// use azure_core::http::Etag;
/// use tavola_client::IfMatch;
///
/// let etag = Etag::from("W/\"datetime'2021-01-06T01%3A01%3A30Z'\"");
/// assert_eq!(IfMatch::from(&etag), IfMatch::Etag(etag));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// Whatever version there is: the last writer wins.
    Any,
    /// This version alone; 412 when somebody changed the entity since.
    Etag(Etag),
}

impl IfMatch {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Any => "*",
            Self::Etag(etag) => etag.as_ref(),
        }
    }
}

impl From<Etag> for IfMatch {
    fn from(etag: Etag) -> Self {
        Self::Etag(etag)
    }
}

impl From<&Etag> for IfMatch {
    fn from(etag: &Etag) -> Self {
        Self::Etag(etag.clone())
    }
}

impl From<&WriteResponse> for IfMatch {
    fn from(response: &WriteResponse) -> Self {
        Self::Etag(response.etag().clone())
    }
}

impl<T> From<&Stored<T>> for IfMatch {
    fn from(stored: &Stored<T>) -> Self {
        Self::Etag(stored.etag.clone())
    }
}
