//! What the checks are made of; engines use it in their own tests too.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::{
    Decision, Engine, Guard, KeyRange, Reader, Transition, Version, Visitor, Write, WriteSet,
};

/// A transition from a closure.
pub struct Apply<F> {
    keys: Vec<Bytes>,
    guards: Vec<Guard>,
    frees_space: bool,
    apply: F,
}

impl<V, F: FnMut(&[Option<Bytes>], &mut WriteSet) -> Decision<V>> Apply<F> {
    pub fn new(keys: impl IntoIterator<Item = impl Into<Bytes>>, apply: F) -> Self {
        let keys = keys.into_iter().map(Into::into).collect();
        Self { keys, guards: Vec::new(), frees_space: false, apply }
    }

    /// The same, if this row is still as it was.
    #[must_use]
    pub fn guarded_by(mut self, key: impl Into<Bytes>, version: Version) -> Self {
        self.guards.push(Guard { key: key.into(), version });
        self
    }

    /// The same, known to only remove.
    #[must_use]
    pub fn freeing_space(mut self) -> Self {
        self.frees_space = true;
        self
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

    fn guards(&self) -> &[Guard] {
        &self.guards
    }

    fn frees_space(&self) -> bool {
        self.frees_space
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

pub(super) async fn delete<E: Engine>(engine: &E, key: &str) {
    commit(engine, vec![Write::Delete(key.to_owned().into())]).await;
}

pub(super) async fn keys<R: Reader>(reader: &R, start: &str, end: &str) -> Vec<String> {
    rows(reader, range(start, end)).await.into_iter().map(|(key, _)| key).collect()
}

pub(super) fn fill(set: &mut WriteSet, writes: &[Write]) {
    for write in writes {
        match write.clone() {
            Write::Put(key, value) => set.put(key, value),
            Write::Delete(key) => set.delete(key),
        }
    }
}

pub(super) fn write_key(write: &Write) -> &Bytes {
    match write {
        Write::Put(key, _) | Write::Delete(key) => key,
    }
}

pub(super) fn number(value: &Option<Bytes>) -> u64 {
    let parse = |value: &Bytes| std::str::from_utf8(value).unwrap().parse().unwrap();
    value.as_ref().map_or(0, parse)
}

/// Keeps rows until it has enough; keys must be text.
pub(super) struct Collect {
    pub(super) rows: Vec<(String, Bytes)>,
    pub(super) rows_max: usize,
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
