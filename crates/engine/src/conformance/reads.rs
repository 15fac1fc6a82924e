//! Reading: rows by key, ranges in order, and one state at a time.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::support::{Collect, commit, delete, keys, put, random, range, rows};
use crate::{Engine, Error, KEY_BYTES_MAX, Reader, Visitor, Write};

pub async fn get_finds_what_was_put<E: Engine>(engine: Arc<E>) {
    assert_eq!(engine.get(b"a").await.unwrap(), None);
    put(&*engine, "a", "1").await;
    assert_eq!(engine.get(b"a").await.unwrap(), Some("1".into()));
    put(&*engine, "a", "2").await;
    assert_eq!(engine.get(b"a").await.unwrap(), Some("2".into()));
    delete(&*engine, "a").await;
    assert_eq!(engine.get(b"a").await.unwrap(), None);
    delete(&*engine, "never there").await;
}

pub async fn scan_is_ordered_and_bounded<E: Engine>(engine: Arc<E>) {
    for key in ["b", "ab", "c", "a", "a\0", "a\u{ff}", "d"] {
        put(&*engine, key, key).await;
    }
    delete(&*engine, "ab").await;
    assert_eq!(keys(&*engine, "a", "d").await, ["a", "a\0", "a\u{ff}", "b", "c"]);
    assert_eq!(keys(&*engine, "a\0", "c").await, ["a\0", "a\u{ff}", "b"]);
    assert_eq!(keys(&*engine, "b", "b\0").await, ["b"]);
    assert!(keys(&*engine, "b", "b").await.is_empty());
    assert!(keys(&*engine, "c", "b").await.is_empty());
    assert!(keys(&*engine, "e", "z").await.is_empty());
}

/// A long scan ends where its range does, whatever lies behind it, and whatever was deleted there.
pub async fn a_long_scan_has_the_same_ends<E: Engine>(engine: Arc<E>) {
    const ROWS: usize = 6000;
    let key = |number: usize| format!("{number:05}");
    let puts = (0..ROWS).map(|number| Write::Put(key(number).into(), "".into())).collect();
    commit(&*engine, puts).await;
    // Runs of deletions: within the range, at its end, and behind it.
    let is_deleted = |number: usize| matches!(number, 1500..2100 | 3900..4100 | 4500..5500);
    let deletes = (0..ROWS).filter(|number| is_deleted(*number));
    commit(&*engine, deletes.map(|number| Write::Delete(key(number).into())).collect()).await;
    let ranges = [(0, ROWS), (0, 4000), (10, 4100), (10, 4101), (100, 5000), (0, 1124), (0, 1025)];
    for (start, end) in ranges {
        let expected: Vec<_> =
            (start..end).filter(|number| !is_deleted(*number)).map(key).collect();
        assert_eq!(keys(&*engine, &key(start), &key(end)).await, expected, "{start}..{end}");
    }
    assert_eq!(keys(&*engine, "", "z").await.len(), ROWS - 1800);
}

pub async fn scan_stops_where_the_visitor_breaks<E: Engine>(engine: Arc<E>) {
    for index in 0..100 {
        put(&*engine, &format!("{index:03}"), "").await;
    }
    let visitor = Collect { rows: Vec::new(), rows_max: 7 };
    let visitor = engine.scan(range("010", "090"), visitor).await.unwrap();
    let expected: Vec<_> = (10..17).map(|index| format!("{index:03}")).collect();
    let found: Vec<_> = visitor.rows.into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, expected);
}

pub async fn empty_and_large_values_and_keys_survive<E: Engine>(engine: Arc<E>) {
    let mut state = 1;
    let large: Bytes = (0..1 << 20).map(|_| random(&mut state) as u8).collect();
    let long_key = Bytes::from(vec![b'k'; KEY_BYTES_MAX]);
    commit(&*engine, vec![Write::Put("empty".into(), Bytes::new())]).await;
    commit(&*engine, vec![Write::Put("large".into(), large.clone())]).await;
    commit(&*engine, vec![Write::Put(long_key.clone(), "long".into())]).await;
    assert_eq!(engine.get(b"empty").await.unwrap(), Some(Bytes::new()));
    assert_eq!(engine.get(b"large").await.unwrap(), Some(large.clone()));
    assert_eq!(engine.get(&long_key).await.unwrap(), Some("long".into()));
    let rows = rows(&*engine, range("a", "z")).await;
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2], (String::from("large"), large));
}

