//! Damaged data folders: the service does not start on less than there was, and `tavola salvage` saves the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tavola_engine::{EmbeddedEngine, EmbeddedOptions};

use crate::server::check::{check, contents, files, flip};
use crate::server::upgrade::copy;
use crate::support::{Batch, Client, Launch, Server};

const TABLE: &str = "Rows";
const ROWS: usize = 900;

/// Entities by row key, as they were acknowledged or are answered.
type Rows = BTreeMap<String, Value>;

/// A folder as a kill leaves it, with tables, separated values and rows in the journal alone, and its rows.
struct Used {
    folder: tempfile::TempDir,
    rows: Rows,
}

impl Used {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("tavola-data");
        // The size of a memtable is kept in the folder: a small one, so that rows get into tables.
        let options = EmbeddedOptions { memtable_bytes: 64 * 1024, ..EmbeddedOptions::default() };
        drop(EmbeddedEngine::open(&data, options).unwrap());
        let server = Arc::new(Server::start_in(Launch::new(), home));
        let client = Client::new(&server);
        client.create_table(TABLE).expect(204);
        for first in (0..ROWS).step_by(100) {
            let batch = (first..first + 100)
                .fold(Batch::new(), |batch, row| batch.insert(&client, TABLE, &entity(row)));
            batch.send(&client).expect_done(100);
        }
        let large = "x".repeat(30_000);
        for row in 0..5 {
            let row = json!({"PartitionKey": "p", "RowKey": format!("large {row}"), "A": large, "B": large});
            client.insert(TABLE, &row).expect(204);
        }
        for row in 0..18 {
            client.remove(TABLE, ("p", &row_key(row * 50)), "*").expect(204);
        }
        server.restart_cleanly();
        let client = Client::new(&server);
        for row in ["journal 1", "journal 2"] {
            client.insert(TABLE, &json!({"PartitionKey": "p", "RowKey": row})).expect(204);
        }
        let rows = rows_of(&client, TABLE);
        assert_eq!(rows.len(), ROWS + 5 - 18 + 2);
        server.kill();
        let folder = tempfile::tempdir().unwrap();
        copy(&server.data_folder(), folder.path());
        Self { folder, rows }
    }

    /// A copy that something is done to.
    fn damaged(&self, damage: impl FnOnce(&Path)) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        copy(self.folder.path(), folder.path());
        damage(folder.path());
        folder
    }

    /// The files of a kind in the tree with the rows, the largest first.
    fn rows_files(folder: &Path, kind: &str) -> Vec<PathBuf> {
        let mut found = files(&folder.join("store/keyspaces/1"), kind);
        found.sort_by_key(|file| std::cmp::Reverse(std::fs::metadata(file).unwrap().len()));
        assert!(!found.is_empty(), "no {kind}");
        found
    }
}

fn row_key(row: usize) -> String {
    format!("{row:06}")
}

fn entity(row: usize) -> Value {
    // Not the same everywhere, so that blocks stay large.
    let text: String =
        (0..40).map(|at| char::from(b'a' + ((row * 7 + at * row) % 26) as u8)).collect();
    json!({"PartitionKey": "p", "RowKey": row_key(row), "Number": row, "Text": text})
}

fn rows_of(client: &Client, table: &str) -> Rows {
    let key = |entity: &Value| entity["RowKey"].as_str().unwrap().to_owned();
    client.matches(table, "").into_iter().map(|entity| (key(&entity), entity)).collect()
}

fn remove(path: PathBuf) {
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
}

