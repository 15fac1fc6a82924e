//! Indexes in other partitions and tables, which follow their entities through a queue.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Method, Request};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use tavola_client::encryption::{EncryptionPolicy, KeyRing};
use tavola_client::patterns::eventually_consistent::Archive;
use tavola_client::patterns::index::{Index, Part};
use tavola_client::patterns::inter_partition_index::{InterPartitionIndex, Place, Repaired};
use tavola_client::patterns::queue_worker::{JobError, JobResult};
use tavola_client::queue::{MessageHandle, PeekMessagesOptions, QueueClient};
use tavola_client::{
    EdmType, Entity, ErrorExt, IfMatch, Result, TableClient, TableEntity, UpdateMode,
};

use super::Patient;
use super::crash::{Process, at_each_request, counting_worker, settle, worker};
use crate::support::{Account, account, fresh_name};

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", columns)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    email: String,
    last_name: String,
}

fn employee(department: &str, id: &str, email: &str, last_name: &str) -> Employee {
    let text = str::to_owned;
    Employee {
        department: text(department),
        id: text(id),
        email: text(email),
        last_name: text(last_name),
    }
}

/// Employees by mail in their department, as the guide has it, and by name over all of them.
fn indexes(process: &Process, name: &str) -> InterPartitionIndex {
    let table = process.tables.table_client(name).unwrap();
    let queue = process.queues.queue_client(name).unwrap();
    InterPartitionIndex::new(table, "empid_", queue)
        .with(Index::unique("email_", Employee::EMAIL), Place::partition())
        .unwrap()
        .with(Index::many("name_", Employee::LAST_NAME).partial(["Email"]), Place::whole())
        .unwrap()
}

struct Staff {
    employees: InterPartitionIndex,
    table: TableClient,
    queue: QueueClient,
    _account: Arc<Account>,
}

impl Staff {
    async fn new(account: Arc<Account>, name: &str) -> Self {
        let process = Process::new(&account, None);
        let table = process.tables.table_client(name).unwrap();
        let queue = process.queues.queue_client(name).unwrap();
        table.create(None).await.unwrap();
        queue.create(None).await.unwrap();
        Self { employees: indexes(&process, name), table, queue, _account: account }
    }

    /// Lets workers do all that there is to do.
    async fn settle(&self) {
        let employees = self.employees.clone();
        let job = move |message: MessageHandle| {
            let employees = employees.clone();
            async move { employees.apply::<Employee>(&message).await }
        };
        settle(&self.queue, job).await;
    }

    async fn keys(&self) -> Vec<(String, String)> {
        let rows: Vec<_> = self.table.query_entities::<Entity>(None).try_collect().await.unwrap();
        let keys = rows.iter().map(|row| (row.partition_key().into(), row.row_key().into()));
        keys.collect()
    }

    /// Each entry is of an entity and equal to it, and each entity has its entries.
    async fn assert_consistent(&self, what: &str) {
        for partition in ["Sales", "Marketing"] {
            let repaired = self.employees.repair::<Employee>(partition).await.unwrap();
            assert_eq!(repaired, Repaired::default(), "{what}: {:?}", self.keys().await);
        }
    }

    async fn delete(self) {
        self.table.delete(None).await.unwrap();
        self.queue.delete(None).await.unwrap();
    }
}

fn keys(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(partition, row)| ((*partition).into(), (*row).into())).collect()
}

#[tokio::test]
async fn the_guides_printed_keys_are_stored() {
    let staff = Staff::new(account(), &fresh_name()).await;
    let employees = &staff.employees;
    let jones = employee("Sales", "000223", "jonesj@contoso.com", "Jones");
    employees.save(&jones).await.unwrap();
    // Changed, and not yet found.
    assert_eq!(staff.keys().await, keys(&[("empid_Sales", "000223")]));
    let by_mail = employees.by("email_", "Sales").unwrap();
    assert!(by_mail.find::<Employee>("jonesj@contoso.com").await.unwrap().is_none());
    staff.settle().await;
    assert_eq!(
        staff.keys().await,
        keys(&[
            ("email_Sales", "jonesj@contoso.com"),
            ("empid_Sales", "000223"),
            ("name_", "Jones Sales 000223"),
        ])
    );
    let found = by_mail.find::<Employee>("jonesj@contoso.com").await.unwrap().unwrap();
    assert_eq!(found.value, jones);
    staff.delete().await;
}

