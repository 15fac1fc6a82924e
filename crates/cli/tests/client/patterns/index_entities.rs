//! Index entities: the guide's lists, as it prints them.

use tavola_client::patterns::index_entities::{IndexEntities, Repaired};
use tavola_client::{Entity, ErrorCode, ErrorExt, IfMatch, TableEntity, UpdateMode};

use super::row_keys;
use crate::support::TestTable;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", columns)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    last_name: Option<String>,
}

fn employee(id: &str, last_name: &str) -> Employee {
    Employee { department: "Sales".into(), id: id.into(), last_name: Some(last_name.into()) }
}

/// Steps 1 to 3 of the guide, on the layout of the guide, with a list that another program made.
#[tokio::test]
async fn the_guides_lists_are_adopted() {
    let table = TestTable::create().await;
    let adopted =
        Entity::new("Sales", "Jones").with("EmployeeIDs", "000123, 000124").with("Note", "kept");
    table.insert_entity(&adopted, None).await.unwrap();
    for id in ["000123", "000124"] {
        table.insert_entity(&employee(id, "Jones"), None).await.unwrap();
    }
    let by_name =
        IndexEntities::new(table.table.clone(), Employee::LAST_NAME, "EmployeeIDs").unwrap();
    by_name.insert(&employee("000152", "Jones")).await.unwrap();
    let list = table.get_entity::<Entity>("Sales", "Jones", None).await.unwrap();
    assert_eq!(list.get::<String>("EmployeeIDs").unwrap(), "000123,000124,000152");
    assert_eq!(list.get::<String>("Note").unwrap(), "kept");
    let found = by_name.entities::<Employee>("Sales", "Jones").await.unwrap();
    let ids: Vec<_> = found.iter().map(|stored| stored.id.as_str()).collect();
    assert_eq!(ids, ["000123", "000124", "000152"]);

    let again = by_name.insert(&employee("000152", "Jones")).await.unwrap_err();
    assert_eq!(again.code(), Some(ErrorCode::EntityAlreadyExists));
    let department = Entity::new("Sales", "Department").with("Name", "Sales");
    table.insert_entity(&department, None).await.unwrap();
    let mixed = by_name.insert(&employee("000160", "Department")).await.unwrap_err();
    assert!(mixed.to_string().contains("is no list"), "{mixed}");
    table.delete().await;
}

/// "An entity group transaction that updates three entities": a new name leaves one list and joins another.
#[tokio::test]
async fn a_changed_value_moves_to_the_other_list() {
    let table = TestTable::create().await;
    let by_name = IndexEntities::new(table.table.clone(), "LastName", "EmployeeIDs").unwrap();
    for id in ["000152", "000153"] {
        by_name.save(&employee(id, "Jones")).await.unwrap();
    }
    by_name.save(&employee("000152", "Smith")).await.unwrap();
    assert_eq!(by_name.keys("Sales", "Jones").await.unwrap(), ["000153"]);
    assert_eq!(by_name.keys("Sales", "Smith").await.unwrap(), ["000152"]);
    by_name.save(&employee("000152", "Smith")).await.unwrap();
    assert_eq!(by_name.keys("Sales", "Smith").await.unwrap(), ["000152"]);
    // Without a value it is in no list; the list without keys is gone.
    by_name.save(&Employee { last_name: None, ..employee("000152", "") }).await.unwrap();
    assert_eq!(row_keys(&table).await, ["000152", "000153", "Jones"]);
    assert!(by_name.delete("Sales", "000153").await.unwrap());
    assert!(!by_name.delete("Sales", "000153").await.unwrap());
    assert_eq!(row_keys(&table).await, ["000152"]);

    // Many writers rename the same employee: one name wins, and the lists know.
    let writers = (0..5).map(|number| {
        let by_name = by_name.clone();
        async move { by_name.save(&employee("000152", &format!("Name{number}"))).await.unwrap() }
    });
    futures::future::join_all(writers).await;
    let winner = table.get_entity::<Employee>("Sales", "000152", None).await.unwrap();
    let name = winner.last_name.clone().unwrap();
    assert_eq!(row_keys(&table).await, ["000152", name.as_str()]);
    table.delete().await;
}

