//! The Table Design Guide as tests: each example query and pattern step that concerns the service itself. Every
//! test names its section of the guide.

use std::sync::Arc;

use serde_json::{Value, json};
use tavola_wire::Ticks;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{KeyRangeLimit, Permissions, TableSasSpec};

use crate::support::client::{Request, entity_path, row_keys, values};
use crate::support::{Batch, Client, KEY, minutes_from_now, now_ticks, shared_client};

fn insert_all(client: &Client, table: &str, entities: impl IntoIterator<Item = Value>) {
    for entity in entities {
        client.insert(table, &entity).expect(204);
    }
}

fn employee(row: &str, last_name: &str) -> Value {
    json!({"PartitionKey": "Sales", "RowKey": row, "LastName": last_name, "Age": 30})
}

/// Rows of a query, and how they were found.
#[track_caller]
fn explained(client: &Client, table: &str, filter: &str) -> (Vec<String>, String, u64) {
    let request: Request<'_> = client.query(table, &[("$filter", filter)]);
    let page = request.header("x-tavola-explain", "true").send().expect(200);
    let kind = page.header("x-tavola-query-kind").expect("a kind").to_owned();
    let examined = page.header("x-tavola-rows-examined").expect("a count");
    (row_keys(&values(&page)), kind, examined.parse().expect("a number"))
}

/// "How your choice of PartitionKey and RowKey impacts query performance": the four kinds of query and the `or`
/// that the guide warns of, which costs two look-ups here.
#[test]
fn the_kinds_of_query() {
    let client = shared_client();
    let table = client.new_table();
    insert_all(
        &client,
        &table,
        [
            employee("121", "Smith"),
            employee("2", "Jones"),
            employee("322", "Brown"),
            employee("Sanders", "Sanders"),
            employee("Smith", "Smith"),
            employee("Taylor", "Taylor"),
            json!({"PartitionKey": "Marketing", "RowKey": "2", "LastName": "Jones"}),
        ],
    );
    for (filter, rows, kind, examined) in [
        ("(PartitionKey eq 'Sales') and (RowKey eq '2')", vec!["2"], "point", 1),
        (
            "PartitionKey eq 'Sales' and RowKey ge 'S' and RowKey lt 'T'",
            vec!["Sanders", "Smith"],
            "range",
            2,
        ),
        (
            "PartitionKey eq 'Sales' and LastName eq 'Smith'",
            vec!["121", "Smith"],
            "partition scan",
            6,
        ),
        ("LastName eq 'Jones'", vec!["2", "2"], "table scan", 7),
        (
            "PartitionKey eq 'Sales' and (RowKey eq '121' or RowKey eq '322')",
            vec!["121", "322"],
            "point",
            2,
        ),
    ] {
        let found = explained(&client, &table, filter);
        let rows: Vec<_> = rows.into_iter().map(str::to_owned).collect();
        assert_eq!(found, (rows, kind.to_owned(), examined), "{filter}");
    }
}

/// "Sorting data in the Table service": padded numbers sort as numbers, others as text.
#[test]
fn padded_numbers_sort_as_numbers() {
    let client = shared_client();
    let table = client.new_table();
    for id in [223, 9, 100_000, 45] {
        let padded = json!({"PartitionKey": "padded", "RowKey": format!("{id:08}")});
        let plain = json!({"PartitionKey": "plain", "RowKey": id.to_string()});
        insert_all(&client, &table, [padded, plain]);
    }
    assert_eq!(
        client.rows(&table, "PartitionKey eq 'padded'"),
        ["00000009", "00000045", "00000223", "00100000"]
    );
    assert_eq!(client.rows(&table, "PartitionKey eq 'plain'"), ["100000", "223", "45", "9"]);
}

