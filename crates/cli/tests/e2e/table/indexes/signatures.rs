//! Indexes and shared access signatures with key ranges: nothing outside is shown, counted or hinted at.

use std::sync::Arc;

use serde_json::{Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{KeyRangeLimit, Permissions, TableSasSpec};
use tavola_wire::table::continuation;

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
    // Values in the order of keys are found by the index, though nothing is said of it. How long another range is depends on
    // rows outside: then the hundred of the partition are read.
    for (filter, examined) in [
        ("Town eq '3'", "10"),
        ("Town ge '3' and Town lt '4'", "100"),
        ("Town eq '3' or Town eq '3'", "10"),
    ] {
        let page = explained(&reader, &table, &[("$filter", filter)]);
        let found = row_keys(&values(&page));
        assert_eq!(found.len(), 10, "{filter}");
        assert!(found.iter().all(|row| row.starts_with('1')), "{filter}: {found:?}");
        for header in INDEX_HEADERS {
            assert_eq!(page.header(header), None, "{filter}");
        }
        assert_ne!(page.header("x-tavola-query-kind"), Some("index"));
        assert_eq!(page.header("x-tavola-rows-returned"), Some("10"));
        assert_eq!(page.header("x-tavola-rows-examined"), Some(examined), "{filter}");
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

/// Two indexes that have nothing in common are read side by side, far beyond the range if nobody sees to it.
#[test]
fn a_token_names_no_key_outside_the_range() {
    let server = Arc::new(Launch::new().args(["--page-time-ms", "0"]).start());
    let client = Client::new(&server);
    let table = client.new_table();
    let all: Vec<Value> = (0..3000)
        .map(|number| {
            let (partition, odd) = (["a", "b", "c"][number / 1000], number % 2 == 0);
            let (town, name) = if odd { ("x", "y") } else { ("y", "x") };
            json!({ "PartitionKey": partition, "RowKey": format!("{number:04}"), "Town": town, "Name": name })
        })
        .collect();
    insert_all(&client, &table, &all);
    build(&client, &table, "ByTown", &json!({ "Keys": "Town" }));
    build(&client, &table, "ByName", &json!({ "Keys": "Name" }));
    let reader = reader_of_b(&client, &table);
    for filter in
        ["Town eq 'x' and Name eq 'x'", "PartitionKey ge 'a' and Town eq 'x' and Name eq 'x'"]
    {
        let pages =
            reader.pages(&table, &[("$filter", filter)], |request| request.send().expect(200));
        let tokens: Vec<_> = pages.iter().filter_map(next_tokens).collect();
        assert!(!tokens.is_empty(), "{filter}");
        for (partition, _) in tokens {
            assert_eq!(partition, continuation::encode("b"), "{filter}");
        }
        assert!(pages.iter().all(|page| values(page).is_empty()));
    }
}

/// Two tables that differ only outside the range answer its holder alike, up to the headers.
#[test]
fn no_header_depends_on_rows_outside_the_range() {
    let client = shared_client();
    let answers = [0, 3000].map(|others| {
        let table = client.new_table();
        let row = |partition: &str, number: usize| {
            json!({ "PartitionKey": partition, "RowKey": format!("{number:04}"), "Score": number, "Town": "x", "Name": "x" })
        };
        let own = (0..100).map(|number| row("b", number));
        let all: Vec<Value> = own.chain((0..others).map(|number| row("z", number))).collect();
        insert_all(&client, &table, &all);
        for keys in ["Score", "Town", "Name"] {
            build(&client, &table, &format!("By{keys}"), &json!({ "Keys": keys }));
        }
        let reader = reader_of_b(&client, &table);
        let mut told = Vec::new();
        for filter in [
            "Score ge 7 and Score lt 3000",
            "Score eq 7 or (Score ge 500 and Score lt 2000)",
            "Score ge 90",
            "Town eq 'x'",
            "Town eq 'x' and Name eq 'x'",
            "Town eq 'x' and Score ge 95",
        ] {
            // Twice: what was found to be wide is remembered.
            for top in ["1", "5", "1000", "1"] {
                let page = explained(&reader, &table, &[("$filter", filter), ("$top", top)]);
                let headers = ["x-tavola-rows-examined", "x-tavola-rows-returned", "x-tavola-query-kind"];
                let headers = headers.map(|name| page.header(name).map(str::to_owned));
                told.push((filter, top, headers, next_tokens(&page), row_keys(&values(&page))));
            }
        }
        told
    });
    let [alone, among_others] = answers;
    assert_eq!(alone, among_others);
}
