//! "Implementation considerations": what the samples of the client library send.

use std::sync::Arc;

use serde_json::json;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{KeyRangeLimit, Permissions, TableSasSpec};

use super::{employee, explained, insert_all};
use crate::support::client::{entity_path, values};
use crate::support::{Batch, Client, KEY, minutes_from_now, shared_client};

/// "Executing a point query using the Storage Client Library" and "Retrieving multiple entities using LINQ".
#[test]
fn retrieving_by_point_and_by_prefix() {
    let client = shared_client();
    let table = client.new_table();
    insert_all(
        &client,
        &table,
        ["212", "Adams", "Baker", "Brown", "Clark"].map(|row| employee(row, row)),
    );
    assert_eq!(client.entity(&table, ("Sales", "212")).expect(200).json()["LastName"], "212");
    client.entity(&table, ("Sales", "213")).expect_error(404, "ResourceNotFound");
    let fluent = "((PartitionKey eq 'Sales') and (RowKey ge 'B')) and (RowKey lt 'C')";
    assert_eq!(client.rows(&table, fluent), ["Baker", "Brown"]);
}

/// "Retrieving large numbers of entities from a query": segments of fifty (`TakeCount`), with a token that is stored
/// and used by another process after a crash.
#[test]
fn segments_with_stored_tokens() {
    let server = Arc::new(crate::support::Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    for hundred in 0..2 {
        let batch = (0..60).fold(Batch::new(), |batch, number| {
            batch.insert(&client, &table, &employee(&format!("{hundred}{number:03}"), "x"))
        });
        batch.send(&client).expect_done(60);
    }
    let mut rows = Vec::new();
    let mut stored: Option<(String, String)> = None;
    loop {
        let mut options = vec![("$filter", "PartitionKey eq 'Sales'"), ("$top", "50")];
        if let Some((partition_key, row_key)) = &stored {
            options.extend([
                ("NextPartitionKey", partition_key.as_str()),
                ("NextRowKey", row_key.as_str()),
            ]);
        }
        let page = client.query(&table, &options).send().expect(200);
        rows.push(values(&page).len());
        let token = |name| page.header(name).map(str::to_owned);
        stored =
            token("x-ms-continuation-NextPartitionKey").zip(token("x-ms-continuation-NextRowKey"));
        if stored.is_none() {
            break;
        }
        server.crash_and_restart();
    }
    assert_eq!(rows, [50, 50, 20]);
}

/// "Server-side projection": the columns that the client library asks for.
#[test]
fn projection_of_one_column() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "Sales", "RowKey": "1", "Email": "a@b.c", "Age": 5});
    client.insert(&table, &entity).expect(204);
    let select = "Email,PartitionKey,RowKey,Timestamp";
    let options = [("$filter", "PartitionKey eq 'Sales'"), ("$select", select)];
    let found = values(&client.query(&table, &options).send().expect(200));
    let names: Vec<_> = found[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["Email", "PartitionKey", "RowKey", "Timestamp", "odata.etag"]);
}

/// "Modifying entities": the error of a transaction tells which entity it was.
#[test]
fn a_failed_transaction_tells_the_index() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &employee("3", "x")).expect(204);
    let batch = (0..5).fold(Batch::new(), |batch, row| {
        batch.insert(&client, &table, &employee(&row.to_string(), "x"))
    });
    batch.send(&client).expect_failure(409, "EntityAlreadyExists", 3);
}

/// "Merge or replace": replace removes what is not sent, merge leaves it; both fail without an entity, and the
/// InsertOr... forms make one.
#[test]
fn merge_or_replace() {
    let client = shared_client();
    let table = client.new_table();
    let keys = ("Sales", "1");
    let part = json!({"Age": 31});
    client.put(&table, keys, &part).if_match("*").send().expect_error(404, "ResourceNotFound");
    client.merge(&table, keys, &part).if_match("*").send().expect_error(404, "ResourceNotFound");
    client.merge(&table, keys, &json!({"LastName": "Jones", "Age": 30})).send().expect(204);
    client.merge(&table, keys, &part).if_match("*").send().expect(204);
    let merged = client.entity(&table, keys).json();
    assert_eq!((&merged["LastName"], &merged["Age"]), (&json!("Jones"), &json!(31)));
    client.put(&table, keys, &part).if_match("*").send().expect(204);
    assert!(client.entity(&table, keys).json().get("LastName").is_none());
    client.put(&table, ("Sales", "2"), &part).send().expect(204);
}

