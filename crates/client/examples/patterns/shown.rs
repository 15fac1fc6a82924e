//! One function for each pattern, as small as it can be and still be true.

use std::io::Write;
use std::time::Duration;

use azure_core::error::ErrorKind;
use futures::TryStreamExt;
use tavola_client::patterns::client_join::SmallTable;
use tavola_client::patterns::compound_key::{Compound, Padded};
use tavola_client::patterns::data_series::DataSeries;
use tavola_client::patterns::denormalization::Denormalization;
use tavola_client::patterns::eventually_consistent::Archive;
use tavola_client::patterns::heterogeneous::of_type;
use tavola_client::patterns::high_volume_delete::{Period, TablePerPeriod};
use tavola_client::patterns::index::Index;
use tavola_client::patterns::index_entities::IndexEntities;
use tavola_client::patterns::inter_partition_index::{InterPartitionIndex, Place};
use tavola_client::patterns::intra_partition_index::IntraPartitionIndex;
use tavola_client::patterns::log_tail::LogTail;
use tavola_client::patterns::queue_worker::{JobError, QueueWorker};
use tavola_client::patterns::spread_writes::Spread;
use tavola_client::patterns::wide_entity::WideEntities;
use tavola_client::queue::{Backoff, QueueClient, QueueServiceClient};
use tavola_client::{
    DateTime, Entity, Filter, KeyField, ROW_KEY, Result, Stored, TableClient, TableServiceClient,
    now,
};

/// The names of the patterns, as they are asked for.
pub(super) const NAMES: [&str; 14] = [
    "intra_partition_index",
    "inter_partition_index",
    "eventually_consistent",
    "queue_worker",
    "index_entities",
    "compound_key",
    "log_tail",
    "high_volume_delete",
    "data_series",
    "wide_entity",
    "denormalization",
    "spread_writes",
    "client_join",
    "heterogeneous",
];

/// Shows the patterns that are wanted, or all, each in a table of its own that is deleted afterwards.
///
/// # Errors
/// A name that no pattern has, and those of the service.
pub(super) async fn run(
    connection: Option<&str>,
    prefix: &str,
    wanted: &[String],
    out: &mut impl Write,
) -> Result<()> {
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(&name.as_str())) {
        let message = format!("there is no pattern {unknown}; there are {}", NAMES.join(", "));
        return Err(azure_core::Error::with_message(ErrorKind::Other, message));
    }
    let connection = connection.unwrap_or("UseDevelopmentStorage=true");
    let service = &TableServiceClient::from_connection_string(connection, None)?;
    for (index, name) in NAMES.into_iter().enumerate() {
        if !wanted.is_empty() && !wanted.iter().any(|known| known == name) {
            continue;
        }
        let table = service.table_client(format!("{prefix}{index:02}"))?;
        table.create_if_not_exists(None).await?;
        let shown = match name {
            "inter_partition_index" | "eventually_consistent" | "queue_worker" => {
                let queues = QueueServiceClient::from_connection_string(connection, None)?;
                let queue = queues.queue_client(table.name().to_ascii_lowercase())?;
                queue.create_if_not_exists(None).await?;
                let shown = show_with_queue(name, service, &table, &queues, &queue).await?;
                queue.delete(None).await?;
                shown
            }
            _ => show(name, service, &table).await?,
        };
        table.delete(None).await?;
        writeln!(out, "{name}: {shown}")?;
    }
    Ok(())
}

async fn show(name: &str, service: &TableServiceClient, table: &TableClient) -> Result<String> {
    match name {
        "intra_partition_index" => intra_partition_index(table).await,
        "index_entities" => index_entities(table).await,
        "compound_key" => compound_key(table).await,
        "log_tail" => log_tail(table).await,
        "high_volume_delete" => high_volume_delete(service, table.name()).await,
        "data_series" => data_series(table).await,
        "wide_entity" => wide_entity(table).await,
        "denormalization" => denormalization(table).await,
        "spread_writes" => spread_writes(table).await,
        "client_join" => client_join(table).await,
        _ => heterogeneous(table).await,
    }
}

async fn show_with_queue(
    name: &str,
    service: &TableServiceClient,
    table: &TableClient,
    queues: &QueueServiceClient,
    queue: &QueueClient,
) -> Result<String> {
    match name {
        "inter_partition_index" => inter_partition_index(table, queue).await,
        "eventually_consistent" => eventually_consistent(service, table, queue).await,
        _ => queue_worker(queues, queue).await,
    }
}

