//! The suite that every engine passes.
//!
//! Each check takes a fresh, empty engine and panics where the contract of [`Engine`] is broken.
//! [`conformance_tests!`](crate::conformance_tests) makes a test of each. An engine's own promises (durability,
//! queues, locks) are tested next to it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::{
    Decision, Engine, Error, KEY_BYTES_MAX, KeyRange, Reader, Transition, Visitor, Write, WriteSet,
};

/// Makes a test of every check; `$open` is an expression that opens a fresh engine and a guard that is kept until
/// the test ends: `(engine, guard)`.
#[macro_export]
macro_rules! conformance_tests {
    ($open:expr) => {
        $crate::conformance_tests!(@each $open,
            get_finds_what_was_put,
            scan_is_ordered_and_bounded,
            scan_stops_where_the_visitor_breaks,
            empty_and_large_values_and_keys_survive,
            a_snapshot_stays_as_it_was,
            a_scan_sees_whole_transactions,
            point_reads_see_whole_transactions,
            an_abort_writes_nothing,
            a_transition_reads_what_was_answered_before,
            the_last_write_of_a_key_wins,
            concurrent_increments_lose_nothing,
            concurrent_transfers_keep_the_sum,
            a_panicking_transition_fails_alone,
            a_panicking_visitor_fails_alone,
            a_dropped_range_is_gone_and_usable_again,
            a_drop_lets_others_write,
            a_long_history_equals_a_model,
        );
    };
    (@each $open:expr, $($check:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let (engine, _guard) = $open;
                $crate::conformance::$check(::std::sync::Arc::new(engine)).await;
            }
        )*
    };
}

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

pub async fn an_abort_writes_nothing<E: Engine>(engine: Arc<E>) {
    put(&*engine, "a", "1").await;
    let verdict = engine
        .transact(Apply::new(["a", "b"], |values, writes| {
            writes.put("a".into(), "2".into());
            writes.put("b".into(), "2".into());
            Decision::Abort(values.to_vec())
        }))
        .await
        .unwrap();
    assert_eq!(verdict, [Some("1".into()), None]);
    assert_eq!(engine.get(b"a").await.unwrap(), Some("1".into()));
    assert_eq!(engine.get(b"b").await.unwrap(), None);
}

pub async fn a_transition_reads_what_was_answered_before<E: Engine>(engine: Arc<E>) {
    for round in 0..50 {
        put(&*engine, "key", &round.to_string()).await;
        let read = Apply::new(["key"], |values, _| Decision::Commit(values[0].clone()));
        assert_eq!(engine.transact(read).await.unwrap(), Some(round.to_string().into()));
        assert_eq!(engine.get(b"key").await.unwrap(), Some(round.to_string().into()));
        let scanned = rows(&*engine, range("key", "kez")).await;
        assert_eq!(scanned, [("key".into(), round.to_string().into())]);
    }
}

pub async fn the_last_write_of_a_key_wins<E: Engine>(engine: Arc<E>) {
    let writes = vec![
        Write::Put("a".into(), "1".into()),
        Write::Delete("a".into()),
        Write::Put("a".into(), "2".into()),
        Write::Put("b".into(), "1".into()),
        Write::Delete("b".into()),
    ];
    commit(&*engine, writes).await;
    assert_eq!(engine.get(b"a").await.unwrap(), Some("2".into()));
    assert_eq!(engine.get(b"b").await.unwrap(), None);
}

pub async fn concurrent_increments_lose_nothing<E: Engine>(engine: Arc<E>) {
    const TASKS: u64 = 32;
    const ROUNDS: u64 = 40;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                for _ in 0..ROUNDS {
                    let increment = Apply::new(["counter"], |values, writes| {
                        let count = number(&values[0]) + 1;
                        writes.put("counter".into(), count.to_string().into());
                        Decision::Commit(count)
                    });
                    seen.push(engine.transact(increment).await.unwrap());
                }
                seen
            })
        })
        .collect();
    let mut seen = Vec::new();
    for task in tasks {
        seen.extend(task.await.unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=TASKS * ROUNDS).collect::<Vec<_>>());
    assert_eq!(number(&engine.get(b"counter").await.unwrap()), TASKS * ROUNDS);
}

