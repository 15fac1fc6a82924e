//! The patterns of the guide, each against the server.

use std::time::Duration;

use futures::TryStreamExt;
use tavola_client::patterns::client_join::SmallTable;
use tavola_client::patterns::compound_key::{Compound, Inverted};
use tavola_client::patterns::data_series::DataSeries;
use tavola_client::patterns::denormalization::Denormalization;
use tavola_client::patterns::heterogeneous::{PropertySet, of_type};
use tavola_client::patterns::high_volume_delete::{Period, TablePerPeriod};
use tavola_client::patterns::index_entities::IndexEntities;
use tavola_client::patterns::intra_partition_index::IntraPartitionIndex;
use tavola_client::patterns::log_tail::LogTail;
use tavola_client::patterns::spread_writes::Spread;
use tavola_client::patterns::wide_entity::WideEntities;
use tavola_client::{
    DateTime, Entity, ErrorCode, ErrorExt, Filter, KeyField, PARTITION_KEY, ROW_KEY, Stored,
    TableEntity, Transaction, UpdateMode, filter,
};

use crate::support::{TestTable, account, fresh_name};

fn moment(text: &str) -> DateTime {
    DateTime::parse_iso(text).unwrap()
}

async fn row_keys(table: &TestTable) -> Vec<String> {
    let found: Vec<_> = table.query_entities::<Entity>(None).try_collect().await.unwrap();
    found.iter().map(|stored| stored.row_key().to_owned()).collect()
}

#[tokio::test]
async fn an_entity_is_found_by_its_other_values() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with_full_copy("email_", "Email")
        .with_partial_copy("badge_", "Badge", ["Name"]);
    let jens = Entity::new("Sales", "000223")
        .with("Name", "Jens")
        .with("Email", "jens/jones@contoso.com")
        .with("Badge", 77);
    employees.save(&jens).await.unwrap();
    assert_eq!(row_keys(&table).await.len(), 3);
    let by_mail = employees.find("Sales", "email_", "jens/jones@contoso.com").await.unwrap();
    assert_eq!(by_mail.unwrap().value, jens);
    assert_eq!(employees.find("Sales", "badge_", "77").await.unwrap().unwrap().value, jens);
    let badge = table.get_entity::<Entity>("Sales", "badge_77", None).await.unwrap();
    assert_eq!(badge.properties().len(), 2, "the name and the pointer: {badge:?}");

    // A change of the value moves the copy; the old value finds nothing.
    let renamed = jens.clone().with("Email", "jj@contoso.com");
    employees.save(&renamed).await.unwrap();
    assert_eq!(employees.find("Sales", "email_", "jens/jones@contoso.com").await.unwrap(), None);
    let found = employees.find("Sales", "email_", "jj@contoso.com").await.unwrap().unwrap();
    assert_eq!(found.value, renamed);
    assert_eq!(row_keys(&table).await.len(), 3);

    // The value of another is refused, and nothing of the attempt is there.
    let thief = Entity::new("Sales", "000224").with("Email", "jj@contoso.com");
    let error = employees.save(&thief).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
    assert_eq!(employees.get("Sales", "000224").await.unwrap(), None);

    assert!(employees.delete("Sales", "000223").await.unwrap());
    assert!(!employees.delete("Sales", "000223").await.unwrap());
    assert_eq!(row_keys(&table).await, Vec::<String>::new());
    table.delete().await;
}

