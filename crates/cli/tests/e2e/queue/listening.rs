//! Where the service listens, and what happens when somebody else does.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::client::QueueClient;
use crate::support::http::plain_get;
use crate::support::{ACCOUNT, Client, Launch};

#[test]
fn both_services_are_told_and_in_the_connection_string() {
    let server = Arc::new(Launch::new().start());
    let lines = server.lines();
    let address = server.queue_address();
    assert!(lines.iter().any(|line| {
        line.ends_with(&format!("Queue service is successfully listening at http://{address}"))
    }));
    let endpoint = format!("QueueEndpoint=http://{address}/devstoreaccount1;");
    assert!(lines.iter().any(|line| line.contains(&endpoint)), "{lines:?}");
    QueueClient::new(&server).new_queue();
    Client::new(&server).new_table();
    // What is for queues is nothing to tables, and the other way round.
    assert_ne!(server.address(), address);
}

#[test]
fn services_are_chosen() {
    let server = Arc::new(Launch::new().args(["--services", "table"]).start());
    assert!(!server.lines().iter().any(|line| line.contains("Queue")), "{:?}", server.lines());
    Client::new(&server).new_table();
    for services in ["blob", "table,blob"] {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::new().args(["--services", services, "--port", "0"]);
        let output = launch.command(folder.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("\"blob\""), "{told}");
    }
}

#[test]
fn queues_may_be_served_alone() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new().args(["--inMemoryPersistence", "--services", "queue"]);
    let mut command = launch.args(["--queuePort", "0"]).command(folder.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    let listening = "Queue service is successfully listening at http://";
    while !told.contains(listening) {
        let read = std::io::BufRead::read_line(&mut lines, &mut told).unwrap();
        assert!(read > 0, "it ended: {told}");
    }
    let address = told.split_once(listening).unwrap().1.trim().parse().expect("an address");
    let answer = plain_get(address, &format!("/{ACCOUNT}?comp=list"));
    child.kill().unwrap();
    child.wait().unwrap();
    answer.expect_error(401, "NoAuthenticationInformation");
    assert!(told.contains("QueueEndpoint=") && !told.contains("TableEndpoint="), "{told}");
    assert!(!told.contains("Table service"), "{told}");
}

/// The port of queues is somebody else's: whoever gave the port of tables never asked for queues.
#[test]
fn a_port_that_is_taken_leaves_out_what_nobody_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    // Asked for by name: an error.
    let launch = Launch::new().args(["--inMemoryPersistence", "--port", "0", "--queuePort", &port]);
    let output = launch.command(folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains(&port), "{told}");
    // The default port, taken by whoever was first: this test, or another server on this machine.
    let held = TcpListener::bind("127.0.0.1:10001");
    let launch = Launch::new().args(["--inMemoryPersistence", "--tablePort", "0"]);
    let mut child: Command = launch.command(folder.path());
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    while !told.contains("Table service is successfully listening") {
        let read = std::io::BufRead::read_line(&mut lines, &mut told).unwrap();
        assert!(read > 0, "it ended: {told}");
    }
    assert!(!told.contains("Queue service"), "{told}");
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("its port is in use"), "{log}");
    drop(held);
}
