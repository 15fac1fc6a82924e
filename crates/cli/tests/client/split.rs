//! Ranges of partition keys for workers.

use futures::TryStreamExt;
use tavola_client::{Entity, Operation, PartitionRange, UpdateMode};

use crate::support::TestTable;

async fn filled(keys: impl IntoIterator<Item = String>) -> TestTable {
    let table = TestTable::create().await;
    let operations = keys
        .into_iter()
        .map(|key| Operation::upsert(&Entity::new(key, "r"), UpdateMode::Replace).unwrap());
    assert_eq!(table.bulk(operations, None).await.progress.failed, 0);
    table
}

/// The number of entities in each range.
async fn sizes(table: &TestTable, ranges: &[PartitionRange]) -> Vec<usize> {
    let mut sizes = Vec::new();
    for range in ranges {
        let found: Vec<_> =
            table.query_entities::<Entity>(range.filter()).try_collect().await.unwrap();
        sizes.push(found.len());
    }
    sizes
}

#[tokio::test]
async fn even_keys_give_even_ranges() {
    let table = filled((0..500).map(|index| format!("user_{index:03}"))).await;
    let ranges = table.split_partitions(5).await.unwrap();
    let sizes_of_five = sizes(&table, &ranges).await;
    assert_eq!(sizes_of_five, [100; 5], "{ranges:?}");
    assert_eq!(table.split_partitions(1).await.unwrap(), [PartitionRange::default()]);
    table.delete().await;
}

#[tokio::test]
async fn whatever_the_keys_every_entity_is_in_one_range() {
    let names =
        ["", "a", "a b", "Jones", "Jonesy", "O'Brien", "\u{20ac}", "\u{1F600}", "\u{fffd}", "zz~"];
    for keys in [&names[..], &names[3..6], &names[7..8], &names[..1]] {
        let table = filled(keys.iter().map(|key| (*key).to_owned())).await;
        for count in [2, 3, 16] {
            let ranges = table.split_partitions(count).await.unwrap();
            assert!(ranges.len() <= count, "{ranges:?}");
            let sizes = sizes(&table, &ranges).await;
            assert_eq!(sizes.iter().sum::<usize>(), keys.len(), "{keys:?} {ranges:?}");
            assert!(sizes.iter().all(|size| *size > 0), "{keys:?} {ranges:?} {sizes:?}");
        }
        table.delete().await;
    }
    let empty = filled([]).await;
    assert_eq!(empty.split_partitions(4).await.unwrap(), [PartitionRange::default()]);
    empty.delete().await;
}

/// As GUIDs and hashes are: digits and letters with a gap between them.
#[tokio::test]
async fn hexadecimal_keys_give_even_ranges_too() {
    let table =
        filled((0_u32..400).map(|index| format!("{:08x}", index.wrapping_mul(0x9E37_79B9)))).await;
    for count in [2, 7, 16, 40] {
        let ranges = table.split_partitions(count).await.unwrap();
        let sizes = sizes(&table, &ranges).await;
        assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (count, 400));
        assert!(sizes.iter().all(|size| size.abs_diff(400 / count) <= 4), "{sizes:?}");
    }
    table.delete().await;
}
