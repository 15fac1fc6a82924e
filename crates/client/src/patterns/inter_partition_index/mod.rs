//! Inter-partition secondary index: copies of an entity in other partitions or tables, brought up to date through a queue.
//!
//! An employee is `empid_Sales`, `000223`, and is found by mail as `email_Sales`, `jonesj@contoso.com`, or, if the index is one
//! for all departments, as `email_` and the address. No transaction spans two partitions. So the entity is changed first, a message
//! tells which entries of which indexes are concerned, and [workers](super::queue_worker) make them what the entity says. An
//! [`Index`] says by which values an entry is found and what it holds.
//!
//! **Use it** when the other value is asked for without the partition key, when one partition would have to take too many
//! writes, or when an index is to lie in a table of its own. **Do not use it** where a reader must see his own change in the
//! index at once: an [intra-partition index](super::intra_partition_index) does that, within a partition. Nor to keep a
//! value unique: nothing prevents two entities in two partitions from having the same one. The second of them stays out of
//! the index, and its message goes to the dead letters, where somebody sees it.
//!
//! **Cost**: a look-up by the other value is one point query if the entry holds what is asked for, else two. A change is one
//! point query, one write, and two requests to the queue; a change that no index notices needs no queue. The worker needs two
//! requests to the queue, two point queries of the entity, and for each entry one to read it and one to write it. **Half-done**: between
//! the change and the worker the index is that of before: an entity can be missing under its new value, and be found under its old
//! one, with its old properties. Entities that have to be fetched are compared, and left out if they have another value now; full copies
//! are given as they are. [`get`](InterPartitionIndex::get) always gives the entity itself.
//!
//! # What happens when something dies
//! The message is sent *before* the entity is changed, and is hidden until it is; so a writer that dies at any step leaves
//! either no change, or a message that appears by itself after [a minute](InterPartitionIndex::settle_after). The message
//! does not say what the entries are to be, but which: the worker reads the entity, makes the entries what it says, and reads it
//! again; if it was changed meanwhile, all over. So messages can come twice, late, in any order and to several workers: the
//! last one to write an entry has seen the entity that the entry is of. A writer that was stopped for so long that a
//! worker has seen the message before the change sends another one; only if it dies in that very moment is there an index to
//! repair. A worker that wrote an entry looks at the entity again, also if it has lost its message by then; only if the process
//! dies between the two, after another worker has done the message for good, can an entry of before stay. Readers
//! find it as they find any half-done change, until the entity is changed again or repaired.
//!
//! A message names account and table of the entity, its prefix, and the indexes with their tables. A worker of other entities
//! changes nothing, and one that does not know an index (it is older than the writer, or the index was dropped) does
//! the others; both leave the message to the dead letters, where nothing is forgotten. So each [`InterPartitionIndex`] has
//! a queue of its own, and workers know a new index before writers do.
//!
//! [`repair`](InterPartitionIndex::repair) also makes right what nobody wrote a message for, such as entities that
//! were there before the index.
//!
//! [`InterPartitionIndex`] shows it.

mod change;
mod entry;
mod query;
mod settle;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::index::{Elsewhere, Index, IndexQuery, Primaries};
pub use super::intra_partition_index::Repaired;
use crate::error::refused;
use crate::queue::{HIDDEN_MAX, QueueClient};
use crate::{Result, Stored, TableClient, TableEntity};
use entry::Placed;
pub use query::InterPartitionQuery;

/// Name the entity in each of its entries.
const PARTITION_PROPERTY: &str = "PrimaryPartitionKey";
const ID_PROPERTY: &str = "PrimaryRowKey";
/// How long a message waits for a writer that does not come back. Longer than a write takes, with all its retries.
const SETTLE_AFTER: Duration = Duration::from_secs(60);
/// A write gets half of it.
const SETTLE_AFTER_MIN: Duration = Duration::from_secs(1);

