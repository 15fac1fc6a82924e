//! What only the embedded engine promises: durability, one process per folder, recovery, space.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tavola_engine::conformance::{Apply, History, commit, put, random, range, rows};
use tavola_engine::{
    Decision, EmbeddedEngine, EmbeddedOptions, Engine, OpenError, Reader, Status, Write,
};

fn open(path: &Path) -> EmbeddedEngine {
    try_open(path).expect("the folder opens")
}

fn try_open(path: &Path) -> Result<EmbeddedEngine, OpenError> {
    try_open_with(path, EmbeddedOptions::default())
}

/// A process that another test starts at that moment has the lock of a folder that was just closed as well, until it runs
/// its own program.
fn try_open_with(path: &Path, options: EmbeddedOptions) -> Result<EmbeddedEngine, OpenError> {
    for _ in 0..100 {
        match EmbeddedEngine::open(path, options) {
            Err(OpenError::Locked { .. }) => std::thread::sleep(Duration::from_millis(20)),
            opened => return opened,
        }
    }
    EmbeddedEngine::open(path, options)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_random_history_survives_restarts() {
    // As a task, so that some of it is committed inline.
    tokio::spawn(random_history_with_restarts()).await.unwrap();
}

async fn random_history_with_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::new(7);
    for memtable_bytes in [16 * 1024, 1 << 25, 64 * 1024, 1 << 25, 16 * 1024, 1 << 25] {
        let options = EmbeddedOptions { memtable_bytes, ..EmbeddedOptions::default() };
        let engine = try_open_with(folder.path(), options).unwrap();
        history.check_all(&engine).await;
        for _ in 0..400 {
            history.step(&engine).await;
        }
    }
    history.check_all(&open(folder.path())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_holds_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    put(&engine, "a", "1").await;
    let snapshot = engine.snapshot().await.unwrap();
    drop(engine);
    assert_eq!(snapshot.get(b"a").await.unwrap(), Some("1".into()));
    assert!(matches!(try_open(folder.path()), Err(OpenError::Locked { .. })));
    drop(snapshot);
    assert_eq!(open(folder.path()).get(b"a").await.unwrap(), Some("1".into()));
}

#[tokio::test]
async fn one_process_per_folder() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let error = try_open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }));
    assert!(error.to_string().starts_with("another process is using the data folder"));
    put(&engine, "a", "1").await;
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let marker = folder.path().join("TAVOLA");
    assert_eq!(fs::read_to_string(&marker).unwrap(), "tavola data folder, format 1\n");
    fs::write(&marker, "tavola data folder, format 3\n").unwrap();
    let error = try_open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::NewerVersion { found: 3, supported: 2, .. }), "{error}");
    fs::write(&marker, "something else").unwrap();
    assert!(matches!(try_open(folder.path()), Err(OpenError::Corrupt { .. })));
}

/// A folder has the first format until something is used that older versions do not know, and never goes back.
#[tokio::test]
async fn a_format_is_raised_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let marker = || fs::read_to_string(folder.path().join("TAVOLA")).unwrap();
    engine.raise_format(1).unwrap();
    assert_eq!(marker(), "tavola data folder, format 1\n");
    for format in [2, 2, 1] {
        engine.raise_format(format).unwrap();
        assert_eq!(marker(), "tavola data folder, format 2\n");
    }
    put(&engine, "a", "1").await;
    drop(engine);
    assert_eq!(open(folder.path()).get(b"a").await.unwrap(), Some("1".into()));
    assert_eq!(marker(), "tavola data folder, format 2\n");
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let error = try_open(folder.path()).unwrap_err();
    assert!(matches!(&error, OpenError::Foreign { entry, .. } if entry == "thesis.txt"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_interrupted_first_start_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("lost+found")).unwrap();
    fs::write(folder.path().join("TAVOLA.tmp"), "tav").unwrap();
    drop(open(folder.path()));
    // fjall writes its version file last. A first start that was interrupted has not stopped in order, and the folder
    // does not say yet that it has a store.
    fs::remove_file(folder.path().join("TAVOLA.clean")).unwrap();
    fs::remove_file(folder.path().join("TAVOLA.store")).unwrap();
    fs::remove_dir_all(folder.path().join("store")).unwrap();
    fs::create_dir_all(folder.path().join("store/keyspaces")).unwrap();
    fs::write(folder.path().join("store/0.jnl"), [0; 100]).unwrap();
    fs::write(folder.path().join("store/lock"), "").unwrap();
    drop(open(folder.path()));
    // With rows in it, the store is not to be removed.
    fs::remove_file(folder.path().join("TAVOLA.clean")).unwrap();
    fs::remove_file(folder.path().join("store/version")).unwrap();
    assert!(matches!(try_open(folder.path()), Err(OpenError::Incomplete { .. })));
    assert!(folder.path().join("store/keyspaces/1").exists());
}

