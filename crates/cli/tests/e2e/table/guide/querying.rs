//! "Design for querying", of the guide and of the chapter that was made of it: kinds of query, sorting, partition keys.

use serde_json::json;

use super::{employee, explained, insert_all};
use crate::support::shared_client;

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

/// The French chapter prints its filters with typographic quotes. To the service these are letters of names, and what is
/// compared are two properties, which it does not do.
#[test]
fn typographic_quotes_are_no_quotes() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &employee("2", "Jones")).expect(204);
    for printed in [
        "(PartitionKey eq ’Sales’) and (RowKey eq ’2’)",
        "PartitionKey eq ’Sales’ and RowKey ge ’S’ and RowKey lt ’T’",
        "PartitionKey eq ’Sales’ and LastName eq ’Smith’",
        "LastName eq ’Jones’",
        "PartitionKey eq ’Sales’ and (RowKey eq ’121’ or RowKey eq ’322’)",
    ] {
        let reply = client.query(&table, &[("$filter", printed)]).send();
        reply.expect_error(501, "NotImplemented");
    }
}

/// "A table scan regardless of whether or not your filter uses the RowKey."
#[test]
fn a_row_key_alone_scans_the_table() {
    let client = shared_client();
    let table = client.new_table();
    let row = |department: &str| json!({"PartitionKey": department, "RowKey": "2"});
    insert_all(&client, &table, [row("Marketing"), row("Sales"), employee("3", "Jones")]);
    let (rows, kind, examined) = explained(&client, &table, "RowKey eq '2'");
    assert_eq!((rows.len(), kind.as_str(), examined), (2, "table scan", 3));
}

/// "Queries that return multiple entities return them sorted in PartitionKey and RowKey order."
#[test]
fn entities_are_sorted_by_both_keys() {
    let client = shared_client();
    let table = client.new_table();
    for (department, row) in
        [("Sales", "2"), ("Marketing", "9"), ("Sales", "10"), ("Marketing", "1")]
    {
        client.insert(&table, &json!({"PartitionKey": department, "RowKey": row})).expect(204);
    }
    let found = client.matches(&table, "");
    let keys: Vec<_> = found
        .iter()
        .map(|entity| {
            (entity["PartitionKey"].as_str().unwrap(), entity["RowKey"].as_str().unwrap())
        })
        .collect();
    assert_eq!(keys, [("Marketing", "1"), ("Marketing", "9"), ("Sales", "10"), ("Sales", "2")]);
    // There is no other order.
    let sorted = client.query(&table, &[("$orderby", "LastName")]).send();
    sorted.expect_error(501, "NotImplemented");
}

/// "To find an employee by joining date": dates as text sort by time, and a range of keys is a range of days.
#[test]
fn dates_in_keys_are_ranges() {
    let client = shared_client();
    let table = client.new_table();
    for day in ["2013-01-01", "2012-08-22", "2011-12-31", "2012-01-01"] {
        let entity = json!({"PartitionKey": "Sales", "RowKey": format!("hired_{day} 000123")});
        client.insert(&table, &entity).expect(204);
    }
    let filter = "PartitionKey eq 'Sales' and RowKey ge 'hired_2012' and RowKey lt 'hired_2013'";
    let (rows, kind, examined) = explained(&client, &table, filter);
    assert_eq!(rows, ["hired_2012-01-01 000123", "hired_2012-08-22 000123"]);
    assert_eq!((kind.as_str(), examined), ("range", 2));
}
