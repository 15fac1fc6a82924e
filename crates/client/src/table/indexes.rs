//! Indexes that the service keeps beside the entities of a table, and uses for filters by itself.
//!
//! Tavola has them, Azure has not: there, declaring one says `TableNotFound`, and queries work as ever, only slower. They
//! are entities of the table `TavolaIndexes`, so that every other client declares them as well; this is the same with
//! names and types.

use std::time::Duration;

use futures::TryStreamExt;
use tavola_wire::ErrorCode;
use tavola_wire::table::index::{INDEXES_TABLE, IndexDefinition};

use super::entity::{Entity, IndexSpec, TableEntity};
use super::index_info::{IndexInfo, IndexState};
use super::options::{GetEntityOptions, IfMatch, QueryOptions, UpdateMode};
use super::service_client::TableServiceClient;
use super::table_client::TableClient;
use crate::core::error::{ErrorExt, Result, refused};
use crate::core::options::CallOptions;

/// How often a build is asked for.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// What a verification says while it runs, and how it begins to say that nothing is wrong.
const VERIFYING: &str = "running";
const SOUND: &str = "sound";

/// Works with the indexes of an account. The names of tables may be written in any letters.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
/// use tavola_client::{IndexClient, IndexSpec};
///
/// let indexes: IndexClient = service.indexes();
/// indexes.declare("people", "ByTown", &IndexSpec::on("Town,LastName"), None).await?;
/// let built = indexes.wait_until_readable("people", "ByTown", None).await?;
/// println!("{} entries, {}", built.entries, indexes.verify("people", "ByTown", None).await?);
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
    /// for index in service.indexes().list(None, None).await? {
    ///     println!("{}: {} on {}", index.table, index.name, index.spec.keys);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn indexes(&self) -> IndexClient {
        IndexClient { table: self.known_table(INDEXES_TABLE) }
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
    /// A definition that the service refuses; `TableNotFound` if the table does not exist; a service where `TavolaIndexes` is a
    /// table like every other.
    pub async fn ensure_indexes<T: TableEntity>(
        &self,
        options: Option<CallOptions>,
    ) -> Result<bool> {
        let indexes = IndexClient { table: self.sibling(INDEXES_TABLE) };
        for (name, spec) in T::indexes() {
            match indexes.get(self.name(), name, options.clone()).await {
                Ok(found) if found.state != IndexState::Failed && is_same(&found.spec, &spec) => {}
                Err(error) if is_table_missing(&error) => return Ok(false),
                Err(error) if error.code() != Some(ErrorCode::ResourceNotFound) => {
                    return Err(error);
                }
                _ => drop(indexes.declare(self.name(), name, &spec, options.clone()).await?),
            }
        }
        Ok(true)
    }
}

impl IndexClient {
    /// Declares an index, or another definition for one: that is built beside the old one, which is used until then. Gives
    /// what the service says of it.
    ///
    /// # Errors
    /// A definition that the service refuses; `TableNotFound` without the table, or where there are no indexes: the message
    /// says which; a service where `TavolaIndexes` is a table like every other, which has a useless entity then. A signature needs
    /// the permission to read as well: without it the index is declared and the answer an error.
    pub async fn declare(
        &self,
        table: &str,
        name: &str,
        spec: &IndexSpec,
        options: Option<CallOptions>,
    ) -> Result<IndexInfo> {
        match self.write(table, name, spec, options.clone()).await {
            Ok(()) => self.read(table, name, options).await,
            Err(error) if may_be_the_name(&error) => {
                let made = self.as_made(table, error, options.clone()).await?;
                self.write(&made, name, spec, options.clone()).await?;
                self.read(&made, name, options).await
            }
            Err(error) => Err(self.what_is_missing(table, error, options).await),
        }
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
        match self.read(table, name, options.clone()).await {
            Err(error) if may_be_the_name(&error) => {
                let made = self.as_made(table, error, options.clone()).await?;
                self.read(&made, name, options).await
            }
            found => found.map_err(explained),
        }
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
        let found = self.table.query_entities::<Entity>(options).try_collect::<Vec<_>>().await;
        let found = found.map_err(explained)?;
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
        let dropped = self.table.delete_entity(table, name, IfMatch::Any, options.clone()).await;
        match dropped {
            Err(error) if may_be_the_name(&error) => {
                let made = self.as_made(table, error, options.clone()).await?;
                self.table.delete_entity(&made, name, IfMatch::Any, options).await.map(drop)
            }
            Err(error) => Err(self.what_is_missing(table, error, options).await),
            Ok(_) => Ok(()),
        }
    }

