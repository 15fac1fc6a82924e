//! What only the embedded engine promises, as far as it needs a look inside; see `tests/embedded.rs` for the rest.

use std::sync::mpsc::sync_channel as sync_queue;
use std::time::Duration;

use super::*;
use crate::Decision;
use crate::conformance::{Apply, put, range, rows};
use crate::embedded::commit::group::Admission;
use crate::embedded::files::manifest;
use crate::embedded::scan::inline_scan::{STEP_BYTES, STEP_ROWS, STEPS};
use crate::embedded::store::deletions::Deletions;
use crate::embedded::store::disk_space::CompactionPermit;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_commit_stops_writes_and_tells() {
    let (engine, _folder) = open(EmbeddedOptions::default());
    put(&engine, "a", "1").await;
    engine.shared.store.fail_next_commit.store(true, Ordering::Relaxed);
    let failed = engine.transact(write("b")).await;
    assert!(matches!(failed, Err(Error::OutcomeUnknown(_))), "{failed:?}");
    assert!(engine.failed().await.contains("on purpose"));
    assert!(matches!(engine.transact(write("c")).await, Err(Error::Unavailable(_))));
    assert!(matches!(engine.drop_range(range("a", "b")).await, Err(Error::Unavailable(_))));
    // Reads go on.
    assert_eq!(engine.get(b"a").await.unwrap(), Some("1".into()));
    assert_eq!(rows(&engine, range("a", "z")).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_is_busy_at_once() {
    const QUEUE: usize = 3;
    let options = EmbeddedOptions { queue_requests_max: QUEUE, ..EmbeddedOptions::default() };
    let (engine, _folder) = open(options);
    // Holds the committer inside a transition until released.
    let (started, has_started) = oneshot::channel();
    let (release, released) = sync_queue::<()>(1);
    let mut started = Some(started);
    let blocking = Apply::new([""; 0], move |_, _| {
        started.take().expect("applied once").send(()).expect("the test waits");
        released.recv().expect("the test releases it");
        Decision::Commit(())
    });
    let blocking = spawn(&engine, blocking);
    has_started.await.unwrap();
    // The queue is empty and the committer is held: exactly that many fit.
    let waiting: Vec<_> = (0..QUEUE).map(|_| spawn(&engine, write("a"))).collect();
    while engine.stats().queue_depth.load(Ordering::Relaxed) < QUEUE as u64 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(engine.transact(write("b")).await, Err(Error::Busy)));
    assert_eq!(engine.stats().busy_refusals.load(Ordering::Relaxed), 1);
    release.send(()).unwrap();
    blocking.await.unwrap().unwrap();
    for request in waiting {
        request.await.unwrap().unwrap();
    }
    assert_eq!(engine.stats().queue_depth.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_finishes_what_was_accepted() {
    let (engine, folder) = open(EmbeddedOptions::default());
    let keys: Vec<_> = (0..100).map(|index| format!("key {index:03}")).collect();
    let requests: Vec<_> = keys
        .iter()
        .map(|key| {
            let (reply, answer) = oneshot::channel();
            let job = Box::new(Pending::new(write(key), reply));
            engine.shared.submit(Message::Job(job)).unwrap();
            answer
        })
        .collect();
    engine.close();
    engine.close();
    for request in requests {
        request.await.unwrap().unwrap();
    }
    assert!(matches!(engine.transact(write("late")).await, Err(Error::Closed)));
    assert!(matches!(engine.drop_range(range("a", "z")).await, Err(Error::Closed)));
    drop(engine);
    let engine = reopen(folder.path(), EmbeddedOptions::default()).unwrap();
    assert_eq!(rows(&engine, range("key ", "key!")).await.len(), keys.len());
}

/// The whole suite, with every caller taken for the only one: whoever commits, it comes to the same.
mod inline_commits {
    use super::*;

    fn open_for_everybody() -> (EmbeddedEngine, tempfile::TempDir) {
        let (mut engine, folder) = open(EmbeddedOptions::default());
        let shared = Arc::get_mut(&mut engine.shared).expect("nobody else has it yet");
        shared.inline_commits.allow_everybody();
        shared.inline_commits.set_quick(Duration::MAX);
        (engine, folder)
    }

    crate::conformance_tests!(open_for_everybody());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_caller_commits_inline_until_there_is_another() {
    const ROUNDS: usize = 1000;
    let (mut engine, _folder) = open(EmbeddedOptions::default());
    let shared = Arc::get_mut(&mut engine.shared).expect("nobody else has it yet");
    // Whatever else this machine does.
    shared.inline_commits.set_quick(Duration::MAX);

    let only = engine.clone();
    let only = tokio::spawn(async move {
        for round in 0..ROUNDS {
            put(&only, "a", &round.to_string()).await;
        }
    });
    only.await.unwrap();
    let count = engine.shared.inline_commits.count();
    assert!(count > 0);

    // A reader is enough, be it of a row, a range or a snapshot.
    let (writer, reader) = (engine.clone(), engine.clone());
    let writer = tokio::spawn(async move {
        for round in 0..ROUNDS {
            put(&writer, "a", &round.to_string()).await;
            let reader = reader.clone();
            let read = tokio::spawn(async move {
                match round % 3 {
                    0 => drop(reader.get(b"a").await.unwrap()),
                    1 => drop(rows(&reader, range("a", "b")).await),
                    _ => drop(reader.snapshot().await.unwrap().get(b"a").await.unwrap()),
                }
            });
            read.await.unwrap();
        }
    });
    writer.await.unwrap();
    assert_eq!(engine.shared.inline_commits.count(), count);
}

/// Scans that end where the caller's thread leaves them to the pool, before it and behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_shows_the_same_wherever_it_is_read() {
    const FIRST_ROWS: usize = STEPS * STEP_ROWS;
    const ROWS: usize = 3 * FIRST_ROWS;
    let key = |index: usize| format!("row {index:04}");
    for value_bytes in [1, 3 * STEP_BYTES / STEP_ROWS] {
        let (engine, _folder) = open(EmbeddedOptions::default());
        let value = Bytes::from(vec![7; value_bytes]);
        let fill = Apply::new([""; 0], move |_, writes| {
            for index in 0..ROWS {
                writes.put(key(index).into(), value.clone());
            }
            Decision::Commit(())
        });
        engine.transact(fill).await.unwrap();
        for is_here in [true, false] {
            let inline_scan = &engine.shared.inline_scan;
            for count in [0, 1, FIRST_ROWS - 1, FIRST_ROWS, FIRST_ROWS + 1, ROWS] {
                // The machine may be slow.
                inline_scan.forget();
                if !is_here {
                    inline_scan.took(Duration::from_secs(3600));
                }
                assert_eq!(inline_scan.is_allowed(), is_here);
                let shown = rows(&engine, range(&key(0), &key(count))).await;
                let keys: Vec<_> = shown.into_iter().map(|(key, _)| key).collect();
                assert_eq!(keys, (0..count).map(key).collect::<Vec<_>>(), "{is_here}");
            }
        }
    }
}

/// Flushed memtables lie beside each other until something compacts them; see `compactor`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_compacted_when_writes_pause() {
    let (engine, _folder) = open(EmbeddedOptions::default());
    let store = Arc::clone(&engine.shared.store);
    for _ in 0..3 {
        flush_rows(&engine).await;
    }
    until(|| store.uncompacted_tables() == 0).await;
    assert_eq!(rows(&engine, range("a", "zz")).await.len(), 3);
}

/// A server that is only read after its start gives back the room of what it compacts then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_compacted_after_a_start_gives_its_room_back() {
    const RESERVE: u64 = 1000;
    let options = || EmbeddedOptions { disk_reserve_bytes: RESERVE, ..EmbeddedOptions::default() };
    let (engine, folder) = open(options());
    // No room to compact.
    *engine.shared.space.pretended_free.lock().unwrap() = Some(RESERVE);
    for _ in 0..3 {
        flush_rows(&engine).await;
    }
    assert_eq!(table_files(folder.path()), 3);
    engine.close();
    drop(engine);
    let engine = reopen(folder.path(), options()).unwrap();
    let store = Arc::clone(&engine.shared.store);
    until(|| store.uncompacted_tables() == 0).await;
    until(|| table_files(folder.path()) == 1).await;
    assert_eq!(rows(&engine, range("a", "zz")).await.len(), 3);
}

/// Scans do not begin on the caller's thread where they may have to pass very many of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_in_tables_are_counted() {
    const RESERVE: u64 = 1000;
    let options = EmbeddedOptions { disk_reserve_bytes: RESERVE, ..EmbeddedOptions::default() };
    let (engine, _folder) = open(options);
    // No room to compact, so that they stay.
    *engine.shared.space.pretended_free.lock().unwrap() = Some(RESERVE);
    let store = Arc::clone(&engine.shared.store);
    flush_rows(&engine).await;
    assert_eq!(store.deletions().total(), 0);
    let delete = Apply::new([""; 0], |_, writes| {
        writes.delete("a".into());
        Decision::Commit(())
    });
    engine.transact(delete).await.unwrap();
    store.start_flush().unwrap();
    until(|| store.deletions().total() == 1).await;
}

