//! What the service says of an index.

use super::entity::{Entity, IndexSpec};
use super::value::DateTime;
use crate::core::error::{Result, refused};

/// An index, and how far the service is with it.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
/// use tavola_client::IndexInfo;
///
/// let indexes: Vec<IndexInfo> = service.indexes().list(Some("people"), None).await?;
/// for index in indexes.iter().filter(|index| index.uses == 0) {
///     println!("nobody uses {} with {} bytes", index.name, index.bytes);
/// }
/// for index in indexes.iter().filter(|index| index.largest_share > 0.5) {
///     println!("most entities have the same value in {}", index.name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
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
    /// Bytes of the entries, as the build has found them.
    pub bytes: i64,
    /// Different values, as the build has found them: exact below 64, else an estimate.
    pub distinct: i64,
    /// The part of the entries that has the most frequent value, at least, as the build has found it.
    pub largest_share: f64,
    /// Values of another type than the keys of the definition name, as the build has found them.
    pub off_type: i64,
    /// Queries that have used it.
    pub uses: i64,
    /// When one did so last.
    pub last_used: Option<DateTime>,
    /// Why it has failed.
    pub error: String,
    /// What else there is to know about it.
    pub note: String,
    /// What the last [verification](crate::IndexClient::verify) says, if there was one.
    pub verification: String,
    /// All of it as the service says it, for what a newer one says beside.
    pub entity: Entity,
}

/// Whether queries use an index.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> tavola_client::Result<()> {
/// use tavola_client::IndexState;
///
/// let by_town = service.indexes().get("people", "ByTown", None).await?;
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

impl IndexInfo {
    pub(super) fn read(entity: &Entity) -> Result<Self> {
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
                "" => {
                    return Err(refused(
                        "the service says nothing of the index: TavolaIndexes is a plain table there, and nothing is built",
                    ));
                }
                _ => IndexState::Building,
            },
            progress: number("Progress")?,
            entries: number("Entries")?,
            bytes: number("Bytes")?,
            distinct: number("Distinct")?,
            largest_share: entity.get::<Option<f64>>("LargestShare")?.unwrap_or_default(),
            off_type: number("OffType")?,
            uses: number("Uses")?,
            last_used: entity.get("LastUsed")?,
            error: text("Error")?,
            note: text("Note")?,
            verification: text("Verify")?,
            entity: entity.clone(),
        })
    }
}
