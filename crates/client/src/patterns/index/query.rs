//! Asking an index: one entity, a list, a range, or all in its order.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::{Index, IndexValue, Part};
use crate::error::refused;
use crate::patterns::compound_key::KeyStyle;
use crate::{
    EdmValue, Entity, Filter, GetEntityOptions, QueryOptions, ROW_KEY, Result, Stored, TableClient,
    TableEntity, prefix_end,
};

/// Entities that are looked up at the same time, where the index does not hold what was asked for.
const LOOK_UPS: usize = 8;

/// Where the entities of an index lie, and how their rows are told.
#[derive(Clone, Debug)]
pub(crate) struct Primaries {
    pub(crate) table: TableClient,
    /// The start of the row keys of entities.
    pub(crate) prefix: String,
    /// The property of a copy that holds the id of its entity.
    pub(crate) id_property: String,
    /// Set if the copies lie in other partitions or tables than their entities.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// Copies that lie in other partitions or tables than their entities, and are not always equal to them.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    pub(crate) copies: TableClient,
    /// The start of the partition keys of entities.
    pub(crate) partition_prefix: String,
    /// The property of a copy that holds the partition key of its entity.
    pub(crate) partition_property: String,
    /// Whether the index is one for all partitions.
    pub(crate) is_whole: bool,
}

impl Elsewhere {
    /// The id that tells entities with the same value apart in the index.
    pub(crate) fn entry_id(is_whole: bool, partition_key: &str, id: &str) -> String {
        if !is_whole {
            return id.to_owned();
        }
        let mut entry_id = String::new();
        KeyStyle::before(' ').push_text(partition_key, &mut entry_id);
        entry_id.push(' ');
        entry_id.push_str(id);
        entry_id
    }
}

impl Primaries {
    fn copies(&self) -> &TableClient {
        self.elsewhere.as_ref().map_or(&self.table, |elsewhere| &elsewhere.copies)
    }

    /// The keys of the entity that a copy was made of, as its owner knows them.
    fn owner(&self, copy: &Entity) -> Result<(String, String)> {
        let partition_key = match &self.elsewhere {
            Some(elsewhere) => copy.get(&elsewhere.partition_property)?,
            None => copy.partition_key().to_owned(),
        };
        Ok((partition_key, copy.get(&self.id_property)?))
    }

    /// The row key of an entity.
    pub(crate) fn row_key(&self, id: &str) -> String {
        let mut key = self.prefix.clone();
        KeyStyle::WHOLE.push_text(id, &mut key);
        key
    }

    /// The entity as its owner knows it, if it is there.
    pub(crate) async fn get(
        &self,
        partition_key: &str,
        id: &str,
        select: Option<Vec<String>>,
    ) -> Result<Option<Stored<Entity>>> {
        let options = GetEntityOptions { select, ..Default::default() };
        let (partition, row_key) = match &self.elsewhere {
            Some(elsewhere) => {
                (format!("{}{partition_key}", elsewhere.partition_prefix), id.to_owned())
            }
            None => (partition_key.to_owned(), self.row_key(id)),
        };
        let found = self.table.get_entity_if_exists(&partition, &row_key, Some(options)).await?;
        Ok(found.map(|stored: Stored<Entity>| {
            stored.map(|mut entity| {
                entity.set_keys(partition_key, id);
                entity
            })
        }))
    }
}

/// One index, ready to be asked.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::patterns::index::{Index, IndexQuery, Part};
/// use tavola_client::patterns::intra_partition_index::IntraPartitionIndex;
/// use tavola_client::{DateTime, Entity};
///
/// let employees = IntraPartitionIndex::new(table, "empid_")
///     .with(Index::unique("email_", "Email").partial(["FirstName", "LastName"]))?
///     .with(Index::many("town_", ["Town", "LastName"]))?
///     .with(Index::many("hired_", Part::new("Hired").day()))?;
///
/// // The whole entity takes two look-ups here; what the copy holds takes one.
/// let whole = employees.by("email_")?.find::<Entity>("Sales", "jonesj@contoso.com").await?;
/// let by_email: IndexQuery = employees.by("email_")?.select(["FirstName"]);
/// let name = by_email.find::<Entity>("Sales", "jonesj@contoso.com").await?;
///
/// // Lists, by all values or the first, and ranges.
/// let smiths = employees.by("town_")?.list::<Entity>("Sales", ("Redmond", "Smith"))?;
/// let redmond = employees.by("town_")?.list::<Entity>("Sales", "Redmond")?;
/// let day = |text| DateTime::parse_iso(text).unwrap();
/// let hired = employees.by("hired_")?.range("Sales", day("2012-01-01")..day("2013-01-01"))?;
/// let hired: Vec<_> = hired.map_ok(|stored| stored.value).try_collect::<Vec<Entity>>().await?;
/// // Addresses that start with an `a`, and everybody in the order of the index.
/// let a = employees.by("email_")?.starting_with::<Entity>("Sales", "a")?;
/// let all = employees.by("email_")?.all::<Entity>("Sales");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IndexQuery {
    index: Index,
    primaries: Primaries,
    select: Option<Arc<[String]>>,
}

