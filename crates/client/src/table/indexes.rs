//! Indexes that the service keeps beside the entities of a table, and uses for filters by itself.
//!
//! Tavola has them, Azure has not: there, declaring one says `TableNotFound`, and queries work as ever, only slower. They
//! are entities of the table `TavolaIndexes`, so that every other client declares them as well; this is the same with
//! names and types.

use std::time::Duration;

use futures::TryStreamExt;
use tavola_wire::ErrorCode;

use super::entity::{Entity, IndexSpec, TableEntity};
use super::options::{GetEntityOptions, IfMatch, QueryOptions, UpdateMode};
use super::service_client::TableServiceClient;
use super::table_client::TableClient;
use crate::core::error::{ErrorExt, Result, refused};
use crate::core::options::CallOptions;

/// The table that indexes are declared in.
const TABLE: &str = "TavolaIndexes";
/// How often a build is asked for.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// An index, and how far the service is with it.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
/// use tavola_client::IndexInfo;
///
/// let indexes: Vec<IndexInfo> = service.indexes()?.list(Some("people"), None).await?;
/// for index in indexes.iter().filter(|index| index.uses == 0) {
///     println!("nobody uses {} with {} entries", index.name, index.entries);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexInfo {
    /// The table whose entities are indexed.
    pub table: String,
    /// The name of the index.
    pub name: String,
    /// What it was declared as.
    pub spec: IndexSpec,
    /// Whether queries use it.
    pub state: IndexState,
    /// Entities that the build has seen.
    pub progress: i64,
    /// Entries, about.
    pub entries: i64,
    /// Queries that have used it.
    pub uses: i64,
    /// Why it has failed.
    pub error: String,
}

/// Whether queries use an index.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
/// use tavola_client::IndexState;
///
/// let by_town = service.indexes()?.get("people", "ByTown", None).await?;
/// assert_eq!(by_town.state, IndexState::Readable);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexState {
    /// What was written before is being added.
    Building,
    /// Queries use it.
    Readable,
    /// It cannot be built, or turned out to be wrong, and is used no more: [`IndexInfo::error`] says why. Declared again, it is
    /// built anew.
    Failed,
}

/// Works with the indexes of an account.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
/// use tavola_client::{IndexClient, IndexSpec};
///
/// let indexes: IndexClient = service.indexes()?;
/// indexes.declare("people", "ByTown", &IndexSpec::on("Town,LastName"), None).await?;
/// let built = indexes.wait_until_readable("people", "ByTown").await?;
/// println!("{} entries", built.entries);
/// // From here on `Town eq 'Redmond'` is fast.
/// let used = indexes.get("people", "ByTown", None).await?.uses;
/// let others = indexes.list(Some("people"), None).await?.len() - 1;
/// println!("used {used} times, beside {others} others");
/// indexes.drop_index("people", "ByTown", None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IndexClient {
    table: TableClient,
}

impl TableServiceClient {
    /// The indexes of the account, where the service keeps some.
    ///
    /// ```no_run
    /// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
    /// for index in service.indexes()?.list(None, None).await? {
    ///     println!("{}: {} on {}", index.table, index.name, index.spec.keys);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// None that is known.
    pub fn indexes(&self) -> Result<IndexClient> {
        Ok(IndexClient { table: self.table_client(TABLE)? })
    }
}

impl TableClient {
    /// Declares the indexes of a type, those with `#[table(index(...))]`, and waits for none of them. False where the
    /// service keeps no indexes, as Azure: queries find the same there, only slower.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
    /// use tavola_client::TableEntity;
    ///
    /// #[derive(TableEntity)]
    /// #[table(index(name = "ByTown", keys = "Town,LastName", include = "*"))]
    /// #[table(index(name = "ByEmail", keys = "Email", unique))]
    /// #[table(rename_all = "PascalCase")]
    /// struct Person {
    ///     #[table(partition_key)]
    ///     country: String,
    ///     #[table(row_key)]
    ///     id: String,
    ///     town: String,
    ///     last_name: String,
    ///     email: String,
    /// }
    ///
    /// if !people.ensure_indexes::<Person>(None).await? {
    ///     println!("this service has no indexes");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A definition that the service refuses; `TableNotFound` if the table does not exist.
    pub async fn ensure_indexes<T: TableEntity>(
        &self,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        let indexes = IndexClient { table: self.sibling(TABLE) };
        let mut table = self.name().to_owned();
        for (name, spec) in T::indexes() {
            let mut found = indexes.get(&table, name, options.clone()).await;
            if found.as_ref().is_err_and(|error| error.code() == Some(ErrorCode::ResourceNotFound))
            {
                // The table may have been made in other letters, which its indexes have too.
                table = indexes.table_as_written(table, options.clone()).await?;
                found = indexes.get(&table, name, options.clone()).await;
            }
            match found {
                Ok(found) if found.spec == spec && found.state != IndexState::Failed => continue,
                Err(error) if error.code() == Some(ErrorCode::TableNotFound) => return Ok(false),
                Err(error) if error.code() != Some(ErrorCode::ResourceNotFound) => {
                    return Err(error);
                }
                _ => indexes.declare(&table, name, &spec, options.clone()).await?,
            }
        }
        Ok(true)
    }
}