/// "Intra-partition secondary index pattern": two copies in one transaction, found by either key and by ranges.
#[test]
fn intra_partition_secondary_index() {
    let client = shared_client();
    let table = client.new_table();
    for (id, email) in [
        ("000099", "zoe@contoso.com"),
        ("000150", "adam@contoso.com"),
        ("000223", "jonesj@contoso.com"),
    ] {
        let copy = |row: String| json!({"PartitionKey": "Sales", "RowKey": row, "Id": id});
        let batch = Batch::new().insert(&client, &table, &copy(format!("empid_{id}"))).insert(
            &client,
            &table,
            &copy(format!("email_{email}")),
        );
        batch.send(&client).expect_done(2);
    }
    for (filter, rows, kind) in [
        ("(PartitionKey eq 'Sales') and (RowKey eq 'empid_000223')", vec!["empid_000223"], "point"),
        (
            "(PartitionKey eq 'Sales') and (RowKey eq 'email_jonesj@contoso.com')",
            vec!["email_jonesj@contoso.com"],
            "point",
        ),
        (
            "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')",
            vec!["empid_000150"],
            "range",
        ),
        (
            "(PartitionKey eq 'Sales') and (RowKey ge 'email_a') and (RowKey lt 'email_b')",
            vec!["email_adam@contoso.com"],
            "range",
        ),
    ] {
        let (found, found_kind, examined) = explained(&client, &table, filter);
        assert_eq!(
            (found, found_kind.as_str(), examined),
            (rows.iter().map(|row| (*row).to_owned()).collect(), kind, 1)
        );
    }
}

/// "Inter-partition secondary index pattern": the copies lie in two partitions, and no transaction spans them.
#[test]
fn inter_partition_secondary_index() {
    let client = shared_client();
    let table = client.new_table();
    let by_id = json!({"PartitionKey": "empid_Sales", "RowKey": "000123"});
    let by_email = json!({"PartitionKey": "email_Sales", "RowKey": "adam@contoso.com"});
    let batch = Batch::new().insert(&client, &table, &by_id).insert(&client, &table, &by_email);
    let reply = batch.send(&client);
    reply.expect_failure(400, "CommandsInBatchActOnDifferentPartitions", 1);
    insert_all(&client, &table, [by_id, by_email]);
    for (filter, row) in [
        ("(PartitionKey eq 'empid_Sales') and (RowKey eq '000123')", "000123"),
        ("(PartitionKey eq 'email_Sales') and (RowKey eq 'adam@contoso.com')", "adam@contoso.com"),
        (
            "(PartitionKey eq 'empid_Sales') and (RowKey ge '000100') and (RowKey le '000199')",
            "000123",
        ),
        (
            "(PartitionKey eq 'email_Sales') and (RowKey ge 'a') and (RowKey lt 'b')",
            "adam@contoso.com",
        ),
    ] {
        let (found, _, examined) = explained(&client, &table, filter);
        assert_eq!((found, examined), (vec![row.to_owned()], 1), "{filter}");
    }
}

/// "Eventually consistent transactions pattern": every step of the archive can be repeated after a failure.
#[test]
fn archiving_can_be_repeated() {
    let client = shared_client();
    let (current, archive) = (client.new_table(), client.new_table());
    client.insert(&current, &employee("456", "Gray")).expect(204);
    for round in 0..2 {
        let found = client.entity(&current, ("Sales", "456"));
        if found.status == 200 {
            let copy = json!({"LastName": found.json()["LastName"]});
            client.put(&archive, ("Sales", "456"), &copy).send().expect(204);
            // The worker fails here once, before the original is deleted, and begins again.
            if round == 0 {
                continue;
            }
        }
        let deleted = client.remove(&current, ("Sales", "456"), "*").status;
        assert!([204, 404].contains(&deleted), "{deleted}");
    }
    client.remove(&current, ("Sales", "456"), "*").expect_error(404, "ResourceNotFound");
    assert_eq!(client.entity(&archive, ("Sales", "456")).expect(200).json()["LastName"], "Gray");
}

/// "Index Entities Pattern", option 2, steps 1 to 3: read the index with its ETag, insert and update in one
/// transaction, and start over when someone else was faster. Many clients at once lose no employee.
#[test]
fn index_entities_with_optimistic_concurrency() {
    const CLIENTS: usize = 4;
    const EMPLOYEES: usize = 8;
    let client = shared_client();
    let table = client.new_table();
    let index = json!({"PartitionKey": "Sales", "RowKey": "Jones", "EmployeeIDs": ""});
    client.insert(&table, &index).expect(204);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (server, table) = (client.server(), &table);
            scope.spawn(move || {
                let client = Client::new(server);
                for employee in 0..EMPLOYEES {
                    add_employee(&client, table, &format!("{number:03}{employee:03}"));
                }
            });
        }
    });
    let index = client.entity(&table, ("Sales", "Jones")).expect(200).json();
    let mut ids: Vec<_> =
        index["EmployeeIDs"].as_str().unwrap().split(',').filter(|id| !id.is_empty()).collect();
    ids.sort_unstable();
    assert_eq!(ids.len(), CLIENTS * EMPLOYEES);
    // Looking up: the list, then each employee by its keys.
    for id in &ids {
        client.entity(&table, ("Sales", id)).expect(200);
    }
    ids.dedup();
    assert_eq!(ids.len(), CLIENTS * EMPLOYEES);
}

