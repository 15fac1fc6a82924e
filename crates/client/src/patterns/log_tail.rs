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

use std::fmt;

use futures::{StreamExt, TryStreamExt};

use super::Row;
use super::compound_key::{Compound, Inverted};
use crate::{
    DateTime, EntityPager, ErrorExt, Filter, KeyField, QueryOptions, ROW_KEY, Result, Stored,
    TableClient, TableEntity, UpdateMode, Uuid,
};

/// Ticks that a bare key goes on by when others have taken those of its moment.
const TAKEN_TICKS_MAX: i64 = 100;

/// A row key that counts down with time: 19 digits of ticks, as in the guide, and mostly a GUID, which tells apart what
/// happened in the same tick.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::patterns::log_tail::TailKey;
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
/// let claim = Claim { employee: "empid".into(), at: TailKey::new(at), amount: 42.5 };
/// assert_eq!(claim.at.moment(), at);
/// // The ticks alone, as `DateTime.MaxValue.Ticks - DateTime.UtcNow.Ticks` with 19 digits gives them.
/// assert_eq!(TailKey::bare(at).to_key()?, "2516075567999999999");
/// assert_eq!(TailKey::from_key("2516075567999999999".into())?.moment(), at);
/// assert!(TailKey::bare(at).to_string() > TailKey::bare(DateTime::MAX).to_string(), "newest first");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TailKey {
    moment: DateTime,
    id: Option<Uuid>,
}

impl TailKey {
    /// The key of something that happened at this moment, which no other has.
    pub fn new(moment: DateTime) -> Self {
        Self { moment, id: Some(Uuid::new_v4()) }
    }

    /// The ticks alone: the key of everything that happened at this moment.
    pub fn bare(moment: DateTime) -> Self {
        Self { moment, id: None }
    }

    /// The moment that the key tells.
    pub fn moment(&self) -> DateTime {
        self.moment
    }
}

impl fmt::Display for TailKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.to_key().map_err(|_| fmt::Error)?;
        f.write_str(&key)
    }
}

impl KeyField for TailKey {
    fn to_key(&self) -> Result<String> {
        match self.id {
            Some(id) => Compound::new((Inverted(self.moment), id)).to_key(),
            None => Compound::new((Inverted(self.moment),)).to_key(),
        }
    }

    fn from_key(key: String) -> Result<Self> {
        if key.contains('_') {
            let Compound((Inverted(moment), id)) = <Compound<_>>::from_key(key)?;
            return Ok(Self { moment, id: Some(id) });
        }
        let Compound((Inverted(moment),)) = <Compound<_>>::from_key(key)?;
        Ok(Self { moment, id: None })
    }
}

/// Logs in a table, one for each partition.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::patterns::log_tail::{LogTail, TailKey};
/// use tavola_client::{DateTime, Entity, KeyField, now};
///
/// let claims = LogTail::new(table);
/// claims.append(now(), &Entity::new("empid", "").with("Amount", 42.5)).await?;
/// for claim in claims.latest::<Entity>("empid", 10).await? {
///     println!("{}", claim.get::<f64>("Amount")?);
/// }
/// // The claims of a day, whose moments the keys tell.
/// let (from, before) =
///     (DateTime::parse_iso("2026-11-15").unwrap(), DateTime::parse_iso("2026-11-16").unwrap());
/// let mut day = claims.between::<Entity>("empid", from, before);
/// while let Some(claim) = day.try_next().await? {
///     println!("{}", TailKey::from_key(claim.row_key().into())?.moment().to_iso());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LogTail {
    table: TableClient,
    is_bare: bool,
}

impl LogTail {
    /// Keeps the logs in this table.
    pub fn new(table: TableClient) -> Self {
        Self { table, is_bare: false }
    }

    /// Writes ticks alone as row keys, for readers that expect them. Of two entities of the same moment, the second gets the
    /// next free tick; an append whose answer was lost may be there twice.
    ///
    /// ```no_run
    /// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use tavola_client::patterns::log_tail::LogTail;
    /// use tavola_client::{Entity, now};
    ///
    /// let claims = LogTail::new(table).with_bare_ticks();
    /// let key = claims.append(now(), &Entity::new("empid", "")).await?;
    /// assert_eq!(key.to_string().len(), 19);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_bare_ticks(mut self) -> Self {
        self.is_bare = true;
        self
    }

    /// Adds an entity to the log of its partition; its row key is made from the moment. Gives the row key.
    ///
    /// # Errors
    /// Those of an upsert: a repeated attempt finds its own key and is done once.
    pub async fn append<T: TableEntity>(&self, at: DateTime, entity: &T) -> Result<TailKey> {
        let mut row = Row::of(entity)?;
        let partition_key = row.entity.take_partition_key();
        if !self.is_bare {
            let key = TailKey::new(at);
            row.entity.set_keys(partition_key, key.to_key()?);
            self.table.upsert_entity(&row, UpdateMode::Replace, None).await?;
            return Ok(key);
        }
        let mut ticks = 0;
        loop {
            let key = TailKey::bare(tavola_wire::Ticks(at.0 + ticks));
            row.entity.set_keys(partition_key.as_str(), key.to_key()?);
            match self.table.insert_entity(&row, None).await {
                Ok(_) => return Ok(key),
                Err(error) if error.is_already_there() && ticks < TAKEN_TICKS_MAX => ticks += 1,
                Err(error) => return Err(error),
            }
        }
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

    /// The entities from one moment to before another, the newest first.
    pub fn between<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        from: DateTime,
        before: DateTime,
    ) -> EntityPager<T> {
        // Later moments have lesser keys: what is before `before` starts above its last key.
        let bound = |moment: DateTime| {
            let key = TailKey::bare(tavola_wire::Ticks(moment.0 - 1)).to_key();
            key.expect("a moment is a key")
        };
        let filter =
            Filter::partition(partition_key) & ROW_KEY.between(&bound(before), &bound(from));
        self.table.query_entities(filter)
    }
}
