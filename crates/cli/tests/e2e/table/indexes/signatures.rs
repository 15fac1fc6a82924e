//! Indexes and shared access signatures with key ranges: nothing outside is shown, counted or hinted at.

use std::sync::Arc;

use serde_json::{Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{KeyRangeLimit, Permissions, TableSasSpec};

use super::{build, explained, insert_all};
use crate::support::client::{next_tokens, row_keys, unused_name, values};
use crate::support::{Client, KEY, Launch, minutes_from_now, shared_client};

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

/// Rows outside the range are passed as long as there is time, and a token says nothing of them.
#[test]
fn a_page_ends_in_time_between_rows_that_are_not_there() {
    let server = Arc::new(Launch::new().args(["--page-time-ms", "0"]).start());
    let client = Client::new(&server);
    let table = client.new_table();
    let all: Vec<Value> = (0..3000)
        .map(|number| {
            let town = if number == 2999 { "b" } else { "a" };
            json!({ "PartitionKey": "p", "RowKey": format!("{number:04}"), "Town": town })
        })
        .collect();
    insert_all(&client, &table, &all);
    let view = unused_name();
    build(&client, &table, "ByTown", &json!({ "Keys": "Town", "BrowseAs": view }));
    let reader = reader_of_b(&client, &view);
    let pages = reader.pages(&view, &[], |request| request.send().expect(200));
    let found: Vec<_> = pages.iter().flat_map(values).collect();
    assert_eq!(row_keys(&found), ["p|2999"]);
    let tokens: Vec<_> = pages.iter().filter_map(next_tokens).collect();
    assert!(!tokens.is_empty());
    // Without the range, a token is what it is, and neither is good for the other.
    let open = client.query(&view, &[("$top", "1")]).send().expect(200);
    let open = next_tokens(&open).expect("there is more").0;
    let ask = |client: &Client, token: &str| {
        client.query(&view, &[("NextPartitionKey", token)]).send().status
    };
    assert_eq!((ask(&client, &open), ask(&reader, &open)), (200, 400));
    assert_eq!((ask(&client, &tokens[0].0), ask(&reader, &tokens[0].0)), (400, 200));
}
