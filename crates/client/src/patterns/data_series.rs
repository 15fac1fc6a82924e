//! Data series: many small values of a series in one entity, a property for each.
//!
//! An entity for every measurement is one request and one row for each value; an entity for every day, with a property for
//! each hour, writes with one merge and reads the whole day with one point query. Series with more values than an entity
//! has properties, such as the 365 days of a year, lie in several entities of one partition.
//!
//! **Use it** for counters and measurements of a fixed rhythm that are shown together: messages per hour, temperatures per
//! minute. **Do not use it** for values that are searched for, or that hundreds of clients count in at once: they all
//! change one entity.
//!
//! **Cost**: recording is one request, adding two and two more for each race that is lost, reading a period one.
//! **Half-done**: nothing; a merge changes its slots and no others, so that several writers of one period do not disturb each
//! other unless they record the same slot: the last wins. [`DataSeries::add`] loses nothing, whoever adds meanwhile. Values
//! that are recorded by one call are seen together; a reader of several entities whose answer takes two pages may see one
//! entity before and another after.
//!
//! [`DataSeries`] shows it.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Add;

use futures::TryStreamExt;
use tavola_wire::table::stored::PROPERTIES_MAX;

use super::{Races, is_conflict};
use crate::error::refused;
use crate::{
    EdmProperty, Entity, ErrorExt, Filter, ROW_KEY, Result, TableClient, Transaction, UpdateMode,
};

/// Entities of a period: as many as a transaction changes.
const ENTITIES_MAX: usize = 100;
/// Slots of a period.
const SLOTS_MAX: usize = ENTITIES_MAX * PROPERTIES_MAX;

/// Series with a fixed number of slots per period.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::patterns::data_series::DataSeries;
///
/// // The properties are `Hour00` to `Hour23`.
/// let messages = DataSeries::<i32>::new(table, 24)?.slot_prefix("Hour");
/// messages.record("000123", "2026-11-15", [(9, 12), (10, 31)]).await?;
/// let count: i32 = messages.add("000123", "2026-11-15", 9, 1).await?;
/// assert_eq!(count, 13);
/// let day: Vec<Option<i32>> = messages.read("000123", "2026-11-15").await?;
/// assert_eq!((day[9], day[11]), (Some(13), None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DataSeries<T> {
    table: TableClient,
    slots: usize,
    prefix: String,
    kind: PhantomData<fn() -> T>,
}

impl<T: EdmProperty> DataSeries<T> {
    /// Series with that many slots in each period. Up to 252, a period is the entity with its name; above, it is the
    /// entities `period_1`, `period_2`, ..., of 252 slots each.
    ///
    /// # Errors
    /// No slots, or more than a transaction can change (25,200).
    pub fn new(table: TableClient, slots: usize) -> Result<Self> {
        match (1..=SLOTS_MAX).contains(&slots) {
            true => Ok(Self { table, slots, prefix: "S".to_owned(), kind: PhantomData }),
            false => {
                Err(refused(format!("a period has from 1 to {SLOTS_MAX} slots: slots={slots}")))
            }
        }
    }

    /// Starts the names of the properties with this; the number of the slot follows, from 0 and as long as the last one.
    #[must_use]
    pub fn slot_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Writes values into their slots; the other slots stay.
    ///
    /// # Errors
    /// A slot that is none, and those of an upsert.
    pub async fn record(
        &self,
        series: &str,
        period: &str,
        values: impl IntoIterator<Item = (usize, T)>,
    ) -> Result<()> {
        let mut entities = BTreeMap::new();
        for (slot, value) in values {
            self.check(slot)?;
            let row_key = self.row_key(period, slot);
            let new = || Entity::new(series, row_key.as_str());
            let entity = entities.entry(row_key.clone()).or_insert_with(new);
            entity.set_property(&self.slot_name(slot), &value)?;
        }
        let mut transaction = Transaction::new();
        for entity in entities.values() {
            transaction.upsert(entity, UpdateMode::Merge)?;
        }
        if let [_] = transaction.operations() {
            let entity = entities.into_values().next().unwrap_or_default();
            self.table.upsert_entity(&entity, UpdateMode::Merge, None).await?;
            return Ok(());
        }
        self.table.submit_transaction(&transaction, None).await.map(|_| ())
    }