#[tokio::test]
async fn an_index_follows_its_entities() {
    let staff = Staff::new(account(), &fresh_name()).await;
    let employees = &staff.employees;
    for (department, id, mail, name) in [
        ("Sales", "1", "a@contoso.com", "Jones"),
        ("Sales", "2", "b@contoso.com", "Smith"),
        ("Marketing", "1", "c@contoso.com", "Jones"),
    ] {
        employees.save(&employee(department, id, mail, name)).await.unwrap();
    }
    staff.settle().await;
    let everyone = |name: &'static str| async move {
        let found = employees.everywhere("name_").unwrap().list::<Employee>(name).unwrap();
        let found: Vec<_> = found.map_ok(|it| it.value.email).try_collect().await.unwrap();
        found
    };
    assert_eq!(everyone("Jones").await, ["c@contoso.com", "a@contoso.com"]);
    let sales = employees.by("email_", "Sales").unwrap();
    let all: Vec<_> = sales.all::<Employee>().try_collect().await.unwrap();
    assert_eq!(all.len(), 2);
    let b = sales.starting_with::<Employee>("b").unwrap().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(b[0].id, "2");
    let range = sales.range::<Employee, _>("a".."b").unwrap();
    assert_eq!(range.count().await, 1);

    // A new name and a new address, of the version that was read.
    let mut jones = employees.get::<Employee>("Sales", "1").await.unwrap().unwrap();
    jones.email = "new@contoso.com".into();
    jones.last_name = "Miller".into();
    employees.update(&jones).await.unwrap();
    assert!(employees.update(&jones).await.unwrap_err().is_precondition_failed());
    // Until the workers come, the old address is found in its full copy; an entity that is fetched is not who it was.
    assert!(sales.find::<Employee>("a@contoso.com").await.unwrap().is_some());
    assert_eq!(everyone("Jones").await, ["c@contoso.com"]);
    let mails = employees.everywhere("name_").unwrap().select(["Email"]);
    let mails = mails.list::<Entity>("Jones").unwrap().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(mails.len(), 2, "what the entries hold is given as it is");
    staff.settle().await;
    assert!(sales.find::<Employee>("a@contoso.com").await.unwrap().is_none());
    assert!(sales.find::<Employee>("new@contoso.com").await.unwrap().is_some());
    assert_eq!(everyone("Miller").await, ["new@contoso.com"]);

    assert!(employees.delete("Sales", "2").await.unwrap());
    assert!(!employees.delete("Sales", "2").await.unwrap());
    staff.settle().await;
    assert!(everyone("Smith").await.is_empty());
    staff.assert_consistent("after all changes").await;
    staff.delete().await;
}

/// Saving what is there already, or what no index holds, sends nothing.
#[tokio::test]
async fn a_change_that_no_index_notices_needs_no_message() {
    let account = account();
    let process = Process::new(&account, None);
    let (name, other) = (fresh_name(), fresh_name());
    let table = process.tables.table_client(name.as_str()).unwrap();
    let index = process.tables.table_client(other.as_str()).unwrap();
    let queue = process.queues.queue_client(name.as_str()).unwrap();
    for table in [&table, &index] {
        table.create(None).await.unwrap();
    }
    queue.create(None).await.unwrap();
    // In a table of its own, an entry for each actor; entities lie under their own keys.
    let by_actor = Index::many("actor_", Part::new("Actors").each(',')).reference();
    let films = InterPartitionIndex::new(table.clone(), "", queue.clone())
        .with(by_actor, Place::whole().in_table(index.clone()))
        .unwrap();
    let heat = Entity::new("Action", "Heat").with("Actors", "De Niro, Pacino").with("Year", 1994);
    films.save(&heat).await.unwrap();
    settle(&queue, films.job::<Entity>().into_shared()).await;
    films.save(&heat.clone().with("Year", 1995)).await.unwrap();
    let waiting = queue.get_properties(None).await.unwrap().approximate_message_count;
    assert_eq!(waiting, 0);
    let pacino = films.everywhere("actor_").unwrap().find::<Entity>("Pacino").await.unwrap();
    assert_eq!(pacino.unwrap().get::<i32>("Year").unwrap(), 1995);
    assert_eq!(index.query_entities::<Entity>(None).count().await, 2);
    films.save(&heat.with("Actors", "Pacino")).await.unwrap();
    settle(&queue, films.job::<Entity>().into_shared()).await;
    assert_eq!(index.query_entities::<Entity>(None).count().await, 1);
    for table in [table, index] {
        table.delete(None).await.unwrap();
    }
    queue.delete(None).await.unwrap();
}

