//! Index tables from outside: declared as entities of `TavolaIndexes`, used by plain filters, read as tables.

mod browsing;
mod choosing;
mod command_line;
mod copies;
mod crash;
mod declaring;
mod failing;
mod index_table_pattern;
mod large;
mod limits;
mod signatures;
mod unique;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{NONE, entity_path};
use crate::support::{Batch, Client, Launch, Response};

/// The table that indexes are declared in.
pub(crate) const INDEXES: &str = "TavolaIndexes";

/// Longer than any of these takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Declares an index, and waits for nothing.
pub(crate) fn declare(client: &Client, table: &str, name: &str, definition: &Value) {
    let request = client.put(INDEXES, (table, name), definition);
    request.send().expect(204);
}

/// The entity of an index.
pub(crate) fn index(client: &Client, table: &str, name: &str) -> Value {
    let request = client.get(entity_path(INDEXES, table, name)).accept(NONE);
    request.send().expect(200).json()
}

/// Waits until an index is in a state.
pub(crate) fn wait_for(client: &Client, table: &str, name: &str, state: &str) -> Value {
    let begun = Instant::now();
    loop {
        let found = index(client, table, name);
        if found["State"] == state {
            return found;
        }
        assert!(begun.elapsed() < LONG, "{found}\n{}", client.server().log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until an index is built or has failed: which of the two.
pub(crate) fn wait_until_built(client: &Client, table: &str, name: &str) -> String {
    let begun = Instant::now();
    loop {
        let found = index(client, table, name);
        match found["State"].as_str() {
            Some("Building") => assert!(begun.elapsed() < LONG, "{found}"),
            state => return state.expect("a state").to_owned(),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Declares an index, and waits until it can be read.
pub(crate) fn build(client: &Client, table: &str, name: &str, definition: &Value) -> Value {
    declare(client, table, name, definition);
    wait_for(client, table, name, "Readable")
}

/// Has the server compare an index with its table.
pub(crate) fn verify(client: &Client, table: &str, name: &str) -> String {
    client.merge(INDEXES, (table, name), &json!({"Verify": true})).send().expect(204);
    let begun = Instant::now();
    loop {
        let found = index(client, table, name)["Verify"].as_str().unwrap().to_owned();
        if found != "running" {
            return found;
        }
        assert!(begun.elapsed() < LONG, "{found}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asserts that an index is what the entities say, and how many entries it has.
#[track_caller]
pub(crate) fn assert_sound(client: &Client, table: &str, name: &str, entries: usize) {
    assert_eq!(verify(client, table, name), format!("sound: {entries} entries"));
}

/// Runs `tavola index`: whether it succeeds, and all it says.
pub(crate) fn command_line(client: &Client, arguments: &[&str]) -> (bool, String) {
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName={};AccountKey={};TableEndpoint={};",
        crate::support::ACCOUNT,
        crate::support::KEY,
        client.base(),
    );
    let launch = Launch::new().arg("index").args(arguments.iter().copied());
    let mut command = launch.command(std::path::Path::new("."));
    command.env("AZURE_STORAGE_CONNECTION_STRING", &connection);
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// Asserts that there is no such index. Whether its rows are swept is what `tavola check` says.
#[track_caller]
pub(crate) fn assert_gone(client: &Client, table: &str, name: &str) {
    client.get(entity_path(INDEXES, table, name)).send().expect(404);
}

/// A person, with some towns that many share.
pub(crate) fn person(partition: &str, row: usize) -> Value {
    json!({
        "PartitionKey": partition,
        "RowKey": format!("{row:05}"),
        "Town": format!("Town{}", row % 7),
        "Email": format!("{partition}{row}@example.com"),
        "Age": row % 90,
    })
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
