//! High volume delete: a table for each period, so that dropping the old is dropping a table.
//!
//! Deleting a million entities is ten thousand transactions; deleting their table is one request. Writes are routed to the
//! table of their period, which is made when the first one comes.
//!
//! **Use it** for what is kept for a time and then goes all at once: logins, telemetry, sessions. **Do not use it** when
//! entities live for different times, or when most questions reach over many periods: each period is a query of its own.
//!
//! **Cost**: a write is one request, the first of a period three. A read over *k* periods is *k* queries, in parallel.
//! Dropping is one request for each old table, and one to list them. **Half-done**: a reader sees a period whole or not at
//! all; while several are dropped, some are gone and some are still there. Azure refuses to make a table again for some 40
//! seconds after it was deleted, so drop only what is never written to again.
//!
//! [`TablePerPeriod`] shows it.

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};

use crate::ErrorCode;
use crate::clients::{
    CallOptions, ListTablesOptions, QueryOptions, TableClient, TableServiceClient, UpdateMode,
};
use crate::entity::{Stored, TableEntity};
use crate::error::{ErrorExt, Result, refused};
use crate::filter::Filter;
use crate::value::DateTime;

/// Periods that are read ahead.
const PERIODS_AHEAD: usize = 4;

/// How long a table takes writes.
///
/// ```
/// use tavola_client::patterns::high_volume_delete::{Period, TablePerPeriod};
/// use tavola_client::{DateTime, TableServiceClient};
///
/// # fn main() -> azure_core::Result<()> {
/// let service = TableServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
/// let moment = DateTime::parse_iso("2026-11-15").unwrap();
/// let by_day = TablePerPeriod::new(service.clone(), "logins", Period::Day)?;
/// assert_eq!(by_day.table_at(moment)?.name(), "logins20261115");
/// let by_month = TablePerPeriod::new(service, "logins", Period::Month)?;
/// assert_eq!(by_month.table_at(moment)?.name(), "logins202611");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// A table for each day, in UTC.
    Day,
    /// A table for each month, in UTC.
    Month,
}

impl Period {
    /// Digits of the period in a table's name: `20261115` or `202611`.
    fn digits(self) -> usize {
        match self {
            Self::Day => 8,
            Self::Month => 6,
        }
    }

    /// The period of a moment, as digits that sort by time.
    fn of(self, moment: DateTime) -> String {
        let mut digits: String = moment.to_iso().chars().filter(char::is_ascii_digit).collect();
        digits.truncate(self.digits());
        digits
    }
}

/// Tables that share a prefix, one for each period.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::patterns::high_volume_delete::{Period, TablePerPeriod};
/// use tavola_client::{DateTime, Entity, now};
///
/// let logins = TablePerPeriod::new(service, "logins", Period::Month)?;
/// logins.insert(now(), &Entity::new("jens", "0001")).await?;
/// let dropped = logins.drop_before(DateTime::parse_iso("2026-01-01").unwrap()).await?;
/// // The table of a moment, for anything else.
/// println!("written to {}", logins.table_at(now())?.name());
///
/// let (from, to) = (DateTime::parse_iso("2026-10-01").unwrap(), now());
/// let mut recent = logins.query::<Entity>(from, to, None).await?;
/// while let Some(login) = recent.try_next().await? {
///     println!("{}", login.partition_key());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TablePerPeriod {
    service: TableServiceClient,
    prefix: String,
    period: Period,
}

impl TablePerPeriod {
    /// The tables with this prefix, which must not start another family's names.
    ///
    /// # Errors
    /// A prefix that makes no legal table name.
    pub fn new(
        service: TableServiceClient,
        prefix: impl Into<String>,
        period: Period,
    ) -> Result<Self> {
        let tables = Self { service, prefix: prefix.into(), period };
        tables.table_at(DateTime::MAX)?;
        if tables.prefix.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(refused("a prefix that ends with a digit cannot be told from its period"));
        }
        Ok(tables)
    }

    /// The table of a moment, which need not exist.
    ///
    /// # Errors
    /// None, once the prefix was accepted.
    pub fn table_at(&self, moment: DateTime) -> Result<TableClient> {
        self.service.table_client(format!("{}{}", self.prefix, self.period.of(moment)))
    }

    /// Writes an entity to the table of its moment, and makes the table if it is the first.
    ///
    /// # Errors
    /// Those of an upsert.
    pub async fn insert<T: TableEntity>(&self, at: DateTime, entity: &T) -> Result<()> {
        let table = self.table_at(at)?;
        match table.upsert_entity(entity, UpdateMode::Replace, None).await {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Some(ErrorCode::TableNotFound) => {
                table.create_if_not_exists(None::<CallOptions>).await?;
                table.upsert_entity(entity, UpdateMode::Replace, None).await.map(|_| ())
            }
            Err(error) => Err(error),
        }
    }

    /// The entities of all periods from one moment to another, period by period and in key order within each.
    ///
    /// # Errors
    /// Those of listing tables; those of the queries come with the stream.
    pub async fn query<T: TableEntity + Send + 'static>(
        &self,
        from: DateTime,
        to: DateTime,
        filter: Option<Filter>,
    ) -> Result<BoxStream<'static, Result<Stored<T>>>> {
        let (first, last) = (self.period.of(from), self.period.of(to));
        let mut tables = Vec::new();
        for (period, name) in self.periods().await? {
            if first <= period && period <= last {
                tables.push(self.service.table_client(name)?);
            }
        }
        let queries = tables.into_iter().map(move |table| {
            let options = QueryOptions { filter: filter.clone(), ..Default::default() };
            let mut pager = table.query_entities::<T>(options);
            async move {
                let first = pager.next().await;
                stream::iter(first).chain(pager)
            }
        });
        let entities = stream::iter(queries).buffered(PERIODS_AHEAD).flatten();
        // A period that was dropped meanwhile has nothing to say.
        let is_there = |item: &Result<Stored<T>>| match item {
            Err(error) => error.code() != Some(ErrorCode::TableNotFound),
            Ok(_) => true,
        };
        Ok(entities.filter(move |item| std::future::ready(is_there(item))).boxed())
    }

    /// Drops the tables of all periods that end before the one of this moment; gives their names.
    ///
    /// # Errors
    /// Those of listing and deleting tables. What was dropped stays dropped.
    pub async fn drop_before(&self, moment: DateTime) -> Result<Vec<String>> {
        let first_kept = self.period.of(moment);
        let mut dropped = Vec::new();
        for (period, name) in self.periods().await? {
            if period < first_kept {
                match self.service.delete_table(&name, None).await {
                    Ok(_) => dropped.push(name),
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(dropped)
    }

    /// The periods that have a table, in order.
    async fn periods(&self) -> Result<Vec<(String, String)>> {
        let filter = Filter::prefix("TableName", &self.prefix);
        let options = ListTablesOptions { filter: Some(filter), ..Default::default() };
        let names: Vec<String> = self.service.list_tables(Some(options)).try_collect().await?;
        let mut periods: Vec<_> = names
            .into_iter()
            .filter_map(|name| {
                let period = name.strip_prefix(&self.prefix)?.to_owned();
                let is_period = period.len() == self.period.digits()
                    && period.bytes().all(|byte| byte.is_ascii_digit());
                is_period.then_some((period, name))
            })
            .collect();
        periods.sort_unstable();
        Ok(periods)
    }
}