/// Moves amounts between accounts, aborting when there is not enough; no scan ever sees another sum.
pub async fn concurrent_transfers_keep_the_sum<E: Engine>(engine: Arc<E>) {
    const ACCOUNTS: u64 = 8;
    const BALANCE: u64 = 10;
    for account in 0..ACCOUNTS {
        put(&*engine, &format!("account {account}"), &BALANCE.to_string()).await;
    }
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let mut state = task + 1;
                for _ in 0..30 {
                    let from = random(&mut state) % ACCOUNTS;
                    let to = (from + 1 + random(&mut state) % (ACCOUNTS - 1)) % ACCOUNTS;
                    let amount = random(&mut state) % BALANCE;
                    transfer(&*engine, from, to, amount).await;
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let accounts = rows(&*engine, range("account ", "account!")).await;
        let sum: u64 = accounts.into_iter().map(|(_, value)| number(&Some(value))).sum();
        assert_eq!(sum, ACCOUNTS * BALANCE);
    }
    for task in tasks {
        task.await.unwrap();
    }
}

pub async fn a_panicking_transition_fails_alone<E: Engine>(engine: Arc<E>) {
    put(&*engine, "a", "1").await;
    let panicking = Apply::new(["a"], |_, writes| -> Decision<()> {
        writes.put("a".into(), "2".into());
        panic!("on purpose");
    });
    let neighbour = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { put(&*engine, "b", "1").await }
    });
    assert!(matches!(engine.transact(panicking).await, Err(Error::Panicked(_))));
    neighbour.await.unwrap();
    assert_eq!(engine.get(b"a").await.unwrap(), Some("1".into()));
    put(&*engine, "a", "3").await;
    assert_eq!(keys(&*engine, "a", "z").await, ["a", "b"]);
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

pub async fn a_dropped_range_is_gone_and_usable_again<E: Engine>(engine: Arc<E>) {
    for round in 0..2 {
        for chunk in 0..6 {
            let row = |row| Write::Put(format!("drop {chunk} {row:04}").into(), "x".into());
            commit(&*engine, (0..500).map(row).collect()).await;
        }
        put(&*engine, "drop", "before").await;
        put(&*engine, "drop!", "after").await;
        engine.drop_range(range("drop ", "drop!")).await.unwrap();
        assert_eq!(keys(&*engine, "a", "drop ").await, ["drop"]);
        assert_eq!(keys(&*engine, "drop ", "drop!").await.len(), 0, "round {round}");
        assert_eq!(keys(&*engine, "drop!", "z").await, ["drop!"]);
        engine.drop_range(range("drop ", "drop!")).await.unwrap();
    }
    engine.drop_range(range("z", "a")).await.unwrap();
    assert_eq!(engine.get(b"drop").await.unwrap(), Some("before".into()));
}

pub async fn a_drop_lets_others_write<E: Engine>(engine: Arc<E>) {
    for chunk in 0..10 {
        let row = |row| Write::Put(format!("drop {chunk} {row:04}").into(), "x".into());
        commit(&*engine, (0..500).map(row).collect()).await;
    }
    let dropping = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { engine.drop_range(range("drop ", "drop!")).await }
    });
    for index in 0..50 {
        put(&*engine, &format!("other {index:03}"), "x").await;
    }
    dropping.await.unwrap().unwrap();
    assert_eq!(keys(&*engine, "drop ", "drop!").await.len(), 0);
    assert_eq!(keys(&*engine, "other ", "other!").await.len(), 50);
}

