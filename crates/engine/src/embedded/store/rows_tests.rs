use std::collections::BTreeMap;
use std::thread;

use super::*;
use crate::conformance::{commit, random, range};
use crate::embedded::options::SEPARATE_VALUE_BYTES;
use crate::embedded::store::compaction::Strategy;
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::{Engine, Write};

const KEYS: u64 = 120;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// How the rows of a range were read, and what they are.
fn read(snapshot: &StoreSnapshot, range: &KeyRange) -> (bool, Model) {
    let mut rows = Rows::open(snapshot, range).expect("they open");
    let is_run = matches!(rows.source, Source::Run(_));
    let mut model = Model::new();
    while let Some((key, value)) = rows.next().expect("they are read") {
        let is_later = model.last_key_value().is_none_or(|(last, _)| last[..] < *key);
        assert!(is_later, "{key:?} is out of order");
        model.insert(key.to_vec(), value.to_vec());
    }
    assert!(rows.next().expect("they are read").is_none());
    (is_run, model)
}

fn all() -> KeyRange {
    range("", "~")
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:03}").into_bytes()
}

fn flush(engine: &EmbeddedEngine) {
    let store = &engine.shared.store;
    store.start_flush().expect("it starts");
    while !store.is_flushed().expect("the store is alive") {
        thread::yield_now();
    }
}

fn compact(engine: &EmbeddedEngine) {
    let _permit = engine.shared.space.compaction_permit();
    while engine.shared.store.compact_step(Strategy::Eager).expect("there is room") {}
}

fn open() -> (EmbeddedEngine, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = EmbeddedEngine::open(folder.path(), EmbeddedOptions::default());
    (engine.expect("it opens"), folder)
}

/// Some random changes, made to the engine and to the model.
async fn change(engine: &EmbeddedEngine, model: &mut Model, state: &mut u64) {
    let mut writes = BTreeMap::new();
    for _ in 0..=random(state) % 20 {
        let key = key(random(state) % KEYS);
        let value = match random(state) % 16 {
            0..4 => None,
            4 => Some(vec![b'x'; SEPARATE_VALUE_BYTES as usize + 1]),
            _ => Some(random(state).to_string().into_bytes()),
        };
        match &value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(&key),
        };
        writes.insert(key, value);
    }
    let write = |(key, value): (Vec<u8>, Option<Vec<u8>>)| match value {
        Some(value) => Write::Put(key.into(), value.into()),
        None => Write::Delete(key.into()),
    };
    commit(engine, writes.into_iter().map(write).collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_has_its_rows_whatever_becomes_of_the_tables() {
    let mut sources = [0; 2];
    for seed in 1..=6 {
        let (engine, _folder) = open();
        let (mut state, mut model) = (seed, Model::new());
        let mut kept: Vec<(StoreSnapshot, Model)> = Vec::new();
        for _ in 0..120 {
            match random(&mut state) % 8 {
                0..3 => change(&engine, &mut model, &mut state).await,
                3 => flush(&engine),
                4..6 => {
                    flush(&engine);
                    compact(&engine);
                    // So that there is a snapshot of it.
                    commit(&engine, vec![Write::Put("~".into(), "elsewhere".into())]).await;
                }
                _ if kept.len() > 3 => drop(kept.swap_remove(0)),
                _ => kept.push((engine.shared.store.snapshot(), model.clone())),
            }
            let (a, b) = (key(random(&mut state) % KEYS), key(random(&mut state) % KEYS));
            let some = KeyRange { start: a.into(), end: b.into() };
            let now = (engine.shared.store.snapshot(), model.clone());
            for (snapshot, model) in kept.iter().chain([&now]) {
                let (is_run, rows) = read(snapshot, &all());
                assert_eq!(&rows, model, "seed {seed}");
                sources[usize::from(is_run)] += 1;
                if !some.is_empty() {
                    let expected = model.range(some.start.to_vec()..some.end.to_vec());
                    let expected = expected.map(|(key, value)| (key.clone(), value.clone()));
                    assert_eq!(read(snapshot, &some).1, expected.collect(), "seed {seed}");
                }
            }
        }
    }
    assert!(sources.iter().all(|count| *count > 50), "{sources:?}");
}

/// The newest version of a row is not that of an older snapshot, and tables do not keep both for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_reads_nothing_newer() {
    let (engine, _folder) = open();
    let put = |value: &'static str| vec![Write::Put("a".into(), value.into())];
    commit(&engine, put("before")).await;
    flush(&engine);
    let before = engine.shared.store.snapshot();
    commit(&engine, put("after")).await;
    flush(&engine);
    compact(&engine);
    commit(&engine, vec![Write::Put("~".into(), "elsewhere".into())]).await;
    let (is_run, rows) = read(&before, &all());
    assert!(!is_run);
    assert_eq!(rows.into_values().collect::<Vec<_>>(), [b"before"]);
    let (is_run, rows) = read(&engine.shared.store.snapshot(), &all());
    assert!(is_run, "there is one run, and nothing in memory");
    assert_eq!(rows.into_values().collect::<Vec<_>>(), [b"after"]);
}

/// Tables are deleted without a look at their rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_keeps_the_tables_of_a_dropped_range() {
    let (engine, _folder) = open();
    let mut model = Model::new();
    change(&engine, &mut model, &mut 3).await;
    flush(&engine);
    let before = engine.shared.store.snapshot();
    engine.drop_range(all()).await.expect("it is dropped");
    flush(&engine);
    engine.shared.store.drop_tables(&all()).expect("they go");
    assert_eq!(read(&before, &all()).1, model);
}

#[test]
fn memtables_are_searched_from_the_first_key_on() {
    let memtable = Memtable::new(0);
    assert!(!has_rows(&memtable, &all()));
    memtable.insert(InternalValue::from_components("b", "", 7, ValueType::Value));
    for (start, end, has) in
        [("", "~", true), ("a", "b", false), ("a", "c", true), ("b", "c", true), ("ba", "c", false)]
    {
        assert_eq!(has_rows(&memtable, &range(start, end)), has, "{start} {end}");
    }
}
