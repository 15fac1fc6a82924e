//! Related entities: copies of each other's values, small tables in memory, several types in a partition.

use std::time::Duration;

use futures::TryStreamExt;
use tavola_client::patterns::client_join::SmallTable;
use tavola_client::patterns::denormalization::Denormalization;
use tavola_client::patterns::heterogeneous::{PropertySet, of_type};
use tavola_client::{Entity, ErrorExt, Filter, TableEntity, Transaction, UpdateMode, filter};

use crate::support::TestTable;

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

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Boss {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
}

#[tokio::test]
async fn copies_of_a_typed_source_change_with_it() {
    let table = TestTable::create().await;
    let boss = Boss { department: "Sales".into(), id: "00010".into(), name: "Ken".into() };
    table.insert_entity(&boss, None).await.unwrap();
    let copies = Denormalization::new().copy("Name", "ManagerName");
    let department = copies.copies_of(&boss, "Department").unwrap().with("EmployeeCount", 153);
    table.insert_entity(&department, None).await.unwrap();
    let mut stored = table.get_entity::<Boss>("Sales", "00010", None).await.unwrap();
    stored.name = "Jun".into();
    copies.update(&table, &stored, ["Department"]).await.unwrap();
    let department = table.get_entity::<Entity>("Sales", "Department", None).await.unwrap();
    assert_eq!(department.get::<String>("ManagerName").unwrap(), "Jun");
    assert_eq!(department.get::<i32>("EmployeeCount").unwrap(), 153);
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
