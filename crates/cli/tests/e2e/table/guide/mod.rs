//! The Table Design Guide as tests: each statement, example query and pattern step that concerns the service itself, chapter
//! by chapter. Every test names its section; `docs/guide.md` lists which statement is shown by which test.

mod client_side;
mod overview;
mod patterns;
mod querying;
mod relationships;

use serde_json::{Value, json};

use crate::support::Client;
use crate::support::client::{Request, row_keys, values};

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
