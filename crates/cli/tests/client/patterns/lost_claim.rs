//! Workers whose message is not theirs any more, and changes whose answers are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Method, Request};
use tavola_client::patterns::eventually_consistent::Archive;
use tavola_client::patterns::index::Index;
use tavola_client::patterns::inter_partition_index::{InterPartitionIndex, Place};
use tavola_client::patterns::queue_worker::QueueWorker;
use tavola_client::queue::QueueClient;
use tavola_client::{Entity, ErrorExt, TableClient, UpdateMode};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::crash::{settle, worker};
use crate::support::{Account, TestQueue, TestTable};

const LONG: Duration = Duration::from_secs(30);

fn client(account: &Account, table: &str, policy: Arc<dyn Policy>) -> TableClient {
    let client = TableClient::builder(table).connection_string(account.connection_string());
    client.policy(policy).build().unwrap()
}

fn by_name(queue: &QueueClient, table: &TableClient) -> InterPartitionIndex {
    InterPartitionIndex::new(table.clone(), "id_", queue.clone())
        .with(Index::unique("name_", "Name"), Place::whole())
        .unwrap()
}

/// Stops before the first read of an entry and after the first change of one, until it is let go on.
#[derive(Debug)]
struct Gates {
    stopped: Semaphore,
    before_read: Semaphore,
    after_write: Semaphore,
}

impl Gates {
    fn new() -> Arc<Self> {
        let closed = || Semaphore::new(0);
        Arc::new(Self { stopped: closed(), before_read: closed(), after_write: closed() })
    }

    async fn pass(&self, gate: &Semaphore) {
        self.stopped.add_permits(1);
        drop(gate.acquire().await.unwrap());
    }

    async fn wait_until_stopped(&self) {
        timeout(LONG, self.stopped.acquire()).await.unwrap().unwrap().forget();
    }
}

#[async_trait]
impl Policy for Gates {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let is_entry = request.url().path().contains("name_");
        if is_entry && request.method() == Method::Get {
            self.pass(&self.before_read).await;
        }
        let answer = next[0].send(context, request, &next[1..]).await;
        if is_entry && request.method() == Method::Put {
            self.pass(&self.after_write).await;
        }
        answer
    }
}

/// A worker that is slow has an entity in hand that was changed since, and its message is gone: what it writes is not true, and
/// nobody else would see that.
#[tokio::test]
async fn a_worker_that_lost_its_message_makes_right_what_it_wrote() {
    let queue = TestQueue::create().await;
    let table = TestTable::create().await;
    let people = by_name(&queue, &table);
    let jones = |age: i32| Entity::new("Sales", "7").with("Name", "Jones").with("Age", age);
    people.save(&jones(1)).await.unwrap();
    let gates = Gates::new();
    let slow = by_name(&queue, &client(&queue.account, table.name(), gates.clone()));
    let working = tokio::spawn({
        let worker = QueueWorker::new(queue.queue.clone());
        let worker = worker.visibility_timeout(Duration::from_secs(2));
        async move { worker.drain(slow.job::<Entity>()).await }
    });
    gates.wait_until_stopped().await;
    // It has read the entity. Another worker does the next change, and the first message is gone.
    people.save(&jones(2)).await.unwrap();
    worker(&queue).drain(people.job::<Entity>()).await.unwrap();
    queue.clear_messages(None).await.unwrap();
    gates.before_read.add_permits(Semaphore::MAX_PERMITS / 2);
    let entry_age = || async {
        let entry = table.get_entity::<Entity>("name_", "Jones", None).await.unwrap();
        entry.get::<i32>("Age").unwrap()
    };
    while entry_age().await != 1 {
        sleep(Duration::from_millis(20)).await;
    }
    let report = timeout(LONG, working).await.unwrap().unwrap().unwrap();
    assert_eq!(report.lost, 1);
    gates.after_write.add_permits(Semaphore::MAX_PERMITS / 2);
    let is_right = async {
        while entry_age().await != 2 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, is_right).await.expect("the entry is made right");
    table.delete().await;
    queue.delete().await;
}

/// Somebody who changes an entity just before it is deleted, or as soon as something was written.
#[derive(Debug)]
struct Interloper {
    current: TableClient,
    changed: Entity,
}

impl Interloper {
    async fn change(&self) -> azure_core::Result<()> {
        self.current.upsert_entity(&self.changed, UpdateMode::Replace, None).await.map(drop)
    }
}

