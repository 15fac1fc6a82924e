//! Data series: many small values of a series in one entity, a property for each.
//!
//! An entity for every measurement is one request and one row for each value; an entity for every day, with a property for
//! each hour, writes with one merge and reads the whole day with one point query. At most 252 values fit.
//!
//! **Use it** for counters and measurements of a fixed rhythm that are shown together: messages per hour, temperatures per
//! minute of an hour. **Do not use it** for values that are searched for, or series with more slots than properties: use
//! [`wide_entity`](super::wide_entity) or a finer period for those.
//!
//! **Cost**: recording is one request, reading a period is one. **Half-done**: nothing; a merge changes its slots and no
//! others, so that several writers of one period do not disturb each other unless they write the same slot: the last wins.
//!
//! [`DataSeries`] shows it.

use std::marker::PhantomData;

use tavola_wire::table::stored::PROPERTIES_MAX;

use crate::clients::{TableClient, UpdateMode};
use crate::entity::Entity;
use crate::error::{Result, refused};
use crate::value::EdmProperty;

/// Series with a fixed number of slots per period.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::patterns::data_series::DataSeries;
///
/// let messages = DataSeries::<i32>::new(table, 24)?;
/// messages.record("jens", "2026-11-15", [(9, 12), (10, 31)]).await?;
/// let day: Vec<Option<i32>> = messages.read("jens", "2026-11-15").await?;
/// assert_eq!((day[9], day[11]), (Some(12), None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DataSeries<T> {
    table: TableClient,
    slots: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T: EdmProperty> DataSeries<T> {
    /// Series with so many slots in each period.
    ///
    /// # Errors
    /// More slots than an entity has properties.
    pub fn new(table: TableClient, slots: usize) -> Result<Self> {
        match (1..=PROPERTIES_MAX).contains(&slots) {
            true => Ok(Self { table, slots, kind: PhantomData }),
            false => Err(refused(format!(
                "a period has from 1 to {PROPERTIES_MAX} slots: slots={slots}"
            ))),
        }
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
        let mut entity = Entity::new(series, period);
        for (slot, value) in values {
            if slot >= self.slots {
                return Err(refused(format!("the period has no such slot: slot={slot}")));
            }
            entity.set_property(&slot_name(slot), &value);
        }
        self.table.upsert_entity(&entity, UpdateMode::Merge, None).await?;
        Ok(())
    }

    /// Reads the slots of a period, in order; a slot that was not written is `None`, and so are all of a period that has
    /// no entity.
    ///
    /// # Errors
    /// Those of a point query, and a slot of another type.
    pub async fn read(&self, series: &str, period: &str) -> Result<Vec<Option<T>>> {
        let stored = self.table.get_entity_if_exists::<Entity>(series, period, None).await?;
        let mut entity = stored.map(|stored| stored.into_value()).unwrap_or_default();
        (0..self.slots).map(|slot| entity.take(&slot_name(slot))).collect()
    }
}

fn slot_name(slot: usize) -> String {
    format!("S{slot:03}")
}
