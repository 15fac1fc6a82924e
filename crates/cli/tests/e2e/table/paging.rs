//! Pages and their tokens (wire-reference 7): nothing lost, nothing twice, whatever happens in between.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::client::{NEXT_PARTITION_KEY, NEXT_ROW_KEY, next_tokens, query_string, values};
use crate::support::{Batch, Client, Launch, shared_client};

/// 2,500 rows in five partitions.
fn large_table(client: &Client) -> String {
    let table = client.new_table();
    for partition in 0..5 {
        for hundred in 0..5 {
            let batch = (0..100).fold(Batch::new(), |batch, number| {
                let row = hundred * 100 + number;
                let entity = json!({
                    "PartitionKey": format!("p{partition}"),
                    "RowKey": format!("{row:04}"),
                    "Number": row,
                });
                batch.insert(client, &table, &entity)
            });
            batch.send(client).expect_done(100);
        }
    }
    table
}

/// The entities of all pages; `between` is done after each page but the last.
pub(crate) fn all_pages(
    client: &Client,
    table: &str,
    options: &[(&str, &str)],
    mut between: impl FnMut(),
) -> Vec<Vec<Value>> {
    let mut is_first = true;
    let pages = client.pages(table, options, |request| {
        if !std::mem::take(&mut is_first) {
            between();
        }
        request.send()
    });
    pages.iter().map(values).collect()
}

#[track_caller]
fn assert_all_rows(pages: &[Vec<Value>]) {
    let keys: Vec<_> = pages
        .iter()
        .flatten()
        .map(|entity| format!("{}/{}", entity["PartitionKey"], entity["RowKey"]))
        .collect();
    let mut sorted = keys.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((keys.len(), &keys), (2500, &sorted));
}

#[test]
fn pages_of_a_large_table() {
    let client = shared_client();
    let table = large_table(&client);
    let sizes = |pages: &[Vec<Value>]| pages.iter().map(Vec::len).collect::<Vec<_>>();

    let pages = all_pages(&client, &table, &[], || {});
    assert_eq!(sizes(&pages), [1000, 1000, 500]);
    assert_all_rows(&pages);

    let pages = all_pages(&client, &table, &[("$top", "700")], || {});
    assert_eq!(sizes(&pages), [700, 700, 700, 400]);
    assert_all_rows(&pages);

    // A filter on a property may end a page anywhere, but loses and repeats nothing.
    let pages = all_pages(&client, &table, &[("$filter", "Number lt 250"), ("$top", "100")], || {});
    let count: usize = pages.iter().map(Vec::len).sum();
    assert_eq!(count, 5 * 250);
    assert!(pages.iter().flatten().all(|entity| entity["Number"].as_u64() < Some(250)));

    let filter = "PartitionKey eq 'p1' or PartitionKey eq 'p3'";
    let pages = all_pages(&client, &table, &[("$filter", filter), ("$top", "300")], || {});
    assert_eq!(sizes(&pages), [300, 300, 300, 100]);
}

/// 7: the service peeks: a page that ends with the data has no token.
#[test]
fn a_last_full_page_has_no_token() {
    let client = shared_client();
    let table = client.new_table();
    for row in ["1", "2", "3", "4"] {
        client.insert(&table, &json!({"PartitionKey": "p", "RowKey": row})).expect(204);
    }
    let pages = all_pages(&client, &table, &[("$top", "2")], || {});
    assert_eq!(pages.len(), 2);
    let page = client.query(&table, &[("$top", "4")]).send().expect(200);
    assert_eq!(next_tokens(&page), None);
}

/// 7: a token holds the next key, as the examples of the reference have it, and names no process.
#[test]
fn a_token_is_the_next_key() {
    let client = shared_client();
    let table = client.new_table();
    for (partition, row) in
        [("a", "1"), ("pkc12a1338", "rk801016e812345"), ("pkc12a1338", "rk801016e812346")]
    {
        client.insert(&table, &json!({"PartitionKey": partition, "RowKey": row})).expect(204);
    }
    let page = client.query(&table, &[("$top", "1")]).send().expect(200);
    assert_eq!(page.header(NEXT_PARTITION_KEY), Some("1!16!cGtjMTJhMTMzOA--"));
    assert_eq!(page.header(NEXT_ROW_KEY), Some("1!20!cms4MDEwMTZlODEyMzQ1"));
    // Raw exclamation marks (legacy Node) and no row key at all are understood.
    let path = format!("/{table}()?NextPartitionKey=1!16!cGtjMTJhMTMzOA--");
    assert_eq!(values(&client.get(path).send().expect(200)).len(), 2);
    let broken = query_string(&[("NextPartitionKey", "1!4!!!!!"), ("NextRowKey", "x")]);
    client.get(format!("/{table}(){broken}")).send().expect_error(400, "InvalidInput");
}

