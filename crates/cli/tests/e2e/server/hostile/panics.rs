//! A mistake of ours in one request: the client is told, the log has it, and everybody else goes on.
//!
//! What `cargo test` builds panics when a test asks for it (`server/src/test_hooks.rs`); a release has nothing that could
//! be asked.

use super::Target;
use crate::support::Launch;

const VARIABLE: &str = "TAVOLA_TEST_FAULTS";
const HEADER: &str = "x-tavola-test-fault";

#[test]
fn a_panic_is_answered_and_logged_and_survived() {
    let launch = Launch::new().env(VARIABLE, "1").args(["--log-format", "json"]);
    let target = Target::launch(launch);
    let bystander = target.bystander();
    for round in 1..=3 {
        let request = target.client.query(&target.table, &[]).header(HEADER, "panic");
        let failed = request.send().expect_error(500, "InternalError");
        let id = failed.header("x-ms-request-id").expect("an id").to_owned();
        assert!(!failed.message().contains("test"), "{}", failed.message());
        // The same connection serves on.
        target.client.query(&target.table, &[]).send().expect(200);
        assert_eq!(target.metric("tavola_panics_total"), round);
        let log = target.server.log();
        let lines: Vec<serde_json::Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
            .collect();
        let line = lines.iter().find(|line| line["request_id"] == id).expect("a line");
        assert!(line.to_string().contains("a fault that a test asked for"), "{line}");
        let place = lines.iter().find_map(|line| line["location"].as_str()).expect("a place");
        assert!(place.contains("test_hooks.rs:"), "{place}");
    }
    bystander.finish();
}

/// Nobody can ask for it unless the server was started so.
#[test]
fn nobody_can_ask_for_a_panic() {
    let target = Target::start(&[]);
    let request = target.client.query(&target.table, &[]).header(HEADER, "panic");
    request.send().expect(200);
    assert_eq!(target.metric("tavola_panics_total"), 0);
}
