//! "About the Azure Table service": what the first chapter says of entities, partitions and transactions.

use serde_json::json;

use super::{employee, insert_all};
use crate::support::{Batch, shared_client};

/// The first example table: employees and departments side by side, each with its own properties.
#[test]
fn the_first_example_table() {
    let client = shared_client();
    let table = client.new_table();
    let person = |department: &str, id: &str, first: &str, last: &str, age: i32, email: &str| {
        json!({"PartitionKey": department, "RowKey": id, "FirstName": first, "LastName": last,
            "Age": age, "Email": email})
    };
    insert_all(
        &client,
        &table,
        [
            person("Marketing", "00001", "Don", "Hall", 34, "donh@contoso.com"),
            person("Marketing", "00002", "Jun", "Cao", 47, "junc@contoso.com"),
            json!({"PartitionKey": "Marketing", "RowKey": "Department",
                "DepartmentName": "Marketing", "EmployeeCount": 153}),
            person("Sales", "00010", "Ken", "Kwok", 23, "kenk@contoso.com"),
        ],
    );
    assert_eq!(client.rows(&table, ""), ["00001", "00002", "Department", "00010"]);
    let department = client.entity(&table, ("Marketing", "Department")).expect(200).json();
    assert_eq!(department["EmployeeCount"], 153);
    assert!(department.get("FirstName").is_none());
    // "Every entity must have a unique combination of PartitionKey and RowKey."
    let twice =
        client.insert(&table, &person("Sales", "00010", "Zoe", "Kwok", 23, "z@contoso.com"));
    twice.expect_error(409, "EntityAlreadyExists");
    client
        .insert(&table, &person("Sales", "00001", "Zoe", "Kwok", 23, "z@contoso.com"))
        .expect(204);
}

/// "You cannot manually overwrite the timestamp with an arbitrary value", and the ETag is made of it.
#[test]
fn the_timestamp_is_the_services() {
    let client = shared_client();
    let table = client.new_table();
    let mut entity = employee("1", "Jones");
    entity["Timestamp"] = json!("2014-08-22T00:50:32Z");
    entity["Timestamp@odata.type"] = json!("Edm.DateTime");
    client.insert(&table, &entity).expect(204);
    let stored = client.entity(&table, ("Sales", "1")).expect(200);
    let timestamp = stored.json()["Timestamp"].as_str().unwrap().to_owned();
    assert!(!timestamp.starts_with("2014"), "{timestamp}");
    let in_etag = timestamp.replace(':', "%3A");
    assert!(stored.etag().contains(&in_etag), "{} {timestamp}", stored.etag());
}

/// "A property need not have the same data type on each entity."
#[test]
fn a_property_has_a_type_on_each_entity() {
    let client = shared_client();
    let table = client.new_table();
    let aged = |row: &str, age: serde_json::Value| json!({"PartitionKey": "Sales", "RowKey": row, "Age": age});
    insert_all(
        &client,
        &table,
        [aged("1", json!(34)), aged("2", json!("34")), aged("3", json!(34.5))],
    );
    assert_eq!(client.rows(&table, "PartitionKey eq 'Sales' and Age eq 34"), ["1"]);
    assert_eq!(client.rows(&table, "PartitionKey eq 'Sales' and Age eq '34'"), ["2"]);
    assert_eq!(client.rows(&table, "PartitionKey eq 'Sales' and Age ge 34.5"), ["3"]);
}

/// "Entity Group Transactions": one partition, an entity once, all or nothing.
#[test]
fn a_transaction_is_of_one_partition_and_names_an_entity_once() {
    let client = shared_client();
    let table = client.new_table();
    let marketing = json!({"PartitionKey": "Marketing", "RowKey": "1"});
    let batch = Batch::new()
        .insert(&client, &table, &employee("1", "x"))
        .insert(&client, &table, &marketing);
    batch.send(&client).expect_failure(400, "CommandsInBatchActOnDifferentPartitions", 1);
    let batch = Batch::new().insert(&client, &table, &employee("1", "x")).put(
        &client,
        &table,
        ("Sales", "1"),
        None,
        &json!({"LastName": "y"}),
    );
    batch.send(&client).expect_failure(400, "InvalidDuplicateRow", 1);
    assert_eq!(client.rows(&table, ""), Vec::<String>::new());
    // Types of different kinds change together.
    let department = json!({"PartitionKey": "Sales", "RowKey": "Department", "EmployeeCount": 1});
    let batch = Batch::new().insert(&client, &table, &employee("1", "x")).insert(
        &client,
        &table,
        &department,
    );
    batch.send(&client).expect_done(2);
}