async fn inter_partition_index(table: &TableClient, queue: &QueueClient) -> Result<String> {
    let employees = InterPartitionIndex::new(table.clone(), "empid_", queue.clone())
        .with(Index::unique("email_", "Email"), Place::whole())?;
    employees.save(&Entity::new("Sales", "000223").with("Email", "jonesj@contoso.com")).await?;
    let by_email = employees.everywhere("email_")?;
    let before = by_email.find::<Entity>("jonesj@contoso.com").await?;
    // The worker, which runs somewhere else in a real program.
    QueueWorker::new(queue.clone()).drain(employees.job::<Entity>()).await?;
    let after = by_email.find::<Entity>("jonesj@contoso.com").await?;
    let department = |found: Option<Stored<Entity>>| {
        found.map_or_else(|| "nobody".to_owned(), |found| found.partition_key().to_owned())
    };
    Ok(format!("by mail alone: {}, then {}", department(before), department(after)))
}

async fn eventually_consistent(
    service: &TableServiceClient,
    current: &TableClient,
    queue: &QueueClient,
) -> Result<String> {
    let archive = service.table_client(format!("{}Archive", current.name()))?;
    archive.create_if_not_exists(None).await?;
    current.insert_entity(&Entity::new("Sales", "000456"), None).await?;
    let leavers = Archive::<Entity>::new(current.clone(), archive.clone(), queue.clone());
    leavers.begin("Sales", "000456").await?;
    QueueWorker::new(queue.clone()).drain(leavers.job()).await?;
    let is_current =
        current.get_entity_if_exists::<Entity>("Sales", "000456", None).await?.is_some();
    let archived = archive.query_entities::<Entity>(None).try_collect::<Vec<_>>().await?;
    archive.delete(None).await?;
    Ok(format!("current: {is_current}, archived: {}", archived.len()))
}

async fn queue_worker(queues: &QueueServiceClient, queue: &QueueClient) -> Result<String> {
    for number in 0..5 {
        queue.send_message(number.to_string(), None).await?;
    }
    let no_pause = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
    let worker = QueueWorker::new(queue.clone()).max_attempts(1).retry(no_pause);
    let report = worker
        .drain(|message| async move {
            match message.text()?.as_ref() {
                "3" => Err(JobError::poison("nobody likes it")),
                _ => Ok(()),
            }
        })
        .await?;
    queues.delete_queue_if_exists(&format!("{}-poison", queue.name()), None).await?;
    Ok(format!("{} messages done, {} among the dead letters", report.done, report.dead_lettered))
}

async fn intra_partition_index(table: &TableClient) -> Result<String> {
    let employees =
        IntraPartitionIndex::new(table.clone(), "empid_").with(Index::unique("email_", "Email"))?;
    employees.save(&Entity::new("Sales", "000223").with("Email", "jonesj@contoso.com")).await?;
    let by_email = employees.by("email_")?;
    let found = by_email.find::<Entity>("Sales", "jonesj@contoso.com").await?;
    Ok(format!("found employee {} by mail", found.map_or_else(String::new, |e| e.row_key().into())))
}

async fn index_entities(table: &TableClient) -> Result<String> {
    let by_name = IndexEntities::new(table.clone(), "LastName", "EmployeeIDs")?;
    for id in ["000152", "000153"] {
        by_name.insert(&Entity::new("Sales", id).with("LastName", "Jones")).await?;
    }
    Ok(format!("Jones is {}", by_name.keys("Sales", "Jones").await?.join(" and ")))
}

async fn compound_key(table: &TableClient) -> Result<String> {
    for (employee, year) in [(123, 2011), (123, 2012), (124, 2012)] {
        let key = Compound::new((Padded::<6>(employee), Padded::<4>(year))).to_key()?;
        table.insert_entity(&Entity::new("Sales", key), None).await?;
    }
    let prefix = Compound::new((Padded::<6>(123),)).prefix()?;
    let wanted = Filter::partition("Sales") & ROW_KEY.starts_with(&prefix);
    let reviews: Vec<_> = table.query_entities::<Entity>(wanted).try_collect().await?;
    let rows: Vec<_> = reviews.iter().map(|review| review.row_key()).collect();
    Ok(format!("reviews {}", rows.join(" and ")))
}

async fn log_tail(table: &TableClient) -> Result<String> {
    let log = LogTail::new(table.clone());
    for number in 0..5 {
        log.append(now(), &Entity::new("jens", "").with("N", number)).await?;
    }
    let latest = log.latest::<Entity>("jens", 2).await?;
    let numbers = latest.iter().map(|e| e.get::<i32>("N")).collect::<Result<Vec<_>>>()?;
    Ok(format!("the latest two of five are {numbers:?}"))
}