fn add_employee(client: &Client, table: &str, id: &str) {
    loop {
        let index = client.entity(table, ("Sales", "Jones")).expect(200);
        let ids = format!("{},{id}", index.json()["EmployeeIDs"].as_str().unwrap());
        let updated = json!({ "EmployeeIDs": ids });
        let reply = Batch::new()
            .insert(client, table, &employee(id, "Jones"))
            .put(client, table, ("Sales", "Jones"), Some(&index.etag()), &updated)
            .send(client);
        if reply.parts[0].status == 204 {
            reply.expect_done(2);
            return;
        }
        reply.expect_failure(412, "UpdateConditionNotSatisfied", 1);
        client.entity(table, ("Sales", id)).expect_error(404, "ResourceNotFound");
    }
}

/// "Index Entities Pattern": changing a last name is one transaction over three entities.
#[test]
fn changing_a_name_updates_three_entities() {
    let client = shared_client();
    let table = client.new_table();
    let index = |name: &str, ids: &str| json!({"PartitionKey": "Sales", "RowKey": name, "EmployeeIDs": ids});
    insert_all(
        &client,
        &table,
        [employee("000152", "Jones"), index("Jones", "000152"), index("Smith", "")],
    );
    let etag = |row: &str| client.entity(&table, ("Sales", row)).expect(200).etag();
    let (person, old, new) = (etag("000152"), etag("Jones"), etag("Smith"));
    let batch = |old: &str| {
        Batch::new()
            .merge(
                &client,
                &table,
                ("Sales", "000152"),
                Some(&person),
                &json!({"LastName": "Smith"}),
            )
            .put(&client, &table, ("Sales", "Jones"), Some(old), &json!({"EmployeeIDs": ""}))
            .put(&client, &table, ("Sales", "Smith"), Some(&new), &json!({"EmployeeIDs": "000152"}))
    };
    let stale = old.replace("20", "19");
    batch(&stale).send(&client).expect_failure(412, "UpdateConditionNotSatisfied", 1);
    assert_eq!(client.entity(&table, ("Sales", "000152")).json()["LastName"], "Jones");
    batch(&old).send(&client).expect_done(3);
    assert_eq!(client.entity(&table, ("Sales", "Smith")).json()["EmployeeIDs"], "000152");
}

/// "Compound key pattern": all reviews of one employee by a range, with the example's projection. The guide's
/// names have a blank, which no property can have.
#[test]
fn compound_keys_by_range() {
    let client = shared_client();
    let table = client.new_table();
    let review = |row: &str, rating: i32| json!({"PartitionKey": "Sales", "RowKey": row, "ManagerRating": rating});
    insert_all(
        &client,
        &table,
        [
            review("empid_000122_2012", 1),
            review("empid_000123", 2),
            review("empid_000123_2011", 3),
            review("empid_000123_2012", 4),
            review("empid_000124_2011", 5),
        ],
    );
    let filter =
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')";
    let select = "RowKey,ManagerRating,PeerRating,Comments";
    let page = client.query(&table, &[("$filter", filter), ("$select", select)]).send().expect(200);
    let found = values(&page);
    assert_eq!(row_keys(&found), ["empid_000123", "empid_000123_2011", "empid_000123_2012"]);
    assert_eq!(found[1]["ManagerRating"], 3);
    assert_eq!((&found[1]["PeerRating"], &found[1]["Comments"]), (&Value::Null, &Value::Null));
    assert!(found[1].get("PartitionKey").is_none());
    assert_eq!(explained(&client, &table, filter).2, 3);
}