#[async_trait]
impl Policy for Interloper {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        if request.method() == Method::Delete {
            self.change().await?;
        }
        let is_write = matches!(request.method(), Method::Put | Method::Post);
        let answer = next[0].send(context, request, &next[1..]).await;
        if is_write {
            self.change().await?;
        }
        answer
    }
}

/// An entity that stays after all leaves the archive as it was: empty, with another record of the same keys, or with the same.
#[tokio::test]
async fn what_an_archive_had_before_is_not_taken_back() {
    let queue = TestQueue::create().await;
    let (current, archive) = (TestTable::create().await, TestTable::create().await);
    let employee = |age: i32| Entity::new("Sales", "7").with("Age", age);
    for before in [None, Some(40), Some(50)] {
        current.upsert_entity(&employee(50), UpdateMode::Replace, None).await.unwrap();
        if let Some(age) = before {
            archive.upsert_entity(&employee(age), UpdateMode::Replace, None).await.unwrap();
        }
        // Also if nothing has to be written: it is changed before it is deleted.
        let interloper =
            Arc::new(Interloper { current: current.table.clone(), changed: employee(51) });
        let target = client(&queue.account, archive.name(), interloper.clone());
        let source = client(&queue.account, current.name(), interloper);
        let leavers = Archive::<Entity>::new(source, target, queue.queue.clone());
        let stored = current.get_entity("Sales", "7", None).await.unwrap();
        leavers.begin_version(&stored).await.unwrap();
        let job = Arc::new(leavers.job());
        settle(&queue, move |message| job(message)).await;
        let archived = archive.get_entity_if_exists::<Entity>("Sales", "7", None).await.unwrap();
        let age = archived.map(|archived| archived.get::<i32>("Age").unwrap());
        assert_eq!(age, before);
        let kept = current.get_entity::<Entity>("Sales", "7", None).await.unwrap();
        assert_eq!(kept.get::<i32>("Age").unwrap(), 51);
    }
    for table in [current, archive] {
        table.delete().await;
    }
    queue.delete().await;
}

/// Loses the answer to a deletion, and makes the entity anew before the next attempt.
#[derive(Debug)]
struct Reborn {
    current: TableClient,
    anew: Entity,
    deletions: AtomicUsize,
}

#[async_trait]
impl Policy for Reborn {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let answer = next[0].send(context, request, &next[1..]).await;
        let is_deletion = request.method() == Method::Delete;
        if is_deletion && self.deletions.fetch_add(1, Ordering::SeqCst) == 0 {
            self.current.insert_entity(&self.anew, None).await?;
            return Err(azure_core::Error::with_message(ErrorKind::Io, "the answer was lost"));
        }
        answer
    }
}

/// The version is nowhere but in the archive, although its deletion seems to have found another.
#[tokio::test]
async fn a_version_that_was_deleted_stays_in_the_archive() {
    let queue = TestQueue::create().await;
    let (current, archive) = (TestTable::create().await, TestTable::create().await);
    let employee = |age: i32| Entity::new("Sales", "7").with("Age", age);
    current.insert_entity(&employee(50), None).await.unwrap();
    let reborn = Reborn {
        current: current.table.clone(),
        anew: employee(20),
        deletions: AtomicUsize::new(0),
    };
    let source = client(&queue.account, current.name(), Arc::new(reborn));
    let leavers = Archive::<Entity>::new(source, archive.table.clone(), queue.queue.clone());
    let stored = current.get_entity("Sales", "7", None).await.unwrap();
    leavers.begin_version(&stored).await.unwrap();
    let job = Arc::new(leavers.job());
    settle(&queue, move |message| job(message)).await;
    for (table, age) in [(&current, 20), (&archive, 50)] {
        let found = table.get_entity::<Entity>("Sales", "7", None).await.unwrap();
        assert_eq!(found.get::<i32>("Age").unwrap(), age);
    }
    for table in [current, archive] {
        table.delete().await;
    }
    queue.delete().await;
}

/// Loses the answer to one request of this kind, which the service has done.
#[derive(Debug)]
struct AnswerLost {
    method: Method,
    /// Requests of the kind until then.
    left: AtomicUsize,
}

impl AnswerLost {
    fn new(method: Method) -> Arc<Self> {
        Self::after(0, method)
    }

    fn after(answered: usize, method: Method) -> Arc<Self> {
        Arc::new(Self { method, left: AtomicUsize::new(answered + 1) })
    }
}