pub async fn a_long_history_equals_a_model<E: Engine>(engine: Arc<E>) {
    let mut history = History::new(20_261_115);
    for _ in 0..1500 {
        history.step(&*engine).await;
    }
    history.check_all(&*engine).await;
}

/// A random history and the map that it should lead to; the same for the same seed.
pub struct History {
    state: u64,
    model: BTreeMap<String, Bytes>,
}

impl History {
    /// Few enough keys that rows are often overwritten, deleted and written again.
    const KEYS: u64 = 300;

    pub fn new(seed: u64) -> Self {
        Self { state: seed.max(1), model: BTreeMap::new() }
    }

    /// Does something to `engine`, and checks it.
    pub async fn step<E: Engine>(&mut self, engine: &E) {
        match random(&mut self.state) % 20 {
            0..10 => self.write(engine, true).await,
            10..12 => self.write(engine, false).await,
            12..16 => {
                let key = self.key();
                let found = engine.get(key.as_bytes()).await.unwrap();
                assert_eq!(found.as_ref(), self.model.get(&key));
            }
            16..19 => {
                let (start, end) = (self.key(), self.key());
                self.check(engine, &start, &end).await;
            }
            _ => {
                let start = random(&mut self.state) % Self::KEYS;
                let (start, end) = (format!("key {start:05}"), format!("key {:05}", start + 20));
                engine.drop_range(range(&start, &end)).await.unwrap();
                self.model.retain(|key, _| *key < start || *key >= end);
            }
        }
    }

    /// Checks every row.
    pub async fn check_all<E: Engine>(&self, engine: &E) {
        self.check(engine, "a", "z").await;
    }

    async fn check<E: Engine>(&self, engine: &E, start: &str, end: &str) {
        let (found, expected) = (rows(engine, range(start, end)).await, self.expected(start, end));
        let difference = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert!(
            difference.is_none(),
            "first difference at {:?}",
            difference.map(|(row, _)| &row.0)
        );
        assert_eq!(found.len(), expected.len());
    }

    async fn write<E: Engine>(&mut self, engine: &E, commit: bool) {
        let mut writes = Vec::new();
        let mut model = self.model.clone();
        for _ in 0..=random(&mut self.state) % 5 {
            let key = self.key();
            if random(&mut self.state).is_multiple_of(4) {
                model.remove(&key);
                writes.push(Write::Delete(key.into()));
            } else {
                let value = self.value();
                model.insert(key.clone(), value.clone());
                writes.push(Write::Put(key.into(), value));
            }
        }
        let keys: Vec<_> = writes.iter().map(|write| write_key(write).clone()).collect();
        let expected: Vec<_> = keys
            .iter()
            .map(|key| self.model.get(std::str::from_utf8(key).unwrap()).cloned())
            .collect();
        let transition = Apply::new(keys, move |values, set| {
            fill(set, &writes);
            if commit {
                Decision::Commit(values.to_vec())
            } else {
                Decision::Abort(values.to_vec())
            }
        });
        assert_eq!(engine.transact(transition).await.unwrap(), expected);
        if commit {
            self.model = model;
        }
    }

