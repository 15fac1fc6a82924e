//! Messages of other archives and of other indexes in the same queue: nothing is applied where it does not belong, and
//! nothing is forgotten.

use tavola_client::patterns::eventually_consistent::Archive;
use tavola_client::patterns::index::Index;
use tavola_client::patterns::inter_partition_index::{InterPartitionIndex, Place, Repaired};
use tavola_client::patterns::queue_worker::{JobResult, QueueWorker};
use tavola_client::queue::{MessageHandle, QueueClient, QueueServiceClient};
use tavola_client::{Entity, TableClient, TableServiceClient};

use super::crash::counting_worker;
use crate::support::{Counts, TestQueue, counts, fresh_name};

/// A queue that several share, and tables that are made as they are named.
struct Shared {
    queue: TestQueue,
    tables: TableServiceClient,
    queues: QueueServiceClient,
}

impl Shared {
    async fn create() -> Self {
        let queue = TestQueue::create().await;
        let (tables, queues) = (queue.account.service(), queue.account.queues());
        Self { queue, tables, queues }
    }

    async fn table(&self) -> TableClient {
        let table = self.tables.table_client(fresh_name()).unwrap();
        table.create(None).await.unwrap();
        table
    }

    fn client(&self) -> QueueClient {
        self.queue.queue.clone()
    }

    /// A try for each message.
    fn worker(&self) -> QueueWorker {
        counting_worker(&self.queue).max_attempts(1)
    }

    async fn drain<R>(&self, job: impl Fn(MessageHandle) -> R + Send + Sync + 'static) -> Counts
    where
        R: Future<Output = JobResult> + Send + 'static,
    {
        counts(self.worker().drain(job).await.unwrap())
    }

    async fn delete(self, tables: impl IntoIterator<Item = TableClient>) {
        for table in tables {
            table.delete(None).await.unwrap();
        }
        let dead_letters = format!("{}-poison", self.queue.name());
        self.queues.delete_queue_if_exists(&dead_letters, None).await.unwrap();
        self.queue.delete().await;
    }
}

const DONE: Counts = (1, 0, 0, 0);
const BURIED: Counts = (0, 0, 1, 0);

async fn has(table: &TableClient, partition: &str, row: &str) -> bool {
    table.get_entity_if_exists::<Entity>(partition, row, None).await.unwrap().is_some()
}

/// Another source, another target, another prefix: each is another archive.
#[tokio::test]
async fn an_order_is_for_one_archive() {
    let shared = Shared::create().await;
    let (staff, films, old) = (shared.table().await, shared.table().await, shared.table().await);
    for table in [&staff, &films] {
        table.insert_entity(&Entity::new("Sales", "7"), None).await.unwrap();
    }
    let archive = |from: &TableClient, to: &TableClient, prefix: &str| {
        Archive::<Entity>::new(from.clone(), to.clone(), shared.client()).partition_prefix(prefix)
    };
    let ours = archive(&staff, &old, "");
    ours.begin("Sales", "7").await.unwrap();
    for other in
        [archive(&films, &old, ""), archive(&staff, &films, ""), archive(&staff, &old, "x")]
    {
        assert_eq!(shared.drain(other.job()).await, BURIED);
        assert!(has(&staff, "Sales", "7").await && has(&films, "Sales", "7").await);
        assert_eq!(shared.worker().redrive().await.unwrap(), 1);
    }
    // Nor an order for a version, which no worker can take for one of its own.
    let stored = films.get_entity::<Entity>("Sales", "7", None).await.unwrap();
    archive(&films, &old, "films_").begin_version(&stored).await.unwrap();
    let report = shared.drain(ours.job()).await;
    assert_eq!(report, (1, 0, 1, 0));
    assert!(has(&films, "Sales", "7").await && has(&old, "Sales", "7").await);
    assert!(!has(&staff, "Sales", "7").await);
    shared.delete([staff, films, old]).await;
}

/// The worker knows the account by another address, and the table in other letters.
#[tokio::test]
async fn an_order_finds_its_archive_however_that_is_written() {
    let shared = Shared::create().await;
    let (staff, old) = (shared.table().await, shared.table().await);
    staff.insert_entity(&Entity::new("Sales", "7"), None).await.unwrap();
    let archive = |name: String| {
        let staff = shared.tables.table_client(name).unwrap();
        Archive::<Entity>::new(staff, old.clone(), shared.client())
    };
    archive(staff.name().to_owned()).begin("Sales", "7").await.unwrap();
    assert_eq!(shared.drain(archive(staff.name().to_uppercase()).job()).await, DONE);
    assert!(has(&old, "Sales", "7").await);
    shared.delete([staff, old]).await;
}

fn by_mail(queue: &QueueClient, table: &TableClient, prefix: &str) -> InterPartitionIndex {
    InterPartitionIndex::new(table.clone(), prefix, queue.clone())
        .with(Index::unique("mail_", "Mail"), Place::whole())
        .unwrap()
}

#[tokio::test]
async fn a_message_is_about_the_entities_of_one_index() {
    let shared = Shared::create().await;
    let (staff, guests) = (shared.table().await, shared.table().await);
    let ours = by_mail(&shared.queue, &staff, "id_");
    ours.save(&Entity::new("Sales", "7").with("Mail", "a@b.c")).await.unwrap();
    for other in [by_mail(&shared.queue, &guests, "id_"), by_mail(&shared.queue, &staff, "")] {
        assert_eq!(shared.drain(other.job::<Entity>()).await, BURIED);
        assert!(!has(&staff, "mail_", "a@b.c").await);
        assert_eq!(shared.worker().redrive().await.unwrap(), 1);
    }
    assert_eq!(shared.drain(ours.job::<Entity>()).await, DONE);
    assert!(has(&staff, "mail_", "a@b.c").await);
    shared.delete([staff, guests]).await;
}

/// A worker that is older than the writer, or whose index lies elsewhere.
#[tokio::test]
async fn an_index_that_a_worker_does_not_know_is_not_forgotten() {
    let shared = Shared::create().await;
    let (staff, elsewhere) = (shared.table().await, shared.table().await);
    let name = || Index::many("name_", "Name");
    let old = by_mail(&shared.queue, &staff, "id_");
    let moved = old.clone().with(name(), Place::whole().in_table(elsewhere.clone())).unwrap();
    let new = old.clone().with(name(), Place::whole()).unwrap();
    let jones = Entity::new("Sales", "7").with("Mail", "a@b.c").with("Name", "Jones");
    new.save(&jones).await.unwrap();
    for other in [old, moved] {
        assert_eq!(shared.drain(other.job::<Entity>()).await, BURIED);
        // What it knows, it did.
        assert!(
            has(&staff, "mail_", "a@b.c").await && !has(&staff, "name_", "Jones Sales 7").await
        );
        assert_eq!(shared.worker().redrive().await.unwrap(), 1);
    }
    assert_eq!(shared.drain(new.job::<Entity>()).await, DONE);
    assert!(has(&staff, "name_", "Jones Sales 7").await);
    assert_eq!(new.repair::<Entity>("Sales").await.unwrap(), Repaired::default());
    shared.delete([staff, elsewhere]).await;
}