/// Entities with entries of indexes in other partitions or tables.
///
/// ```no_run
/// # async fn run(
/// #     table: tavola_client::TableClient, queue: tavola_client::queue::QueueClient,
/// # ) -> tavola_client::Result<()> {
/// use tavola_client::TableEntity;
/// use tavola_client::patterns::index::Index;
/// use tavola_client::patterns::inter_partition_index::{InterPartitionIndex, Place};
/// use tavola_client::patterns::queue_worker::QueueWorker;
///
/// #[derive(TableEntity)]
/// #[table(rename_all = "PascalCase", columns)]
/// struct Employee {
///     #[table(partition_key)]
///     department: String,
///     #[table(row_key)]
///     id: String,
///     email: String,
///     last_name: String,
/// }
///
/// let employees = InterPartitionIndex::new(table, "empid_", queue.clone())
///     // By mail in each department, as the guide has it, and by name over all of them.
///     .with(Index::unique("email_", Employee::EMAIL), Place::partition())?
///     .with(Index::many("name_", Employee::LAST_NAME).partial(["Email"]), Place::whole())?;
///
/// // Somewhere, in any number: the workers.
/// let worker = QueueWorker::new(queue);
/// tokio::spawn({
///     let employees = employees.clone();
///     async move { worker.run(employees.job::<Employee>()).await }
/// });
///
/// let jones = Employee {
///     department: "Sales".into(),
///     id: "000223".into(),
///     email: "jonesj@contoso.com".into(),
///     last_name: "Jones".into(),
/// };
/// employees.save(&jones).await?;
/// // Soon:
/// let found = employees.by("email_", "Sales")?.find::<Employee>("jonesj@contoso.com").await?;
/// let all = employees.everywhere("name_")?.list::<Employee>("Jones")?;
///
/// // A change of the version that was read, and of no other.
/// if let Some(mut jones) = employees.get::<Employee>("Sales", "000223").await? {
///     jones.email = "jonesj1@contoso.com".into();
///     employees.update(&jones).await?;
/// }
/// employees.delete("Sales", "000223").await?;
/// // After something else wrote employees, or an index was added.
/// employees.repair::<Employee>("Sales").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct InterPartitionIndex {
    table: TableClient,
    prefix: String,
    queue: QueueClient,
    indexes: Arc<Vec<Placed>>,
    settle_after: Duration,
}

/// Where the entries of an index lie.
///
/// ```no_run
/// # fn run(
/// #     employees: tavola_client::TableClient, by_mail: tavola_client::TableClient,
/// #     queue: tavola_client::queue::QueueClient,
/// # ) -> tavola_client::Result<()> {
/// use tavola_client::patterns::index::Index;
/// use tavola_client::patterns::inter_partition_index::{InterPartitionIndex, Place};
///
/// let employees = InterPartitionIndex::new(employees, "", queue)
///     // `email_Sales`, in another table.
///     .with(Index::unique("email_", "Email"), Place::partition().in_table(by_mail))?
///     // `town_` for all departments: their order is that of the towns.
///     .with(Index::many("town_", "Town").reference(), Place::whole())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Place {
    is_whole: bool,
    table: Option<TableClient>,
}

impl Place {
    /// A partition of the index for each partition of entities: its prefix and their partition key.
    pub fn partition() -> Self {
        Self { is_whole: false, table: None }
    }

    /// One partition for all, named by the prefix. It takes all writes of the index; on Azure, some 2,000 a second.
    pub fn whole() -> Self {
        Self { is_whole: true, table: None }
    }

    /// In another table than the entities, which may be one of another account. If entities have properties to encrypt, its
    /// client needs the keys, too.
    #[must_use]
    pub fn in_table(mut self, table: TableClient) -> Self {
        self.table = Some(table);
        self
    }
}

impl InterPartitionIndex {
    /// Keeps entities in partitions with this prefix, and sends what is to be done for their indexes to this queue. The
    /// prefix may be empty: entities then lie under their own keys.
    pub fn new(table: TableClient, prefix: impl Into<String>, queue: QueueClient) -> Self {
        let indexes = Arc::default();
        Self { table, prefix: prefix.into(), queue, indexes, settle_after: SETTLE_AFTER }
    }

