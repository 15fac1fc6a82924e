//! Long random histories against a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::support::{Apply, fill, random, range, rows};
use crate::{Decision, Engine, Write};

pub async fn a_long_history_equals_a_model<E: Engine>(engine: Arc<E>) {
    let mut history = History::new(20_261_115);
    for _ in 0..1500 {
        history.step(&*engine).await;
    }
    history.check_all(&*engine).await;
}

/// A random history and the map that it should lead to; the same for the same seed. Each row owns another one, which is
/// written without being declared.
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
        let (mut keys, mut writes) = (Vec::new(), Vec::new());
        let mut model = self.model.clone();
        for _ in 0..=random(&mut self.state) % 5 {
            let key = self.key();
            let owned = format!("owned by {key}");
            if random(&mut self.state).is_multiple_of(4) {
                model.remove(&key);
                model.remove(&owned);
                writes.extend([Write::Delete(key.clone().into()), Write::Delete(owned.into())]);
            } else {
                let value = self.value();
                let length = Bytes::from(value.len().to_string());
                model.insert(key.clone(), value.clone());
                model.insert(owned.clone(), length.clone());
                let puts = [(key.clone(), value), (owned, length)];
                writes.extend(puts.map(|(key, value)| Write::Put(key.into(), value)));
            }
            keys.push(Bytes::from(key));
        }
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
