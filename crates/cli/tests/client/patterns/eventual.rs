//! Eventually consistent transactions: the guide's archive, and steps of any kind.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{ClientOptions, Context, Request};
use serde_json::json;
use tavola_client::patterns::eventually_consistent::{Archive, EventualTransaction};
use tavola_client::patterns::queue_worker::{JobError, WorkerReport};
use tavola_client::queue::QueueClient;
use tavola_client::{Entity, ServiceClientOptions, TableClient, TableServiceClient, UpdateMode};

use super::crash::{Process, at_each_request, counting_worker, settle, worker};
use crate::support::{TestQueue, account, counts, fresh_name};

struct Tables {
    current: TableClient,
    archive: TableClient,
    queue: QueueClient,
}

impl Tables {
    async fn create(process: &Process, name: &str) -> Self {
        let tables = Self::of(process, name);
        tables.current.create(None).await.unwrap();
        tables.archive.create(None).await.unwrap();
        tables.queue.create(None).await.unwrap();
        tables
    }

    fn of(process: &Process, name: &str) -> Self {
        Self {
            current: process.tables.table_client(format!("{name}Current")).unwrap(),
            archive: process.tables.table_client(format!("{name}Archive")).unwrap(),
            queue: process.queues.queue_client(name).unwrap(),
        }
    }

    fn archive(&self) -> Archive<Entity> {
        Archive::new(self.current.clone(), self.archive.clone(), self.queue.clone())
    }

    async fn settle(&self) {
        let archive = self.archive();
        settle(&self.queue, move |message| archive.job()(message)).await;
    }

    /// Whether an employee is in the one table and in the other.
    async fn whereabouts(&self, id: &str) -> (bool, bool) {
        let is_in = |table: TableClient| async move {
            table.get_entity_if_exists::<Entity>("Sales", id, None).await.unwrap().is_some()
        };
        (is_in(self.current.clone()).await, is_in(self.archive.clone()).await)
    }

    async fn delete(self) {
        self.current.delete(None).await.unwrap();
        self.archive.delete(None).await.unwrap();
        self.queue.delete(None).await.unwrap();
    }
}

fn employee(id: &str, age: i32) -> Entity {
    Entity::new("Sales", id).with("Age", age)
}

#[tokio::test]
async fn an_employee_is_archived() {
    let account = account();
    let tables = Tables::create(&Process::new(&account, None), &fresh_name()).await;
    for id in ["000456", "000457", "000458"] {
        tables.current.insert_entity(&employee(id, 34), None).await.unwrap();
    }
    let leavers = tables.archive();
    leavers.begin("Sales", "000456").await.unwrap();
    // A change before the worker comes goes along, unless a version was named.
    tables.current.upsert_entity(&employee("000456", 35), UpdateMode::Replace, None).await.unwrap();
    let stored = tables.current.get_entity("Sales", "000457", None).await.unwrap();
    leavers.begin_version(&stored).await.unwrap();
    tables.current.upsert_entity(&employee("000457", 35), UpdateMode::Replace, None).await.unwrap();
    let stored = tables.current.get_entity("Sales", "000458", None).await.unwrap();
    leavers.begin_version(&stored).await.unwrap();
    // Nobody of this name: there is nothing to do.
    leavers.begin("Sales", "000999").await.unwrap();
    tables.settle().await;
    assert_eq!(tables.whereabouts("000456").await, (false, true));
    assert_eq!(tables.whereabouts("000457").await, (true, false));
    assert_eq!(tables.whereabouts("000458").await, (false, true));
    let archived = tables.archive.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
    assert_eq!(archived.get::<i32>("Age").unwrap(), 35);

    // Within one table, under another partition; and a message that comes twice.
    let (table, queue) = (tables.current.clone(), tables.queue.clone());
    let within = Archive::<Entity>::new(table.clone(), table, queue).partition_prefix("archived_");
    for _ in 0..2 {
        within.begin("Sales", "000457").await.unwrap();
    }
    let job = within.clone();
    settle(&tables.queue, move |message| job.job()(message)).await;
    let moved = tables.current.get_entity::<Entity>("archived_Sales", "000457", None).await;
    assert_eq!(moved.unwrap().get::<i32>("Age").unwrap(), 35);
    assert_eq!(tables.whereabouts("000457").await, (false, false));
    tables.delete().await;
}