/// A job that can be given to several workers.
trait IntoShared {
    fn into_shared(
        self,
    ) -> impl Fn(MessageHandle) -> BoxFuture<'static, JobResult> + Clone + Send + Sync + 'static;
}

impl<F> IntoShared for F
where
    F: Fn(MessageHandle) -> BoxFuture<'static, JobResult> + Send + Sync + 'static,
{
    fn into_shared(
        self,
    ) -> impl Fn(MessageHandle) -> BoxFuture<'static, JobResult> + Clone + Send + Sync + 'static
    {
        let job = Arc::new(self);
        move |message| job(message)
    }
}

/// Lets a writer die at each request of a change to an entity, and looks at what the workers make of it.
async fn die_at_every_step<R>(change: impl Fn(InterPartitionIndex) -> R + Copy)
where
    R: Future<Output = Result<()>>,
{
    at_each_request(|account, crash, name| async move {
        let staff = Staff::new(account.clone(), &name).await;
        staff.employees.save(&employee("Sales", "1", "old@contoso.com", "Jones")).await.unwrap();
        staff.settle().await;
        let process = Process::new(&account, Some(crash.clone()));
        let dying = indexes(&process, &name).settle_after(Duration::from_secs(2));
        let result = change(dying).await;
        // Of showing the message it need not know: it appears by itself.
        assert!(result.is_ok() || crash.has_happened());
        staff.settle().await;
        staff.assert_consistent(&format!("{crash:?}")).await;
        staff.delete().await;
    })
    .await;
}