/// "Working with heterogeneous entity types": employees and departments in one partition, told apart by
/// EntityType, and modified without knowing the type.
#[test]
fn heterogeneous_entities() {
    let client = shared_client();
    let table = client.new_table();
    insert_all(
        &client,
        &table,
        [
            json!({"PartitionKey": "Sales", "RowKey": "Baker", "EntityType": "Employee", "Age": 40}),
            json!({"PartitionKey": "Sales", "RowKey": "Department", "EntityType": "Department",
                "EmployeeCount": 2}),
            json!({"PartitionKey": "Sales", "RowKey": "Evans", "EntityType": "Employee",
                "Email@odata.type": "Edm.String", "Email": "e@contoso.com"}),
            json!({"PartitionKey": "Sales", "RowKey": "Fox", "EntityType": "Employee"}),
        ],
    );
    let filter = "(PartitionKey eq 'Sales') and ((RowKey ge 'B') and (RowKey lt 'F'))";
    let found = client.matches(&table, filter);
    let types: Vec<_> = found.iter().map(|entity| entity["EntityType"].as_str().unwrap()).collect();
    assert_eq!(types, ["Employee", "Department", "Employee"]);
    // No entity has properties of another.
    assert!(found[0].get("EmployeeCount").is_none() && found[1].get("Age").is_none());
    let filter = "PartitionKey eq 'Sales' and EntityType eq 'Department'";
    assert_eq!(client.rows(&table, filter), ["Department"]);
    assert_eq!(client.rows(&table, "EmployeeCount ge 0"), ["Department"]);

    // "Modifying heterogeneous entity types".
    let department = client.entity(&table, ("Sales", "Department")).expect(200);
    let count = department.json()["EmployeeCount"].as_i64().expect("a count") + 1;
    let merge = client.merge(&table, ("Sales", "Department"), &json!({ "EmployeeCount": count }));
    merge.if_match(&department.etag()).send().expect(204);
    let changed = client.entity(&table, ("Sales", "Department")).json();
    assert_eq!(
        (&changed["EmployeeCount"], &changed["EntityType"]),
        (&json!(3), &json!("Department"))
    );
}

/// "Controlling access with Shared Access Signatures": a token for each user's own rows.
#[test]
fn a_token_for_one_users_rows() {
    let client = shared_client();
    let table = client.new_table();
    for user in ["alice", "bob", "carol"] {
        insert_all(
            &client,
            &table,
            ["1", "2"].map(|row| json!({"PartitionKey": user, "RowKey": row})),
        );
    }
    let permissions = Permissions::parse_table("raud").unwrap();
    let spec = TableSasSpec {
        range: KeyRangeLimit::new(Some("bob"), None, Some("bob"), None).unwrap(),
        ..TableSasSpec::new(&table, permissions, minutes_from_now(10))
    };
    let key = AccountKey::from_base64(KEY).unwrap();
    let bob = client.with_sas(spec.sign(&client.account, &key));
    assert_eq!(bob.rows(&table, ""), ["1", "2"]);
    bob.merge(&table, ("bob", "1"), &json!({"Seen": true})).if_match("*").send().expect(204);
    bob.entity(&table, ("alice", "1")).expect_error(404, "ResourceNotFound");
    bob.remove(&table, ("carol", "1"), "*").expect_error(403, "AuthorizationFailure");
    let read = Permissions::parse_table("r").unwrap();
    let reader = TableSasSpec { permissions: Some(read), ..spec };
    let reader = client.with_sas(reader.sign(&client.account, &key));
    reader.get(entity_path(&table, "bob", "1")).send().expect(200);
    let write = reader.remove(&table, ("bob", "1"), "*");
    write.expect_error(403, "AuthorizationPermissionMismatch");
}

/// "Asynchronous and parallel operations": several clients, each with its own partitions.
#[test]
fn parallel_clients_with_their_own_partitions() {
    let client = shared_client();
    let table = client.new_table();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (server, table) = (client.server(), &table);
            scope.spawn(move || {
                let client = Client::new(server);
                for row in 0..20 {
                    let entity = json!({"PartitionKey": format!("p{number}"), "RowKey": format!("{row:02}")});
                    client.insert(table, &entity).expect(204);
                }
                assert_eq!(client.rows(table, &format!("PartitionKey eq 'p{number}'")).len(), 20);
            });
        }
    });
    assert_eq!(client.rows(&table, "").len(), 80);
}

/// "If the query crosses the partition boundary": here a page goes on, up to its thousand entities.
#[test]
fn pages_go_on_over_partitions() {
    let client = shared_client();
    let table = client.new_table();
    for department in ["Finance", "Marketing", "Sales"] {
        insert_all(
            &client,
            &table,
            ["1", "2"].map(|row| json!({"PartitionKey": department, "RowKey": row})),
        );
    }
    let page = client.query(&table, &[]).send().expect(200);
    assert_eq!(values(&page).len(), 6);
    assert_eq!(page.header("x-ms-continuation-NextPartitionKey"), None);
    // With a limit, it ends within a partition, and the next begins there.
    let page = client.query(&table, &[("$top", "3")]).send().expect(200);
    assert_eq!(values(&page).len(), 3);
    assert!(page.header("x-ms-continuation-NextPartitionKey").is_some());
}

/// "Prepend the entity type to the RowKey": `EMPLOYEE_000123` and `DEPARTMENT_SALES`, each type a range.
#[test]
fn types_by_the_start_of_their_row_keys() {
    let client = shared_client();
    let table = client.new_table();
    for row in ["DEPARTMENT_SALES", "EMPLOYEE_000123", "EMPLOYEE_000124"] {
        client.insert(&table, &json!({"PartitionKey": "Sales", "RowKey": row})).expect(204);
    }
    let filter = "PartitionKey eq 'Sales' and RowKey ge 'EMPLOYEE_' and RowKey lt 'EMPLOYEE`'";
    let (rows, kind, examined) = explained(&client, &table, filter);
    assert_eq!(rows, ["EMPLOYEE_000123", "EMPLOYEE_000124"]);
    assert_eq!((kind.as_str(), examined), ("range", 2));
}