/// Those of one family do not keep the scans of another from the threads of their callers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_count_for_their_family() {
    const RESERVE: u64 = 1000;
    let options = EmbeddedOptions { disk_reserve_bytes: RESERVE, ..EmbeddedOptions::default() };
    let (engine, _folder) = open(options);
    *engine.shared.space.pretended_free.lock().unwrap() = Some(RESERVE);
    let store = Arc::clone(&engine.shared.store);
    let delete = Apply::new([""; 0], |_, writes| {
        for number in 0..=Deletions::ENOUGH {
            writes.delete(format!("M{number:08}").into());
        }
        for key in ["E1", "E2", "X1"] {
            writes.delete(key.into());
        }
        Decision::Commit(())
    });
    engine.transact(delete).await.unwrap();
    store.start_flush().unwrap();
    until(|| store.deletions().total() == Deletions::ENOUGH + 4).await;
    let are_many = |start, end| store.deletions().are_many_in(&range(start, end));
    assert!(are_many("M00000007", "M1"));
    for (start, end) in [("E1", "E2"), ("E", "F"), ("A", "M"), ("X", "Y")] {
        assert!(!are_many(start, end), "{start} {end}");
    }
    assert!(are_many("E", "N"));
}

/// Files of tables of the one keyspace that holds rows, be they in use or replaced.
fn table_files(folder: &Path) -> usize {
    let files = |folder: std::path::PathBuf| std::fs::read_dir(folder).into_iter().flatten();
    let keyspaces = files(folder.join("store/keyspaces"));
    let tables = keyspaces.flatten().map(|keyspace| files(keyspace.path().join("tables")).count());
    tables.max().unwrap_or(0)
}