/// Starts a service that must not start: what it says.
fn start_refused(folder: &Path) -> String {
    let launch = Launch::new().args(["--port", "0", "--data", folder.to_str().unwrap()]);
    let output = launch.command(Path::new(".")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    told
}

/// Runs `tavola salvage`: its exit code and everything it printed.
fn salvage(from: &Path, to: &Path) -> (Option<i32>, String) {
    let launch =
        Launch::new().args(["salvage", from.to_str().unwrap(), "--to", to.to_str().unwrap()]);
    let output = launch.command(Path::new(".")).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Salvages, checks and serves the result: what was printed, and the rows of each table.
fn salvaged(from: &Path, code: i32) -> (String, BTreeMap<String, Rows>) {
    let before = contents(from);
    let home = tempfile::tempdir().unwrap();
    let to = home.path().join("tavola-data");
    let (found, told) = salvage(from, &to);
    assert_eq!(found, Some(code), "{told}");
    assert!(contents(from) == before, "the damaged folder was changed");
    let (sound, checked) = check(&to);
    assert_eq!(sound, Some(0), "{checked}\n{told}");
    let server = Arc::new(Server::start_in(Launch::new(), home));
    let client = Client::new(&server);
    let tables = crate::support::client::values(&client.get("/Tables").send().expect(200));
    let names = tables.iter().map(|table| table["TableName"].as_str().unwrap().to_owned());
    let rows = names.map(|name| (name.clone(), rows_of(&client, &name))).collect();
    // It is a folder like any other.
    client.new_table();
    (told, rows)
}

/// The gravest of what strangers found: a folder that had lost a part started empty, and the check called it sound.
#[test]
fn a_folder_that_lost_a_part_does_not_start_and_is_not_sound() {
    let used = Used::new();
    for lost in [
        &["store"][..],
        &["store/version"],
        &["store/keyspaces"],
        &["store/keyspaces/0"],
        &["store/keyspaces/1"],
        &["store/keyspaces/0/current"],
        &["store/keyspaces/1/current"],
        &["store/0.jnl", "journals/0.jnl"],
        &["TAVOLA"],
    ] {
        let folder = used.damaged(|folder| lost.iter().for_each(|part| remove(folder.join(part))));
        let before = contents(folder.path());
        for told in [start_refused(folder.path()), {
            let (code, told) = check(folder.path());
            assert_eq!(code, Some(1), "{lost:?}: {told}");
            told
        }] {
            assert!(told.contains(lost[0]), "{lost:?}: {told}");
            assert!(told.contains("missing"), "{lost:?}: {told}");
        }
        assert!(start_refused(folder.path()).contains("tavola salvage"));
        let after = contents(folder.path());
        assert!(before.keys().all(|file| after.contains_key(file)), "{lost:?}: a file was removed");
    }
}

/// What holds nothing is made anew, and a journal is taken back from its second link.
#[test]
fn a_folder_that_lost_nothing_of_value_starts() {
    let used = Used::new();
    for lost in
        ["store/lock", "TAVOLA.lock", "TAVOLA.store", "TAVOLA.clean", "journals", "store/0.jnl"]
    {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("tavola-data");
        copy(used.folder.path(), &data);
        remove(data.join(lost));
        let (code, told) = check(&data);
        assert_eq!(code, Some(0), "{lost}: {told}");
        let server = Arc::new(Server::start_in(Launch::new(), home));
        assert!(rows_of(&Client::new(&server), TABLE) == used.rows, "{lost}");
    }
}

#[test]
fn a_sound_folder_is_salvaged_whole() {
    let used = Used::new();
    let (told, tables) = salvaged(used.folder.path(), 0);
    assert!(told.contains("Everything was readable"), "{told}");
    assert!(tables[TABLE] == used.rows);
}

#[test]
fn a_damaged_folder_is_salvaged_but_for_what_was_hit() {
    let used = Used::new();
    let flipped = used.damaged(|folder| {
        // The first blocks hold the account: without it, nobody would see the rest.
        let table = &Used::rows_files(folder, "tables")[0];
        flip(table, std::fs::read(table).unwrap().len() / 3);
    });
    let zeroed = used.damaged(|folder| {
        let table = &Used::rows_files(folder, "tables")[0];
        let mut bytes = std::fs::read(table).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle..middle + 4096].fill(0);
        std::fs::write(table, bytes).unwrap();
    });
    for folder in [flipped, zeroed] {
        // The journal still holds what the block did.
        let (told, tables) = salvaged(folder.path(), 1);
        let table = Used::rows_files(folder.path(), "tables")[0].clone();
        assert!(told.contains(&format!("Lost: {}", table.display())), "{told}");
        assert!(told.contains(" up to E"), "{told}");
        assert!(tables[TABLE] == used.rows, "{told}");
        files(folder.path(), "jnl").into_iter().for_each(remove);
        let (told, tables) = salvaged(folder.path(), 1);
        let rows: Rows = tables.into_values().flatten().collect();
        assert!(rows.len() < used.rows.len() && rows.len() > used.rows.len() / 2, "{}", rows.len());
        let is_right =
            |(key, row): (&String, &Value)| used.rows.get(key).is_none_or(|it| it == row);
        assert!(rows.iter().all(is_right), "{told}");
    }
}

#[test]
fn a_folder_without_manifest_is_salvaged() {
    let used = Used::new();
    let folder = used.damaged(|folder| remove(folder.join("store/keyspaces/1/current")));
    let (told, tables) = salvaged(folder.path(), 1);
    assert!(told.contains("keyspaces/1/current") && told.contains("may be back"), "{told}");
    // Nothing is missing; what was deleted may be there.
    let rows = &tables[TABLE];
    assert!(used.rows.iter().all(|(key, row)| rows.get(key) == Some(row)), "{told}");
}

#[test]
fn a_folder_without_a_table_file_or_journals_is_salvaged() {
    let used = Used::new();
    let without_table =
        used.damaged(|folder| remove(Used::rows_files(folder, "tables")[0].clone()));
    let (told, tables) = salvaged(without_table.path(), 1);
    assert!(told.contains("Lost: "), "{told}");
    // The row of the table may have been in it; then its entities are in one that was made up.
    let found: Rows = tables.into_values().flatten().collect();
    assert!(
        found.iter().all(|(key, row)| used.rows.get(key).is_none_or(|known| known == row)),
        "{told}"
    );
    assert!(found.contains_key("journal 1"), "{told}");

    let without_journals = used.damaged(|folder| {
        files(folder, "jnl").into_iter().for_each(remove);
    });
    let (told, tables) = salvaged(without_journals.path(), 1);
    assert!(told.contains("0.jnl: it is missing"), "{told}");
    let found: Rows = tables.into_values().flatten().collect();
    assert!(found.len() > ROWS / 2 && !found.contains_key("journal 1"), "{}: {told}", found.len());
}

#[test]
fn a_target_that_is_not_empty_is_wrong_use() {
    let used = Used::new();
    let target = tempfile::tempdir().unwrap();
    std::fs::write(target.path().join("thesis.txt"), "mine").unwrap();
    let (code, told) = salvage(used.folder.path(), target.path());
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("is not empty"), "{told}");
    let (code, told) = salvage(&target.path().join("none"), &target.path().join("to"));
    assert_eq!(code, Some(2), "{told}");
    assert_eq!(contents(target.path()).len(), 1);
    let output =
        Launch::new().args(["salvage", "--help"]).command(Path::new(".")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("Exit codes"));
}
