//! The code samples of the guide's chapter on implementation, in Rust: each test is one sample or two that do the same.

use futures::{StreamExt, TryStreamExt};
use tavola_client::{
    Column, Entity, ErrorExt, Filter, Operation, PARTITION_KEY, QueryCost, QueryOptions, ROW_KEY,
    TableEntity, Transaction, UpdateMode, filter,
};

use super::row_keys;
use crate::support::TestTable;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    key: String,
    #[table(default)]
    email: String,
    #[table(default)]
    age: i32,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", entity_type = "Department")]
struct Department {
    #[table(partition_key)]
    name: String,
    #[table(row_key)]
    key: String,
    employee_count: i32,
}

fn employee(department: &str, key: &str) -> Employee {
    let email = format!("{}@contoso.com", key.to_lowercase());
    Employee { department: department.into(), key: key.into(), email, age: 34 }
}

/// "Executing a point query": `TableOperation.Retrieve<EmployeeEntity>("Sales", "212")`.
#[tokio::test]
async fn retrieve() {
    let table = TestTable::create().await;
    table.insert_entity(&employee("Sales", "212"), None).await.unwrap();
    let found = table.get_entity_if_exists::<Employee>("Sales", "212", None).await.unwrap();
    assert_eq!(found.map(|stored| stored.value), Some(employee("Sales", "212")));
    assert_eq!(table.get_entity_if_exists::<Employee>("Sales", "213", None).await.unwrap(), None);
    table.delete().await;
}

/// "Retrieving multiple entities using LINQ", and the same with the fluent API: names that start with a B.
#[tokio::test]
async fn names_with_a_letter() {
    let table = TestTable::create().await;
    for key in ["Adams", "Baker", "Brown", "Clark"] {
        table.insert_entity(&employee("Sales", key), None).await.unwrap();
    }
    let linq = filter!(PartitionKey == "Sales" && RowKey >= "B" && RowKey < "C");
    let fluent = PARTITION_KEY.eq("Sales") & ROW_KEY.ge("B") & ROW_KEY.lt("C");
    assert_eq!(linq, fluent);
    assert_eq!(linq.cost(), QueryCost::RowRange);
    let found: Vec<_> = table.query_entities::<Employee>(linq).try_collect().await.unwrap();
    let keys: Vec<_> = found.iter().map(|stored| stored.key.as_str()).collect();
    assert_eq!(keys, ["Baker", "Brown"]);
    table.delete().await;
}

/// "Retrieving large numbers of entities": the client follows the tokens by itself; or it takes segments of fifty and
/// keeps the token, as a text, for another process.
#[tokio::test]
async fn continuation_tokens_by_itself_and_by_hand() {
    const EMPLOYEES: usize = 1_120;
    let table = TestTable::create().await;
    let inserts = (0..EMPLOYEES)
        .map(|number| Operation::insert(&employee("Sales", &format!("{number:06}"))).unwrap());
    let report = table.bulk(inserts, None).await;
    assert_eq!(report.progress.done, EMPLOYEES);
    let all = table.query_entities::<Employee>(Filter::partition("Sales"));
    assert_eq!(all.try_collect::<Vec<_>>().await.unwrap().len(), EMPLOYEES, "more than a page");

    let (mut token, mut segments, mut count) = (None, 0, 0);
    loop {
        let options = QueryOptions {
            filter: Some(Filter::partition("Sales")),
            page_size: Some(50),
            continuation: token.take(),
            ..Default::default()
        };
        let mut pages = table.query_entities::<Employee>(options).by_page();
        let Some(page) = pages.next().await else { break };
        let entities = page.unwrap().entities.len();
        assert!(entities <= 50);
        (segments, count) = (segments + 1, count + entities);
        token = pages.into_continuation();
        if token.is_none() {
            break;
        }
    }
    assert_eq!((segments, count), (EMPLOYEES.div_ceil(50), EMPLOYEES));
    table.delete().await;
}

