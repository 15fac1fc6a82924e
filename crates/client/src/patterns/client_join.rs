//! Join in the client: small tables, kept in memory beside a stream of a large one.
//!
//! The service has no joins. If one side is small and changes seldom (departments, currencies, settings), the client reads
//! it once, keeps it for a while, and looks up each entity of the other side in memory.
//!
//! **Use it** for reference data of up to some ten thousand entities. **Do not use it** when the small side must be exact to
//! the second, or grows: denormalize instead.
//!
//! **Cost**: one query over the small table for each time it is loaded, and none for each joined entity; the memory of the
//! small table. **Half-done**: the small side is as old as the cache allows, and the two sides were read at different
//! moments: an entity may name a department that the cache does not have yet.
//!
//! [`SmallTable`] shows it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{Stream, TryStreamExt};

use crate::{
    DateTime, Entity, Filter, QueryOptions, Result, Stored, TableClient, TableEntity, now,
};

type Rows<T> = HashMap<(String, String), Arc<T>>;

/// A table in memory, loaded again when it is too old.
///
/// ```no_run
/// # async fn run(departments: tavola_client::TableClient, employees: tavola_client::TableClient) -> azure_core::Result<()> {
/// use std::time::Duration;
/// use futures::TryStreamExt;
/// use tavola_client::Entity;
/// use tavola_client::patterns::client_join::SmallTable;
///
/// let departments = SmallTable::<Entity>::new(departments, None, Duration::from_secs(60));
/// let mut joined = departments
///     .join(employees.query_entities::<Entity>(None), |employee| {
///         ("departments".into(), employee.partition_key().into())
///     })
///     .await?;
/// while let Some((employee, department)) = joined.try_next().await? {
///     println!("{} in {:?}", employee.row_key(), department);
/// }
/// // One look-up in memory, and a fresh start after a change that must be seen.
/// let sales = departments.get("departments", "Sales").await?;
/// departments.forget();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SmallTable<T> {
    table: TableClient,
    filter: Option<Filter>,
    age_max: Duration,
    loaded: Mutex<Option<(DateTime, Arc<Rows<T>>)>>,
}

impl<T: TableEntity + Send + Sync + 'static> SmallTable<T> {
    /// Keeps what the filter finds, for as long as it may be old.
    pub fn new(table: TableClient, filter: Option<Filter>, age_max: Duration) -> Self {
        Self { table, filter, age_max, loaded: Mutex::new(None) }
    }

    /// Looks an entity up in memory; loads the table if it is not there or too old.
    ///
    /// # Errors
    /// Those of loading the table.
    pub async fn get(&self, partition_key: &str, row_key: &str) -> Result<Option<Arc<T>>> {
        let rows = self.rows().await?;
        Ok(rows.get(&(partition_key.to_owned(), row_key.to_owned())).cloned())
    }

    /// Joins a stream: each entity with the one in memory whose keys the function gives, if there is one.
    ///
    /// # Errors
    /// Those of loading the table; those of the stream come with it.
    pub async fn join<L, S, F>(
        &self,
        stream: S,
        key: F,
    ) -> Result<impl Stream<Item = Result<(Stored<L>, Option<Arc<T>>)>> + use<L, S, F, T>>
    where
        S: Stream<Item = Result<Stored<L>>>,
        F: Fn(&L) -> (String, String),
    {
        let rows = self.rows().await?;
        Ok(stream.map_ok(move |left| {
            let right = rows.get(&key(&left)).cloned();
            (left, right)
        }))
    }

    /// Forgets what was loaded, after a change that must be seen.
    pub fn forget(&self) {
        *self.lock() = None;
    }

    async fn rows(&self) -> Result<Arc<Rows<T>>> {
        let now = now();
        if let Some((since, rows)) = &*self.lock() {
            let age = now.0.abs_diff(since.0);
            if u128::from(age) * 100 <= self.age_max.as_nanos() {
                return Ok(rows.clone());
            }
        }
        // Two callers may load at the same time; both get what is true, and the later one is kept.
        let rows = Arc::new(self.load().await?);
        *self.lock() = Some((now, rows.clone()));
        Ok(rows)
    }

    async fn load(&self) -> Result<Rows<T>> {
        let options = QueryOptions { filter: self.filter.clone(), ..Default::default() };
        let mut entities = self.table.query_entities::<Entity>(options);
        let mut rows = HashMap::new();
        while let Some(stored) = entities.try_next().await? {
            let key = (stored.partition_key().to_owned(), stored.row_key().to_owned());
            rows.insert(key, Arc::new(T::from_entity(stored.into_value())?));
        }
        Ok(rows)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(DateTime, Arc<Rows<T>>)>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
