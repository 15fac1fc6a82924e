//! Spreading writes: several partitions instead of one hot one, read back in order.
//!
//! Keys that grow, such as dates, put every new entity at the end of the table: one server takes all writes, which the guide
//! calls the prepend and append anti-pattern. A bucket in front of the partition key, made from the row key, spreads the
//! writes over as many partitions as there are buckets; a reader asks all of them and merges.
//!
//! **Use it** for streams of events above what a partition takes (some 2,000 entities a second on Azure) that are still read
//! in order. **Do not use it** when one partition suffices, or when transactions over neighbours are needed: they are in
//! different partitions now.
//!
//! **Cost**: a write or a look-up is one request, as before. A range is one query for each bucket, in parallel.
//! **Half-done**: a range is read from the buckets at slightly different moments, so that of two writes, the later can be
//! seen without the earlier.
//!
//! [`Spread`] shows it.

use azure_core::http::Etag;
use futures::StreamExt;
use futures::stream::BoxStream;
use tavola_wire::table::stored::key::compare_text;

use crate::clients::{TableClient, UpdateMode};
use crate::entity::{Entity, Stored, TableEntity};
use crate::error::{Result, refused};
use crate::filter::{Filter, ROW_KEY};
use crate::parallel::merge_sorted;

/// Buckets of one key: as many queries are under way for each range.
const BUCKETS_MAX: u16 = 256;

/// A table whose partitions are spread over buckets.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use futures::TryStreamExt;
/// use tavola_client::Entity;
/// use tavola_client::patterns::spread_writes::Spread;
///
/// let events = Spread::new(table, 16)?;
/// events.upsert(Entity::new("clicks", "2026-11-15T12:00:00.123").with("Page", "/")).await?;
/// let mut morning = events.range::<Entity>("clicks", "2026-11-15T06", "2026-11-15T12");
/// while let Some(click) = morning.try_next().await? {
///     println!("{}", click.row_key());
/// }
/// // Whoever writes on other ways needs the partition key of the bucket.
/// let key = events.partition_key("clicks", "2026-11-15T12:00:00.123");
/// let click = events.get::<Entity>("clicks", "2026-11-15T12:00:00.123").await?;
/// assert_eq!(click.map(|stored| stored.partition_key().to_owned()), Some(key));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Spread {
    table: TableClient,
    buckets: u16,
}

impl Spread {
    /// Spreads over so many buckets. The number is part of every partition key, and cannot be changed later without
    /// moving what was written.
    ///
    /// # Errors
    /// No buckets, or more than 256.
    pub fn new(table: TableClient, buckets: u16) -> Result<Self> {
        match (1..=BUCKETS_MAX).contains(&buckets) {
            true => Ok(Self { table, buckets }),
            false => Err(refused(format!(
                "there are from 1 to {BUCKETS_MAX} buckets: buckets={buckets}"
            ))),
        }
    }

    /// The partition key under which a row of this key is kept.
    pub fn partition_key(&self, key: &str, row_key: &str) -> String {
        bucket_key(bucket_of(row_key, self.buckets), key)
    }

    /// Writes an entity into its bucket; its partition key is the key before spreading.
    ///
    /// # Errors
    /// Those of an upsert.
    pub async fn upsert(&self, mut entity: Entity) -> Result<Etag> {
        let spread = self.partition_key(entity.partition_key(), entity.row_key());
        let row_key = entity.take_row_key();
        entity.set_keys(spread, row_key);
        self.table.upsert_entity(&entity, UpdateMode::Replace, None).await.map(Into::into)
    }

    /// Reads an entity from its bucket; its partition key is the spread one.
    ///
    /// # Errors
    /// Those of a point query.
    pub async fn get<T: TableEntity>(&self, key: &str, row_key: &str) -> Result<Option<Stored<T>>> {
        self.table.get_entity_if_exists(&self.partition_key(key, row_key), row_key, None).await
    }

    /// The entities of a key in a range of row keys, in their order over all buckets.
    pub fn range<T: TableEntity + Send + Unpin + 'static>(
        &self,
        key: &str,
        from: &str,
        before: &str,
    ) -> BoxStream<'static, Result<Stored<T>>> {
        let rows = ROW_KEY.between(from, before);
        let streams = (0..self.buckets).map(|bucket| {
            let filter = Filter::partition(&bucket_key(bucket, key)) & rows.clone();
            let entities = self.table.query_entities::<Entity>(filter);
            entities
                .map(|item| {
                    item.map(|stored| Keyed { row_key: stored.row_key().to_owned(), stored })
                })
                .boxed()
        });
        let merged = merge_sorted(streams.collect(), |a: &Keyed, b: &Keyed| {
            compare_text(&a.row_key, &b.row_key)
        });
        merged.map(|item| item?.stored.try_map(T::from_entity)).boxed()
    }
}

/// An entity with the key that it is merged by.
struct Keyed {
    row_key: String,
    stored: Stored<Entity>,
}

fn bucket_key(bucket: u16, key: &str) -> String {
    format!("{bucket:03} {key}")
}

/// FNV-1a: small, and the same in every program that finds its way by it. Texts that differ in their last characters alone
/// have like hashes, so the bits are mixed once more.
fn bucket_of(row_key: &str, buckets: u16) -> u16 {
    let hash = row_key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = mixed ^ (mixed >> 32);
    u16::try_from(mixed % u64::from(buckets)).expect("less than the buckets")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored keys depend on it: a change would hide what was written.
    #[test]
    fn the_bucket_of_a_row_never_changes() {
        let buckets: Vec<_> = ["", "a", "2026-11-15"].map(|row| bucket_of(row, 16)).into();
        assert_eq!(buckets, EXPECTED);
    }

    const EXPECTED: [u16; 3] = [1, 12, 9];

    #[test]
    fn growing_keys_fill_all_buckets_alike() {
        let mut counts = [0_usize; 16];
        for index in 0..16_000 {
            counts[usize::from(bucket_of(&format!("2026-11-15T{index:08}"), 16))] += 1;
        }
        assert!(counts.iter().all(|count| (700..1300).contains(count)), "{counts:?}");
    }
}
