//! Measures the embedded engine in a folder: `cargo run --release --example measure -- <folder> [rows]`; with 0
//! rows it only opens the folder.
//!
//! For a quick look while working on the engine; comparisons are the business of `tavola-bench`. Everything goes
//! through the public contract, rows are 600 B, and every commit is durable.

#![allow(clippy::print_stdout, reason = "prints a report")]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use tavola_engine::conformance::{Apply, random, range};
use tavola_engine::{Decision, EmbeddedEngine, EmbeddedOptions, Engine, Reader, Visitor, WriteSet};

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("the folder to measure in");
    let opening = Instant::now();
    let engine = open(&folder);
    println!("open: {:.2?}", opening.elapsed());
    let rows: u64 = arguments.next().map_or(1_000_000, |rows| rows.parse().expect("a number"));
    if rows == 0 {
        return report(&engine, &folder);
    }

    // Slices, because the best of them says most on a machine that others use as well.
    for slice in 0..6 {
        rate("one writer, upserts", 4_000, upserts(&engine, 1, 4_000, slice)).await;
    }
    for slice in 6..12 {
        rate("64 writers, upserts", 64_000, upserts(&engine, 64, 64_000, slice)).await;
    }
    let groups = engine.stats().group_size.count();
    println!("  {groups} groups, {} ns per commit", engine.stats().commit_nanos.sum() / groups);
    for slice in 0..5 {
        let what = "4 writers, 100-row transactions, rows";
        rate(what, rows / 5, load(&engine, slice * rows / 5, rows / 5)).await;
    }
    report(&engine, &folder);
    for (bound, count) in engine.stats().commit_nanos.buckets().filter(|(_, count)| *count > 0) {
        println!("  {count} commits took up to {} us", bound / 1000);
    }

    for readers in [1, 1, 1, 2, 2, 2] {
        let what = format!("{readers} reader(s), point gets");
        rate(&what, 100_000, gets(&engine, readers, 100_000, rows)).await;
    }
    let scanned = Instant::now();
    let counted = engine.scan(range("load", "loae"), Count(0)).await.expect("scan").0;
    println!("scan: {:.0} rows/s", counted as f64 / scanned.elapsed().as_secs_f64());

    let dropping = Instant::now();
    engine.drop_range(range("many", "manz")).await.expect("drop");
    println!("drop 400,000 rows: {:.2?}", dropping.elapsed());
    report(&engine, &folder);

    drop(engine);
    let opening = Instant::now();
    let engine = open(&folder);
    println!("reopen: {:.2?}", opening.elapsed());
    report(&engine, &folder);
}

fn open(folder: &str) -> Arc<EmbeddedEngine> {
    let mut options = EmbeddedOptions::default();
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(bytes) = setting("MEMTABLE") {
        options.memtable_bytes = bytes;
    }
    Arc::new(EmbeddedEngine::open(folder, options).expect("the folder opens"))
}

async fn rate(what: &str, count: u64, work: impl Future<Output = ()>) {
    let start = Instant::now();
    work.await;
    println!("{what}: {:.0}/s", count as f64 / start.elapsed().as_secs_f64());
}

/// Upserts as the server does them: read the old row, write the new one.
async fn upserts(engine: &Arc<EmbeddedEngine>, writers: u64, count: u64, slice: u64) {
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let engine = Arc::clone(engine);
            tokio::spawn(async move {
                let mut state = slice * 1000 + writer + 1;
                for _ in 0..count / writers {
                    let key = Bytes::from(format!("many{:016x}", random(&mut state)));
                    let value = value(&mut state);
                    let upsert = Apply::new([key.clone()], move |values, writes: &mut WriteSet| {
                        writes.put(key.clone(), value.clone());
                        Decision::Commit(values[0].is_some())
                    });
                    engine.transact(upsert).await.expect("committed");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Rows in random order, as entity group transactions.
async fn load(engine: &Arc<EmbeddedEngine>, first_row: u64, rows: u64) {
    let tasks: Vec<_> = (0..4)
        .map(|writer| {
            let engine = Arc::clone(engine);
            tokio::spawn(async move {
                let mut state = first_row + writer + 1;
                for transaction in 0..rows / 400 {
                    let first = first_row + (transaction * 4 + writer) * 100;
                    let rows: Vec<_> = (first..first + 100)
                        .map(|row| (load_key(row), value(&mut state)))
                        .collect();
                    let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
                    let insert = Apply::new(keys, move |_, writes: &mut WriteSet| {
                        for (key, value) in &rows {
                            writes.put(key.clone(), value.clone());
                        }
                        Decision::Commit(())
                    });
                    engine.transact(insert).await.expect("committed");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn gets(engine: &Arc<EmbeddedEngine>, readers: u64, count: u64, rows: u64) {
    let tasks: Vec<_> = (0..readers)
        .map(|reader| {
            let engine = Arc::clone(engine);
            tokio::spawn(async move {
                let mut state = reader + 1;
                for _ in 0..count / readers {
                    let key = load_key(random(&mut state) % rows);
                    assert!(engine.get(&key).await.expect("read").is_some());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Transactions of 100 neighbours, spread over the key space.
fn load_key(row: u64) -> Bytes {
    let transaction = (row / 100).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("load{transaction:016x}-{:03}", row % 100).into()
}

/// 600 B, about half of it random.
fn value(state: &mut u64) -> Bytes {
    let mut value = String::with_capacity(600);
    while value.len() < 580 {
        value.push_str("PropertyName=");
        value.push_str(&format!("{:016x}", random(state)));
    }
    value.truncate(600);
    value.into()
}

fn report(engine: &EmbeddedEngine, folder: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    println!(
        "  folder {} MB, tables and journals {} MB, {resident}, busy {}",
        folder_bytes(Path::new(folder)) / 1_000_000,
        engine.disk_bytes() / 1_000_000,
        engine.stats().busy_refusals.load(Ordering::Relaxed)
    );
}

/// Bytes on disk: journals are preallocated, so their length says nothing.
fn folder_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(path).expect("a folder");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folder_bytes(&path)
            } else {
                // A file may vanish while it is looked at.
                std::fs::metadata(&path).map_or(0, |metadata| metadata.blocks() * 512)
            }
        })
        .sum()
}

struct Count(u64);

impl Visitor for Count {
    fn visit(&mut self, _key: &[u8], _value: &[u8]) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}
