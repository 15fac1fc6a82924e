//! Bulk work and parallel queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::TryStreamExt;
use tavola_client::bulk::{BulkOptions, BulkOutcome};
use tavola_client::{
    Entity, ErrorCode, ErrorExt, IfMatch, Operation, QueryOptions, UpdateMode, filter,
};

use crate::support::TestTable;

fn upsert(partition: &str, row: &str, number: i32) -> Operation {
    let entity = Entity::new(partition, row).with("N", number);
    Operation::upsert(&entity, UpdateMode::Replace).unwrap()
}

async fn rows(table: &TestTable) -> Vec<(String, String, i32)> {
    let found: Vec<_> = table.query_entities::<Entity>(None).try_collect().await.unwrap();
    let row = |stored: &tavola_client::Stored<Entity>| {
        (stored.partition_key().to_owned(), stored.row_key().to_owned(), stored.get("N").unwrap())
    };
    found.iter().map(row).collect()
}

#[tokio::test]
async fn any_number_of_operations_is_done_with_few_requests() {
    let table = TestTable::create().await;
    let operations =
        (0..1234).map(|index| upsert(&format!("p{}", index % 3), &format!("{index:05}"), index));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let options = BulkOptions {
        concurrency: Some(4),
        progress: Some(Arc::new(move |progress| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert!(progress.done <= 1234 && progress.failed == 0);
        })),
        ..Default::default()
    };
    let report = table.bulk(operations, Some(options)).await;
    assert_eq!(report.progress.done, 1234);
    assert_eq!(report.outcomes.len(), 1234);
    assert!(report.outcomes.iter().all(|outcome| matches!(outcome, BulkOutcome::Done(Some(_)))));
    // Three partitions of 412, 411 and 411 take five transactions each.
    assert_eq!(report.progress.transactions, 15);
    assert_eq!(calls.load(Ordering::Relaxed), 15);
    assert_eq!(rows(&table).await.len(), 1234);
    table.delete().await;
}

#[tokio::test]
async fn a_failure_is_reported_where_it_happened_and_the_rest_is_done() {
    let table = TestTable::create().await;
    table.insert_entity(&Entity::new("p", "005").with("N", -1), None).await.unwrap();
    let mut operations: Vec<_> = (0..10)
        .map(|index| {
            Operation::insert(&Entity::new("p", format!("{index:03}")).with("N", index)).unwrap()
        })
        .collect();
    operations.push(Operation::delete("q", "none", IfMatch::Any).unwrap());
    let report = table.bulk(operations, None).await;
    let failures: Vec<_> =
        report.failures().map(|(index, error)| (index, error.code().unwrap())).collect();
    assert_eq!(failures, [(5, ErrorCode::EntityAlreadyExists), (10, ErrorCode::ResourceNotFound)]);
    assert_eq!((report.progress.done, report.progress.failed), (9, 2));
    let numbers: Vec<_> = rows(&table).await.into_iter().map(|row| row.2).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, -1, 6, 7, 8, 9]);
    table.delete().await;
}

/// The last write of an entity wins, whatever runs in parallel.
#[tokio::test]
async fn operations_on_one_entity_keep_their_order() {
    let table = TestTable::create().await;
    let operations = (0..300).map(|index| upsert("p", &format!("{}", index % 7), index));
    let report = table
        .bulk(operations, Some(BulkOptions { concurrency: Some(8), ..Default::default() }))
        .await;
    assert_eq!(report.progress.done, 300);
    let numbers: Vec<_> = rows(&table).await.into_iter().map(|row| row.2).collect();
    assert_eq!(numbers, [294, 295, 296, 297, 298, 299, 293]);
    table.delete().await;
}

#[tokio::test]
async fn a_missing_table_fails_every_operation() {
    let account = crate::support::account();
    let table = account.service().table_client(crate::support::fresh_name()).unwrap();
    let report = table.bulk((0..150).map(|index| upsert("p", &index.to_string(), 0)), None).await;
    assert_eq!(report.progress.failed, 150);
    assert!(report.failures().all(|(_, error)| error.code() == Some(ErrorCode::TableNotFound)));
}

#[tokio::test]
async fn many_partitions_are_read_in_order() {
    let table = TestTable::create().await;
    let operations =
        (0..600).map(|index| upsert(&format!("p{:02}", index % 12), &format!("{index:04}"), index));
    table.bulk(operations, None).await;
    let options =
        QueryOptions { filter: Some(filter!(N >= 100)), page_size: Some(13), ..Default::default() };
    let wanted = ["p11", "p03", "p07", "none", "p03"];
    let found: Vec<_> =
        table.query_partitions::<Entity>(wanted, 3, options).try_collect().await.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|stored| (stored.partition_key().to_owned(), stored.get::<i32>("N").unwrap()))
        .collect();
    let mut expected: Vec<_> = (100..600)
        .filter(|index| [3, 7, 11].contains(&(index % 12)))
        .map(|index| (format!("p{:02}", index % 12), index))
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    table.delete().await;
}