#[tokio::test]
async fn lists_of_keys_survive_many_writers_and_overflow() {
    let table = TestTable::create().await;
    let by_name = IndexEntities::new(table.table.clone(), "lastname_").with_units_per_entity(60);
    by_name.insert(&Entity::new("Sales", "000152").with("First", "Jens"), "Jones").await.unwrap();
    let again = by_name.insert(&Entity::new("Sales", "000152"), "Jones").await.unwrap_err();
    assert_eq!(again.code(), Some(ErrorCode::EntityAlreadyExists));

    // Writers of one list meet at its ETag and all get through.
    let writers = (0..6).map(|writer| {
        let by_name = by_name.clone();
        async move {
            for index in 0..3 {
                by_name.add("Sales", "Jones", &format!("9{writer}{index:04}")).await.unwrap();
            }
        }
    });
    futures::future::join_all(writers).await;
    let keys = by_name.keys("Sales", "Jones").await.unwrap();
    assert_eq!(keys.len(), 19);
    let shelves = row_keys(&table).await.iter().filter(|key| key.starts_with("lastname_")).count();
    assert!(shelves > 1, "the list is longer than one entity takes here");

    let found = by_name.entities::<Entity>("Sales", "Jones").await.unwrap();
    assert_eq!(found.len(), 1, "keys without an entity are left out");
    by_name.delete("Sales", "000152", "Jones").await.unwrap();
    assert!(table.get_entity::<Entity>("Sales", "000152", None).await.unwrap_err().is_not_found());
    for key in by_name.keys("Sales", "Jones").await.unwrap() {
        by_name.remove("Sales", "Jones", &key).await.unwrap();
    }
    assert_eq!(row_keys(&table).await, Vec::<String>::new());
    table.delete().await;
}

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
        let key = Compound((employee.to_owned(), Inverted(year)));
        let review = Review { department: "Sales".into(), key, rating: 4 };
        table.insert_entity(&review, None).await.unwrap();
    }
    let prefix = Compound(("1".to_owned(),)).prefix().unwrap();
    let wanted = PARTITION_KEY.eq("Sales") & ROW_KEY.starts_with(&prefix);
    let found: Vec<_> = table.query_entities::<Review>(wanted).try_collect().await.unwrap();
    let years: Vec<_> = found.iter().map(|review| review.key.0.1.0).collect();
    assert_eq!(years, [2026, 2025, 2024], "the newest first, and none of employee 10");
    let odd: ReviewKey = Compound(("a/b".to_owned(), Inverted(2026)));
    let odd = odd.to_key().unwrap();
    assert!(table.get_entity::<Review>("Sales", &odd, None).await.is_ok());
    table.delete().await;
}

