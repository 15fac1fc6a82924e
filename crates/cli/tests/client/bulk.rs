//! Bulk work and parallel queries.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azure_core::http::headers::Headers;
use azure_core::http::{
    AsyncRawResponse, ExponentialRetryOptions, HttpClient, Request, RetryOptions, StatusCode,
};
use futures::{SinkExt, TryStreamExt};
use tavola_client::bulk::{BulkOptions, BulkOutcome, StopSignal};
use tavola_client::{
    Entity, ErrorCode, ErrorExt, IfMatch, Operation, QueryOptions, TableClient, UpdateMode, filter,
    new_transport,
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

/// A service that takes two transactions at a time until it has had some time, and then any number.
#[derive(Debug)]
struct Busy {
    inner: Arc<dyn HttpClient>,
    under_way: AtomicUsize,
    answered: AtomicUsize,
    refused: AtomicUsize,
    /// Answers after which it is not busy any more.
    relaxed_after: usize,
}

#[async_trait]
impl HttpClient for Busy {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst);
        let is_busy = self.answered.load(Ordering::SeqCst) < self.relaxed_after;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let result = if is_busy && under_way >= 2 {
            self.refused.fetch_add(1, Ordering::SeqCst);
            Ok(AsyncRawResponse::from_bytes(StatusCode::ServiceUnavailable, Headers::new(), ""))
        } else {
            self.answered.fetch_add(1, Ordering::SeqCst);
            self.inner.execute_request(request).await
        };
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

#[tokio::test]
async fn a_busy_service_gets_less_and_then_more_again() {
    let table = TestTable::create().await;
    let busy = Arc::new(Busy {
        inner: new_transport(None).unwrap(),
        under_way: AtomicUsize::new(0),
        answered: AtomicUsize::new(0),
        refused: AtomicUsize::new(0),
        relaxed_after: 60,
    });
    let retry = ExponentialRetryOptions {
        initial_delay: azure_core::time::Duration::milliseconds(2),
        max_retries: 20,
        ..Default::default()
    };
    let client = TableClient::builder(table.name())
        .connection_string(table.account.connection_string())
        .transport(busy.clone())
        .retry(RetryOptions::exponential(retry))
        .build()
        .unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let options = BulkOptions {
        concurrency: Some(16),
        progress: Some(Arc::new(move |progress| noted.lock().unwrap().push(progress.concurrency))),
        ..Default::default()
    };
    let operations = (0..300).map(|index| upsert(&index.to_string(), "r", index));
    let report = client.bulk(operations, Some(options)).await;
    assert_eq!((report.progress.done, report.progress.failed), (300, 0));
    let seen = seen.lock().unwrap().clone();
    // How far it comes down depends on how many are under way when they are refused: by half at least.
    let lowest = *seen.iter().min().unwrap();
    assert!(lowest <= 8, "it came down: {seen:?}");
    let after = seen.iter().skip_while(|concurrency| **concurrency > lowest);
    assert!(after.max().unwrap() > &(lowest + 4), "and up again: {seen:?}");
    assert!(busy.refused.load(Ordering::SeqCst) > 0);
    table.delete().await;
}

#[tokio::test]
async fn the_first_failure_ends_it_if_that_is_wanted() {
    let table = TestTable::create().await;
    table.insert_entity(&Entity::new("p5", "r"), None).await.unwrap();
    let operations =
        (0..200).map(|index| Operation::insert(&Entity::new(format!("p{index}"), "r")).unwrap());
    let options = BulkOptions { concurrency: Some(1), fail_fast: true, ..Default::default() };
    let report = table.bulk(operations, Some(options)).await;
    assert_eq!(report.progress.failed, 1);
    let not_tried =
        report.outcomes.iter().filter(|outcome| matches!(outcome, BulkOutcome::NotTried)).count();
    assert_eq!(report.progress.done + 1 + not_tried, 200, "each has an outcome");
    assert_eq!(
        rows_of(&table).await,
        report.progress.done + 1,
        "and what was not tried is not there"
    );
    table.delete().await;
}

#[tokio::test]
async fn a_signal_ends_it_with_a_true_report() {
    let table = TestTable::create().await;
    let (stop, stopped) = futures::channel::oneshot::channel::<()>();
    let stop = Mutex::new(Some(stop));
    let options = BulkOptions {
        concurrency: Some(2),
        progress: Some(Arc::new(move |progress| {
            if progress.transactions >= 5
                && let Some(stop) = stop.lock().unwrap().take()
            {
                stop.send(()).unwrap();
            }
        })),
        stop: Some(StopSignal::new(stopped)),
        ..Default::default()
    };
    // Endless, and in pieces of a hundred.
    let operations = (0..).map(|index| upsert(&format!("p{}", index / 100), &index.to_string(), 0));
    let report = table.bulk(operations, Some(options)).await;
    assert!((500..=700).contains(&report.progress.done), "{:?}", report.progress);
    assert_eq!(rows_of(&table).await, report.progress.done);
    table.delete().await;
}

/// A stream that has nothing for now does not keep what it gave before from being written.
#[tokio::test]
async fn operations_can_come_from_a_stream_at_any_pace() {
    let table = TestTable::create().await;
    let (mut sender, receiver) = futures::channel::mpsc::channel(4);
    let work = table.bulk_stream(receiver, None);
    let feed = async {
        sender.send(upsert("p", "0", 0)).await.unwrap();
        while table.get_entity_if_exists::<Entity>("p", "0", None).await.unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        for index in 1..250 {
            sender.send(upsert("p", &index.to_string(), index)).await.unwrap();
        }
        drop(sender);
    };
    let (report, ()) = futures::future::join(work, feed).await;
    assert_eq!((report.progress.done, report.outcomes.len()), (250, 250));
    table.delete().await;
}

async fn rows_of(table: &TestTable) -> usize {
    table.query_entities::<Entity>(None).try_collect::<Vec<_>>().await.unwrap().len()
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