    /// Waits until queries use an index, however long it takes; the deadline in the options is that of each question.
    ///
    /// # Errors
    /// An index that cannot be built, with the reason; `ResourceNotFound` without it.
    pub async fn wait_until_readable(
        &self,
        table: &str,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<IndexInfo> {
        let mut index = self.get(table, name, options.clone()).await?;
        loop {
            match index.state {
                IndexState::Readable => return Ok(index),
                IndexState::Building => tokio::time::sleep(ASK_AGAIN).await,
                IndexState::Failed => {
                    let why = &index.error;
                    return Err(refused(format!("the index {name} cannot be built: {why}")));
                }
            }
            index = self.get(&index.table, name, options.clone()).await?;
        }
    }

    /// Has the service compare an index with the entities of its table, while both are used, and waits for the outcome,
    /// however long it takes: `sound` and the number of entries. The deadline in the options is that of each question.
    ///
    /// # Errors
    /// An index that is not sound, with the differences; one that cannot be verified, because it has failed, is not built yet,
    /// or is declared anew meanwhile; `ResourceNotFound` without it.
    pub async fn verify(
        &self,
        table: &str,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<String> {
        let refuse = |why: &str| Err(refused(format!("the index {name} is not verified: {why}")));
        let found = self.get(table, name, options.clone()).await?;
        if found.state == IndexState::Failed {
            return refuse(&format!("it has failed: {}", found.error));
        }
        let asks = Entity::new(found.table.as_str(), name).with("Verify", true);
        let (any, call) = (IfMatch::Any, options.clone());
        self.table.update_entity(&asks, UpdateMode::Merge, any, call).await?;
        loop {
            let words = self.get(&found.table, name, options.clone()).await?.verification;
            match words.as_str() {
                VERIFYING => tokio::time::sleep(ASK_AGAIN).await,
                sound if sound.starts_with(SOUND) => return Ok(words),
                "" => return refuse("it was declared anew, or the service was started again"),
                why => return refuse(why),
            }
        }
    }

    /// The name of a table as it was made, under which its indexes lie; this error if that is no other than the one that was
    /// given.
    async fn as_made(
        &self,
        table: &str,
        error: azure_core::Error,
        options: Option<CallOptions>,
    ) -> Result<String> {
        let made = match self.table.sibling(table).name_as_made(options).await {
            Ok(made) => Some(made),
            Err(error) if error.is_not_found() => None,
            // A signature for the table of indexes, and for no other: those that there are tell, too.
            Err(_) => self.list(Some(table), None).await?.pop().map(|index| index.table),
        };
        made.filter(|made| made != table).ok_or(error)
    }

    /// Says which table is missing, if one is.
    async fn what_is_missing(
        &self,
        table: &str,
        error: azure_core::Error,
        options: Option<CallOptions>,
    ) -> azure_core::Error {
        match is_table_missing(&error) && self.exists(options).await {
            true => error.with_context(format!("there is no table {table}")),
            false => explained(error),
        }
    }

    /// Whether the service has the table that indexes are declared in.
    async fn exists(&self, options: Option<CallOptions>) -> bool {
        let CallOptions { method_options, deadline } = options.unwrap_or_default();
        let one =
            QueryOptions { page_size: Some(1), method_options, deadline, ..Default::default() };
        self.table.query_entities::<Entity>(one).try_next().await.is_ok()
    }

    async fn write(
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

    async fn read(
        &self,
        table: &str,
        name: &str,
        options: Option<CallOptions>,
    ) -> Result<IndexInfo> {
        let CallOptions { method_options, deadline } = options.unwrap_or_default();
        let options = GetEntityOptions { method_options, deadline, ..Default::default() };
        let found = self.table.get_entity::<Entity>(table, name, Some(options)).await?;
        IndexInfo::read(&found.value)
    }
}

fn is_table_missing(error: &azure_core::Error) -> bool {
    error.code() == Some(ErrorCode::TableNotFound)
}

/// Says which table is missing where indexes are kept in none.
fn explained(error: azure_core::Error) -> azure_core::Error {
    match is_table_missing(&error) {
        true => error.with_context(format!(
            "the service has no table {INDEXES_TABLE}: it is no Tavola, or an older one"
        )),
        false => error,
    }
}

/// Whether two specs mean one index: the service answers in one form what can be written in many.
fn is_same(one: &IndexSpec, other: &IndexSpec) -> bool {
    let definition = |spec: &IndexSpec| {
        IndexDefinition::parse(&spec.keys, &spec.include, &spec.filter, spec.unique)
    };
    match (definition(one), definition(other)) {
        (Ok(first), Ok(second)) => {
            first == second && one.browse_as.trim() == other.browse_as.trim()
        }
        _ => one == other,
    }
}

/// Whether the name of the table may be why: another than it was made with names no index, and declares none.
fn may_be_the_name(error: &azure_core::Error) -> bool {
    matches!(error.code(), Some(ErrorCode::ResourceNotFound | ErrorCode::InvalidInput))
}