/// The disk has more than the reserve, but what would be compacted does not fit: that waits, and when too much of it has
/// piled up, so do writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_waits_for_room() {
    const RESERVE: u64 = 1000;
    let options = EmbeddedOptions { disk_reserve_bytes: RESERVE, ..EmbeddedOptions::default() };
    let (engine, _folder) = open(options);
    let (store, space) = (Arc::clone(&engine.shared.store), Arc::clone(&engine.shared.space));
    flush_rows(&engine).await;
    until(|| store.uncompacted_tables() == 0).await;

    *space.pretended_free.lock().unwrap() = Some(RESERVE);
    for _ in 0..3 {
        flush_rows(&engine).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(store.uncompacted_tables(), 3);
    assert!(engine.shared.failure.borrow().is_none());

    // fjall stops the committer at thirty.
    let delete = || {
        Apply::new([""; 0], |_, writes| {
            writes.delete("a".into());
            Decision::Commit(())
        })
        .freeing_space()
    };
    let mut refused = None;
    for _ in 0..30 {
        refused = engine.transact(delete()).await.err();
        if refused.is_some() {
            break;
        }
        flush(&store).await;
        // Longer than the compactor leaves it.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(matches!(refused, Some(Error::Full)), "{refused:?}");
    assert!(matches!(engine.transact(write("b")).await, Err(Error::Full)));

    *space.pretended_free.lock().unwrap() = None;
    until(|| store.uncompacted_tables() == 0 && space.admission() == Admission::Everything).await;
    put(&engine, "b", "1").await;
    assert_eq!(rows(&engine, range("a", "zz")).await.len(), 3);
}

/// Rows whose values are in files of their own come back as room while the disk is nearly full, although there are too
/// few of them to be compacted otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_give_room_back_while_the_disk_is_nearly_full() {
    const RESERVE: u64 = 1 << 30;
    let options = EmbeddedOptions { disk_reserve_bytes: RESERVE, ..EmbeddedOptions::default() };
    let (engine, _folder) = open(options);
    let (store, space) = (Arc::clone(&engine.shared.store), Arc::clone(&engine.shared.space));
    *space.pretended_free.lock().unwrap() = Some(2 * RESERVE);
    let keys: Vec<_> = (0..100).map(|number| format!("row {number:03}")).collect();
    for key in &keys {
        put(&engine, key, &"x".repeat(100_000)).await;
    }
    flush(&store).await;
    until(|| store.uncompacted_tables() == 0).await;
    let before = store.table_bytes();
    assert!(before > 10_000_000, "{before}");

    *space.pretended_free.lock().unwrap() = Some(RESERVE - 1);
    until(|| space.admission() == Admission::Deletions).await;
    let delete = Apply::new([""; 0], move |_, writes| {
        for key in &keys[1..] {
            writes.delete(key.clone().into());
        }
        Decision::Commit(())
    });
    engine.transact(delete.freeing_space()).await.unwrap();
    until(|| store.table_bytes() < before / 10).await;
    assert_eq!(rows(&engine, range("row", "rox")).await.len(), 1);
}

