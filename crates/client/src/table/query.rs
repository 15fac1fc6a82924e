//! Pages of entities and of tables, as streams that can be stopped and resumed.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::pager::{Page, PagerContinuation, PagerOptions, PagerResult, PagerState};
use azure_core::http::{ItemIterator, Method, RawResponse};
use tavola_wire::uri::query::TOP_MAX;

use super::{ListTablesOptions, QueryOptions};
use crate::core::error::{Result, refused};
use crate::core::pipeline::{Call, Core, Format};
use crate::table::encryption::EncryptionPolicy;
use crate::table::entity::{Entity, Stored, TableEntity, json};

/// Parts the two halves of a token; neither has a blank.
const TOKEN_SEPARATOR: char = ' ';
const NEXT_PARTITION_KEY: &str = "x-ms-continuation-nextpartitionkey";
const NEXT_ROW_KEY: &str = "x-ms-continuation-nextrowkey";
const NEXT_TABLE_NAME: &str = "x-ms-continuation-nexttablename";

/// A stream of entities, page by page behind the scenes.
///
/// [`continuation`](ItemIterator::continuation) tells where to go on, as a text that can be kept for later, and
/// [`into_pages`](ItemIterator::into_pages) gives whole pages.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use azure_core::http::pager::PagerContinuation;
/// use futures::TryStreamExt;
/// use tavola_client::{Entity, EntityPager, QueryOptions};
///
/// let mut everyone: EntityPager<Entity> = people.query_entities(None);
/// let first = everyone.try_next().await?;
/// // Kept by whoever asks for the next page, such as a link in a web page.
/// let token: Option<PagerContinuation> = everyone.into_continuation();
/// let rest = QueryOptions { continuation: token, ..Default::default() };
/// let mut rest = people.query_entities::<Entity>(rest);
/// # Ok(())
/// # }
/// ```
pub type EntityPager<T> = ItemIterator<EntityPage<T>>;

/// A stream of table names.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::TablePager;
///
/// let tables: TablePager = service.list_tables(None);
/// let names: Vec<String> = tables.try_collect().await?;
/// # Ok(())
/// # }
/// ```
pub type TablePager = ItemIterator<TablePage>;

/// A page of entities.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::{Entity, EntityPage};
///
/// let mut pages = people.query_entities::<Entity>(None).into_pages();
/// while let Some(page) = pages.try_next().await? {
///     let EntityPage { entities, .. } = page;
///     println!("{} entities by one request", entities.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct EntityPage<T> {
    /// The entities, in the order of their keys. A page can be empty and have a successor.
    pub entities: Vec<Stored<T>>,
    /// What the page cost, if the query asked to [explain](super::QueryOptions::explain) and the server is a Tavola.
    pub report: Option<QueryReport>,
}

/// What a Tavola server did for a page.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::{Entity, QueryOptions, QueryReport, filter};
///
/// let options = QueryOptions {
///     filter: Some(filter!(PartitionKey == "Sales" && LastName == "Jones")),
///     explain: true,
///     ..Default::default()
/// };
/// let mut pages = people.query_entities::<Entity>(options).into_pages();
/// while let Some(page) = pages.try_next().await? {
///     if let Some(QueryReport { kind, rows_examined, rows_returned }) = page.report {
///         println!("{kind}: {rows_examined} examined for {rows_returned}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryReport {
    /// `point`, `range`, `partition scan` or `table scan`.
    pub kind: String,
    /// Rows that the server looked at.
    pub rows_examined: u64,
    /// Rows that it sent.
    pub rows_returned: u64,
}

#[async_trait]
impl<T: Send> Page for EntityPage<T> {
    type Item = Stored<T>;
    type IntoIter = std::vec::IntoIter<Stored<T>>;

    async fn into_items(self) -> Result<Self::IntoIter> {
        Ok(self.entities.into_iter())
    }
}

/// A page of table names.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::TablePage;
///
/// let mut pages = service.list_tables(None).into_pages();
/// while let Some(TablePage { names }) = pages.try_next().await? {
///     println!("{}", names.join(" "));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePage {
    /// The names, in their order.
    pub names: Vec<String>,
}

#[async_trait]
impl Page for TablePage {
    type Item = String;
    type IntoIter = std::vec::IntoIter<String>;

    async fn into_items(self) -> Result<Self::IntoIter> {
        Ok(self.names.into_iter())
    }
}

pub(super) fn query_entities<T: TableEntity + Send + 'static>(
    core: Arc<Core>,
    table: &str,
    options: QueryOptions,
    encryption: Option<Arc<EncryptionPolicy>>,
) -> EntityPager<T> {
    let resource = format!("{table}()");
    let pager_options = PagerOptions {
        continuation: options.continuation.clone(),
        context: options.method_options.context.clone(),
    };
    let shared = Arc::new((resource, options));
    let make = move |state: PagerState, _: PagerOptions<'static>| {
        let (core, shared, encryption) = (core.clone(), shared.clone(), encryption.clone());
        let next = async move {
            let (resource, options) = &*shared;
            let response = entity_page(&core, resource, options, &state).await?;
            let mut entities = Vec::new();
            for stored in json::read_entities(response.body())? {
                entities.push(decode(stored, encryption.as_deref()).await?);
            }
            let page = EntityPage { entities, report: report(&response) };
            Ok(with_continuation(page, entity_token(&response)))
        };
        Box::pin(next) as azure_core::http::pager::PagerResultFuture<EntityPage<T>>
    };
    ItemIterator::new(make, Some(pager_options))
}

