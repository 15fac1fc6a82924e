//! Deletions give their room back, whatever else is written or read meanwhile.

use std::time::Duration;

use super::tests::{flush, open, until};
use super::*;
use crate::Write;
use crate::conformance::{commit, put, random, range, rows};

/// Together more than the first level holds, so that they lie below what is written later.
const ROWS: usize = 3000;
const ROW_BYTES: usize = 16 * 1024;
const ROWS_AT_A_TIME: usize = 200;

/// What is left of it all, with room to spare.
const BYTES_LEFT_MAX: u64 = 4 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_room_of_deleted_rows_comes_back_when_writes_pause() {
    let (engine, _folder) = filled().await;
    delete_most(&engine).await;
    has_become_small(&engine).await;
    assert_eq!(rows(&engine, range("M", "N")).await.len(), 1);
}

/// Most servers write a little all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_room_of_deleted_rows_comes_back_beside_writes() {
    let (engine, _folder) = filled().await;
    delete_most(&engine).await;
    let writer = engine.clone();
    let writes = tokio::spawn(async move {
        loop {
            put(&writer, "now", "and then").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    has_become_small(&engine).await;
    assert!(!writes.is_finished());
    writes.abort();
    assert_eq!(rows(&engine, range("M", "N")).await.len(), 1);
}

/// Those that somebody still reads are taken to the last level with their deletions, and go when nobody does any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_snapshot_stay_until_it_is_dropped() {
    let (engine, _folder) = filled().await;
    let before = engine.snapshot().await.unwrap();
    delete_most(&engine).await;
    let store = Arc::clone(&engine.shared.store);
    until(|| store.uncompacted_runs() == 0 && store.waiting_tombstones().count == 0).await;
    assert_eq!(rows(&before, range("M", "N")).await.len(), ROWS);
    assert_eq!(rows(&engine, range("M", "N")).await.len(), 1);
    drop(before);
    put(&engine, "now", "nobody reads what was").await;
    has_become_small(&engine).await;
    assert_eq!(rows(&engine, range("M", "N")).await.len(), 1);
}

/// What was deleted before its row was compacted meets nothing further down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_of_rows_that_never_came_down_go_as_well() {
    let (engine, _folder) = filled().await;
    for round in 0..3 {
        let key = |number: usize| Bytes::from(format!("X{round} {number:06}"));
        for numbers in numbers().collect::<Vec<_>>().chunks(ROWS_AT_A_TIME) {
            let put = numbers.iter().map(|number| Write::Put(key(*number), "value".into()));
            commit(&engine, put.collect()).await;
            commit(&engine, numbers.iter().map(|number| Write::Delete(key(*number))).collect())
                .await;
        }
        flush(&engine.shared.store).await;
    }
    let store = Arc::clone(&engine.shared.store);
    until(|| store.tombstone_share() == 0.0 && store.uncompacted_runs() == 0).await;
    assert_eq!(rows(&engine, range("A", "Z")).await.len(), ROWS);
}

fn numbers() -> impl Iterator<Item = usize> {
    0..ROWS
}

fn key(number: usize) -> Bytes {
    format!("M{number:06}").into()
}

async fn filled() -> (EmbeddedEngine, tempfile::TempDir) {
    let (engine, folder) = open(EmbeddedOptions::default());
    let mut state = 1;
    // As random as to not be compressed.
    let mut value =
        || (0..ROW_BYTES / 8).flat_map(|_| random(&mut state).to_le_bytes()).collect::<Bytes>();
    for numbers in numbers().collect::<Vec<_>>().chunks(ROWS_AT_A_TIME) {
        let puts = numbers.iter().map(|number| Write::Put(key(*number), value()));
        commit(&engine, puts.collect()).await;
    }
    let store = Arc::clone(&engine.shared.store);
    flush(&store).await;
    until(|| store.uncompacted_tables() == 0).await;
    assert!(store.table_bytes() > (ROWS * ROW_BYTES) as u64);
    (engine, folder)
}

async fn delete_most(engine: &EmbeddedEngine) {
    for numbers in numbers().skip(1).collect::<Vec<_>>().chunks(ROWS_AT_A_TIME) {
        let deletes = numbers.iter().map(|number| Write::Delete(key(*number)));
        commit(engine, deletes.collect()).await;
    }
    flush(&engine.shared.store).await;
}

async fn has_become_small(engine: &EmbeddedEngine) {
    let store = Arc::clone(&engine.shared.store);
    until(|| store.table_bytes() < BYTES_LEFT_MAX).await;
}