#[tokio::test]
async fn lists_of_keys_survive_many_writers_and_overflow() {
    let table = TestTable::create().await;
    let by_name = IndexEntities::new(table.table.clone(), "LastName", "EmployeeIDs")
        .unwrap()
        .prefix("lastname_")
        .units_per_entity(60);
    by_name.insert(&employee("000152", "Jones")).await.unwrap();
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
    let lists = row_keys(&table).await.iter().filter(|key| key.starts_with("lastname_")).count();
    assert!(lists > 1, "the list is longer than one entity takes here");
    assert_eq!(by_name.keys_between("Sales", "J".."K").await.unwrap().len(), 19);

    let found = by_name.entities::<Employee>("Sales", "Jones").await.unwrap();
    assert_eq!(found.len(), 1, "keys without an entity are left out");
    assert!(by_name.delete("Sales", "000152").await.unwrap());
    assert!(table.get_entity::<Entity>("Sales", "000152", None).await.unwrap_err().is_not_found());
    for key in by_name.keys("Sales", "Jones").await.unwrap() {
        by_name.remove("Sales", "Jones", &key).await.unwrap();
    }
    assert_eq!(row_keys(&table).await, Vec::<String>::new());
    table.delete().await;
}

#[tokio::test]
async fn lists_are_asked_for_by_ranges_of_values() {
    let table = TestTable::create().await;
    let by_name = IndexEntities::new(table.table.clone(), "LastName", "EmployeeIDs").unwrap();
    for (id, name) in
        [("1", "Adams"), ("2", "Jones"), ("3", "Jones Smith"), ("4", "Jonesa"), ("5", "Smith")]
    {
        by_name.insert(&employee(id, name)).await.unwrap();
    }
    let between = |from: &'static str, to: &'static str| by_name.keys_between("Sales", from..to);
    assert_eq!(between("J", "K").await.unwrap(), ["2", "3", "4"]);
    assert_eq!(between("Jones Smith", "T").await.unwrap(), ["3", "4", "5"]);
    assert_eq!(by_name.keys_between("Sales", ..="Jones").await.unwrap(), ["1", "2"]);
    let error = by_name.add("Sales", "Jones", "a,b").await.unwrap_err();
    assert!(error.to_string().contains("another separator"), "{error}");
    let lines = by_name.clone().list_separator('\n').prefix("by_");
    lines.add("Sales", "Jones", "a,b").await.unwrap();
    assert_eq!(lines.keys("Sales", "Jones").await.unwrap(), ["a,b"]);
    table.delete().await;
}

#[tokio::test]
async fn lists_are_repaired() {
    let table = TestTable::create().await;
    let by_name = IndexEntities::new(table.table.clone(), "LastName", "EmployeeIDs").unwrap();
    for (id, name) in [("1", "Jones"), ("2", "Jones"), ("3", "Smith")] {
        by_name.insert(&employee(id, name)).await.unwrap();
    }
    // Something else renames, deletes and adds.
    table.upsert_entity(&employee("1", "Brown"), UpdateMode::Replace, None).await.unwrap();
    table.delete_entity("Sales", "3", IfMatch::Any, None).await.unwrap();
    table.insert_entity(&employee("4", "Smith"), None).await.unwrap();
    let found = by_name.entities::<Employee>("Sales", "Jones").await.unwrap();
    assert_eq!(found.len(), 1, "what has another name by now is left out");
    assert_eq!(by_name.repair("Sales").await.unwrap(), Repaired { written: 2, removed: 2 });
    assert_eq!(by_name.repair("Sales").await.unwrap(), Repaired::default());
    for (name, ids) in [("Brown", vec!["1"]), ("Jones", vec!["2"]), ("Smith", vec!["4"])] {
        assert_eq!(by_name.keys("Sales", name).await.unwrap(), ids, "{name}");
    }
    table.delete().await;
}