/// An entity would be copied onto itself, and that copy deleted.
#[tokio::test]
async fn an_archive_in_the_same_place_is_refused() {
    let account = account();
    let process = Process::new(&account, None);
    let tables = Tables::create(&process, &fresh_name()).await;
    tables.current.insert_entity(&employee("000456", 34), None).await.unwrap();
    let stored = tables.current.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
    // Names of tables differ in more than the case.
    let same = process.tables.table_client(tables.current.name().to_uppercase()).unwrap();
    let itself = Archive::<Entity>::new(tables.current.clone(), same, tables.queue.clone());
    for begun in [itself.begin("Sales", "000456").await, itself.begin_version(&stored).await] {
        let error = begun.unwrap_err();
        assert!(error.to_string().contains("archive is where the entities are"), "{error}");
    }
    assert_eq!(tables.queue.get_properties(None).await.unwrap().approximate_message_count, 0);
    // A worker whose archive is wrong, and a client whose is right.
    tables.archive().begin_version(&stored).await.unwrap();
    let wrong = counting_worker(&tables.queue).max_attempts(1);
    assert_eq!(wrong.drain(itself.job()).await.unwrap().dead_lettered, 1);
    let after = tables.current.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
    assert_eq!(after.etag, stored.etag);
    // With a prefix it is another place.
    let within = itself.partition_prefix("archived_");
    within.begin("Sales", "000456").await.unwrap();
    settle(&tables.queue, move |message| within.job()(message)).await;
    assert_eq!(tables.whereabouts("000456").await, (false, false));
    let name = format!("{}-poison", tables.queue.name());
    account.queues().delete_queue(&name, None).await.unwrap();
    tables.delete().await;
}

/// One table has several addresses, and texts do not tell.
#[tokio::test]
async fn an_archive_that_is_the_same_table_by_another_address_keeps_the_entity() {
    let account = account();
    let tables = Tables::create(&Process::new(&account, None), &fresh_name()).await;
    tables.current.insert_entity(&employee("000456", 34), None).await.unwrap();
    let stored = tables.current.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
    let elsewhere = account.connection_string().replace("127.0.0.1", "localhost");
    let elsewhere = TableServiceClient::from_connection_string(&elsewhere, None).unwrap();
    let same = elsewhere.table_client(tables.current.name().to_uppercase()).unwrap();
    let itself = Archive::<Entity>::new(tables.current.clone(), same, tables.queue.clone());
    itself.begin_version(&stored).await.unwrap();
    itself.begin("Sales", "000456").await.unwrap();
    let report = counting_worker(&tables.queue).drain(itself.job()).await.unwrap();
    assert_eq!(counts(report), (0, 0, 2, 0));
    let after = tables.current.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
    assert_eq!(after.etag, stored.etag);
    let name = format!("{}-poison", tables.queue.name());
    account.queues().delete_queue(&name, None).await.unwrap();
    tables.delete().await;
}

/// Makes a change before its first request.
#[derive(Debug)]
struct ChangesFirst {
    table: TableClient,
    is_done: AtomicBool,
}

#[async_trait]
impl Policy for ChangesFirst {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        if !self.is_done.swap(true, Ordering::SeqCst) {
            let changed = employee("000456", 35);
            self.table.upsert_entity(&changed, UpdateMode::Replace, None).await?;
        }
        next[0].send(context, request, &next[1..]).await
    }
}

