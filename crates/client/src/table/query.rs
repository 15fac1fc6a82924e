//! Pages of entities and of tables.

use std::sync::Arc;

use azure_core::http::Method;
use futures::FutureExt;
use tavola_wire::explain;
use tavola_wire::table::continuation::{NEXT_PARTITION_KEY, NEXT_ROW_KEY, NEXT_TABLE_NAME};
use tavola_wire::uri::query::TOP_MAX;

use super::encryption::EncryptionPolicy;
use super::entity::{Entity, Stored, TableEntity, json};
use super::explain::{QueryReport, report};
use super::spec::ODATA;
use super::{ListTablesOptions, QueryOptions};
use crate::core::error::{Result, refused};
use crate::core::pager::{Continuation, Fetched, Page, Pager};
use crate::core::pipeline::{Call, ServicePipeline};
use crate::core::response::Answer;

/// Parts the two halves of a token; neither has a blank.
const TOKEN_SEPARATOR: char = ' ';

/// A stream of entities, page by page behind the scenes; see [`Pager`] for stopping and resuming.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use tavola_client::{Entity, EntityPager, QueryOptions, TryStreamExt};
///
/// let mut everyone: EntityPager<Entity> = people.query_entities(None);
/// let first = everyone.try_next().await?;
/// // Kept by those who ask for the rest, such as a link in a web page.
/// let rest = QueryOptions { continuation: everyone.into_continuation(), ..Default::default() };
/// let mut rest = people.query_entities::<Entity>(rest);
/// # Ok(())
/// # }
/// ```
pub type EntityPager<T> = Pager<EntityPage<T>>;

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
pub type TablePager = Pager<TablePage>;

/// A page of entities.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::{Entity, EntityPage};
///
/// let mut pages = people.query_entities::<Entity>(None).by_page();
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
    /// The service's name for the request, for its log and its support.
    pub request_id: Option<String>,
}

impl<T> Page for EntityPage<T> {
    type Item = Stored<T>;

    fn items_mut(&mut self) -> &mut Vec<Stored<T>> {
        &mut self.entities
    }
}

/// A page of table names.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::TablePage;
///
/// let mut pages = service.list_tables(None).by_page();
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

impl Page for TablePage {
    type Item = String;

    fn items_mut(&mut self) -> &mut Vec<String> {
        &mut self.names
    }
}

pub(super) fn query_entities<T: TableEntity + Send + 'static>(
    pipeline: Arc<ServicePipeline>,
    table: &str,
    mut options: QueryOptions,
    encryption: Option<Arc<EncryptionPolicy>>,
) -> EntityPager<T> {
    let start = options.continuation.take();
    let shared = Arc::new((format!("{table}()"), options));
    Pager::new(start, move |token| {
        let (pipeline, shared, encryption) = (pipeline.clone(), shared.clone(), encryption.clone());
        let fetch = async move {
            let (resource, options) = &*shared;
            let answer = entity_page(&pipeline, resource, options, token.as_deref()).await?;
            let request_id: Option<Arc<str>> = answer.info.request_id().map(Into::into);
            let mut entities = Vec::new();
            for stored in json::read_entities(answer.body())? {
                let stored = stored.with_request_id(request_id.clone());
                entities.push(decode(stored, encryption.as_deref()).await?);
            }
            let request_id = answer.info.request_id().map(str::to_owned);
            let page = EntityPage { entities, report: report(&answer), request_id };
            Ok(Fetched { page, next: entity_token(&answer) })
        };
        fetch.boxed()
    })
}

/// Decrypts an entity, if it is encrypted, and gives it its type.
pub(super) async fn decode<T: TableEntity>(
    stored: Stored<Entity>,
    encryption: Option<&EncryptionPolicy>,
) -> Result<Stored<T>> {
    let Some(policy) = encryption else { return stored.try_map(T::from_entity) };
    let (entity, stored) = stored.take();
    let entity = policy.decrypt(entity).await?;
    stored.try_map(|()| T::from_entity(entity))
}

/// What the first page of a query cost, if the service says so; the page itself is thrown away.
pub(super) async fn explain(
    pipeline: &ServicePipeline,
    table: &str,
    options: &QueryOptions,
) -> Result<Option<QueryReport>> {
    let resource = format!("{table}()");
    let token = options.continuation.as_ref().and_then(Continuation::token);
    Ok(report(&entity_page(pipeline, &resource, options, token).await?))
}

async fn entity_page(
    pipeline: &ServicePipeline,
    resource: &str,
    options: &QueryOptions,
    token: Option<&str>,
) -> Result<Answer> {
    let filter = options.filter.as_ref().map(ToString::to_string);
    let select = options.select.as_deref().map(select_text);
    let top = page_size(options.page_size)?;
    let mut query = Vec::with_capacity(5);
    push_query(&mut query, "$filter", filter.as_deref());
    push_query(&mut query, "$select", select.as_deref());
    push_query(&mut query, "$top", top.as_deref());
    if let Some(token) = token {
        match token.split_once(TOKEN_SEPARATOR) {
            Some((partition_key, row_key)) => {
                query.push(("NextPartitionKey", partition_key));
                query.push(("NextRowKey", row_key));
            }
            None => query.push(("NextPartitionKey", token)),
        }
    }
    let headers: &[(&str, &str)] =
        if options.explain { &[(explain::EXPLAIN, "true")] } else { &[] };
    let call = Call {
        query: &query,
        headers,
        format: ODATA,
        ..Call::new("query_entities", Method::Get, resource)
    };
    pipeline.send(call, &options.call_options()).await
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

fn entity_token(answer: &Answer) -> Option<String> {
    let partition_key = answer.header(NEXT_PARTITION_KEY)?;
    Some(match answer.header(NEXT_ROW_KEY) {
        Some(row_key) => format!("{partition_key}{TOKEN_SEPARATOR}{row_key}"),
        None => partition_key.to_owned(),
    })
}

pub(super) fn list_tables(
    pipeline: Arc<ServicePipeline>,
    mut options: ListTablesOptions,
) -> TablePager {
    let start = options.continuation.take();
    let shared = Arc::new(options);
    Pager::new(start, move |token| {
        let (pipeline, options) = (pipeline.clone(), shared.clone());
        let fetch = async move {
            let filter = options.filter.as_ref().map(ToString::to_string);
            let top = page_size(options.page_size)?;
            let mut query = Vec::with_capacity(3);
            push_query(&mut query, "$filter", filter.as_deref());
            push_query(&mut query, "$top", top.as_deref());
            push_query(&mut query, "NextTableName", token.as_deref());
            let call = Call {
                query: &query,
                format: ODATA,
                ..Call::new("list_tables", Method::Get, "Tables")
            };
            let answer = pipeline.send(call, &options.call_options()).await?;
            let page = TablePage { names: json::read_tables(answer.body())? };
            Ok(Fetched { page, next: answer.header(NEXT_TABLE_NAME).map(str::to_owned) })
        };
        fetch.boxed()
    })
}
