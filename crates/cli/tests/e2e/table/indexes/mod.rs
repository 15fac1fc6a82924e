//! Index tables from outside: declared through the table `TavolaIndexes`, used by plain filters.

mod choosing;
mod index_table_pattern;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Batch, Client, Response};

pub(crate) const SYSTEM_TABLE: &str = "TavolaIndexes";

/// Declares an index and waits until queries use it.
pub(crate) fn declare(client: &Client, table: &str, name: &str, definition: &Value) {
    client.put(SYSTEM_TABLE, (table, name), definition).send().expect(204);
    wait_until_readable(client, table, name);
}

pub(crate) fn wait_until_readable(client: &Client, table: &str, name: &str) {
    loop {
        let index = client.entity(SYSTEM_TABLE, (table, name)).expect(200).json();
        match index["State"].as_str() {
            Some("Readable") => return,
            Some("Failed") => panic!("{name} failed: {index}"),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Inserts entities a hundred at a time; those of one partition stand side by side.
pub(crate) fn insert_all(client: &Client, table: &str, entities: &[Value]) {
    for partition in entities.chunk_by(|a, b| a["PartitionKey"] == b["PartitionKey"]) {
        for hundred in partition.chunks(100) {
            let batch = hundred
                .iter()
                .fold(Batch::new(), |batch, entity| batch.insert(client, table, entity));
            batch.send(client).expect_done(hundred.len());
        }
    }
}

/// A query with its explanation.
pub(crate) fn explained(client: &Client, table: &str, options: &[(&str, &str)]) -> Response {
    client.query(table, options).header("x-tavola-explain", "true").send().expect(200)
}

/// What the explanation of a page says: kind, indexes, how they were used, index rows, rows examined and returned.
pub(crate) fn explanation(page: &Response) -> String {
    let header = |name: &str| page.header(name).unwrap_or("-").to_owned();
    format!(
        "{} {} {} {} {}/{}",
        header("x-tavola-query-kind"),
        header("x-tavola-index"),
        header("x-tavola-index-use"),
        header("x-tavola-index-entries"),
        header("x-tavola-rows-returned"),
        header("x-tavola-rows-examined"),
    )
}

/// A customer as the pattern's figures have them.
pub(crate) fn customer(id: usize, partition: &str, last_name: &str, town: &str) -> Value {
    json!({
        "PartitionKey": partition,
        "RowKey": format!("{id:04}"),
        "LastName": last_name,
        "Town": town,
        "Notes": "a text that no query asks for",
    })
}