    /// Adds to the value of a slot, or to nothing if it was not written yet; gives the sum. Of several clients that add at
    /// once none is lost: each reads the value with its ETag and begins again if somebody else was faster.
    ///
    /// # Errors
    /// A slot that is none or of another type; an entity that others change in every attempt. An error that
    /// [may have been applied](crate::ErrorExt::may_have_been_applied) may have added.
    pub async fn add(&self, series: &str, period: &str, slot: usize, value: T) -> Result<T>
    where
        T: Add<Output = T> + Default + Clone,
    {
        self.check(slot)?;
        let (row_key, name) = (self.row_key(period, slot), self.slot_name(slot));
        let mut races = Races::default();
        loop {
            let stored = self.table.get_entity_if_exists::<Entity>(series, &row_key, None).await?;
            let old = match &stored {
                Some(stored) => stored.get::<Option<T>>(&name)?.unwrap_or_default(),
                None => T::default(),
            };
            let sum = old + value.clone();
            let mut change = Entity::new(series, row_key.as_str());
            change.set_property(&name, &sum)?;
            let table = &self.table;
            let done = match &stored {
                Some(stored) => table.update_entity(&change, UpdateMode::Merge, stored, None).await,
                None => table.insert_entity(&change, None).await,
            };
            match done {
                Ok(_) => return Ok(sum),
                // After a lost answer, the condition may have failed for our own change.
                Err(error) if error.may_have_been_applied() => return Err(error),
                Err(error) if is_conflict(&error) => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the slots of a period, in order; a slot that was not written is `None`, and so are all of a period that has
    /// no entity.
    ///
    /// # Errors
    /// Those of a query, and a slot of another type.
    pub async fn read(&self, series: &str, period: &str) -> Result<Vec<Option<T>>> {
        let mut entities: BTreeMap<String, Entity> = BTreeMap::new();
        if self.slots <= PROPERTIES_MAX {
            let stored = self.table.get_entity_if_exists::<Entity>(series, period, None).await?;
            entities.extend(stored.map(|stored| (period.to_owned(), stored.into_value())));
        } else {
            let (first, last) = (self.row_key(period, 0), self.row_key(period, self.slots - 1));
            let rows = Filter::partition(series) & ROW_KEY.ge(first) & ROW_KEY.le(last);
            let mut rows = self.table.query_entities::<Entity>(rows);
            while let Some(row) = rows.try_next().await? {
                entities.insert(row.row_key().to_owned(), row.into_value());
            }
        }
        (0..self.slots)
            .map(|slot| match entities.get_mut(&self.row_key(period, slot)) {
                Some(entity) => entity.take(&self.slot_name(slot)),
                None => Ok(None),
            })
            .collect()
    }

    fn check(&self, slot: usize) -> Result<()> {
        match slot < self.slots {
            true => Ok(()),
            false => Err(refused(format!("the period has no such slot: slot={slot}"))),
        }
    }

    /// The entity of a slot.
    fn row_key(&self, period: &str, slot: usize) -> String {
        if self.slots <= PROPERTIES_MAX {
            return period.to_owned();
        }
        let count = self.slots.div_ceil(PROPERTIES_MAX);
        let digits = count.to_string().len();
        format!("{period}_{:0digits$}", slot / PROPERTIES_MAX + 1)
    }

    fn slot_name(&self, slot: usize) -> String {
        let digits = (self.slots - 1).to_string().len();
        format!("{}{slot:0digits$}", self.prefix)
    }
}