/// Then the archive has another version than the one that was read, which does not make it another table.
#[tokio::test]
async fn an_archive_that_is_the_same_table_keeps_what_others_change_meanwhile() {
    let account = account();
    let tables = Tables::create(&Process::new(&account, None), &fresh_name()).await;
    tables.current.insert_entity(&employee("000456", 34), None).await.unwrap();
    let table = tables.current.clone();
    let change: Arc<dyn Policy> = Arc::new(ChangesFirst { table, is_done: AtomicBool::new(false) });
    let client_options = ClientOptions { per_call_policies: vec![change], ..Default::default() };
    let options = Some(ServiceClientOptions { client_options, ..Default::default() });
    let elsewhere = account.connection_string().replace("127.0.0.1", "localhost");
    let elsewhere = TableServiceClient::from_connection_string(&elsewhere, options).unwrap();
    let same = elsewhere.table_client(tables.current.name()).unwrap();
    let itself = Archive::<Entity>::new(tables.current.clone(), same, tables.queue.clone());
    itself.begin("Sales", "000456").await.unwrap();
    let report = counting_worker(&tables.queue).drain(itself.job()).await.unwrap();
    assert_eq!(counts(report), (0, 0, 1, 0));
    let after = tables.current.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
    assert_eq!(after.get::<i32>("Age").unwrap(), 35);
    let name = format!("{}-poison", tables.queue.name());
    account.queues().delete_queue(&name, None).await.unwrap();
    tables.delete().await;
}

/// Steps 1 to 6 of the guide, with a worker that dies at each request, before and after it was made.
#[tokio::test]
async fn a_worker_may_die_at_every_step() {
    at_each_request(|account, crash, name| async move {
        let tables = Tables::create(&Process::new(&account, None), &name).await;
        tables.current.insert_entity(&employee("000456", 34), None).await.unwrap();
        tables.archive().begin("Sales", "000456").await.unwrap();
        let dying = Tables::of(&Process::new(&account, Some(crash.clone())), &name);
        let result = worker(&dying.queue).drain(dying.archive().job()).await;
        assert!(result.is_ok() || crash.has_happened());
        // In both tables perhaps, and never in none.
        assert_ne!(tables.whereabouts("000456").await, (false, false), "{crash:?}");
        tables.settle().await;
        assert_eq!(tables.whereabouts("000456").await, (false, true), "{crash:?}");
        tables.delete().await;
    })
    .await;
}

/// The same for one version of an employee.
#[tokio::test]
async fn a_worker_may_die_at_every_step_of_a_version() {
    at_each_request(|account, crash, name| async move {
        let tables = Tables::create(&Process::new(&account, None), &name).await;
        tables.current.insert_entity(&employee("000456", 34), None).await.unwrap();
        // What the archive has of an earlier one is replaced.
        tables.archive.insert_entity(&employee("000456", 20), None).await.unwrap();
        let stored = tables.current.get_entity("Sales", "000456", None).await.unwrap();
        tables.archive().begin_version(&stored).await.unwrap();
        let dying = Tables::of(&Process::new(&account, Some(crash.clone())), &name);
        let result = worker(&dying.queue).drain(dying.archive().job()).await;
        assert!(result.is_ok() || crash.has_happened());
        tables.settle().await;
        assert_eq!(tables.whereabouts("000456").await, (false, true), "{crash:?}");
        let archived = tables.archive.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
        assert_eq!(archived.get::<i32>("Age").unwrap(), 34, "{crash:?}");
        tables.delete().await;
    })
    .await;
}

/// The client that begins it: afterwards it is begun, or the employee is where it was.
#[tokio::test]
async fn a_client_may_die_while_it_begins() {
    at_each_request(|account, crash, name| async move {
        let tables = Tables::create(&Process::new(&account, None), &name).await;
        tables.current.insert_entity(&employee("000456", 34), None).await.unwrap();
        let dying = Tables::of(&Process::new(&account, Some(crash.clone())), &name);
        let begun = dying.archive().begin("Sales", "000456").await;
        tables.settle().await;
        match begun {
            Ok(_) => assert_eq!(tables.whereabouts("000456").await, (false, true)),
            Err(_) => assert_ne!(tables.whereabouts("000456").await, (true, true)),
        }
        tables.delete().await;
    })
    .await;
}