#[tokio::test]
async fn a_writer_may_die_at_every_step() {
    die_at_every_step(|staff| async move {
        staff.save(&employee("Sales", "1", "new@contoso.com", "Miller")).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_writer_of_a_version_may_die_at_every_step() {
    die_at_every_step(|staff| async move {
        let mut stored = staff.get::<Employee>("Sales", "1").await?.expect("it was saved");
        stored.value = employee("Sales", "1", "new@contoso.com", "Miller");
        staff.update(&stored).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_deletion_may_die_at_every_step() {
    die_at_every_step(|staff| async move { staff.delete("Sales", "1").await.map(drop) }).await;
}

/// Stops the whole thread before an entity is written, as a machine does that is suspended.
#[derive(Debug)]
struct Suspended(Duration);

#[async_trait]
impl Policy for Suspended {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        if request.method() == Method::Put {
            std::thread::sleep(self.0);
        }
        next[0].send(context, request, &next[1..]).await
    }
}

/// The worker has come and gone before the entity is changed.
#[tokio::test]
async fn a_writer_that_was_stopped_for_too_long_sends_another_message() {
    let (account, name) = (account(), fresh_name());
    let staff = Staff::new(account.clone(), &name).await;
    staff.employees.save(&employee("Sales", "1", "old@contoso.com", "Jones")).await.unwrap();
    staff.settle().await;
    let table = TableClient::builder(name.as_str())
        .connection_string(account.connection_string())
        .policy(Arc::new(Suspended(Duration::from_secs(4))))
        .build()
        .unwrap();
    let late = InterPartitionIndex::new(table, "empid_", staff.queue.clone())
        .with(Index::unique("email_", Employee::EMAIL), Place::partition())
        .unwrap()
        .settle_after(Duration::from_secs(1));
    let writing = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let changed = employee("Sales", "1", "new@contoso.com", "Jones");
        // It may find that it took too long; the change is made all the same.
        let _ = runtime.block_on(late.save(&changed));
    });
    while !writing.is_finished() {
        worker(&staff.queue).drain(staff.employees.job::<Employee>()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    writing.join().unwrap();
    staff.settle().await;
    staff.assert_consistent("after the late writer").await;
    staff.delete().await;
}

#[tokio::test]
async fn a_worker_may_die_at_every_step() {
    at_each_request(|account, crash, name| async move {
        let staff = Staff::new(account.clone(), &name).await;
        staff.employees.save(&employee("Sales", "1", "old@contoso.com", "Jones")).await.unwrap();
        staff.settle().await;
        staff.employees.save(&employee("Sales", "1", "new@contoso.com", "Miller")).await.unwrap();
        let process = Process::new(&account, Some(crash.clone()));
        let dying = indexes(&process, &name);
        let result = worker(&process.queues.queue_client(name.as_str()).unwrap())
            .drain(dying.job::<Employee>())
            .await;
        assert!(result.is_ok() || crash.has_happened());
        staff.settle().await;
        staff.assert_consistent(&format!("{crash:?}")).await;
        assert_eq!(staff.keys().await.len(), 3);
        staff.delete().await;
    })
    .await;
}

/// Several writers change the same employees while several workers follow them.
#[tokio::test]
async fn writers_and_workers_meet() {
    let staff = Arc::new(Staff::new(account(), &fresh_name()).await);
    let writers = (0..4).map(|writer| {
        let staff = staff.clone();
        async move {
            for round in 0..6 {
                let id = (round % 2).to_string();
                let mail = format!("{id}-{writer}-{round}@contoso.com");
                let names = ["Jones", "Smith", "Miller"];
                let changed = employee("Sales", &id, &mail, names[(writer + round) % 3]);
                staff.employees.save(&changed).await.unwrap();
                if writer == 0 && round == 3 {
                    staff.employees.delete("Sales", &id).await.unwrap();
                }
            }
        }
    });
    let workers = (0..3).map(|_| async {
        for _ in 0..5 {
            worker(&staff.queue).drain(staff.employees.job::<Employee>()).await.unwrap();
        }
    });
    let writing = stream::iter(writers).buffer_unordered(4).collect::<()>();
    let working = stream::iter(workers).buffer_unordered(3).collect::<()>();
    futures::join!(writing, working);
    staff.settle().await;
    staff.assert_consistent("after all writers").await;
    Arc::into_inner(staff).unwrap().delete().await;
}

#[tokio::test]
async fn a_repair_makes_an_index_right() {
    let staff = Staff::new(account(), &fresh_name()).await;
    // Written before there was an index, and an entry of nobody.
    for (id, mail) in [("1", "a@contoso.com"), ("2", "b@contoso.com")] {
        let old = employee("empid_Sales", id, mail, "Jones");
        staff.table.insert_entity(&old, None).await.unwrap();
    }
    let orphan = Entity::new("email_Sales", "x@contoso.com")
        .with("PrimaryPartitionKey", "Sales")
        .with("PrimaryRowKey", "9");
    staff.table.insert_entity(&orphan, None).await.unwrap();
    let repaired = staff.employees.repair::<Employee>("Sales").await.unwrap();
    assert_eq!(repaired, Repaired { written: 4, removed: 1 });
    let found = staff.employees.by("email_", "Sales").unwrap();
    assert_eq!(found.find::<Employee>("b@contoso.com").await.unwrap().unwrap().id, "2");
    // Somebody changed an entity alone, and somebody an entry.
    let changed = employee("empid_Sales", "1", "c@contoso.com", "Jones");
    staff.table.upsert_entity(&changed, UpdateMode::Replace, None).await.unwrap();
    staff.table.delete_entity("email_Sales", "b@contoso.com", IfMatch::Any, None).await.unwrap();
    let repaired = staff.employees.repair::<Employee>("Sales").await.unwrap();
    // The address, the mail in the entry of the name, and what was deleted.
    assert_eq!(repaired, Repaired { written: 3, removed: 1 });
    staff.assert_consistent("after the repair").await;
    staff.delete().await;
}

/// Nothing keeps two entities in two partitions from sharing a value; the second stays out, and somebody is told.
#[tokio::test]
async fn a_value_that_is_taken_is_told() {
    let account = account();
    let name = fresh_name();
    let process = Process::new(&account, None);
    let table = process.tables.table_client(name.as_str()).unwrap();
    let queue = process.queues.queue_client(name.as_str()).unwrap();
    table.create(None).await.unwrap();
    queue.create(None).await.unwrap();
    let staff = InterPartitionIndex::new(table.clone(), "empid_", queue.clone())
        .with(Index::unique("mail_", Employee::EMAIL), Place::whole())
        .unwrap();
    let (one, two) = (
        employee("Sales", "1", "x@contoso.com", "Jones"),
        employee("Marketing", "2", "x@contoso.com", "Smith"),
    );
    staff.save(&one).await.unwrap();
    settle(&queue, staff.job::<Employee>().into_shared()).await;
    staff.save(&two).await.unwrap();
    let worker = counting_worker(&queue).max_attempts(2);
    let mut buried = 0;
    while buried == 0 {
        buried += worker.drain(staff.job::<Employee>()).await.unwrap().dead_lettered;
    }
    let by_mail = staff.everywhere("mail_").unwrap();
    let found = by_mail.find::<Employee>("x@contoso.com").await.unwrap().unwrap();
    assert_eq!(found.value, one);
    let error = staff.repair::<Employee>("Marketing").await.unwrap_err();
    assert!(error.to_string().contains("two entities share a unique value"), "{error}");
    // The first moves on, and the message gets another chance.
    staff.delete("Sales", "1").await.unwrap();
    settle(&queue, staff.job::<Employee>().into_shared()).await;
    assert_eq!(worker.redrive().await.unwrap(), 1);
    settle(&queue, staff.job::<Employee>().into_shared()).await;
    let found = by_mail.find::<Employee>("x@contoso.com").await.unwrap().unwrap();
    assert_eq!(found.value, two);
    let dead_letters = process.queues.queue_client(format!("{name}-poison")).unwrap();
    let options = PeekMessagesOptions { max_messages: Some(32), ..Default::default() };
    assert!(dead_letters.peek_messages(Some(options)).await.unwrap().is_empty());
    dead_letters.delete(None).await.unwrap();
    table.delete(None).await.unwrap();
    queue.delete(None).await.unwrap();
}

/// What is in the way of one entry is in that of no other.
#[tokio::test]
async fn a_value_that_is_taken_stops_nothing_else() {
    let account = account();
    let name = fresh_name();
    let process = Process::new(&account, None);
    let table = process.tables.table_client(name.as_str()).unwrap();
    let queue = process.queues.queue_client(name.as_str()).unwrap();
    table.create(None).await.unwrap();
    queue.create(None).await.unwrap();
    let staff = InterPartitionIndex::new(table.clone(), "empid_", queue.clone())
        .with(Index::unique("mail_", Employee::EMAIL), Place::whole())
        .unwrap()
        .with(Index::many("name_", Employee::LAST_NAME), Place::whole())
        .unwrap();
    staff.save(&employee("Sales", "1", "x@contoso.com", "Jones")).await.unwrap();
    settle(&queue, staff.job::<Employee>().into_shared()).await;
    let second = employee("Marketing", "1", "x@contoso.com", "Smith");
    staff.save(&second).await.unwrap();
    let worker = counting_worker(&queue).max_attempts(1);
    let report = worker.drain(staff.job::<Employee>()).await.unwrap();
    assert_eq!((report.done, report.dead_lettered), (0, 1));
    let by_name = staff.everywhere("name_").unwrap();
    assert_eq!(by_name.find::<Employee>("Smith").await.unwrap().unwrap().value, second);

    // Behind it an entity without entries, and an entry without an entity.
    let third = employee("empid_Marketing", "2", "y@contoso.com", "Miller");
    table.insert_entity(&third, None).await.unwrap();
    let orphan = Entity::new("mail_", "z@contoso.com")
        .with("PrimaryPartitionKey", "Marketing")
        .with("PrimaryRowKey", "9");
    table.insert_entity(&orphan, None).await.unwrap();
    let error = staff.repair::<Employee>("Marketing").await.unwrap_err();
    assert!(error.to_string().contains("two entities share a unique value"), "{error}");
    let by_mail = staff.everywhere("mail_").unwrap();
    assert_eq!(by_mail.find::<Employee>("y@contoso.com").await.unwrap().unwrap().id, "2");
    assert_eq!(by_name.find::<Employee>("Miller").await.unwrap().unwrap().id, "2");
    let orphan = table.get_entity_if_exists::<Entity>("mail_", "z@contoso.com", None).await;
    assert!(orphan.unwrap().is_none());
    process.queues.delete_queue(&format!("{name}-poison"), None).await.unwrap();
    table.delete(None).await.unwrap();
    queue.delete(None).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let account = account();
    let process = Process::new(&account, None);
    let table = process.tables.table_client("people").unwrap();
    let queue = process.queues.queue_client("people").unwrap();
    let staff = || InterPartitionIndex::new(table.clone(), "empid_", queue.clone());
    for (prefix, what) in [("", "nothing"), ("emp", "the start of entities"), ("empid_x", "longer")]
    {
        let index = Index::unique(prefix, "Email");
        assert!(staff().with(index, Place::partition()).is_err(), "{what}");
    }
    let staff = staff().with(Index::unique("email_", "Email"), Place::partition()).unwrap();
    assert!(staff.by("name_", "Sales").is_err() && staff.everywhere("email_").is_err());
    let wrong = Entity::new("Sales", "1").with("PrimaryRowKey", "x");
    assert!(staff.save(&wrong).await.is_err());
    let _: fn(std::io::Error) -> JobError = JobError::from;
}

/// Properties that the type wants encrypted are ciphertext in every entry and in the archive, and are no keys.
#[tokio::test]
async fn what_is_encrypted_stays_so_elsewhere() {
    let account = account();
    let process = Process::new(&account, None);
    let name = fresh_name();
    let table = process.tables.table_client(name.as_str()).unwrap();
    let queue = process.queues.queue_client(name.as_str()).unwrap();
    table.create(None).await.unwrap();
    queue.create(None).await.unwrap();
    let policy = EncryptionPolicy::new(Arc::new(KeyRing::new("2026", [7; 32])));
    let sealed = table.clone().with_encryption(policy);
    let patients = InterPartitionIndex::new(sealed.clone(), "id_", queue.clone())
        .with(Index::many("name_", Patient::NAME), Place::whole())
        .unwrap();
    let text = str::to_owned;
    let (ward, id) = (text("A"), text("1"));
    let jones = Patient { ward, id, name: text("Jones"), diagnosis: text("secret") };
    patients.save(&jones).await.unwrap();
    settle(&queue, patients.job::<Patient>().into_shared()).await;
    let by_name = patients.everywhere("name_").unwrap();
    assert_eq!(by_name.find::<Patient>("Jones").await.unwrap().unwrap().value, jones);
    let ill = Archive::<Patient>::new(sealed.clone(), sealed.clone(), queue.clone());
    let ill = ill.partition_prefix("healed_");
    ill.begin("id_A", "1").await.unwrap();
    settle(&queue, ill.job().into_shared()).await;
    let healed = sealed.get_entity::<Patient>("healed_id_A", "1", None).await.unwrap();
    assert_eq!(healed.diagnosis, "secret");
    let rows: Vec<_> = table.query_entities::<Entity>(None).try_collect().await.unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let diagnosis = row.value("Diagnosis").unwrap();
        assert_eq!(diagnosis.edm_type(), EdmType::Binary, "{}", row.partition_key());
    }
    let by_diagnosis = InterPartitionIndex::new(sealed, "id_", queue.clone())
        .with(Index::many("diagnosis_", Patient::DIAGNOSIS), Place::whole())
        .unwrap();
    let error = by_diagnosis.save(&jones).await.unwrap_err();
    assert!(error.to_string().contains("a key would show what is encrypted"), "{error}");
    table.delete(None).await.unwrap();
    queue.delete(None).await.unwrap();
}
