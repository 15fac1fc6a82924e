//! Keys: compound ones, those that count down with time, and those that spread.

use futures::TryStreamExt;
use tavola_client::patterns::compound_key::{Compound, Inverted, Padded};
use tavola_client::patterns::log_tail::{LogTail, TailKey};
use tavola_client::patterns::spread_writes::Spread;
use tavola_client::{
    DateTime, Entity, Filter, KeyField, PARTITION_KEY, ROW_KEY, Stored, TableEntity, filter,
};

use super::{moment, row_keys};
use crate::support::TestTable;

type ReviewKey = Compound<(String, Inverted<u32>)>;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Review {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    key: ReviewKey,
    rating: i32,
}

#[tokio::test]
async fn compound_keys_sort_and_are_found_by_prefix() {
    let table = TestTable::create().await;
    for (employee, year) in [("1", 2024), ("1", 2026), ("1", 2025), ("10", 2026), ("a/b", 2026)] {
        let key = Compound::new((employee.to_owned(), Inverted(year)));
        let review = Review { department: "Sales".into(), key, rating: 4 };
        table.insert_entity(&review, None).await.unwrap();
    }
    let prefix = Compound::new(("1".to_owned(),)).prefix().unwrap();
    let wanted = PARTITION_KEY.eq("Sales") & ROW_KEY.starts_with(&prefix);
    let found: Vec<_> = table.query_entities::<Review>(wanted).try_collect().await.unwrap();
    let years: Vec<_> = found.iter().map(|review| review.key.0.1.0).collect();
    assert_eq!(years, [2026, 2025, 2024], "the newest first, and none of employee 10");
    let odd: ReviewKey = Compound::new(("a/b".to_owned(), Inverted(2026)));
    let odd = odd.to_key().unwrap();
    assert!(table.get_entity::<Review>("Sales", &odd, None).await.is_ok());
    table.delete().await;
}

/// The guide's `000123_2012`, found by the range that it prints.
#[tokio::test]
async fn compound_keys_are_those_of_the_guide() {
    let table = TestTable::create().await;
    for (employee, year) in [(122, 2012), (123, 2011), (123, 2012), (124, 2011)] {
        let key = Compound::new(("empid".to_owned(), Padded::<6>(employee), Padded::<4>(year)));
        table.insert_entity(&Entity::new("Sales", key.to_key().unwrap()), None).await.unwrap();
    }
    let printed =
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')";
    let found: Vec<_> = table
        .query_entities::<Entity>(Filter::parse(printed).unwrap())
        .try_collect()
        .await
        .unwrap();
    let rows: Vec<_> = found.iter().map(|stored| stored.row_key()).collect();
    assert_eq!(rows, ["empid_000123_2011", "empid_000123_2012"]);
    table.delete().await;
}

#[tokio::test]
async fn the_newest_comes_first() {
    let table = TestTable::create().await;
    let log = LogTail::new(table.table.clone());
    for hour in [3, 1, 2, 5, 4] {
        let at = moment(&format!("2026-11-15T0{hour}:00:00Z"));
        let key = log.append(at, &Entity::new("jens", "").with("Hour", hour)).await.unwrap();
        assert_eq!(key.moment(), at);
    }
    let hours = |found: Vec<Stored<Entity>>| -> Vec<i32> {
        found.iter().map(|stored| stored.get("Hour").unwrap()).collect()
    };
    assert_eq!(hours(log.latest("jens", 3).await.unwrap()), [5, 4, 3]);
    assert_eq!(hours(log.latest("nobody", 3).await.unwrap()), Vec::<i32>::new());
    let between =
        log.between("jens", moment("2026-11-15T02:00:00Z"), moment("2026-11-15T04:00:00Z"));
    assert_eq!(hours(between.try_collect().await.unwrap()), [3, 2], "from is in, before is out");
    table.delete().await;
}

/// Logs of other programs, whose keys are the guide's inverted ticks and nothing else.
#[tokio::test]
async fn bare_ticks_are_read_and_written() {
    let table = TestTable::create().await;
    let noon = moment("2026-11-15T12:00:00Z");
    // DateTime.MaxValue.Ticks - noon.Ticks, with 19 digits.
    let printed = "2516075567999999999";
    table.insert_entity(&Entity::new("empid", printed), None).await.unwrap();
    let log = LogTail::new(table.table.clone()).with_bare_ticks();
    let second = log.append(noon, &Entity::new("empid", "")).await.unwrap();
    assert_eq!(second.moment(), DateTime::parse_iso("2026-11-15T12:00:00.0000001Z").unwrap());
    let newest = LogTail::new(table.table.clone());
    let third = newest.append(second.moment(), &Entity::new("empid", "")).await.unwrap();

    let found: Vec<Stored<Claim>> = log.latest("empid", 10).await.unwrap();
    let keys: Vec<_> = found.iter().map(|claim| claim.key).collect();
    assert_eq!(keys, [second, third, TailKey::bare(noon)]);
    let until = log.between::<Claim>("empid", noon, second.moment());
    let until: Vec<_> = until.try_collect().await.unwrap();
    assert_eq!(until.len(), 1);
    assert_eq!(row_keys(&table).await[2], printed);
    table.delete().await;
}

#[derive(Debug, TableEntity)]
struct Claim {
    #[table(partition_key)]
    employee: String,
    #[table(row_key)]
    key: TailKey,
}

/// A million entities are not needed to see that a range is one.
#[tokio::test]
async fn the_latest_of_another_partition_are_not_seen() {
    let table = TestTable::create().await;
    let log = LogTail::new(table.table.clone());
    for employee in ["empid1", "empid2"] {
        let claim = Claim { employee: employee.into(), key: TailKey::new(moment("2026-11-15")) };
        table.insert_entity(&claim, None).await.unwrap();
    }
    let found = log.latest::<Claim>("empid1", 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].employee, "empid1");
    let wanted = filter!(PartitionKey == "empid2");
    assert_eq!(
        table.query_entities::<Claim>(wanted).try_collect::<Vec<_>>().await.unwrap().len(),
        1
    );
    table.delete().await;
}

#[tokio::test]
async fn spread_rows_come_back_in_order() {
    let table = TestTable::create().await;
    let events = Spread::new(table.table.clone(), 8).unwrap();
    for index in 0..60 {
        let entity = Entity::new("clicks", format!("2026-11-15T{index:04}")).with("N", index);
        events.upsert(&entity).await.unwrap();
    }
    let partitions: std::collections::HashSet<_> = table
        .query_entities::<Entity>(None)
        .map_ok(|stored| stored.partition_key().to_owned())
        .try_collect()
        .await
        .unwrap();
    assert!(partitions.len() > 4, "{partitions:?}");
    let found: Vec<_> = events
        .range::<Entity>("clicks", "2026-11-15T0010", "2026-11-15T0050")
        .try_collect()
        .await
        .unwrap();
    let numbers: Vec<i32> = found.iter().map(|stored| stored.get("N").unwrap()).collect();
    assert_eq!(numbers, (10..50).collect::<Vec<_>>());
    let one = events.get::<Entity>("clicks", "2026-11-15T0007").await.unwrap().unwrap();
    assert_eq!((one.partition_key(), one.get::<i32>("N").unwrap()), ("clicks", 7));
    table.delete().await;
}