/// A change between the copy and the deletion is copied again, and not lost.
#[tokio::test]
async fn a_change_in_between_is_archived_too() {
    let account = account();
    let tables = Arc::new(Tables::create(&Process::new(&account, None), &fresh_name()).await);
    tables.current.insert_entity(&employee("000456", 0), None).await.unwrap();
    let changing = tokio::spawn({
        let tables = tables.clone();
        async move {
            // As long as it is there.
            let mut age = 0;
            let change = |age| {
                let current = &tables.current;
                current.read_modify_write(
                    "Sales",
                    "000456",
                    move |entity: &mut Entity| {
                        entity.set("Age", age);
                        Ok(())
                    },
                    None,
                )
            };
            while change(age + 1).await.is_ok() {
                age += 1;
            }
            age
        }
    });
    tables.archive().begin("Sales", "000456").await.unwrap();
    tables.settle().await;
    let last = changing.await.unwrap();
    let archived = tables.archive.get_entity::<Entity>("Sales", "000456", None).await.unwrap();
    assert_eq!(archived.get::<i32>("Age").unwrap(), last);
    Arc::into_inner(tables).unwrap().delete().await;
}

#[tokio::test]
async fn steps_are_repeated_from_the_first() {
    let queue = TestQueue::create().await;
    let log = Arc::new(Mutex::new(Vec::new()));
    let failures = Arc::new(AtomicUsize::new(2));
    let step = |name: &'static str| {
        let (log, failures) = (log.clone(), failures.clone());
        move |order: Arc<u32>| {
            let (log, failures) = (log.clone(), failures.clone());
            async move {
                log.lock().unwrap().push(format!("{name} {order}"));
                let fails = |left: usize| left.checked_sub(1);
                let has_failed = name == "ship"
                    && failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok();
                match has_failed {
                    true => Err(std::io::Error::other("no lorry"))?,
                    false => Ok(()),
                }
            }
        }
    };
    let order = EventualTransaction::new("order", queue.queue.clone())
        .step("pack", step("pack"))
        .step("ship", step("ship"))
        .step("bill", step("bill"));
    order.begin(&17).await.unwrap();
    let worker = counting_worker(&queue);
    while worker.drain(order.job()).await.unwrap().done == 0 {}
    let expected = ["pack", "ship", "pack", "ship", "pack", "ship", "bill"];
    assert_eq!(*log.lock().unwrap(), expected.map(|step| format!("{step} 17")));
    queue.delete().await;
}

#[tokio::test]
async fn what_never_succeeds_waits_among_the_dead_letters() {
    let queue = TestQueue::create().await;
    let is_mended = Arc::new(AtomicUsize::new(0));
    let mended = is_mended.clone();
    let order = EventualTransaction::new("order", queue.queue.clone()).step("ship", move |_| {
        let mended = mended.clone();
        async move {
            match mended.load(Ordering::SeqCst) {
                0 => Err(JobError::from(std::io::Error::other("no lorry"))),
                _ => Ok(()),
            }
        }
    });
    order.begin(&json!({ "id": 17 })).await.unwrap();
    // One of another transaction, and one that nobody understands: neither is tried again.
    let other = EventualTransaction::new("other", queue.queue.clone());
    other.begin(&json!(null)).await.unwrap();
    queue.send_message("hello", None).await.unwrap();
    let worker = counting_worker(&queue).max_attempts(3);
    let mut total = WorkerReport::default();
    while total.dead_lettered < 3 {
        let report = worker.drain(order.job()).await.unwrap();
        total.dead_lettered += report.dead_lettered;
        total.retried += report.retried;
    }
    assert_eq!(counts(total), (0, 2, 3, 0));
    is_mended.store(1, Ordering::SeqCst);
    assert_eq!(worker.redrive().await.unwrap(), 3);
    let report = worker.drain(order.job()).await.unwrap();
    assert_eq!((report.done, report.dead_lettered), (1, 2));
    let name = format!("{}-poison", queue.name());
    queue.account.queues().delete_queue(&name, None).await.unwrap();
    queue.delete().await;
}