impl IndexClient {
    /// Declares an index, or another definition for one: that is built beside the old one, which is used until then.
    ///
    /// # Errors
    /// A definition that the service refuses; `TableNotFound` without the table, or where there are no indexes.
    pub async fn declare(
        &self,
        table: &str,
        name: &str,
        spec: &IndexSpec,
        options: Option<CallOptions>,
    ) -> Result<()> {
        let IndexSpec { keys, include, filter, unique, browse_as } = spec;
        let entity = Entity::new(table, name)
            .with("Keys", keys.as_str())
            .with("Include", include.as_str())
            .with("Filter", filter.as_str())
            .with("Unique", *unique)
            .with("BrowseAs", browse_as.as_str());
        self.table.upsert_entity(&entity, UpdateMode::Replace, options).await.map(drop)
    }

    /// An index.
    ///
    /// # Errors
    /// `ResourceNotFound` without it.
    pub async fn get(
        &self,
        table: &str,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<IndexInfo> {
        let options = options.unwrap_or_default();
        let options = GetEntityOptions {
            method_options: options.method_options,
            deadline: options.deadline,
            ..Default::default()
        };
        let found = self.table.get_entity::<Entity>(table, name, Some(options)).await?;
        IndexInfo::read(&found.value)
    }

    /// The indexes of a table, or of all.
    ///
    /// # Errors
    /// `TableNotFound` where there are no indexes.
    pub async fn list(
        &self,
        table: Option<&str>,
        options: Option<QueryOptions>,
    ) -> Result<Vec<IndexInfo>> {
        let found: Vec<_> =
            self.table.query_entities::<Entity>(options).try_collect::<Vec<_>>().await?;
        let all = found.iter().map(|entity| IndexInfo::read(&entity.value));
        let all = all.collect::<Result<Vec<_>>>()?;
        let is_meant =
            |index: &IndexInfo| table.is_none_or(|table| index.table.eq_ignore_ascii_case(table));
        Ok(all.into_iter().filter(is_meant).collect())
    }

    /// Drops an index.
    ///
    /// # Errors
    /// `ResourceNotFound` without it.
    pub async fn drop_index(
        &self,
        table: &str,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<()> {
        self.table.delete_entity(table, name, IfMatch::Any, options).await.map(drop)
    }

    /// Waits until queries use an index.
    ///
    /// # Errors
    /// An index that cannot be built, with the reason; `ResourceNotFound` without it.
    pub async fn wait_until_readable(&self, table: &str, name: &str) -> Result<IndexInfo> {
        loop {
            let index = self.get(table, name, None).await?;
            match index.state {
                IndexState::Readable => return Ok(index),
                IndexState::Building => tokio::time::sleep(ASK_AGAIN).await,
                IndexState::Failed => {
                    return Err(refused(format!(
                        "the index {name} cannot be built: {}",
                        index.error
                    )));
                }
            }
        }
    }

    /// The name of a table as its indexes have it; without any, as it is.
    async fn table_as_written(
        &self,
        table: String,
        options: Option<CallOptions>,
    ) -> Result<String> {
        let options = options.unwrap_or_default();
        let options = QueryOptions {
            method_options: options.method_options,
            deadline: options.deadline,
            ..Default::default()
        };
        let mut found = self.list(Some(&table), Some(options)).await?;
        Ok(found.pop().map_or(table, |index| index.table))
    }
}

impl IndexInfo {
    fn read(entity: &Entity) -> Result<Self> {
        let text = |name: &str| entity.get::<Option<String>>(name).map(Option::unwrap_or_default);
        let number = |name: &str| entity.get::<Option<i64>>(name).map(Option::unwrap_or_default);
        Ok(Self {
            table: entity.partition_key().to_owned(),
            name: entity.row_key().to_owned(),
            spec: IndexSpec {
                keys: text("Keys")?,
                include: text("Include")?,
                filter: text("Filter")?,
                unique: entity.get::<Option<bool>>("Unique")?.unwrap_or_default(),
                browse_as: text("BrowseAs")?,
            },
            state: match text("State")?.as_str() {
                "Readable" => IndexState::Readable,
                "Failed" => IndexState::Failed,
                _ => IndexState::Building,
            },
            progress: number("Progress")?,
            entries: number("Entries")?,
            uses: number("Uses")?,
            error: text("Error")?,
        })
    }
}