/// 7: empty keys have a token that is not empty, and characters beyond ASCII survive it.
#[test]
fn tokens_of_unusual_keys() {
    let client = shared_client();
    let table = client.new_table();
    let keys = [("", ""), ("", "x"), ("O'Brien %20+", "\u{e9}\u{1f600}"), ("\u{20ac}", "")];
    for (partition, row) in keys {
        client.insert(&table, &json!({"PartitionKey": partition, "RowKey": row})).expect(204);
    }
    let pages = all_pages(&client, &table, &[("$top", "1")], || {});
    let found: Vec<_> = pages
        .iter()
        .flatten()
        .map(|entity| {
            (entity["PartitionKey"].as_str().unwrap(), entity["RowKey"].as_str().unwrap())
        })
        .collect();
    assert_eq!(found, keys);
}

/// Issue "The protocol": tokens survive a restart and a crash, and rows that come and go meanwhile.
#[test]
fn tokens_survive_restart_and_crash() {
    let client = Client::new(&Arc::new(Launch::new().start()));
    let table = large_table(&client);
    let mut round = 0;
    let pages = all_pages(&client, &table, &[("$top", "500")], || {
        match round % 2 {
            0 => client.server().crash_and_restart(),
            _ => client.server().restart_cleanly(),
        }
        round += 1;
    });
    assert_eq!(pages.len(), 5);
    assert_all_rows(&pages);

    // The row that a token names may be gone when it is used.
    let first = client.query(&table, &[("$top", "1")]).send().expect(200);
    let (partition_key, row_key) = next_tokens(&first).expect("more");
    client.remove(&table, ("p0", "0001"), "*").expect(204);
    let options = [
        ("$top", "1"),
        ("NextPartitionKey", partition_key.as_str()),
        ("NextRowKey", row_key.as_str()),
    ];
    let page = client.query(&table, &options).send().expect(200);
    assert_eq!(values(&page)[0]["RowKey"], "0002");
}

/// Issue "The protocol": a page ends at about 4 MiB, whatever its count.
#[test]
fn a_page_ends_at_about_4_mib() {
    let client = shared_client();
    let table = client.new_table();
    let text = "x".repeat(32 * 1024);
    for batch in 0..4 {
        let batch = (0..10).fold(Batch::new(), |all, number| {
            let row = format!("{:03}", batch * 10 + number);
            let entity = json!({
                "PartitionKey": "p", "RowKey": row,
                "A": text, "B": text, "C": text, "D": text, "E": text, "F": text,
            });
            all.insert(&client, &table, &entity)
        });
        batch.send(&client).expect_done(10);
    }
    let page = client.query(&table, &[]).send().expect(200);
    assert!(next_tokens(&page).is_some());
    assert!((3 << 20..6 << 20).contains(&page.body.len()), "{}", page.body.len());
    let pages = all_pages(&client, &table, &[], || {});
    assert_eq!(pages.iter().map(Vec::len).sum::<usize>(), 40);
}

/// Issue "The protocol": a page ends when its server time is used up, with a token to go on.
#[test]
fn a_page_ends_when_its_time_is_up() {
    let client = Client::new(&Arc::new(Launch::new().args(["--page-time-ms", "0"]).start()));
    let table = large_table(&client);
    let pages = all_pages(&client, &table, &[("$filter", "Number eq 77")], || {});
    assert!(pages.len() > 5, "{}", pages.len());
    assert!(pages.iter().any(Vec::is_empty), "no page was empty and went on");
    assert_eq!(pages.iter().map(Vec::len).sum::<usize>(), 5);
}
