//! A flipped byte anywhere is noticed, or does no harm: never a wrong answer, never a row that vanishes, never a panic.
//!
//! One folder with every kind of file, stopped in order; then one byte of one file is changed, and the folder is opened
//! and read whole, by scan and by key. Whatever is answered must be right. The offline check must find every
//! change of a byte that was written.
//!
//! `TAVOLA_FLIPS=20000` sets the number of bytes to try, `TAVOLA_TEST_SEED` the seed.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::tests::reopen;
use super::*;
use crate::Write;
use crate::conformance::{commit, random};
use crate::embedded::files::journal;

const FLIPS: u64 = 150;

pub(super) type Rows = BTreeMap<Bytes, Bytes>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stderr, reason = "a long run is asked what it has seen")]
async fn a_flipped_byte_is_noticed_or_harmless() {
    let (flips, mut state, told) = settings();
    let (folder, expected) = sound_folder().await;
    let sound = FolderCheck::open(folder.path()).unwrap().files(&mut |_, _| {});
    assert!(sound.problems.is_empty() && sound.torn_tail.is_none(), "{sound:?}");
    let files = files(folder.path());
    let mut noticed = BTreeMap::<String, [u64; 3]>::new();
    for flip in 0..flips {
        // Each kind of file gets its share, however small the files are.
        let file = &files[(flip % files.len() as u64) as usize];
        let bytes = written(&folder.path().join(file));
        if bytes.is_empty() {
            continue;
        }
        let offset = offset_in(bytes.len(), flip / files.len() as u64, &mut state);
        let mask = 1 << (random(&mut state) % 8);
        let told = format!("{} byte {offset} ^ {mask:#x}, {told}", file.display());
        let copy = copy_with(folder.path(), file, &flipped(&bytes, offset, mask));
        let problems = problems(copy.path());
        // The mark only says something about others, and says so of itself.
        let is_mark = file.ends_with("TAVOLA.clean");
        assert!(is_mark || !problems.is_empty(), "the check found nothing: {told}");
        let outcome = outcome(copy.path(), &expected, &told).await;
        noticed.entry(kind(file)).or_default()[outcome] += 1;
    }
    eprintln!("{told}: refused to open, refused to read, unharmed: {noticed:?}");
    assert!(noticed.values().map(|[opening, reading, _]| opening + reading).sum::<u64>() > 0);
}

/// Without the mark of an orderly stop the end of the newest journal may be torn, and damage there looks the same. All
/// else is noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_crash_only_the_last_batch_may_go() {
    let (flips, mut state, told) = settings();
    let (folder, expected) = sound_folder().await;
    fs::remove_file(folder.path().join("TAVOLA.clean")).unwrap();
    let newest = journal::list(&folder.path().join("store")).unwrap().pop().unwrap();
    let file = newest.strip_prefix(folder.path()).unwrap();
    let bytes = written(&newest);
    let batches = journal::batches(&bytes);
    let last_start = batches[batches.len() - 2].0;
    let mut without_last = expected.clone();
    for (key, _) in &batches.last().unwrap().1 {
        // The last batch only wrote new rows.
        without_last.remove(*key).expect("a row of the last batch");
    }
    let mut cut = 0;
    for flip in 0..flips / 2 {
        let last = bytes.len() - last_start;
        let offset = match flip % 2 {
            0 => offset_in(last_start, flip, &mut state),
            _ => last_start + offset_in(last, flip, &mut state),
        };
        let mask = 1 << (random(&mut state) % 8);
        let told = format!("journal byte {offset} ^ {mask:#x}, {told}");
        let copy = copy_with(folder.path(), file, &flipped(&bytes, offset, mask));
        match reopen(copy.path(), options()) {
            Ok(engine) => {
                let found = all(&engine).await.unwrap();
                let is_cut = offset >= last_start && found == without_last;
                assert!(is_cut || found == expected, "{} rows: {told}", found.len());
                cut += u64::from(is_cut);
            }
            Err(error) => assert!(names(&error, file), "{error}: {told}"),
        }
    }
    assert!(cut > 0, "nothing was ever cut off: {told}");
}

fn settings() -> (u64, u64, String) {
    let number =
        |name| std::env::var(name).ok().map(|text: String| text.parse().expect("a number"));
    let flips = number("TAVOLA_FLIPS").unwrap_or(FLIPS);
    let seed: u64 = number("TAVOLA_TEST_SEED").unwrap_or(17);
    let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (flips, state, format!("TAVOLA_FLIPS={flips} TAVOLA_TEST_SEED={seed}"))
}

pub(super) fn options() -> EmbeddedOptions {
    EmbeddedOptions { memtable_bytes: 16 * 1024, ..EmbeddedOptions::default() }
}