/// The child of `killed_writers_lose_nothing`: writes transactions of three rows and says so when each is
/// acknowledged. Does nothing unless told where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_child() {
    let Some(folder) = std::env::var_os("TAVOLA_CRASH_FOLDER") else { return };
    let round = std::env::var("TAVOLA_CRASH_ROUND").unwrap();
    // Small memtables, so that the kill also hits flushes and compactions.
    let options = EmbeddedOptions { memtable_bytes: 256 * 1024, ..EmbeddedOptions::default() };
    let engine = Arc::new(EmbeddedEngine::open(folder, options).unwrap());
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (engine, round) = (Arc::clone(&engine), round.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    let name = format!("{round}-{writer}-{number:06}");
                    commit(&*engine, transaction(&name)).await;
                    let mut output = std::io::stdout().lock();
                    writeln!(output, "acknowledged {name}").unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

fn transaction(name: &str) -> Vec<Write> {
    let value = Bytes::from(name.repeat(20));
    ["a", "b", "c"].map(|part| Write::Put(format!("{part}-{name}").into(), value.clone())).to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for (round, lines) in [300, 1500, 4000].into_iter().enumerate() {
        acknowledged.extend(crash(folder.path(), round, lines));
        let engine = open(folder.path());
        for name in &acknowledged {
            for part in ["a", "b", "c"] {
                let value = engine.get(format!("{part}-{name}").as_bytes()).await.unwrap();
                assert_eq!(value, Some(name.repeat(20).into()), "{part}-{name}");
            }
        }
        // What was not acknowledged is there as a whole or not at all.
        let names = async |part: &str| -> Vec<String> {
            let rows = rows(&engine, range(&format!("{part}-"), &format!("{part}."))).await;
            rows.into_iter().map(|(key, _)| key[2..].to_owned()).collect()
        };
        let (a, b, c) = (names("a").await, names("b").await, names("c").await);
        assert_eq!(a, b);
        assert_eq!(a, c);
        assert!(a.len() >= acknowledged.len());
    }
}

/// Runs the child until it has acknowledged that many transactions, kills it, and returns what it acknowledged.
fn crash(folder: &Path, round: usize, lines_min: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash_child", "--exact", "--nocapture", "--test-threads=1"])
        .env("TAVOLA_CRASH_FOLDER", folder)
        .env("TAVOLA_CRASH_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = Vec::new();
    let mut line = Vec::new();
    // The pipe holds what the child said before it died, perhaps with half a line at the end.
    while output.read_until(b'\n', &mut line).unwrap() > 0 {
        let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
        let name = text.split("acknowledged ").nth(1).and_then(|name| name.strip_suffix('\n'));
        acknowledged.extend(name.map(str::to_owned));
        if acknowledged.len() == lines_min {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= lines_min, "the child ended by itself");
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_tail_is_cut_and_damage_before_it_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let journal = PathBuf::from("store/0.jnl");
    // Where each batch ends: after its last byte that is not zero, which is the trailer's 3.
    let mut ends = Vec::new();
    let mut state = 3;
    for batch in 0..12 {
        let rows = (0..20).map(|row| {
            let value: Bytes = (0..100).map(|_| random(&mut state) as u8).collect();
            Write::Put(format!("row {batch:02} {row:02}").into(), value)
        });
        commit(&engine, rows.collect()).await;
        let bytes = journal_head(&folder.path().join(&journal));
        ends.push(bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1);
    }
    // A crash image: the engine is still open and nothing was flushed.
    let image = journal_head(&folder.path().join(&journal));
    let (last_start, last_end) = (ends[10], ends[11]);
    assert!(last_end - last_start > 2048);

    for round in 0..40 {
        let mut torn = image.clone();
        if round % 2 == 0 {
            torn.truncate(last_start + random(&mut state) as usize % (last_end - last_start));
        } else {
            let sector = (last_start + random(&mut state) as usize % (last_end - last_start)) / 512;
            let start = (sector * 512).max(last_start);
            torn[start..(sector + 1) * 512].fill(0);
        }
        let copy = crash_image(folder.path(), &journal, &torn);
        let engine = open(copy.path());
        assert_eq!(rows(&engine, range("row ", "row!")).await.len(), 11 * 20, "round {round}");
        put(&engine, "row 99", "written after the cut").await;
        drop(engine);
        let found = rows(&open(copy.path()), range("row ", "row!")).await;
        assert_eq!(found.len(), 11 * 20 + 1, "round {round}");
    }

    for round in 0..20 {
        let mut damaged = image.clone();
        let at = random(&mut state) as usize % last_start;
        if round % 2 == 0 {
            damaged[at] ^= 1;
        } else {
            // A whole sector, the start tag of a batch perhaps, but not the last batch's.
            let end = (at + 512).min(last_start);
            damaged[at..end].fill(0);
        }
        let copy = crash_image(folder.path(), &journal, &damaged);
        match try_open(copy.path()) {
            Err(OpenError::Corrupt { file, offset, .. }) => {
                assert!(file.ends_with("0.jnl"));
                assert!(ends.contains(&(offset as usize)) || offset == 0);
                assert!(offset as usize <= at);
            }
            // The byte was part of a batch's sequence number, which no checksum covers.
            Ok(engine) if round % 2 == 0 => {
                assert_eq!(rows(&engine, range("row ", "row!")).await.len(), 12 * 20);
            }
            other => panic!("round {round}, damage at {at}: {other:?}"),
        }
    }
}

/// What was written to a journal, with some of the zeros that fjall preallocates.
fn journal_head(path: &Path) -> Vec<u8> {
    let mut head = vec![0; 64 * 1024];
    fs::File::open(path).unwrap().read_exact(&mut head).unwrap();
    assert_eq!(head.last(), Some(&0));
    head
}

/// A copy of the folder with another journal.
fn crash_image(folder: &Path, journal: &Path, bytes: &[u8]) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &target);
            } else if entry.path().extension().is_none_or(|extension| extension != "jnl") {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let image = tempfile::tempdir().unwrap();
    copy(folder, image.path());
    fs::write(image.path().join(journal), bytes).unwrap();
    image
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_space_returns_while_running() {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions { memtable_bytes: 1 << 20, ..EmbeddedOptions::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).unwrap();
    put(&engine, "keep", "1").await;
    let mut state = 5;
    let mut load = async |prefix: &str, transactions: usize, rows: usize, bytes: usize| {
        for transaction in 0..transactions {
            let row = |row| {
                let value: Bytes = (0..bytes).map(|_| random(&mut state) as u8).collect();
                Write::Put(format!("{prefix} {transaction:03} {row:03}").into(), value)
            };
            commit(&engine, (0..rows).map(row).collect()).await;
        }
    };
    load("stay", 10, 200, 300).await;
    load("drop", 60, 200, 300).await;
    // Large enough to be kept apart from their keys.
    load("drop large", 10, 4, 100_000).await;
    let before = table_bytes(folder.path());
    engine.drop_range(range("drop ", "drop!")).await.unwrap();
    let after = table_bytes(folder.path());
    assert!(after < before / 4, "{before} before, {after} after");
    assert_eq!(rows(&engine, range("stay ", "stay!")).await.len(), 2000);
    assert_eq!(rows(&engine, range("a", "drop~")).await.len(), 0);
    assert_eq!(engine.get(b"keep").await.unwrap(), Some("1".into()));
    // A crash and a repetition bring nothing back.
    let image = crash_image(folder.path(), Path::new("none"), b"");
    for journal in fs::read_dir(folder.path().join("store")).unwrap() {
        let path = journal.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            fs::copy(&path, image.path().join("store").join(path.file_name().unwrap())).unwrap();
        }
    }
    let reopened = open(image.path());
    assert_eq!(rows(&reopened, range("drop ", "drop!")).await.len(), 0);
    reopened.drop_range(range("drop ", "drop!")).await.unwrap();
    assert_eq!(rows(&reopened, range("stay ", "stay!")).await.len(), 2000);
}

/// Bytes of everything but the journals, which have a fixed size.
fn table_bytes(path: &Path) -> u64 {
    let bytes_of = |entry: fs::DirEntry| {
        let path = entry.path();
        if path.is_dir() {
            table_bytes(&path)
        } else {
            fs::metadata(&path).map_or(0, |file| file.len())
        }
    };
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    let tables = entries.filter(|entry| entry.path().extension().is_none_or(|name| name != "jnl"));
    tables.map(bytes_of).sum()
}

#[tokio::test]
async fn an_engine_dropped_by_its_own_transition_does_not_hang() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    let clone = engine.clone();
    let transition = Apply::new([""; 0], move |_, _| {
        let _held = &clone;
        Decision::Commit(())
    });
    let request = tokio::spawn(async move { engine.transact(transition).await });
    request.await.unwrap().unwrap();
}
