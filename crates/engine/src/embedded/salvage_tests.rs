//! What is salvaged of a damaged folder: all that was not damaged, and every loss is told.

use std::fs;
use std::path::{Path, PathBuf};

use super::flip_tests::{
    Rows, copy_with, files, flipped, kind, offset_in, options, sound_folder, written,
};
use super::tests::{reopen, without_compaction};
use super::*;
use crate::Write;
use crate::conformance::{commit, random};
use crate::embedded::files::manifest;

/// Bytes that are flipped in each kind of file.
const FLIPS: u64 = 12;

fn salvage(folder: &Path) -> (Rows, Vec<Loss>) {
    let before = snapshot(folder);
    let mut rows = Rows::new();
    let salvage = Salvage::open(folder).unwrap();
    let losses = salvage.rows(&mut |key, value| {
        let is_new = rows.insert(Bytes::copy_from_slice(key), value.clone()).is_none();
        assert!(is_new, "{key:?} came twice");
    });
    assert!(snapshot(folder) == before, "the folder was changed");
    (rows, losses)
}

fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    files(folder)
        .into_iter()
        .map(|file| (file.clone(), fs::read(folder.join(file)).unwrap()))
        .collect()
}

/// A folder as a kill leaves it: tables, separated values, and rows that are only in the journal.
async fn killed_folder() -> (tempfile::TempDir, Rows) {
    let (folder, mut rows) = sound_folder().await;
    let engine = reopen(folder.path(), options()).unwrap();
    for row in 0..5 {
        let key = Bytes::from(format!("row {row:04}"));
        rows.insert(key.clone(), "newer".into());
        commit(&engine, vec![Write::Put(key, "newer".into())]).await;
        let gone = Bytes::from(format!("row {:04}", 100 + row));
        rows.remove(&gone);
        commit(&engine, vec![Write::Delete(gone)]).await;
    }
    let permit = without_compaction(&engine, folder.path());
    let copy = copy_with(folder.path(), Path::new("none"), b"");
    drop(permit);
    drop(engine);
    (copy, rows)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_folder_is_salvaged_whole() {
    for (folder, expected) in [sound_folder().await, killed_folder().await] {
        let (rows, losses) = salvage(folder.path());
        assert!(losses.is_empty(), "{losses:?}");
        assert!(rows == expected, "{} rows, not {}", rows.len(), expected.len());
    }
}

/// The store does not open without these, and no row is in them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_no_rows_is_not_needed() {
    let (folder, expected) = killed_folder().await;
    for name in
        ["TAVOLA", "TAVOLA.store", "store/version", "store/lock", "store/keyspaces/0", "journals"]
    {
        let copy = copy_with(folder.path(), Path::new("none"), b"");
        let path = copy.path().join(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        let (rows, losses) = salvage(copy.path());
        assert!(losses.is_empty(), "{name}: {losses:?}");
        assert!(rows == expected, "{name}: {} rows, not {}", rows.len(), expected.len());
    }
}

/// Without a manifest all table files count, and without the tables the journal does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_is_told_and_the_rest_is_there() {
    let (folder, expected) = killed_folder().await;
    let all = files(folder.path());
    let tree = Path::new("store/keyspaces/1");
    // Older manifests may lie beside it.
    let number = manifest::current_number(&folder.path().join(tree)).unwrap();
    let manifest = tree.join(format!("v{number}"));
    for file in [manifest, tree.join("current")] {
        let copy = copy_with(folder.path(), Path::new("none"), b"");
        fs::remove_file(copy.path().join(&file)).unwrap();
        let (rows, losses) = salvage(copy.path());
        assert!(losses.iter().any(|loss| loss.file.ends_with(&file)), "{losses:?}");
        assert!(losses.iter().any(|loss| loss.detail.contains("may be back")), "{losses:?}");
        assert!(rows == expected, "{} rows, not {}", rows.len(), expected.len());
    }
    for file in all.iter().filter(|file| ["tables", "blobs"].contains(&kind(file).as_str())) {
        if file.starts_with("store/keyspaces/0") {
            continue;
        }
        let copy = copy_with(folder.path(), Path::new("none"), b"");
        fs::remove_file(copy.path().join(file)).unwrap();
        let (rows, losses) = salvage(copy.path());
        // A value file may hold nothing but values that were overwritten.
        let is_told = losses.iter().any(|loss| loss.file.ends_with(file));
        assert!(is_told || rows == expected, "{file:?}: {losses:?}");
        assert_eq!(rows.get("row 0001".as_bytes()), Some(&Bytes::from("newer")));
        let deleted = (100..105).map(|row| format!("row {row:04}"));
        assert!(deleted.into_iter().all(|key| !rows.contains_key(key.as_bytes())), "{file:?}");
    }
    let copy = copy_with(folder.path(), Path::new("none"), b"");
    for file in all.iter().filter(|file| file.extension().is_some_and(|ending| ending == "jnl")) {
        fs::remove_file(copy.path().join(file)).unwrap();
    }
    let (rows, losses) = salvage(copy.path());
    assert!(losses.iter().any(|loss| loss.file.ends_with("store/0.jnl")), "{losses:?}");
    assert!(rows.len() > 100, "{}", rows.len());
}

/// Damage costs the block, the batch or the value that it is in: all others are there, and nothing is wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_byte_costs_no_more_than_it_hit() {
    let (folder, expected) = sound_folder().await;
    let mut state = 41;
    for file in files(folder.path()) {
        let bytes = written(&folder.path().join(&file));
        if bytes.is_empty() || file == Path::new("TAVOLA") {
            continue;
        }
        for flip in 0..FLIPS {
            let offset = offset_in(bytes.len(), flip, &mut state);
            let mask = 1 << (random(&mut state) % 8);
            let told = format!("{} byte {offset} ^ {mask:#x}", file.display());
            let copy = copy_with(folder.path(), &file, &flipped(&bytes, offset, mask));
            let (rows, losses) = salvage(copy.path());
            let missing: Vec<_> = expected.keys().filter(|key| !rows.contains_key(*key)).collect();
            let is_right = |(key, value): (&Bytes, &Bytes)| expected.get(key) == Some(value);
            let is_all_right = rows.iter().all(is_right);
            assert!(
                !losses.is_empty() || (is_all_right && missing.is_empty()),
                "{missing:?}: {told}"
            );
            // A block is 4 KiB; the rows in it have 40 to 100 bytes. A batch has 20.
            assert!(
                missing.len() <= 120,
                "{} of {} rows: {told}: {losses:?}",
                missing.len(),
                expected.len()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_in_use_is_not_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(folder.path(), options()).unwrap();
    assert!(matches!(Salvage::open(folder.path()), Err(OpenError::Locked { .. })));
    drop(engine);
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Salvage::open(empty.path()), Err(OpenError::Missing { .. })));
}
