//! The access log, and what else is told in the form that was asked for.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes};

use super::admin::wait_for_file;
use crate::support::{ACCOUNT, Client, KEY, Launch, Server, minutes_from_now};

fn start(arguments: &[&str]) -> (Arc<Server>, Client) {
    let server = Arc::new(Launch::new().args(arguments.iter().copied()).start());
    let client = Client::new(&server);
    (server, client)
}

#[test]
fn every_request_has_a_line_with_what_it_was() {
    let (server, client) = start(&["--access-log", "logs/access.log"]);
    let table = client.new_table();
    for row in ["1", "2", "3"] {
        let entity = json!({"PartitionKey": "p", "RowKey": row, "Secret": format!("value-{row}")});
        client.insert(&table, &entity).expect(204);
    }
    let query = client.query(&table, &[("$filter", "Secret eq 'value-2'")]);
    let query = query.header("User-Agent", "My \"agent\"").header("x-ms-client-request-id", "mine");
    let answer = query.send().expect(200);
    let id = answer.header("x-ms-request-id").expect("an id");
    let spec =
        AccountSasSpec::new(Permissions::ACCOUNT_ALL, ResourceTypes::ALL, minutes_from_now(10));
    let token = spec.sign(ACCOUNT, &AccountKey::from_base64(KEY).unwrap());
    client.with_sas(token).query("missing", &[]).send().expect(404);
    let log = wait_for_file(&server, "logs/access.log", "code=TableNotFound");
    assert_eq!(log.lines().count(), 6, "{log}");
    let line = log.lines().find(|line| line.contains(id)).expect("the query");
    for part in [
        "time=20".to_owned(),
        "peer=127.0.0.1:".to_owned(),
        format!("account={ACCOUNT}"),
        "service=table operation=QueryEntities method=GET".to_owned(),
        format!("resource=/{ACCOUNT}/{table}()"),
        "status=200 rows_examined=3 rows_returned=1 request_bytes=0".to_owned(),
        format!("response_bytes={}", answer.body.len()),
        "duration_us=".to_owned(),
        "client_request_id=mine".to_owned(),
        "user_agent=\"My \\\"agent\\\"\"".to_owned(),
    ] {
        assert!(line.contains(&part), "{part} in {line}");
    }
    for secret in ["sig=", "sig%3D", "value-", KEY, "SharedKey"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    use std::os::unix::fs::PermissionsExt as _;
    let file = std::fs::metadata(server.folder().join("logs/access.log")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

/// A file that was renamed is written to until SIGHUP; then a new one is begun.
#[test]
fn a_hangup_begins_a_new_file() {
    let (server, client) = start(&["--access-log", "access.log"]);
    client.new_table();
    wait_for_file(&server, "access.log", "CreateTable");
    let path = |name: &str| server.folder().join(name);
    std::fs::rename(path("access.log"), path("old.log")).unwrap();
    client.get("/Tables").send().expect(200);
    wait_for_file(&server, "old.log", "QueryTables");
    server.hang_up();
    super::admin::wait_until("a new file", || path("access.log").exists().then_some(()));
    client.get("/nosuch()").send().expect(404);
    let new = wait_for_file(&server, "access.log", "QueryEntities");
    assert!(!new.contains("QueryTables"), "{new}");
}

/// With `--log-format json` every line on both streams is an object: banner, access log, log.
#[test]
fn json_covers_everything_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new().args(["--log-format", "json", "--access-log", "-"]);
    let launch = launch.args(["--inMemoryPersistence", "--port", "0", "--admin-port", "0"]);
    let mut process = launch
        .command(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(process.stdout.take().unwrap());
    let mut lines = stdout.lines().map(|line| {
        let line = line.unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    });
    let address = lines.by_ref().find_map(|line| {
        assert_eq!(line["level"], "INFO", "{line}");
        assert!(line["timestamp"].as_str().is_some_and(|time| time.starts_with("20")), "{line}");
        let message = line["message"].as_str().unwrap().to_owned();
        Some(message.split_once(crate::support::server::LISTENING)?.1.to_owned())
    });
    let address = address.unwrap().strip_prefix("http://").unwrap().parse().unwrap();
    let path = format!("/{ACCOUNT}/Tables");
    super::admin::plain_get(address, &path).expect(401);
    let access = lines.next().expect("a line of the access log");
    assert_eq!((&access["status"], &access["resource"]), (&json!(401), &json!(path)));
    assert_eq!(access["refusal"], "no_credentials");
    crate::support::server::signal("-TERM", process.id());
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    let log = String::from_utf8(output.stderr).unwrap();
    let messages: Vec<_> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")))
        .map(|line| line["message"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(messages.last().map(String::as_str), Some("stopped"), "{messages:?}");
}

/// Why it does not start is told in the form of the log too, on one line and without a trace of calls.
#[test]
fn errors_at_the_start_are_one_line_in_the_form_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("json.toml"), "log-format = \"json\"\nport = 0\n").unwrap();
    let run = |arguments: &[&str]| {
        let launch = Launch::new().args(arguments.iter().copied());
        let output = launch.env("RUST_BACKTRACE", "1").command(folder.path()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    for arguments in [
        &["--log-format", "json", "--accounts-file", "missing"][..],
        &["--config", "json.toml", "--accounts-file", "missing"],
        &["--log-format=json", "--config", "missing"],
        &["--config", "json.toml", "--cert", "missing", "--key", "missing"],
        &["--log-format", "json", "--no-such-flag"],
    ] {
        let told = run(arguments);
        // Warnings may come before.
        let lines: Vec<Value> =
            told.lines().map(|line| serde_json::from_str(line).expect(&told)).collect();
        let line = lines.last().expect("a line");
        assert_eq!(line["level"], "ERROR", "{told}");
        let message = line["message"].as_str().unwrap();
        assert!(message.contains("missing") || message.contains("--no-such-flag"), "{told}");
    }
    let told = run(&["--accounts-file", "missing"]);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("Error: cannot read the accounts file missing: "), "{told}");
}