#[tokio::test]
async fn the_newest_comes_first() {
    let table = TestTable::create().await;
    let log = LogTail::new(table.table.clone());
    for hour in [3, 1, 2, 5, 4] {
        let at = moment(&format!("2026-11-15T0{hour}:00:00Z"));
        let key = log.append(at, Entity::new("jens", "").with("Hour", hour)).await.unwrap();
        assert_eq!(LogTail::moment_of(&key).unwrap(), at);
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

#[tokio::test]
async fn old_periods_go_as_whole_tables() {
    let account = account();
    let prefix = format!("{}p", fresh_name().chars().take(20).collect::<String>());
    let logins = TablePerPeriod::new(account.service(), prefix, Period::Month).unwrap();
    for (day, row) in
        [("2026-09-30", "a"), ("2026-10-01", "b"), ("2026-10-31", "c"), ("2026-11-01", "d")]
    {
        logins.insert(moment(day), &Entity::new("p", row)).await.unwrap();
    }
    let all = |from: &'static str, to: &'static str| {
        let logins = logins.clone();
        async move {
            let stream = logins.query::<Entity>(moment(from), moment(to), None).await.unwrap();
            let found: Vec<_> = stream.try_collect().await.unwrap();
            found.iter().map(|stored| stored.row_key().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(all("2026-01-01", "2026-12-31").await, ["a", "b", "c", "d"]);
    assert_eq!(all("2026-10-15", "2026-10-16").await, ["b", "c"], "whole periods");
    assert_eq!(logins.drop_before(moment("2026-11-20")).await.unwrap().len(), 2);
    assert_eq!(all("2026-01-01", "2026-12-31").await, ["d"]);
    logins.drop_before(moment("2027-01-01")).await.unwrap();
    assert_eq!(all("2026-01-01", "2026-12-31").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_series_is_written_by_slots_and_read_whole() {
    let table = TestTable::create().await;
    let messages = DataSeries::<i32>::new(table.table.clone(), 24).unwrap();
    messages.record("jens", "2026-11-15", [(0, 5), (23, 7)]).await.unwrap();
    messages.record("jens", "2026-11-15", [(9, 12), (23, 8)]).await.unwrap();
    let day = messages.read("jens", "2026-11-15").await.unwrap();
    assert_eq!(day.len(), 24);
    assert_eq!((day[0], day[9], day[10], day[23]), (Some(5), Some(12), None, Some(8)));
    assert_eq!(messages.read("jens", "2026-11-16").await.unwrap(), vec![None; 24]);
    assert!(messages.record("jens", "2026-11-15", [(24, 1)]).await.is_err());
    assert!(DataSeries::<i32>::new(table.table.clone(), 253).is_err());
    table.delete().await;
}

#[tokio::test]
async fn a_wide_entity_is_one_whatever_its_rows() {
    let table = TestTable::create().await;
    let surveys = WideEntities::new(table.table.clone());
    let survey = |count: i32| {
        let mut survey = Entity::new("surveys", "2026");
        for question in 0..count {
            survey.set(format!("Answer{question:04}"), question);
        }
        survey
    };
    assert_eq!(surveys.get("surveys", "2026").await.unwrap(), None);
    for count in [600, 1300, 10] {
        surveys.upsert(&survey(count)).await.unwrap();
        assert_eq!(surveys.get("surveys", "2026").await.unwrap(), Some(survey(count)));
    }
    assert_eq!(row_keys(&table).await, ["2026 000"], "rows that are not needed are gone");

    // Two writers at once: one version wins, whole.
    let (small, large) = (survey(300), survey(900));
    let (first, second) =
        futures::future::join(surveys.upsert(&small), surveys.upsert(&large)).await;
    first.unwrap();
    second.unwrap();
    let winner = surveys.get("surveys", "2026").await.unwrap().unwrap();
    assert!(winner == small || winner == large);

    assert!(surveys.delete("surveys", "2026").await.unwrap());
    assert!(!surveys.delete("surveys", "2026").await.unwrap());
    assert_eq!(row_keys(&table).await, Vec::<String>::new());
    table.delete().await;
}

#[tokio::test]
async fn copies_change_with_their_source() {
    let table = TestTable::create().await;
    let manager =
        Entity::new("Sales", "00010").with("Name", "Jens").with("Email", "old@contoso.com");
    let department = Entity::new("Sales", "Department")
        .with("Employees", 9)
        .with("ManagerEmail", "old@contoso.com");
    let mut transaction = Transaction::new();
    transaction.insert(&manager).unwrap().insert(&department).unwrap();
    table.submit_transaction(&transaction, None).await.unwrap();

    let copies = Denormalization::new().copy("Name", "ManagerName").copy("Email", "ManagerEmail");
    let mut read = table.get_entity::<Entity>("Sales", "00010", None).await.unwrap();
    let stale = read.clone();
    read.set("Email", "new@contoso.com");
    copies.update(&table, &read, ["Department"]).await.unwrap();
    let department = table.get_entity::<Entity>("Sales", "Department", None).await.unwrap();
    assert_eq!(department.get::<String>("ManagerEmail").unwrap(), "new@contoso.com");
    assert_eq!(department.get::<String>("ManagerName").unwrap(), "Jens");
    assert_eq!(department.get::<i32>("Employees").unwrap(), 9);

    let error = copies.update(&table, &stale, ["Department"]).await.unwrap_err();
    assert!(error.is_precondition_failed());
    let read = table.get_entity::<Entity>("Sales", "00010", None).await.unwrap();
    let error = copies.update(&table, &read, ["Department", "Gone"]).await.unwrap_err();
    assert_eq!((error.failed_operation(), error.is_not_found()), (Some(2), true));
    table.delete().await;
}

#[tokio::test]
async fn spread_rows_come_back_in_order() {
    let table = TestTable::create().await;
    let events = Spread::new(table.table.clone(), 8).unwrap();
    for index in 0..60 {
        let entity = Entity::new("clicks", format!("2026-11-15T{index:04}")).with("N", index);
        events.upsert(entity).await.unwrap();
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
    assert_eq!(one.get::<i32>("N").unwrap(), 7);
    table.delete().await;
}

#[tokio::test]
async fn a_small_table_is_joined_from_memory() {
    let (small, large) = (TestTable::create().await, TestTable::create().await);
    small.insert_entity(&Entity::new("d", "Sales").with("Floor", 3), None).await.unwrap();
    for (department, id) in [("Sales", "1"), ("Marketing", "2"), ("Sales", "3")] {
        large.insert_entity(&Entity::new(department, id), None).await.unwrap();
    }
    let departments = SmallTable::<Entity>::new(
        small.table.clone(),
        Some(filter!(PartitionKey == "d")),
        Duration::from_secs(600),
    );
    let joined = departments
        .join(large.query_entities::<Entity>(None), |employee: &Entity| {
            ("d".to_owned(), employee.partition_key().to_owned())
        })
        .await
        .unwrap();
    let joined: Vec<_> = joined.try_collect().await.unwrap();
    let floors: Vec<_> = joined
        .iter()
        .map(|(employee, department)| {
            let floor = department.as_ref().map(|entity| entity.get::<i32>("Floor").unwrap());
            (employee.row_key().to_owned(), floor)
        })
        .collect();
    assert_eq!(floors, [("2".into(), None), ("1".into(), Some(3)), ("3".into(), Some(3))]);

    // What is in memory is used until it is forgotten.
    let change = Entity::new("d", "Sales").with("Floor", 4);
    small.upsert_entity(&change, UpdateMode::Replace, None).await.unwrap();
    let floor = || async {
        let department = departments.get("d", "Sales").await.unwrap().unwrap();
        department.get::<i32>("Floor").unwrap()
    };
    assert_eq!(floor().await, 3);
    departments.forget();
    assert_eq!(floor().await, 4);
    small.delete().await;
    large.delete().await;
}

#[derive(Clone, Debug, Default, PartialEq, PropertySet)]
#[table(rename_all = "PascalCase")]
struct Person {
    first_name: String,
    #[table(default)]
    nick_name: String,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Engineer {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    person: Person,
    level: i32,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Manager {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    person: Person,
    reports: i32,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Employee {
    #[table(entity_type = "Engineer")]
    Engineer(Engineer),
    #[table(entity_type = "Manager")]
    Manager(Manager),
}

#[tokio::test]
async fn types_with_a_common_base_share_a_partition() {
    let table = TestTable::create().await;
    let person = |name: &str| Person { first_name: name.into(), nick_name: String::new() };
    let engineer = Employee::Engineer(Engineer {
        department: "IT".into(),
        id: "1".into(),
        person: person("Ada"),
        level: 3,
    });
    let manager = Employee::Manager(Manager {
        department: "IT".into(),
        id: "2".into(),
        person: person("Grace"),
        reports: 12,
    });
    let mut transaction = Transaction::new();
    transaction.insert(&engineer).unwrap().insert(&manager).unwrap();
    table.submit_transaction(&transaction, None).await.unwrap();
    let everyone: Vec<_> = table
        .query_entities::<Employee>(Filter::partition("IT"))
        .map_ok(|stored| stored.into_value())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(everyone, [engineer, manager.clone()]);
    let managers: Vec<_> = table
        .query_entities::<Employee>(Filter::partition("IT") & of_type("Manager"))
        .map_ok(|stored| stored.into_value())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(managers, [manager]);
    table.delete().await;
}
