//! "Modelling relationships": what each design can change together, and what not.

use serde_json::json;

use super::{employee, insert_all};
use crate::support::{Batch, Client, shared_client};

fn department(name: &str, count: i32) -> serde_json::Value {
    json!({"PartitionKey": name, "RowKey": "Department", "EmployeeCount": count})
}

/// "One-to-many relationships", types in one partition: an employee and the count of its department change together.
#[test]
fn a_department_counts_its_employees() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &department("Sales", 0)).expect(204);
    for id in ["00010", "00011"] {
        hire(&client, &table, id);
    }
    let stored = client.entity(&table, ("Sales", "Department")).expect(200);
    assert_eq!(stored.json()["EmployeeCount"], 2);
    // A count that somebody else changed takes the employee with it.
    let stale = stored.etag();
    hire(&client, &table, "00012");
    let reply = Batch::new()
        .insert(&client, &table, &employee("00013", "x"))
        .merge(&client, &table, ("Sales", "Department"), Some(&stale), &json!({"EmployeeCount": 9}))
        .send(&client);
    reply.expect_failure(412, "UpdateConditionNotSatisfied", 1);
    client.entity(&table, ("Sales", "00013")).expect_error(404, "ResourceNotFound");
}

fn hire(client: &Client, table: &str, id: &str) {
    let department = client.entity(table, ("Sales", "Department")).expect(200);
    let count = department.json()["EmployeeCount"].as_i64().expect("a count") + 1;
    let change = json!({ "EmployeeCount": count });
    Batch::new()
        .insert(client, table, &employee(id, "Jones"))
        .merge(client, table, ("Sales", "Department"), Some(&department.etag()), &change)
        .send(client)
        .expect_done(2);
}

/// "You cannot move an employee to a new department using an EGT."
#[test]
fn an_employee_cannot_move_in_a_transaction() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &employee("00010", "Kwok")).expect(204);
    let moved = json!({"PartitionKey": "Marketing", "RowKey": "00010", "LastName": "Kwok"});
    let batch = Batch::new()
        .delete(&client, &table, ("Sales", "00010"), "*")
        .insert(&client, &table, &moved);
    batch.send(&client).expect_failure(400, "CommandsInBatchActOnDifferentPartitions", 1);
    client.entity(&table, ("Sales", "00010")).expect(200);
}

/// "Denormalize into single entity type": everything with one request, and as many updates as employees.
#[test]
fn denormalized_departments_are_changed_employee_by_employee() {
    let client = shared_client();
    let table = client.new_table();
    for id in ["1", "2", "3"] {
        let mut entity = employee(id, "x");
        entity["DepartmentManager"] = json!("Ken");
        client.insert(&table, &entity).expect(204);
    }
    assert_eq!(client.entity(&table, ("Sales", "2")).json()["DepartmentManager"], "Ken");
    let rows = client.rows(&table, "PartitionKey eq 'Sales'");
    let batch = rows.iter().fold(Batch::new(), |batch, row| {
        batch.merge(
            &client,
            &table,
            ("Sales", row),
            Some("*"),
            &json!({"DepartmentManager": "Jun"}),
        )
    });
    batch.send(&client).expect_done(3);
    let found = client.rows(&table, "PartitionKey eq 'Sales' and DepartmentManager eq 'Jun'");
    assert_eq!(found, ["1", "2", "3"]);
}

/// "One-to-one relationships": a link by the keys of both, and a link that is stored.
#[test]
fn two_entities_that_are_one() {
    let client = shared_client();
    let table = client.new_table();
    let salary = json!({"PartitionKey": "Sales", "RowKey": "SALARY_000123", "Amount": 85000,
        "EmployeePartition": "Sales", "EmployeeRow": "EMPLOYEE_000123"});
    insert_all(&client, &table, [employee("EMPLOYEE_000123", "Jones"), salary]);
    let salary = client.entity(&table, ("Sales", "SALARY_000123")).expect(200).json();
    let keys =
        (salary["EmployeePartition"].as_str().unwrap(), salary["EmployeeRow"].as_str().unwrap());
    assert_eq!(client.entity(&table, keys).expect(200).json()["LastName"], "Jones");
}
