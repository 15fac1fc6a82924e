//! Asking an index in other partitions.

use std::ops::RangeBounds;

use futures::stream::BoxStream;

use crate::patterns::index::{IndexQuery, IndexValue};
use crate::{Result, Stored, TableEntity};

/// A partition of an index, ready to be asked.
///
/// ```no_run
/// # async fn run(
/// #     employees: tavola_client::patterns::inter_partition_index::InterPartitionIndex,
/// # ) -> tavola_client::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::Entity;
/// use tavola_client::patterns::inter_partition_index::InterPartitionQuery;
///
/// let sales: InterPartitionQuery = employees.by("email_", "Sales")?;
/// let jones = sales.find::<Entity>("jonesj@contoso.com").await?;
/// // Addresses from a to b, those that start with a letter, and all in their order.
/// let a_to_b = sales.range::<Entity, _>("a".."c")?;
/// let a = sales.starting_with::<Entity>("a")?;
/// let everyone: Vec<_> = sales.all::<Entity>().try_collect().await?;
///
/// // Over all departments: the Smiths, with nothing but what the entry holds.
/// let by_name = employees.everywhere("name_")?.select(["Email"]);
/// let smiths: Vec<_> = by_name.list::<Entity>("Smith")?.try_collect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct InterPartitionQuery {
    query: IndexQuery,
    partition: String,
}

impl InterPartitionQuery {
    pub(super) fn new(query: IndexQuery, partition: String) -> Self {
        Self { query, partition }
    }

    /// Asks for these properties alone: from the entry, if it holds them all.
    #[must_use]
    pub fn select(mut self, properties: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query = self.query.select(properties);
        self
    }

    /// As [`IndexQuery::find`].
    ///
    /// # Errors
    /// As there.
    pub async fn find<T: TableEntity + Send + 'static>(
        &self,
        values: impl Into<IndexValue>,
    ) -> Result<Option<Stored<T>>> {
        self.query.find(&self.partition, values).await
    }

    /// As [`IndexQuery::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list<T: TableEntity + Send + 'static>(
        &self,
        values: impl Into<IndexValue>,
    ) -> Result<BoxStream<'static, Result<Stored<T>>>> {
        self.query.list(&self.partition, values)
    }

    /// As [`IndexQuery::range`].
    ///
    /// # Errors
    /// As there.
    pub fn range<T: TableEntity + Send + 'static, V: Into<IndexValue> + Clone>(
        &self,
        range: impl RangeBounds<V>,
    ) -> Result<BoxStream<'static, Result<Stored<T>>>> {
        self.query.range(&self.partition, range)
    }

    /// As [`IndexQuery::starting_with`].
    ///
    /// # Errors
    /// As there.
    pub fn starting_with<T: TableEntity + Send + 'static>(
        &self,
        text: &str,
    ) -> Result<BoxStream<'static, Result<Stored<T>>>> {
        self.query.starting_with(&self.partition, text)
    }

    /// As [`IndexQuery::all`].
    pub fn all<T: TableEntity + Send + 'static>(&self) -> BoxStream<'static, Result<Stored<T>>> {
        self.query.all(&self.partition)
    }
}
