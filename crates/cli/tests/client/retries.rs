//! What happens when answers are lost: the client tries again, and says what it does not know.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::{
    AsyncRawResponse, ClientOptions, ExponentialRetryOptions, HttpClient, Request, RetryOptions,
    Transport,
};
use azure_core::time::Duration;
use tavola_client::{
    Entity, ErrorCode, ErrorExt, Operation, TableClient, TableClientOptions, UpdateMode,
    new_transport,
};

use crate::support::TestTable;

/// A transport that loses the first answers, after or before the service has seen the requests.
#[derive(Debug)]
struct Lossy {
    inner: Arc<dyn HttpClient>,
    losses: AtomicUsize,
    is_sent: bool,
    attempts: AtomicUsize,
}

#[async_trait]
impl HttpClient for Lossy {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let is_lost = self
            .losses
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok();
        if !is_lost {
            return self.inner.execute_request(request).await;
        }
        if self.is_sent {
            self.inner.execute_request(request).await?;
            return Err(azure_core::Error::with_message(ErrorKind::Io, "the answer was lost"));
        }
        Err(azure_core::Error::with_message(ErrorKind::Connection, "nobody is there"))
    }
}

fn lossy_client(table: &TestTable, losses: usize, is_sent: bool) -> (TableClient, Arc<Lossy>) {
    let transport = Arc::new(Lossy {
        inner: new_transport(None).unwrap(),
        losses: AtomicUsize::new(losses),
        is_sent,
        attempts: AtomicUsize::new(0),
    });
    let retry = ExponentialRetryOptions {
        initial_delay: Duration::milliseconds(1),
        max_retries: 2,
        ..Default::default()
    };
    let options = TableClientOptions {
        client_options: ClientOptions {
            transport: Some(Transport::new(transport.clone())),
            retry: RetryOptions::exponential(retry),
            ..Default::default()
        },
        ..Default::default()
    };
    let connection = table.account.connection_string();
    let client =
        TableClient::from_connection_string(connection, table.name(), Some(options)).unwrap();
    (client, transport)
}

#[tokio::test]
async fn a_repeated_insert_says_that_it_may_be_its_own() {
    let table = TestTable::create().await;
    let (client, transport) = lossy_client(&table, 1, true);
    let error = client.insert_entity(&Entity::new("p", "r"), None).await.unwrap_err();
    assert_eq!(transport.attempts.load(Ordering::Relaxed), 2);
    assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
    assert!(error.may_have_been_applied());
    assert!(!error.is_transient());
    table.delete().await;
}

#[tokio::test]
async fn a_repeated_upsert_is_done_once() {
    let table = TestTable::create().await;
    let (client, transport) = lossy_client(&table, 2, true);
    let entity = Entity::new("p", "r").with("A", 1);
    client.upsert_entity(&entity, UpdateMode::Replace, None).await.unwrap();
    assert_eq!(transport.attempts.load(Ordering::Relaxed), 3);
    table.delete().await;
}

#[tokio::test]
async fn a_connection_that_was_never_made_changed_nothing() {
    let table = TestTable::create().await;
    let (client, _) = lossy_client(&table, 1, false);
    client.insert_entity(&Entity::new("p", "r"), None).await.unwrap();

    let (client, transport) = lossy_client(&table, 9, false);
    let error = client.insert_entity(&Entity::new("p", "s"), None).await.unwrap_err();
    assert_eq!(transport.attempts.load(Ordering::Relaxed), 3);
    assert!(error.is_transient());
    assert!(!error.may_have_been_applied());

    let (client, _) = lossy_client(&table, 9, true);
    let error = client.insert_entity(&Entity::new("p", "s"), None).await.unwrap_err();
    assert!(error.is_transient());
    assert!(error.may_have_been_applied());
    assert!(table.get_entity::<Entity>("p", "s", None).await.is_ok(), "and it was");
    table.delete().await;
}

/// Of a transaction that was applied and repeated, every operation finds its own entity, in a round of its own.
#[tokio::test]
async fn repeated_bulk_inserts_all_say_that_they_may_be_their_own() {
    let table = TestTable::create().await;
    let inserts = || {
        let entities = ["a", "b", "c"].map(|row| Entity::new("p", row));
        entities.map(|entity| Operation::insert(&entity).unwrap())
    };
    let (client, transport) = lossy_client(&table, 1, true);
    let report = client.bulk(inserts(), None).await;
    let failures: Vec<_> = report.failures().collect();
    assert_eq!(failures.len(), 3);
    for (index, error) in failures {
        assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists), "{index}");
        assert!(error.may_have_been_applied(), "{index}");
    }
    assert_eq!(transport.attempts.load(Ordering::Relaxed), 4);

    // Nothing was lost this time: the entities are somebody else's for certain.
    let (client, _) = lossy_client(&table, 0, true);
    let report = client.bulk(inserts(), None).await;
    assert_eq!(report.progress.failed, 3);
    assert!(report.failures().all(|(_, error)| !error.may_have_been_applied()));
    table.delete().await;
}

/// A change that may have been made is not made again: the count would be one too many.
#[tokio::test]
async fn a_change_of_what_was_read_is_not_repeated_after_a_lost_answer() {
    let table = TestTable::create().await;
    table.insert_entity(&Entity::new("p", "count").with("N", 0), None).await.unwrap();
    let add = |count: &mut Entity| {
        let number: i32 = count.get("N")?;
        count.set("N", number + 1);
        Ok(())
    };
    let (client, transport) = lossy_client(&table, 0, true);
    client.read_modify_write("p", "count", add, None).await.unwrap();
    assert_eq!(transport.attempts.load(Ordering::Relaxed), 2);
    // The answer to the write is lost, after the read.
    let lose = |count: &mut Entity| {
        transport.losses.store(1, Ordering::Relaxed);
        add(count)
    };
    let error = client.read_modify_write("p", "count", lose, None).await.unwrap_err();
    assert!(error.is_precondition_failed() && error.may_have_been_applied());
    let read = table.get_entity::<Entity>("p", "count", None).await.unwrap();
    assert_eq!(read.get::<i32>("N").unwrap(), 2, "once for each");
    table.delete().await;
}
