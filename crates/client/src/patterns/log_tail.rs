//! Log tail: the newest entities of a partition come first.
//!
//! Entities are returned in the order of their row keys, so a row key that counts down with time puts the newest on
//! top: reading the latest *n* reads *n* entities, whatever came before.
//!
//! **Use it** for the last logins of a user, the last expense claims of an employee, the recent events of a device.
//! **Do not use it** in a partition that takes more writes than one server can (some 2,000 a second on Azure): all go to the
//! start of one partition. See [`spread_writes`](super::spread_writes) for that.
//!
//! **Cost**: an append is one request of one entity. `latest(n)` is one request for up to 1000. A range of time is a range
//! of row keys. **Half-done**: nothing. Entities that are written out of order appear in their place, below newer ones.
//!
//! [`LogTail`] shows it.

use azure_core::Uuid;
use futures::{StreamExt, TryStreamExt};

use super::compound_key::{Compound, Inverted};
use crate::clients::{EntityPager, QueryOptions, TableClient};
use crate::entity::{Entity, KeyField, Stored, TableEntity};
use crate::error::Result;
use crate::filter::{Filter, ROW_KEY};
use crate::value::DateTime;

/// A row key that counts down with time; the GUID tells apart what happened in the same tick.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::patterns::log_tail::{LogTail, TailKey};
/// use tavola_client::{DateTime, KeyField, TableEntity};
///
/// #[derive(TableEntity)]
/// #[table(rename_all = "PascalCase")]
/// struct Claim {
///     #[table(partition_key)]
///     employee: String,
///     #[table(row_key)]
///     at: TailKey,
///     amount: f64,
/// }
///
/// let at = DateTime::parse_iso("2026-11-15T12:00:00Z").unwrap();
/// let claim = Claim { employee: "00123".into(), at: LogTail::row_key(at), amount: 42.5 };
/// assert_eq!(LogTail::moment_of(&claim.at.to_key()?)?, at);
/// # Ok(())
/// # }
/// ```
pub type TailKey = Compound<(Inverted<DateTime>, Uuid)>;

/// Logs in a table, one for each partition.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::patterns::log_tail::LogTail;
/// use tavola_client::{DateTime, Entity, now};
///
/// let claims = LogTail::new(table);
/// claims.append(now(), Entity::new("00123", "").with("Amount", 42.5)).await?;
/// for claim in claims.latest::<Entity>("00123", 10).await? {
///     println!("{}", claim.get::<f64>("Amount")?);
/// }
/// // The claims of a day, whose moments the keys tell.
/// let (from, before) =
///     (DateTime::parse_iso("2026-11-15").unwrap(), DateTime::parse_iso("2026-11-16").unwrap());
/// let mut day = claims.between::<Entity>("00123", from, before);
/// while let Some(claim) = day.try_next().await? {
///     println!("{}", LogTail::moment_of(claim.row_key())?.to_iso());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LogTail {
    table: TableClient,
}

impl LogTail {
    /// Keeps the logs in this table.
    pub fn new(table: TableClient) -> Self {
        Self { table }
    }

    /// The row key of something that happened at this moment.
    ///
    /// ```
    /// use tavola_client::patterns::log_tail::LogTail;
    /// use tavola_client::{DateTime, KeyField};
    ///
    /// let (noon, later) = ("2026-11-15T12:00:00Z", "2026-11-15T12:00:01Z");
    /// let key = |text| LogTail::row_key(DateTime::parse_iso(text).unwrap()).to_key().unwrap();
    /// assert!(key(later) < key(noon), "the newest comes first");
    /// ```
    pub fn row_key(at: DateTime) -> TailKey {
        Compound((Inverted(at), Uuid::new_v4()))
    }

    /// The moment that a row key tells.
    ///
    /// # Errors
    /// A row key of another kind.
    pub fn moment_of(row_key: &str) -> Result<DateTime> {
        TailKey::from_key(row_key.to_owned()).map(|Compound((Inverted(at), _))| at)
    }

    /// Adds an entity to the log of its partition; its row key is made from the moment. Gives the row key.
    ///
    /// # Errors
    /// Those of an upsert: a repeated attempt finds its own key and is done once.
    pub async fn append(&self, at: DateTime, mut entity: Entity) -> Result<String> {
        let row_key = Self::row_key(at).to_key()?;
        let partition_key = entity.take_partition_key();
        entity.set_keys(partition_key, row_key.as_str());
        self.table.upsert_entity(&entity, crate::UpdateMode::Replace, None).await?;
        Ok(row_key)
    }

    /// The newest entities of a log, the newest first.
    ///
    /// # Errors
    /// Those of a query.
    pub async fn latest<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        count: usize,
    ) -> Result<Vec<Stored<T>>> {
        let options = QueryOptions {
            filter: Some(Filter::partition(partition_key)),
            page_size: Some(u16::try_from(count).unwrap_or(1000).clamp(1, 1000)),
            ..Default::default()
        };
        self.table.query_entities(options).take(count).try_collect().await
    }

    /// What happened from one moment to before another, the newest first.
    pub fn between<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        from: DateTime,
        before: DateTime,
    ) -> EntityPager<T> {
        // Later moments have lesser keys: what is before `before` starts above its last key.
        let bound = |moment: DateTime| {
            Compound((Inverted(tavola_wire::Ticks(moment.0 - 1)),))
                .to_key()
                .expect("a moment is a key")
        };
        let filter =
            Filter::partition(partition_key) & ROW_KEY.between(&bound(before), &bound(from));
        self.table.query_entities(filter)
    }
}
