//! Filters of every type, against what the service keeps.

use futures::TryStreamExt;
use tavola_client::{DateTime, Entity, Filter, Uuid, filter, prefix_end};

use crate::support::{Defect, TestTable};

async fn count(table: &TestTable, filter: Filter) -> usize {
    let found: Vec<_> = table.query_entities::<Entity>(filter).try_collect().await.unwrap();
    found.len()
}

#[tokio::test]
async fn filters_find_by_every_type() {
    let table = TestTable::create().await;
    let guid = Uuid::from_u128(77);
    let since = DateTime::parse_iso("2020-02-29T01:02:03.4567891Z").unwrap();
    let entity = Entity::new("p", "r")
        .with("Text", "it's")
        .with("Flag", true)
        .with("Number", 7)
        .with("Large", 7_000_000_000_i64)
        .with("Ratio", 0.1)
        .with("Infinite", f64::INFINITY)
        .with("Guid", guid)
        .with("Since", since)
        .with("Bytes", b"\x00\xff");
    table.insert_entity(&entity, None).await.unwrap();
    let bytes = vec![0_u8, 255];
    let infinity = f64::INFINITY;
    for (filter, expected) in [
        (filter!(Text == "it's"), 1),
        (filter!(Text.starts_with("it")), 1),
        (filter!(Text.starts_with("iu")), 0),
        (filter!(Flag), 1),
        (filter!(!Flag), 0),
        (filter!(Number >= 7 && Number < 8), 1),
        (filter!(Large == 7_000_000_000_i64), 1),
        (filter!(Ratio == 0.1), 1),
        (filter!(Infinite == infinity), 1),
        (filter!(Infinite < infinity), 0),
        (filter!(Guid == guid), 1),
        (filter!(Since == since), 1),
        (filter!(Since < since), 0),
        (filter!(Bytes == bytes), 1),
        (filter!(Missing != 1), 0),
        (filter!(Number == 1 || Flag), 1),
    ] {
        let text = filter.to_string();
        if !(text.contains("Infinite") && table.account.has(Defect::InfiniteDoubles)) {
            assert_eq!(count(&table, filter).await, expected, "{text}");
        }
    }
    table.delete().await;
}

/// The end of a prefix is an end for the service too, also where its order differs from that of UTF-8.
#[tokio::test]
async fn prefix_ranges_follow_the_order_of_the_service() {
    let table = TestTable::create().await;
    let rows = [
        "a",
        "a\u{d7ff}",
        "a\u{d7ff}x",
        "a\u{1F600}",
        "a\u{10ffff}",
        "a\u{e000}",
        "a\u{fffd}",
        "b",
    ];
    for row in rows {
        table.insert_entity(&Entity::new("p", row), None).await.unwrap();
    }
    for prefix in ["a", "a\u{d7ff}", "a\u{1F600}", "a\u{10ffff}", "a\u{fffd}", "c"] {
        assert!(prefix_end(prefix).is_some());
        let expected = rows.iter().filter(|row| row.starts_with(prefix)).count();
        let wanted = filter!(PartitionKey == "p" && RowKey.starts_with(prefix));
        assert_eq!(count(&table, wanted).await, expected, "{prefix:?}");
    }
    table.delete().await;
}
