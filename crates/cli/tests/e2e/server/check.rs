//! `tavola check`: what it says of sound and of damaged folders, and that it changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use crate::server::upgrade;
use crate::support::{Client, Launch};

/// Runs the check: its exit code and everything it printed.
pub(crate) fn check(folder: &Path) -> (Option<i32>, String) {
    let launch = Launch::new().args(["check", folder.to_str().expect("a path")]);
    let output = launch.command(Path::new(".")).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Every file below a folder with its bytes.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// The files of one kind, by the folder that they are in or by their ending.
pub(crate) fn files(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let is_of_kind = |path: &PathBuf| {
        path.parent().is_some_and(|parent| parent.ends_with(kind))
            || path.extension().is_some_and(|ending| ending == kind)
            || path.ends_with(kind)
    };
    contents(folder).into_keys().filter(is_of_kind).collect()
}

pub(crate) fn flip(file: &Path, offset: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[offset] ^= 0x10;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_sound_folder_is_counted_and_left_alone() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let (table, dropped) = (client.new_table(), client.new_table());
    for row in ["1", "2", "3"] {
        client.insert(&table, &json!({"PartitionKey": "p", "RowKey": row, "A": 1})).expect(204);
    }
    client.drop_table(&dropped).expect(204);
    let (code, told) = check(&server.data_folder());
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("another process is using the data folder"), "{told}");

    server.kill();
    let before = contents(&server.data_folder());
    let (code, told) = check(&server.data_folder());
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("1 accounts, 1 tables, 3 entities; 1 dropped tables"), "{told}");
    assert!(told.contains("The data folder is sound"), "{told}");
    assert!(contents(&server.data_folder()) == before, "the check changed something");

    server.start_again();
    Client::new(&server).entity(&table, ("p", "2")).expect(200);
    // After an orderly stop as well, which leaves a mark.
    server.ask_to_stop();
    assert!(server.wait().success());
    assert!(server.data_folder().join("TAVOLA.clean").exists());
    let (code, told) = check(&server.data_folder());
    assert_eq!(code, Some(0), "{told}");
}

/// The batch that was being written when the power failed is told, but is no damage, and is not cut off.
#[test]
fn a_torn_tail_is_told_and_left() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    client.new_table();
    server.kill();
    let journal = files(&server.data_folder(), "jnl").pop().expect("a journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // The start of a batch that goes on with nothing.
    bytes[end] = 1;
    std::fs::write(&journal, &bytes).unwrap();
    let (code, told) = check(&server.data_folder());
    assert_eq!(code, Some(0), "{told}");
    let note = format!("{}, byte {end}: a batch that was never acknowledged", journal.display());
    assert!(told.contains(&note), "{told}");
    assert!(std::fs::read(&journal).unwrap() == bytes);
}

/// Each kind of file, each damaged in its middle: the check names the file, and the server does not answer wrongly.
#[test]
fn damage_is_named() {
    for kind in ["tables", "blobs", "jnl", "current", "version", "TAVOLA"] {
        let folder = tempfile::tempdir().unwrap();
        upgrade::copy_fixture(folder.path());
        let (code, told) = check(folder.path());
        assert_eq!(code, Some(0), "{told}");
        let found = files(folder.path(), kind);
        let file = found.iter().max_by_key(|file| std::fs::metadata(file).unwrap().len());
        let file = file.unwrap_or_else(|| panic!("no {kind} in the fixture"));
        flip(file, std::fs::read(file).unwrap().len() / 2);
        let (code, told) = check(folder.path());
        assert_eq!(code, Some(1), "{kind}: {told}");
        // A damaged pointer to a manifest shows as a manifest that is missing or has another checksum.
        let named = if kind == "current" { file.parent().unwrap() } else { file };
        assert!(told.contains(&named.display().to_string()), "{kind}: {told}");
    }
}

#[test]
fn what_is_no_data_folder_is_not_made_one() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for path in [missing.as_path(), folder.path()] {
        let (code, told) = check(path);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains("is no data folder"), "{told}");
    }
    assert!(contents(folder.path()).is_empty() && !missing.exists());
}

#[test]
fn a_newer_format_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    upgrade::copy_fixture(folder.path());
    std::fs::write(folder.path().join("TAVOLA"), "tavola data folder, format 99\n").unwrap();
    let (code, told) = check(folder.path());
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("has format 99"), "{told}");
}