    /// Keeps entries of each entity in an index.
    ///
    /// # Errors
    /// An index that can have no keys, or whose prefix cannot be told from that of another.
    pub fn with(mut self, index: Index, place: Place) -> Result<Self> {
        index.check()?;
        let new = index.prefix().to_owned();
        let is_mixed = |old: &str| new.starts_with(old) || old.starts_with(&new);
        let is_taken = new.is_empty()
            || self.indexes.iter().any(|old| is_mixed(&old.name))
            || !self.prefix.is_empty() && is_mixed(&self.prefix);
        if is_taken {
            return Err(refused(format!("the prefix starts other keys too: prefix={new}")));
        }
        let table = place.table.unwrap_or_else(|| self.table.clone());
        let placed = Placed {
            index: index.with_prefix(String::new()),
            name: new,
            table,
            is_whole: place.is_whole,
        };
        Arc::make_mut(&mut self.indexes).push(placed);
        Ok(self)
    }

    /// How long a message waits for a writer that does not come back, from 1 second to 7 days; a minute unless set. A write
    /// that takes longer than half of it is given up.
    ///
    /// ```no_run
    /// # fn run(employees: tavola_client::patterns::inter_partition_index::InterPartitionIndex) {
    /// use std::time::Duration;
    ///
    /// let employees = employees.settle_after(Duration::from_secs(20));
    /// # }
    /// ```
    #[must_use]
    pub fn settle_after(mut self, pause: Duration) -> Self {
        self.settle_after = pause.clamp(SETTLE_AFTER_MIN, HIDDEN_MAX);
        self
    }

    /// An index with a partition for each partition of entities, to find those of one with.
    ///
    /// # Errors
    /// A prefix that no index has, or one that is for all partitions.
    pub fn by(&self, prefix: &str, partition_key: &str) -> Result<InterPartitionQuery> {
        let placed = self.placed(prefix, false)?;
        Ok(InterPartitionQuery::new(self.ask(placed), format!("{prefix}{partition_key}")))
    }

    /// An index that is one for all partitions, to find entities with.
    ///
    /// # Errors
    /// A prefix that no index has, or one that is not for all partitions.
    pub fn everywhere(&self, prefix: &str) -> Result<InterPartitionQuery> {
        let placed = self.placed(prefix, true)?;
        Ok(InterPartitionQuery::new(self.ask(placed), prefix.to_owned()))
    }

    fn placed(&self, prefix: &str, is_whole: bool) -> Result<&Placed> {
        let is_wanted = |placed: &&Placed| placed.name == prefix && placed.is_whole == is_whole;
        let placed = self.indexes.iter().find(is_wanted);
        placed.ok_or_else(|| refused(format!("there is no such index: prefix={prefix}")))
    }

    fn ask(&self, placed: &Placed) -> IndexQuery {
        let elsewhere = Elsewhere {
            copies: placed.table.clone(),
            partition_prefix: self.prefix.clone(),
            partition_property: PARTITION_PROPERTY.to_owned(),
            is_whole: placed.is_whole,
        };
        let primaries = Primaries {
            table: self.table.clone(),
            prefix: String::new(),
            id_property: ID_PROPERTY.to_owned(),
            elsewhere: Some(elsewhere),
        };
        IndexQuery::new(placed.index.clone(), primaries)
    }

    /// Reads an entity by its keys.
    ///
    /// # Errors
    /// Those of a point query.
    pub async fn get<T: TableEntity>(
        &self,
        partition_key: &str,
        id: &str,
    ) -> Result<Option<Stored<T>>> {
        let stored = self.stored(partition_key, id).await?;
        stored.map(|stored| stored.try_map(T::from_entity)).transpose()
    }
}

impl fmt::Debug for InterPartitionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterPartitionIndex")
            .field("table", &self.table.name())
            .field("queue", &self.queue.name())
            .finish_non_exhaustive()
    }
}