/// A folder with tables in several levels, value files, tombstones and a journal, stopped in order, and its rows.
pub(super) async fn sound_folder() -> (tempfile::TempDir, Rows) {
    let folder = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(folder.path(), options()).unwrap();
    let mut expected = Rows::new();
    let mut state = 23;
    for batch in 0..30 {
        let mut writes = Vec::new();
        for row in 0..20 {
            let key = Bytes::from(format!("row {:04}", (batch * 13 + row) % 300));
            let len = if row == 0 && batch % 10 == 0 { 40_000 } else { 40 + row as usize * 3 };
            let value: Bytes = (0..len).map(|_| random(&mut state) as u8).collect();
            if row % 7 == 6 {
                expected.remove(&key);
                writes.push(Write::Delete(key));
            } else {
                expected.insert(key.clone(), value.clone());
                writes.push(Write::Put(key, value));
            }
        }
        commit(&engine, writes).await;
    }
    engine.shared.store.start_flush().unwrap();
    while !engine.shared.store.is_flushed().unwrap() {
        thread::yield_now();
    }
    for batch in 0..3 {
        let key = Bytes::from(format!("tail {batch}"));
        expected.insert(key.clone(), Bytes::from_static(b"in the journal only"));
        commit(&engine, vec![Write::Put(key, Bytes::from_static(b"in the journal only"))]).await;
    }
    drop(engine);
    // Once more, so that nothing is left of interrupted work.
    let engine = EmbeddedEngine::open(folder.path(), options()).unwrap();
    assert_eq!(all(&engine).await.unwrap(), expected);
    drop(engine);
    assert!(folder.path().join("TAVOLA.clean").exists());
    (folder, expected)
}

pub(super) async fn all(engine: &EmbeddedEngine) -> Result<Rows> {
    struct Collect(Rows);
    impl Visitor for Collect {
        fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
            self.0.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
            ControlFlow::Continue(())
        }
    }
    let range = KeyRange { start: Bytes::from_static(&[0]), end: Bytes::from_static(&[0xFF]) };
    Ok(engine.scan(range, Collect(Rows::new())).await?.0)
}

/// Opens and reads everything: 0 if it refused to open, 1 if it refused to read, 2 if all is right.
async fn outcome(folder: &Path, expected: &Rows, told: &str) -> usize {
    let engine = match reopen(folder, options()) {
        Ok(engine) => engine,
        Err(error @ (OpenError::Foreign { .. } | OpenError::Locked { .. })) => {
            panic!("{error}: {told}");
        }
        Err(_) => return 0,
    };
    let mut refused = false;
    match all(&engine).await {
        Ok(found) => {
            assert!(found == *expected, "{} rows of {}: {told}", found.len(), expected.len());
        }
        Err(_) => refused = true,
    }
    for (key, value) in expected {
        match engine.get(key).await {
            Ok(found) => assert!(found.as_ref() == Some(value), "{key:?}: {told}"),
            Err(_) => refused = true,
        }
    }
    if refused { 1 } else { 2 }
}

fn problems(folder: &Path) -> Vec<String> {
    match FolderCheck::open(folder) {
        Ok(check) => {
            let report = check.files(&mut |_, _| {});
            let problems = report.problems.iter().chain(&report.torn_tail);
            problems.map(ToString::to_string).collect()
        }
        Err(error) => vec![error.to_string()],
    }
}

fn names(error: &OpenError, file: &Path) -> bool {
    error.to_string().contains(&file.display().to_string())
}

/// The first bytes and the last ones by turns, then anywhere.
pub(super) fn offset_in(len: usize, turn: u64, state: &mut u64) -> usize {
    let turn = turn as usize;
    match turn % 4 {
        0 => (turn / 4).min(len - 1),
        1 => len - 1 - (turn / 4).min(len - 1),
        _ => random(state) as usize % len,
    }
}

pub(super) fn flipped(bytes: &[u8], offset: usize, mask: u8) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    flipped[offset] ^= mask;
    flipped
}

/// What was written to a file: a journal without its preallocated zeros.
pub(super) fn written(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let is_journal = path.extension().is_some_and(|ending| ending == "jnl");
    if is_journal { journal::content(&bytes).to_vec() } else { bytes }
}

/// A copy of the folder with other bytes in one file. Tables are never written again, so they are only linked.
pub(super) fn copy_with(folder: &Path, changed: &Path, bytes: &[u8]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files(folder) {
        let (from, to) = (folder.join(&file), copy.path().join(&file));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let kind = kind(&file);
        if file == changed {
            fs::write(to, bytes).unwrap();
        } else if kind == "tables" || kind == "blobs" {
            fs::hard_link(from, to).unwrap();
        } else {
            fs::write(to, written(&from)).unwrap();
        }
    }
    copy
}

/// Paths below the folder, in a fixed order.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    fn list(folder: &Path, root: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                list(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().into());
            }
        }
    }
    let mut found = Vec::new();
    list(folder, folder, &mut found);
    found.sort_unstable();
    found
}

/// The folder of a table or a value file, else the name, without numbers.
pub(super) fn kind(file: &Path) -> String {
    let parent = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    if parent == "tables" || parent == "blobs" {
        return parent.into_owned();
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.chars().filter(|character| !character.is_ascii_digit()).collect()
}