/// "Server-side projection": the mail address alone; the keys and the version are there all the same.
#[tokio::test]
async fn projection() {
    let table = TestTable::create().await;
    table.insert_entity(&employee("Sales", "1"), None).await.unwrap();
    let options = QueryOptions {
        filter: Some(Filter::partition("Sales")),
        select: Some(vec!["Email".into()]),
        ..Default::default()
    };
    let found: Vec<_> = table.query_entities::<Entity>(options).try_collect().await.unwrap();
    assert_eq!(found[0].value, Entity::new("Sales", "1").with("Email", "1@contoso.com"));
    assert!(found[0].timestamp.is_some() && !found[0].etag.as_ref().is_empty());
    table.delete().await;
}

#[derive(Debug, PartialEq, TableEntity)]
enum Item {
    #[table(entity_type = "Employee")]
    Employee(Employee),
    #[table(entity_type = "Department")]
    Department(Department),
}

/// "Retrieving heterogeneous entity types": as property bags, and resolved to types.
#[tokio::test]
async fn dynamic_entities_and_a_resolver() {
    let table = TestTable::create().await;
    let department =
        Department { name: "Sales".into(), key: "Department".into(), employee_count: 2 };
    let mut transaction = Transaction::new();
    transaction.insert(&Item::Department(department)).unwrap();
    for key in ["Baker", "Evans", "Fox"] {
        transaction.insert(&Item::Employee(employee("Sales", key))).unwrap();
    }
    table.submit_transaction(&transaction, None).await.unwrap();

    let wanted = filter!(PartitionKey == "Sales" && RowKey >= "B" && RowKey < "F");
    let bags: Vec<_> = table.query_entities::<Entity>(wanted).try_collect().await.unwrap();
    let types: Vec<String> = bags.iter().map(|bag| bag.get("EntityType").unwrap()).collect();
    assert_eq!(types, ["Employee", "Department", "Employee"]);

    let resolved = table.query_entities::<Item>(Filter::partition("Sales"));
    let resolved: Vec<_> = resolved.map_ok(|stored| stored.value).try_collect().await.unwrap();
    let departments = resolved.iter().filter(|item| matches!(item, Item::Department(_))).count();
    assert_eq!((resolved.len(), departments), (4, 1));
    // "Unrecognized entity".
    let stranger = Entity::new("Sales", "Zoo").with("EntityType", "Animal");
    table.insert_entity(&stranger, None).await.unwrap();
    let found = table.query_entities::<Item>(Filter::partition("Sales"));
    assert!(found.try_collect::<Vec<_>>().await.is_err());
    table.delete().await;
}

/// "Modifying heterogeneous entity types": the count of a department, without its type.
#[tokio::test]
async fn a_count_is_changed_without_the_type() {
    let table = TestTable::create().await;
    let department =
        Department { name: "Sales".into(), key: "Department".into(), employee_count: 2 };
    table.insert_entity(&department, None).await.unwrap();
    let mut read = table.get_entity::<Entity>("Sales", "Department", None).await.unwrap();
    let count: i32 = read.get("EmployeeCount").unwrap();
    read.set("EmployeeCount", count + 1);
    table.update_entity(&read.value, UpdateMode::Merge, &read, None).await.unwrap();
    let changed = table.get_entity::<Department>("Sales", "Department", None).await.unwrap();
    assert_eq!(changed.employee_count, 3);
    // Somebody else's version is refused.
    let late = table.update_entity(&read.value, UpdateMode::Merge, &read, None).await.unwrap_err();
    assert!(late.is_precondition_failed());
    table.delete().await;
}

/// "Asynchronous and parallel operations": several departments at once, and an upsert.
#[tokio::test]
async fn parallel_queries_and_upserts() {
    let table = TestTable::create().await;
    let departments = ["Finance", "Marketing", "Sales"];
    let upserts = departments.iter().flat_map(|department| {
        let table = &table;
        (0..10).map(move |number| async move {
            let employee = employee(department, &format!("{number:05}"));
            table.upsert_entity(&employee, UpdateMode::Replace, None).await.unwrap();
        })
    });
    futures::future::join_all(upserts).await;
    let adults = Column::<i32>::new("Age").ge(18);
    let found = table.query_partitions::<Employee>(departments, 3, adults);
    let found: Vec<_> = found.try_collect().await.unwrap();
    assert_eq!(found.len(), 30);
    assert!(found.windows(2).all(|pair| pair[0].department <= pair[1].department));
    assert_eq!(row_keys(&table).await.len(), 30);
    table.delete().await;
}