    fn expected(&self, start: &str, end: &str) -> Vec<(String, Bytes)> {
        let is_in = |key: &String| key.as_str() >= start && key.as_str() < end;
        let rows = self.model.iter().filter(|(key, _)| is_in(key));
        rows.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn key(&mut self) -> String {
        format!("key {:05}", random(&mut self.state) % Self::KEYS)
    }

    /// Mostly small, sometimes beyond what an engine keeps in place.
    fn value(&mut self) -> Bytes {
        let len = match random(&mut self.state) % 100 {
            0 => 100_000,
            1..10 => 5_000,
            _ => random(&mut self.state) % 200,
        };
        let byte = random(&mut self.state) as u8;
        vec![byte; len as usize].into()
    }
}

/// A transition from a closure. Every other one claims to be alone: whoever commits it, it comes to the same.
pub struct Apply<F> {
    keys: Vec<Bytes>,
    is_alone: bool,
    apply: F,
}

impl<V, F: FnMut(&[Option<Bytes>], &mut WriteSet) -> Decision<V>> Apply<F> {
    pub fn new(keys: impl IntoIterator<Item = impl Into<Bytes>>, apply: F) -> Self {
        static APPLIED: AtomicUsize = AtomicUsize::new(0);
        let is_alone = APPLIED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        Self { keys: keys.into_iter().map(Into::into).collect(), is_alone, apply }
    }
}

impl<V, F> Transition for Apply<F>
where
    V: Send + 'static,
    F: FnMut(&[Option<Bytes>], &mut WriteSet) -> Decision<V> + Send + 'static,
{
    type Verdict = V;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<V> {
        (self.apply)(values, writes)
    }
}

/// Commits `writes` whatever is there.
pub async fn commit<E: Engine>(engine: &E, writes: Vec<Write>) {
    let keys: Vec<_> = writes.iter().map(|write| write_key(write).clone()).collect();
    let transition = Apply::new(keys, move |_, set| {
        fill(set, &writes);
        Decision::Commit(())
    });
    engine.transact(transition).await.unwrap();
}

/// Sets one row.
pub async fn put<E: Engine>(engine: &E, key: &str, value: &str) {
    let write = Write::Put(Bytes::from(key.to_owned()), Bytes::from(value.to_owned()));
    commit(engine, vec![write]).await;
}

/// The rows of `range`; keys must be text.
pub async fn rows<R: Reader>(reader: &R, range: KeyRange) -> Vec<(String, Bytes)> {
    let visitor = Collect { rows: Vec::new(), rows_max: usize::MAX };
    reader.scan(range, visitor).await.unwrap().rows
}

/// The range from `start` to `end`.
pub fn range(start: &str, end: &str) -> KeyRange {
    KeyRange { start: start.to_owned().into(), end: end.to_owned().into() }
}

/// The next number of a xorshift sequence: a test must be able to repeat itself.
pub fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

async fn delete<E: Engine>(engine: &E, key: &str) {
    commit(engine, vec![Write::Delete(key.to_owned().into())]).await;
}

async fn keys<R: Reader>(reader: &R, start: &str, end: &str) -> Vec<String> {
    rows(reader, range(start, end)).await.into_iter().map(|(key, _)| key).collect()
}

async fn transfer<E: Engine>(engine: &E, from: u64, to: u64, amount: u64) {
    let keys = [Bytes::from(format!("account {from}")), Bytes::from(format!("account {to}"))];
    let move_amount = Apply::new(keys.clone(), move |values, writes| {
        let (source, target) = (number(&values[0]), number(&values[1]));
        if source < amount {
            return Decision::Abort(());
        }
        writes.put(keys[0].clone(), (source - amount).to_string().into());
        writes.put(keys[1].clone(), (target + amount).to_string().into());
        Decision::Commit(())
    });
    engine.transact(move_amount).await.unwrap();
}

fn fill(set: &mut WriteSet, writes: &[Write]) {
    for write in writes {
        match write.clone() {
            Write::Put(key, value) => set.put(key, value),
            Write::Delete(key) => set.delete(key),
        }
    }
}

fn write_key(write: &Write) -> &Bytes {
    match write {
        Write::Put(key, _) | Write::Delete(key) => key,
    }
}

fn number(value: &Option<Bytes>) -> u64 {
    let parse = |value: &Bytes| std::str::from_utf8(value).unwrap().parse().unwrap();
    value.as_ref().map_or(0, parse)
}

struct Collect {
    rows: Vec<(String, Bytes)>,
    rows_max: usize,
}

impl Visitor for Collect {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let key = String::from_utf8_lossy(key).into_owned();
        self.rows.push((key, Bytes::copy_from_slice(value)));
        if self.rows.len() < self.rows_max {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