/// "Log tail pattern": inverted ticks put the newest first, and `$top` takes them. The guide's URL with one key is
/// no query (wire-reference 1.3); a filter on the partition is.
#[test]
fn log_tail() {
    let client = shared_client();
    let table = client.new_table();
    let now = now_ticks().0;
    let inverted = |ticks: i64| format!("{:019}", Ticks::MAX.0 - ticks);
    for age in 0..25 {
        let entity = json!({"PartitionKey": "empid", "RowKey": inverted(now - age * Ticks::PER_MINUTE), "Age": age});
        client.insert(&table, &entity).expect(204);
    }
    let options = [("$filter", "PartitionKey eq 'empid'"), ("$top", "10")];
    let page = client.query(&table, &options).header("x-tavola-explain", "true").send().expect(200);
    let ages: Vec<_> = values(&page).iter().map(|entity| entity["Age"].as_i64().unwrap()).collect();
    assert_eq!(ages, (0..10).collect::<Vec<_>>());
    assert_eq!(page.header("x-tavola-rows-examined"), Some("10"));
    let newest: i64 = values(&page)[0]["RowKey"].as_str().unwrap().parse().unwrap();
    assert_eq!(Ticks::MAX.0 - newest, now);
    let by_one_key = client.get(format!("/{table}(PartitionKey='empid')?$top=10")).send();
    by_one_key.expect_error(400, "InvalidInput");
}

/// "High volume delete pattern": a table per day goes in one request, and its neighbours stay.
#[test]
fn a_day_of_logins_is_dropped_as_a_table() {
    let client = shared_client();
    let (monday, tuesday) = (client.new_table(), client.new_table());
    for table in [&monday, &tuesday] {
        for user in 0..3 {
            let batch = (0..100).fold(Batch::new(), |batch, login| {
                let entity =
                    json!({"PartitionKey": format!("user{user}"), "RowKey": format!("{login:04}")});
                batch.insert(&client, table, &entity)
            });
            batch.send(&client).expect_done(100);
        }
    }
    client.drop_table(&monday).expect(204);
    client.query(&monday, &[]).send().expect_error(404, "TableNotFound");
    assert_eq!(client.rows(&tuesday, "").len(), 300);
    // Within a table, old rows go in transactions.
    let old = client.rows(&tuesday, "PartitionKey eq 'user1' and RowKey lt '0050'");
    let batch = old
        .iter()
        .fold(Batch::new(), |batch, row| batch.delete(&client, &tuesday, ("user1", row), "*"));
    assert_eq!(batch.len(), 50);
    batch.send(&client).expect_done(50);
    assert_eq!(client.rows(&tuesday, "").len(), 250);
}

/// "Data series pattern": one entity holds a day, one merge writes an hour.
#[test]
fn a_data_series_is_merged_hour_by_hour() {
    let client = shared_client();
    let table = client.new_table();
    for hour in 0..24 {
        let count = json!({ format!("Hour{hour:02}"): hour * 10 });
        client.merge(&table, ("Sales", "000123"), &count).send().expect(204);
    }
    let etag = client.entity(&table, ("Sales", "000123")).expect(200).etag();
    let change = json!({"Hour07": 99});
    client.merge(&table, ("Sales", "000123"), &change).if_match(&etag).send().expect(204);
    let late = client.merge(&table, ("Sales", "000123"), &change).if_match(&etag).send();
    late.expect_error(412, "UpdateConditionNotSatisfied");
    let day = client.entity(&table, ("Sales", "000123")).expect(200).json();
    assert_eq!((&day["Hour07"], &day["Hour23"]), (&json!(99), &json!(230)));
}

/// "Wide entities pattern": a year of days in two entities, written by one transaction and read by two points.
#[test]
fn wide_entities_are_two_rows() {
    let client = shared_client();
    let table = client.new_table();
    let days = |row: &str, range: std::ops::Range<usize>| {
        let mut entity = json!({"PartitionKey": "Sales", "RowKey": row});
        for day in range {
            entity[format!("Day{day:03}")] = json!(day);
        }
        entity
    };
    let whole = days("000123_0", 0..365);
    client.insert(&table, &whole).expect_error(400, "TooManyProperties");
    let batch = Batch::new().insert(&client, &table, &days("000123_1", 0..252)).insert(
        &client,
        &table,
        &days("000123_2", 252..365),
    );
    batch.send(&client).expect_done(2);
    let filter = "PartitionKey eq 'Sales' and (RowKey eq '000123_1' or RowKey eq '000123_2')";
    let (rows, kind, examined) = explained(&client, &table, filter);
    assert_eq!((rows.len(), kind.as_str(), examined), (2, "point", 2));
    assert_eq!(client.entity(&table, ("Sales", "000123_2")).json()["Day364"], 364);
}

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