async fn flush_rows(engine: &EmbeddedEngine) {
    // The same keys each time, so that the tables overlap and cannot just be moved.
    for key in ["a", "m", "z"] {
        put(engine, key, "value").await;
    }
    flush(&engine.shared.store).await;
}

pub(super) async fn flush(store: &Store) {
    store.start_flush().unwrap();
    while !store.is_flushed().unwrap() {
        tokio::task::yield_now().await;
    }
}

/// Waits for what must come; far longer than it takes.
#[track_caller]
pub(super) fn until(is_so: impl Fn() -> bool) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        for _ in 0..600 {
            if is_so() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it did not come: {place}");
    }
}

/// A flush or a compaction that ends during a commit must not let a snapshot see half of the batch; fjall's own
/// snapshots would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_stable_while_tables_change() {
    let (engine, _folder) = open(EmbeddedOptions::default());
    let transition = |round: u64| {
        Apply::new([""; 0], move |_, writes| {
            for row in 0..20 {
                writes.put(format!("row {row:02}").into(), round.to_string().into());
            }
            Decision::Commit(())
        })
    };
    engine.transact(transition(0)).await.unwrap();
    let flushing = spawn_flushes(&engine);
    for round in 1..200 {
        let (committed, snapshot) =
            tokio::join!(engine.transact(transition(round)), engine.snapshot());
        committed.unwrap();
        let values = rows(&snapshot.unwrap(), range("row ", "row!")).await;
        assert_eq!(values.len(), 20);
        assert!(values.iter().all(|(_, value)| *value == values[0].1));
    }
    flushing.await.unwrap();
}

fn spawn_flushes(engine: &EmbeddedEngine) -> tokio::task::JoinHandle<()> {
    let engine = engine.clone();
    tokio::task::spawn_blocking(move || {
        for _ in 0..20 {
            engine.shared.store.start_flush().unwrap();
            while !engine.shared.store.is_flushed().unwrap() {
                thread::yield_now();
            }
        }
    })
}

pub(super) fn open(options: EmbeddedOptions) -> (EmbeddedEngine, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (EmbeddedEngine::open(folder.path(), options).unwrap(), folder)
}

/// Waits until nothing but commits changes the folder, and keeps it so: a copy of it is then what a kill leaves. A copy in
/// the midst of a compaction would be of several moments.
pub(super) fn without_compaction<'a>(
    engine: &'a EmbeddedEngine,
    folder: &Path,
) -> CompactionPermit<'a> {
    for _ in 0..600 {
        let permit = engine.shared.space.compaction_permit();
        let trees = manifest::trees(&folder.join("store")).expect("the store is sound");
        if trees.iter().all(|tree| tree.leftovers() == 0) {
            return permit;
        }
        drop(permit);
        thread::sleep(Duration::from_millis(50));
    }
    panic!("replaced files stay");
}

/// Opens a folder that was just closed. A process that another test starts at that moment has its lock as well, until it
/// runs its own program.
pub(crate) fn reopen(folder: &Path, options: EmbeddedOptions) -> Result<EmbeddedEngine, OpenError> {
    for _ in 0..100 {
        match EmbeddedEngine::open(folder, options) {
            Err(OpenError::Locked { .. }) => thread::sleep(Duration::from_millis(20)),
            opened => return opened,
        }
    }
    EmbeddedEngine::open(folder, options)
}

fn write(key: &str) -> impl Transition<Verdict = ()> + use<> {
    let key = Bytes::from(key.to_owned());
    Apply::new([key.clone()], move |_, writes| {
        writes.put(key.clone(), "1".into());
        Decision::Commit(())
    })
}

fn spawn<T: Transition>(
    engine: &EmbeddedEngine,
    transition: T,
) -> tokio::task::JoinHandle<Result<T::Verdict>> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.transact(transition).await })
}
