//! The changes that requests make are pure: the server does the same when each of them is run more than once.
//!
//! An engine that several servers share runs a change again when another has got in its way. Here the server runs every
//! change three times (`tavola_engine::conformance::Rerun`), and the tests of what changes mean are repeated against it:
//! by this same test binary, which passes the wish on to the servers that it starts.

use std::process::Command;
use std::sync::Arc;

use serde_json::json;

use crate::support::server::RERUN;
use crate::support::{Client, Launch};

/// Everything that writes: entities, transactions, conditions, tables, properties, and long histories with restarts.
const REPEATED: [&str; 7] = [
    "table::batch::",
    "table::conditions::",
    "table::entities::",
    "table::indexes::",
    "table::model::a_long_random_sequence",
    "table::service::",
    "table::tables::",
];

#[test]
fn changes_may_be_run_more_than_once() {
    let tests = Command::new(std::env::current_exe().unwrap())
        .args(REPEATED)
        // It has another engine.
        .args(["--skip", "in_memory"])
        .env(RERUN, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&tests.stdout).into_owned();
    assert!(tests.status.success(), "{told}{}", String::from_utf8_lossy(&tests.stderr));
    for repeated in REPEATED {
        assert!(told.contains(&format!("test {repeated}")), "no {repeated} in {told}");
    }
}

/// The server says that it does so, and does not unless it is told.
#[test]
fn a_server_is_told_to_run_changes_more_than_once() {
    let told = "every transition is run more than once";
    let server = Arc::new(Launch::new().env(RERUN, "1").start());
    let client = Client::new(&server);
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "1"})).expect(204);
    client.entity(&table, ("p", "1")).expect(200);
    client.drop_table(&table).expect(204);
    assert!(server.log().contains(told), "{}", server.log());
    if std::env::var_os(RERUN).is_none() {
        let server = Launch::new().start();
        assert!(!server.log().contains(told), "{}", server.log());
    }
}