/// Decrypts an entity, if it is encrypted, and gives it its type.
pub(super) async fn decode<T: TableEntity>(
    stored: Stored<Entity>,
    encryption: Option<&EncryptionPolicy>,
) -> Result<Stored<T>> {
    let Stored { value, etag, timestamp } = stored;
    let value = match encryption {
        Some(policy) => policy.decrypt(value).await?,
        None => value,
    };
    Ok(Stored { value: T::from_entity(value)?, etag, timestamp })
}

async fn entity_page(
    core: &Core,
    resource: &str,
    options: &QueryOptions,
    state: &PagerState,
) -> Result<RawResponse> {
    let filter = options.filter.as_ref().map(ToString::to_string);
    let select = options.select.as_deref().map(select_text);
    let top = page_size(options.page_size)?;
    let mut query = Vec::with_capacity(5);
    push_query(&mut query, "$filter", filter.as_deref());
    push_query(&mut query, "$select", select.as_deref());
    push_query(&mut query, "$top", top.as_deref());
    if let PagerState::More(token) = state {
        match token.as_ref().split_once(TOKEN_SEPARATOR) {
            Some((partition_key, row_key)) => {
                query.push(("NextPartitionKey", partition_key));
                query.push(("NextRowKey", row_key));
            }
            None => query.push(("NextPartitionKey", token.as_ref())),
        }
    }
    let headers: &[(&str, &str)] =
        if options.explain { &[("x-tavola-explain", "true")] } else { &[] };
    let call = Call {
        method: Method::Get,
        resource,
        query: &query,
        headers,
        body: Vec::new(),
        format: Format::Json,
    };
    core.send(call, &options.method_options).await
}

fn push_query<'q>(query: &mut Vec<(&'q str, &'q str)>, name: &'q str, value: Option<&'q str>) {
    if let Some(value) = value {
        query.push((name, value));
    }
}

/// The names to ask for: those that were given, and those without which no entity is complete.
pub(super) fn select_text(names: &[String]) -> String {
    let mut all = vec!["PartitionKey", "RowKey", "Timestamp"];
    all.extend(names.iter().map(String::as_str).filter(|name| !is_system(name)));
    all.join(",")
}

fn is_system(name: &str) -> bool {
    matches!(name, "PartitionKey" | "RowKey" | "Timestamp")
}

fn page_size(size: Option<u16>) -> Result<Option<String>> {
    match size {
        Some(size) if size == 0 || size > TOP_MAX => {
            Err(refused(format!("a page has from 1 to {TOP_MAX} entities: page_size={size}")))
        }
        size => Ok(size.map(|size| size.to_string())),
    }
}

fn entity_token(response: &RawResponse) -> Option<String> {
    let partition_key = header(response, NEXT_PARTITION_KEY)?;
    Some(match header(response, NEXT_ROW_KEY) {
        Some(row_key) => format!("{partition_key}{TOKEN_SEPARATOR}{row_key}"),
        None => partition_key.to_owned(),
    })
}

fn report(response: &RawResponse) -> Option<QueryReport> {
    let count = |name| header(response, name).and_then(|text| text.parse().ok());
    Some(QueryReport {
        kind: header(response, "x-tavola-query-kind")?.to_owned(),
        rows_examined: count("x-tavola-rows-examined")?,
        rows_returned: count("x-tavola-rows-returned")?,
    })
}

fn header<'r>(response: &'r RawResponse, name: &'static str) -> Option<&'r str> {
    response.headers().get_optional_str(&name.into()).filter(|value| !value.is_empty())
}

fn with_continuation<P>(response: P, token: Option<String>) -> PagerResult<P> {
    match token {
        Some(token) => {
            PagerResult::More { response, continuation: PagerContinuation::Token(token) }
        }
        None => PagerResult::Done { response },
    }
}

pub(super) fn list_tables(core: Arc<Core>, options: ListTablesOptions) -> TablePager {
    let pager_options = PagerOptions {
        continuation: options.continuation.clone(),
        context: options.method_options.context.clone(),
    };
    let shared = Arc::new(options);
    let make = move |state: PagerState, _: PagerOptions<'static>| {
        let (core, options) = (core.clone(), shared.clone());
        let next = async move {
            let filter = options.filter.as_ref().map(ToString::to_string);
            let top = page_size(options.page_size)?;
            let mut query = Vec::with_capacity(3);
            push_query(&mut query, "$filter", filter.as_deref());
            push_query(&mut query, "$top", top.as_deref());
            if let PagerState::More(token) = &state {
                query.push(("NextTableName", token.as_ref()));
            }
            let call = Call {
                method: Method::Get,
                resource: "Tables",
                query: &query,
                headers: &[],
                body: Vec::new(),
                format: Format::Json,
            };
            let response = core.send(call, &options.method_options).await?;
            let page = TablePage { names: json::read_tables(response.body())? };
            let token = header(&response, NEXT_TABLE_NAME).map(str::to_owned);
            Ok(with_continuation(page, token))
        };
        Box::pin(next) as azure_core::http::pager::PagerResultFuture<TablePage>
    };
    ItemIterator::new(make, Some(pager_options))
}