pub async fn a_snapshot_stays_as_it_was<E: Engine>(engine: Arc<E>) {
    put(&*engine, "a", "1").await;
    put(&*engine, "b", "1").await;
    let snapshot = engine.snapshot().await.unwrap();
    put(&*engine, "a", "2").await;
    delete(&*engine, "b").await;
    put(&*engine, "c", "2").await;
    assert_eq!(snapshot.get(b"a").await.unwrap(), Some("1".into()));
    assert_eq!(snapshot.get(b"b").await.unwrap(), Some("1".into()));
    assert_eq!(snapshot.get(b"c").await.unwrap(), None);
    assert_eq!(keys(&snapshot, "a", "z").await, ["a", "b"]);
    engine.drop_range(range("a", "z")).await.unwrap();
    assert_eq!(keys(&snapshot, "a", "z").await, ["a", "b"]);
    assert!(keys(&*engine, "a", "z").await.is_empty());
}

/// Rewrites all rows at once, again and again; scans and snapshots see them all alike.
pub async fn a_scan_sees_whole_transactions<E: Engine>(engine: Arc<E>) {
    const ROWS: usize = 50;
    let rewrite = |round: usize| {
        let value = Bytes::from(format!("{round:01000}"));
        (0..ROWS).map(|row| Write::Put(format!("{row:03}").into(), value.clone())).collect()
    };
    commit(&*engine, rewrite(0)).await;
    let writer = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move {
            for round in 1..300 {
                commit(&*engine, rewrite(round)).await;
            }
        }
    });
    while !writer.is_finished() {
        let scanned = rows(&*engine, range("0", "9")).await;
        assert_eq!(scanned.len(), ROWS);
        assert!(scanned.iter().all(|(_, value)| *value == scanned[0].1));
        let snapshot = engine.snapshot().await.unwrap();
        let first = snapshot.get(b"000").await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(snapshot.get(b"049").await.unwrap(), first);
    }
    writer.await.unwrap();
}

/// Whoever has read one row of a transaction finds all the others: reading the next one must not go back.
pub async fn point_reads_see_whole_transactions<E: Engine>(engine: Arc<E>) {
    const ROWS: usize = 200;
    const ROUNDS: u64 = 60;
    let key = |row: usize| format!("{row:04}");
    let writer = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move {
            for round in 1..=ROUNDS {
                let value = Bytes::copy_from_slice(&round.to_be_bytes());
                let put = |row| Write::Put(key(row).into(), value.clone());
                commit(&*engine, (0..ROWS).map(put).collect()).await;
            }
        }
    });
    let mut row = 0;
    let mut newest = 0;
    while newest < ROUNDS {
        row = (row + 7) % ROWS;
        let value = engine.get(key(row).as_bytes()).await.unwrap();
        let round = value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()));
        assert!(round >= newest, "read round {round} of row {row} after round {newest} of another");
        newest = round;
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

pub async fn a_panicking_visitor_fails_alone<E: Engine>(engine: Arc<E>) {
    struct Panicking;
    impl Visitor for Panicking {
        fn visit(&mut self, _key: &[u8], _value: &[u8]) -> ControlFlow<()> {
            panic!("on purpose");
        }
    }
    put(&*engine, "a", "1").await;
    for _ in 0..20 {
        let scanned = engine.scan(range("a", "b"), Panicking).await;
        assert!(matches!(scanned, Err(Error::Panicked(_))));
    }
    assert_eq!(keys(&*engine, "a", "b").await, ["a"]);
}