#[async_trait]
impl Policy for AnswerLost {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let answer = next[0].send(context, request, &next[1..]).await;
        let (order, counted) = (Ordering::SeqCst, |left: usize| left.checked_sub(1));
        if request.method() == self.method && self.left.fetch_update(order, order, counted) == Ok(1)
        {
            return Err(azure_core::Error::with_message(ErrorKind::Io, "the answer was lost"));
        }
        answer
    }
}

/// Each is sent again, and finds what the first attempt left.
#[tokio::test]
async fn changes_whose_answers_are_lost_are_made() {
    let queue = TestQueue::create().await;
    let table = TestTable::create().await;
    let lossy = |method| {
        by_name(&queue, &client(&queue.account, table.name(), AnswerLost::new(method)))
            .settle_after(Duration::from_secs(2))
    };
    let jones = |age: i32| Entity::new("Sales", "7").with("Name", "Jones").with("Age", age);
    lossy(Method::Post).save(&jones(1)).await.unwrap();
    let people = by_name(&queue, &table);
    let mut stored = people.get::<Entity>("Sales", "7").await.unwrap().unwrap();
    let stale = stored.clone();
    stored.value = jones(2);
    lossy(Method::Put).update(&stored).await.unwrap();
    // Somebody else's change is none of ours.
    let refused = lossy(Method::Put).update(&stale).await.unwrap_err();
    assert!(refused.is_precondition_failed());
    let job = Arc::new(people.job::<Entity>());
    settle(&queue, move |message| job(message)).await;
    let entry = table.get_entity::<Entity>("name_", "Jones", None).await.unwrap();
    assert_eq!(entry.get::<i32>("Age").unwrap(), 2);
    assert!(lossy(Method::Delete).delete("Sales", "7").await.unwrap());
    assert!(people.get::<Entity>("Sales", "7").await.unwrap().is_none());
    table.delete().await;
    queue.delete().await;
}

/// An entity that stays because it was changed, and the answers to putting back what the archive had before are lost.
#[tokio::test]
async fn a_copy_is_taken_back_although_answers_are_lost() {
    let queue = TestQueue::create().await;
    let (current, archive) = (TestTable::create().await, TestTable::create().await);
    let employee = |age: i32| Entity::new("Sales", "7").with("Age", age);
    // The first change of a record is the copy.
    let restored = AnswerLost::after(1, Method::Put);
    for (before, lost) in [(None, AnswerLost::new(Method::Delete)), (Some(40), restored)] {
        current.upsert_entity(&employee(50), UpdateMode::Replace, None).await.unwrap();
        if let Some(age) = before {
            archive.upsert_entity(&employee(age), UpdateMode::Replace, None).await.unwrap();
        }
        let interloper =
            Arc::new(Interloper { current: current.table.clone(), changed: employee(51) });
        let target = client(&queue.account, archive.name(), lost);
        let source = client(&queue.account, current.name(), interloper);
        let leavers = Archive::<Entity>::new(source, target, queue.queue.clone());
        let stored = current.get_entity("Sales", "7", None).await.unwrap();
        leavers.begin_version(&stored).await.unwrap();
        let job = Arc::new(leavers.job());
        settle(&queue, move |message| job(message)).await;
        let archived = archive.get_entity_if_exists::<Entity>("Sales", "7", None).await.unwrap();
        assert_eq!(archived.map(|archived| archived.get::<i32>("Age").unwrap()), before);
    }
    for table in [current, archive] {
        table.delete().await;
    }
    queue.delete().await;
}

/// Nobody else can have had the message in the time in which it is hidden.
#[tokio::test]
async fn a_message_whose_answers_are_lost_is_completed() {
    let queue = TestQueue::create().await;
    for text in ["done", "put off"] {
        queue.send_message(text, None).await.unwrap();
    }
    for method in [Method::Delete, Method::Put] {
        let worker = QueueClient::builder(queue.name())
            .connection_string(queue.account.connection_string())
            .policy(AnswerLost::new(method))
            .build()
            .unwrap();
        let mut messages = worker.messages(None);
        let message = futures::TryStreamExt::try_next(&mut messages).await.unwrap().unwrap();
        let is_ours = match method {
            Method::Delete => message.complete().await.unwrap(),
            _ => message.release(Duration::ZERO).await.unwrap(),
        };
        assert!(is_ours, "{method}");
    }
    queue.delete().await;
}
