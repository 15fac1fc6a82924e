//! Indexes and shared access signatures with key ranges: nothing outside is shown, counted or hinted at.

use serde_json::{Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{KeyRangeLimit, Permissions, TableSasSpec};

use super::{build, explained, insert_all};
use crate::support::client::{row_keys, unused_name, values};
use crate::support::{Client, KEY, minutes_from_now, shared_client};

const INDEX_HEADERS: [&str; 4] =
    ["x-tavola-index", "x-tavola-index-use", "x-tavola-index-entries", "x-tavola-index-not-used"];

/// One who may read the partition `b` of a table.
fn reader_of_b(client: &Client, table: &str) -> Client {
    let read = Permissions::parse_table("r").expect("letters");
    let range = KeyRangeLimit::new(Some("b"), None, Some("b"), None).expect("a range");
    let spec = TableSasSpec { range, ..TableSasSpec::new(table, read, minutes_from_now(10)) };
    client.with_sas(spec.sign(&client.account, &AccountKey::from_base64(KEY).unwrap()))
}

#[test]
fn rows_outside_the_range_are_not_there() {
    let client = shared_client();
    let table = client.new_table();
    let all: Vec<Value> = (0..300)
        .map(|number| {
            let partition = ["a", "b", "c"][number / 100];
            json!({ "PartitionKey": partition, "RowKey": format!("{number:03}"), "Town": (number % 10).to_string() })
        })
        .collect();
    insert_all(&client, &table, &all);
    let view = unused_name();
    build(&client, &table, "ByTown", &json!({ "Keys": "Town", "BrowseAs": view }));
    let reader = reader_of_b(&client, &table);
    for filter in ["Town eq '3'", "Town ge '3' and Town lt '4'", "Town eq '3' or Town eq '3'"] {
        let page = explained(&reader, &table, &[("$filter", filter)]);
        let found = row_keys(&values(&page));
        assert_eq!(found.len(), 10, "{filter}");
        assert!(found.iter().all(|row| row.starts_with('1')), "{filter}: {found:?}");
        for header in INDEX_HEADERS {
            assert_eq!(page.header(header), None, "{filter}");
        }
        assert_ne!(page.header("x-tavola-query-kind"), Some("index"));
        assert_eq!(page.header("x-tavola-rows-returned"), Some("10"));
    }
    // The view has a name of its own, which this signature does not open.
    let answer = reader.query(&view, &[]).send();
    assert_eq!(answer.status, 403, "{}", answer.text());
}
