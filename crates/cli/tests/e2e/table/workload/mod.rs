//! What the server learns of the queries it answers: advice on indexes, and hot partitions.

mod advice;
mod hot;

use std::process::Output;

use crate::support::{Client, KEY, Launch};

/// Runs a verb of the binary against the server of a client.
fn run(client: &Client, arguments: &[&str]) -> Output {
    let connection =
        format!("AccountName={};AccountKey={KEY};TableEndpoint={}", client.account, client.base());
    let launch = Launch::new().args(arguments.iter().copied());
    let launch = launch.env("AZURE_STORAGE_CONNECTION_STRING", connection);
    launch.command(client.server().folder()).output().expect("the verb runs")
}

/// What a verb printed, which must have succeeded.
#[track_caller]
fn printed(client: &Client, arguments: &[&str]) -> String {
    let output = run(client, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