impl IndexQuery {
    pub(crate) fn new(index: Index, primaries: Primaries) -> Self {
        Self { index, primaries, select: None }
    }

    /// Asks for these properties alone: from the copy, if it holds them all.
    #[must_use]
    pub fn select(mut self, properties: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.select = Some(properties.into_iter().map(Into::into).collect());
        self
    }

    /// The entity with these values; of several, the first. One look-up if the index holds what is asked for, else two.
    ///
    /// # Errors
    /// Values that the index is not made of, and those of point queries.
    pub async fn find<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        values: impl Into<IndexValue>,
    ) -> Result<Option<Stored<T>>> {
        let values = values.into();
        if !self.index.is_whole_key(values.0.len()) {
            return self.list(partition_key, values)?.try_next().await;
        }
        let row_key = self.index.whole_key(&values)?;
        let table = self.primaries.copies();
        let copy = table.get_entity_if_exists::<Entity>(partition_key, &row_key, None).await?;
        match copy {
            Some(copy) => self.answer(copy).await,
            None => Ok(None),
        }
    }

    /// The entities with these values, in the order of the index.
    ///
    /// # Errors
    /// Values that the index is not made of; those of the queries come with the stream.
    pub fn list<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        values: impl Into<IndexValue>,
    ) -> Result<BoxStream<'static, Result<Stored<T>>>> {
        let values = values.into().0;
        let key = format!("{}{}", self.index.prefix, self.index.key_start(&values)?);
        let rows = match self.index.is_whole_key(values.len()) {
            true => ROW_KEY.eq(key),
            false => ROW_KEY.starts_with(&format!("{key}{}", self.index.separator)),
        };
        Ok(self.stream(partition_key, rows))
    }

    /// The entities whose values lie in a range, in the order of the index.
    ///
    /// # Errors
    /// Values that the index is not made of. Ranges that the keys do not have in one piece: texts in an index whose separator
    /// is not the blank, and descending parts before which something else differs. Those of the queries come with the
    /// stream.
    pub fn range<T: TableEntity + Send + 'static, V: Into<IndexValue> + Clone>(
        &self,
        partition_key: &str,
        range: impl RangeBounds<V>,
    ) -> Result<BoxStream<'static, Result<Stored<T>>>> {
        let bound = |bound: Bound<&V>| bound.map(|value| value.clone().into());
        let (start, end) = self.directed(bound(range.start_bound()), bound(range.end_bound()))?;
        Ok(self.stream(partition_key, self.rows_between(start, end)?))
    }

    /// The entities whose first value is a text that starts so, in the order of the index.
    ///
    /// # Errors
    /// As [`IndexQuery::range`].
    pub fn starting_with<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        text: &str,
    ) -> Result<BoxStream<'static, Result<Stored<T>>>> {
        let end = prefix_end(text).map_or(Bound::Unbounded, |end| Bound::Excluded(end.into()));
        Ok(self.stream(partition_key, self.rows_between(Bound::Included(text.into()), end)?))
    }

    /// All entities of a partition that are in the index, in its order.
    pub fn all<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
    ) -> BoxStream<'static, Result<Stored<T>>> {
        self.stream(partition_key, ROW_KEY.starts_with(&self.index.prefix))
    }

    /// The bounds in the order of the keys: those of a descending part change places.
    fn directed(
        &self,
        start: Bound<IndexValue>,
        end: Bound<IndexValue>,
    ) -> Result<(Bound<IndexValue>, Bound<IndexValue>)> {
        let values = |bound: &Bound<IndexValue>| match bound {
            Bound::Included(values) | Bound::Excluded(values) => Some(values.0.clone()),
            Bound::Unbounded => None,
        };
        let (first, last) = (values(&start), values(&end));
        let count = first.iter().chain(&last).map(Vec::len).max().unwrap_or(0);
        let parts = &self.index.parts[..count.min(self.index.parts.len())];
        if !parts.iter().any(Part::is_descending) {
            return Ok((start, end));
        }
        let lead = |values: &Option<Vec<EdmValue>>| {
            values.as_ref().map(|values| values[..values.len().saturating_sub(1)].to_vec())
        };
        let is_one_piece = count == 1 || first.is_some() && lead(&first) == lead(&last);
        match (is_one_piece, parts.last().is_some_and(Part::is_descending)) {
            (true, true) => Ok((end, start)),
            (true, false) => Ok((start, end)),
            (false, _) => Err(refused(format!(
                "ranges over descending values need the same values before them: index={}",
                self.index.prefix
            ))),
        }
    }

    fn rows_between(&self, start: Bound<IndexValue>, end: Bound<IndexValue>) -> Result<Filter> {
        let prefix = &self.index.prefix;
        // Behind the keys that begin with these values: those of unique values end there.
        let after = |key: String, values: usize| match self.index.is_whole_key(values) {
            true => (key, true),
            false => {
                let rows = format!("{key}{}", self.index.separator);
                (prefix_end(&rows).unwrap_or(rows), false)
            }
        };
        let from = match start {
            Bound::Included(values) => ROW_KEY.ge(self.bound(&values)?),
            Bound::Excluded(values) => match after(self.bound(&values)?, values.0.len()) {
                (key, true) => ROW_KEY.gt(key),
                (key, false) => ROW_KEY.ge(key),
            },
            Bound::Unbounded => ROW_KEY.ge(prefix.as_str()),
        };
        let to = match end {
            Bound::Excluded(values) => ROW_KEY.lt(self.bound(&values)?),
            Bound::Included(values) => match after(self.bound(&values)?, values.0.len()) {
                (key, true) => ROW_KEY.le(key),
                (key, false) => ROW_KEY.lt(key),
            },
            Bound::Unbounded => match prefix_end(prefix) {
                Some(end) => ROW_KEY.lt(end),
                None => return Ok(from),
            },
        };
        Ok(from & to)
    }

    /// The key at an end of a range. Keys lie in the order of their values if nothing that follows a value can come
    /// between it and a longer one.
    fn bound(&self, values: &IndexValue) -> Result<String> {
        let start = self.index.key_start(&values.0)?;
        let is_ordered =
            self.index.parts.iter().zip(&values.0).enumerate().all(|(at, (part, value))| {
                self.index.separator == ' '
                    || self.index.is_whole_key(at + 1)
                    || part.has_fixed_width(value)
            });
        match is_ordered {
            true => Ok(format!("{}{start}", self.index.prefix)),
            false => Err(refused(format!(
                "ranges over texts need a blank as separator: index={}",
                self.index.prefix
            ))),
        }
    }

    fn stream<T: TableEntity + Send + 'static>(
        &self,
        partition_key: &str,
        rows: Filter,
    ) -> BoxStream<'static, Result<Stored<T>>> {
        let options = QueryOptions::from(Filter::partition(partition_key) & rows);
        let copies = self.primaries.copies().query_entities::<Entity>(options);
        let query = self.clone();
        let answers = copies.map(move |copy| {
            let query = query.clone();
            async move { query.answer::<T>(copy?).await }
        });
        answers.buffered(LOOK_UPS).try_filter_map(|found| async { Ok(found) }).boxed()
    }

    /// The entity of a copy, from the copy if it holds what is asked for. An entity that was deleted meanwhile is none, and
    /// so is one that has another value now.
    async fn answer<T: TableEntity>(&self, copy: Stored<Entity>) -> Result<Option<Stored<T>>> {
        let select = self.select.as_deref();
        let owner = self.primaries.owner(&copy)?;
        let found = match self.index.answers(select) {
            true => Some(copy.map(|entity| self.restored(entity, &owner))),
            false => self.fetched(&copy, &owner).await?,
        };
        found.map(|stored| stored.try_map(T::from_entity)).transpose()
    }

    async fn fetched(
        &self,
        copy: &Entity,
        (partition_key, id): &(String, String),
    ) -> Result<Option<Stored<Entity>>> {
        let select = self.select.as_deref().map(<[String]>::to_vec);
        let Some(elsewhere) = &self.primaries.elsewhere else {
            return self.primaries.get(partition_key, id, select).await;
        };
        // The values of the index come along, to see whether they are still those of the copy.
        let select = select.map(|mut names| {
            names.extend(self.index.properties().map(str::to_owned));
            names
        });
        let Some(found) = self.primaries.get(partition_key, id, select).await? else {
            return Ok(None);
        };
        let entry_id = Elsewhere::entry_id(elsewhere.is_whole, partition_key, id);
        let keys = self.index.keys_of(&found, &entry_id)?;
        let is_true = keys.iter().any(|key| key == copy.row_key());
        Ok(is_true.then(|| found.map(|entity| self.selected(entity))))
    }

    /// The entity that a copy was made of, or the part that was asked for.
    fn restored(&self, mut copy: Entity, (partition_key, id): &(String, String)) -> Entity {
        copy.remove(&self.primaries.id_property);
        if let Some(elsewhere) = &self.primaries.elsewhere {
            copy.remove(&elsewhere.partition_property);
        }
        copy.set_keys(partition_key.as_str(), id.as_str());
        self.selected(copy)
    }

    /// The part of an entity that was asked for.
    fn selected(&self, mut entity: Entity) -> Entity {
        let Some(select) = &self.select else { return entity };
        let mut part = Entity::new(entity.take_partition_key(), entity.take_row_key());
        for (name, value) in entity.into_properties() {
            if select.contains(&name) {
                part.set(name, value);
            }
        }
        part
    }
}
