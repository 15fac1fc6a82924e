//! What another user of the same machine gets to see: nothing that is not theirs; and what is safe when nobody says
//! otherwise.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::support::{Client, KEY, Launch, Server};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn the_data_folder_is_its_owners() {
    for arguments in [vec![], vec!["--location", "deep/er"], vec!["--data", "other/tavola-data"]] {
        let server = Arc::new(Launch::new().args(arguments.clone()).start());
        let client = Client::new(&server);
        let table = client.new_table();
        client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
        let parent = match arguments.last() {
            None => ".",
            Some(&"deep/er") => "deep/er",
            Some(_) => "other",
        };
        let folder = server.folder().join(parent).join("tavola-data");
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        assert!(!server.log().contains("open to every user"), "{}", server.log());
    }
}

/// A folder that was there keeps its permissions, and its owner hears of it.
#[test]
fn an_open_data_folder_is_warned_of() {
    for (given, is_open) in [(0o755, true), (0o750, false), (0o711, true), (0o700, false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("tavola-data");
        std::fs::create_dir(&data).expect("a folder");
        set_mode(&data, given);
        let server = Server::start_in(Launch::new(), folder);
        assert_eq!(mode(&server.data_folder()), given);
        assert_eq!(server.log().contains("open to every user"), is_open, "{}", server.log());
    }
}

#[test]
fn the_debug_log_is_its_owners() {
    let server = Launch::new().args(["--debug", "debug.log", "--inMemoryPersistence"]).start();
    assert_eq!(mode(&server.folder().join("debug.log")), 0o600);
}

/// `tavola cert` writes a key for its owner alone, also where a file or a link was before.
#[test]
fn the_key_of_a_certificate_is_its_owners() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = |arguments: &[&str]| {
        let launch = Launch::new().args(["cert", "--out", "tls"]).args(arguments.iter().copied());
        launch.command(folder.path()).output().expect("it runs").status.success()
    };
    let key = folder.path().join("tls/key.pem");
    assert!(make(&[]));
    assert_eq!(mode(&key), 0o600);
    assert!(!make(&[]), "a key is not replaced unasked");
    set_mode(&key, 0o644);
    assert!(make(&["--force"]));
    assert_eq!(mode(&key), 0o600);

    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, "untouched").expect("a file");
    std::fs::remove_file(&key).expect("it is ours");
    symlink(&elsewhere, &key).expect("a link");
    assert!(make(&["--force"]));
    assert!(key.symlink_metadata().expect("it is there").is_file());
    assert_eq!(mode(&key), 0o600);
    assert_eq!(std::fs::read_to_string(&elsewhere).expect("a file"), "untouched");
}

/// Files with keys that everyone can read are warned of: accounts, and the key of the certificate.
#[test]
fn files_with_keys_are_warned_of_when_others_can_read_them() {
    for (given, is_open) in [(0o644, true), (0o640, false), (0o600, false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let made = Launch::new().args(["cert", "--out", "tls"]).command(folder.path()).output();
        assert!(made.expect("it runs").status.success());
        std::fs::write(folder.path().join("accounts"), "acct:a2V5\n").expect("a file");
        for file in ["accounts", "tls/key.pem"] {
            set_mode(&folder.path().join(file), given);
        }
        let launch = Launch::new()
            .args(["--accounts-file", "accounts", "--cert", "tls/cert.pem", "--key", "tls/key.pem"])
            .arg("--inMemoryPersistence");
        let server = Server::start_in(launch, folder);
        let log = server.log();
        let warnings = log.matches("a file with keys can be read by every user").count();
        assert_eq!(warnings, if is_open { 2 } else { 0 }, "{log}");
        assert!(!is_open || (log.contains("accounts") && log.contains("key.pem")), "{log}");
    }
}

/// Unless told otherwise, only this machine is served, on the admin port too.
#[test]
fn only_this_machine_is_served_by_default() {
    let server = Launch::new().args(["--inMemoryPersistence", "--admin-port", "0"]).start();
    assert!(server.address().ip().is_loopback());
    assert!(server.admin_address().expect("an admin port").ip().is_loopback());
    let beyond = Launch::new()
        .args(["--inMemoryPersistence", "--admin-port", "0", "--host", "0.0.0.0"])
        .start();
    let admin = beyond.admin_address().expect("an admin port");
    assert!(admin.ip().is_loopback(), "figures stay here even if data does not: {admin}");
}

/// Everyone knows the development key, so that serving it to others deserves a warning, under any name.
#[test]
fn the_development_key_beyond_this_machine_is_warned_of() {
    let warned = |accounts: Option<String>, host: &str| {
        let mut launch = Launch::new().args(["--inMemoryPersistence", "--host", host]);
        if let Some(accounts) = accounts {
            launch = launch.env("TAVOLA_ACCOUNTS", accounts);
        }
        launch.start().log().contains("the development key is served beyond this machine")
    };
    assert!(warned(None, "0.0.0.0"));
    assert!(warned(Some(format!("mine:a2V5:{KEY}")), "0.0.0.0"));
    assert!(!warned(Some("devstoreaccount1:a2V5".to_owned()), "0.0.0.0"));
    assert!(!warned(None, "127.0.0.1"));
}

/// The connection string at the start shows the development key, because everyone knows it, and no other.
#[test]
fn the_lines_at_the_start_show_no_key_of_ones_own() {
    let accounts = format!("devstoreaccount1:a2V5b25l;two:{KEY}:a2V5dHdv");
    let server =
        Launch::new().env("TAVOLA_ACCOUNTS", accounts).arg("--inMemoryPersistence").start();
    let told = server.lines().join("\n");
    assert!(told.contains("AccountName=devstoreaccount1;AccountKey=<key>;"), "{told}");
    assert!(told.contains(&format!("AccountName=two;AccountKey={KEY};")), "{told}");
    assert!(!told.contains("a2V5b25l") && !told.contains("a2V5dHdv"), "{told}");
}
