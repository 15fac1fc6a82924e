//! "Table Design Patterns": the queries and steps that the guide prints, pattern by pattern.

use serde_json::{Value, json};
use tavola_wire::Ticks;

use super::{employee, explained, insert_all};
use crate::support::client::{row_keys, values};
use crate::support::{Batch, Client, now_ticks, shared_client};

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

/// "Compound key pattern", as printed: the projection names properties with blanks. No property can have one, so that the
/// service answers 400 to such an entity; the projection is answered with nothing under these names.
#[test]
fn names_with_blanks_are_no_properties() {
    let client = shared_client();
    let table = client.new_table();
    let row = |name: &str| json!({"PartitionKey": "Sales", "RowKey": "empid_000123_2012", name: 3});
    client.insert(&table, &row("Manager Rating")).expect_error(400, "PropertyNameInvalid");
    client.insert(&table, &row("ManagerRating")).expect(204);
    let filter =
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')";
    let select = "RowKey,Manager Rating,Peer Rating,Comments";
    let page = client.query(&table, &[("$filter", filter), ("$select", select)]).send().expect(200);
    let review = &values(&page)[0];
    assert_eq!(review["RowKey"], "empid_000123_2012");
    assert_eq!(
        (review.get("Manager Rating"), review.get("ManagerRating")),
        (Some(&Value::Null), None)
    );
}

/// "Prepend/append anti-pattern" and "Log data anti-pattern": the guide's compound partition keys, and what a span of time
/// costs with each design.
#[test]
fn log_partitions_by_hour_and_by_source() {
    let client = shared_client();
    let table = client.new_table();
    for (source, minute) in
        [("Sales_000123", 3), ("Sales_000123", 5), ("IT_000200", 4), ("IT_000200", 9)]
    {
        let row = format!("2014-07-31T15:{minute:02}_0001");
        insert_all(
            &client,
            &table,
            [
                json!({"PartitionKey": "2014-07-31T15", "RowKey": format!("{row}_{source}")}),
                json!({"PartitionKey": source, "RowKey": row}),
            ],
        );
    }
    // One hot partition, and one cheap range.
    let span = "RowKey ge '2014-07-31T15:04' and RowKey lt '2014-07-31T15:06'";
    let by_hour = format!("PartitionKey eq '2014-07-31T15' and {span}");
    let (rows, kind, examined) = explained(&client, &table, &by_hour);
    assert_eq!((rows.len(), kind.as_str(), examined), (2, "range", 2));
    // Spread writes, and a scan of every partition.
    let (rows, kind, examined) = explained(&client, &table, span);
    assert_eq!((rows.len(), kind.as_str(), examined), (4, "table scan", 8));
}