async fn high_volume_delete(service: &TableServiceClient, name: &str) -> Result<String> {
    let day = |text| DateTime::parse_iso(text).expect("a day");
    let logins = TablePerPeriod::new(service.clone(), format!("{name}x"), Period::Month)?;
    for month in ["2026-09-15", "2026-10-15", "2026-11-15"] {
        logins.insert(day(month), &Entity::new("jens", month)).await?;
    }
    let dropped = logins.drop_before(day("2026-11-01")).await?.len();
    let rest = logins.query::<Entity>(day("2026-01-01"), day("2026-12-31"), None).await?;
    let rest: Vec<_> = rest.try_collect().await?;
    logins.drop_before(day("2027-01-01")).await?;
    Ok(format!("{dropped} months dropped, {} login left", rest.len()))
}

async fn data_series(table: &TableClient) -> Result<String> {
    let messages = DataSeries::<i32>::new(table.clone(), 24)?;
    messages.record("jens", "2026-11-15", [(9, 12), (10, 31)]).await?;
    messages.add("jens", "2026-11-15", 9, 1).await?;
    let day = messages.read("jens", "2026-11-15").await?;
    Ok(format!("{} messages in a day of 24 slots", day.iter().flatten().sum::<i32>()))
}

async fn wide_entity(table: &TableClient) -> Result<String> {
    let mut messages = Entity::new("Sales", "000123_2026");
    for day in 1..=365 {
        messages.set(format!("Day{day:03}"), 0);
    }
    let years = WideEntities::new(table.clone());
    years.upsert(&messages).await?;
    years.merge(&Entity::new("Sales", "000123_2026").with("Day319", 12)).await?;
    let year = years.get::<Entity>("Sales", "000123_2026").await?.unwrap_or_default();
    let day: i32 = year.get("Day319")?;
    Ok(format!("{} days read as one, {day} messages on one", year.properties().len()))
}

async fn denormalization(table: &TableClient) -> Result<String> {
    table
        .insert_entity(&Entity::new("Sales", "00010").with("Email", "old@contoso.com"), None)
        .await?;
    table.insert_entity(&Entity::new("Sales", "Department"), None).await?;
    let mut manager = table.get_entity::<Entity>("Sales", "00010", None).await?;
    manager.set("Email", "new@contoso.com");
    let copies = Denormalization::new().copy("Email", "ManagerEmail");
    copies.update(table, &manager, ["Department"]).await?;
    let department = table.get_entity::<Entity>("Sales", "Department", None).await?;
    Ok(format!("the department knows {}", department.get::<String>("ManagerEmail")?))
}

async fn spread_writes(table: &TableClient) -> Result<String> {
    let events = Spread::new(table.clone(), 8)?;
    for number in 0..20 {
        events.upsert(&Entity::new("clicks", format!("{number:04}"))).await?;
    }
    let found: Vec<_> = events.range::<Entity>("clicks", "0005", "0010").try_collect().await?;
    let rows: Vec<_> = found.iter().map(|stored| stored.row_key()).collect();
    Ok(format!("in order from 8 partitions: {}", rows.join(" ")))
}

async fn client_join(table: &TableClient) -> Result<String> {
    table.insert_entity(&Entity::new("departments", "Sales").with("Floor", 3), None).await?;
    table.insert_entity(&Entity::new("Sales", "00010"), None).await?;
    let small = Some(Filter::partition("departments"));
    let departments = SmallTable::<Entity>::new(table.clone(), small, Duration::from_secs(60));
    let employees = table.query_entities::<Entity>(Filter::partition("Sales"));
    let key = |employee: &Entity| ("departments".to_owned(), employee.partition_key().to_owned());
    let joined: Vec<_> = departments.join(employees, key).await?.try_collect().await?;
    let floor = joined[0].1.as_ref().map(|department| department.get::<i32>("Floor"));
    Ok(format!(
        "employee {} works on floor {}",
        joined[0].0.row_key(),
        floor.transpose()?.unwrap_or(0)
    ))
}

async fn heterogeneous(table: &TableClient) -> Result<String> {
    for (row, kind) in [("1", "Employee"), ("2", "Employee"), ("Department", "Department")] {
        let entity = Entity::new("Sales", row).with("EntityType", kind);
        table.insert_entity(&entity, None).await?;
    }
    let wanted = Filter::partition("Sales") & of_type("Employee");
    let employees: Vec<_> = table.query_entities::<Entity>(wanted).try_collect().await?;
    Ok(format!("{} of 3 entities are employees", employees.len()))
}
