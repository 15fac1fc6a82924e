//! Keys that a transition writes without declaring them, because it declares their owner; and keys that it only reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::support::{Apply, commit, keys, number, put, random, range, rows};
use crate::{Decision, Engine, Transition, Write};

pub async fn owned_writes_commit_with_the_rest<E: Engine>(engine: Arc<E>) {
    for (old, new) in [("0", "1"), ("1", "2"), ("2", "2")] {
        engine.transact(change("a", old, new, true)).await.unwrap();
        assert_eq!(engine.get(b"a").await.unwrap(), Some(new.into()));
        assert_eq!(keys(&*engine, "index ", "index!").await, [format!("index {new} a")]);
    }
}

pub async fn owned_writes_are_aborted_with_the_rest<E: Engine>(engine: Arc<E>) {
    engine.transact(change("a", "0", "1", true)).await.unwrap();
    engine.transact(change("a", "1", "2", false)).await.unwrap();
    assert_eq!(engine.get(b"a").await.unwrap(), Some("1".into()));
    assert_eq!(keys(&*engine, "index ", "index!").await, ["index 1 a"]);
}

/// Several writers for each of several rows, each of which owns one row of an index: whatever they do at the same time,
/// at the end and at every moment each row has exactly the index row that belongs to it.
pub async fn owners_of_different_rows_never_collide<E: Engine>(engine: Arc<E>) {
    const OWNERS: u64 = 4;
    let tasks: Vec<_> = (0..4 * OWNERS)
        .map(|task| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let (owner, mut state) = (format!("owner {}", task % OWNERS), task + 1);
                for _ in 0..25 {
                    let value = random(&mut state) % 10;
                    engine.transact(move_index_row(&owner, value)).await.unwrap();
                }
            })
        })
        .collect();
    let check = async || {
        // One scan, so one state.
        let mut found = BTreeMap::new();
        let mut owners = BTreeMap::new();
        for (key, value) in rows(&*engine, range("index ", "owner!")).await {
            match key.strip_prefix("index ").and_then(|rest| rest.split_once(' ')) {
                Some((value, owner)) => {
                    assert_eq!(found.insert(owner.to_owned(), value.to_owned()), None, "{owner}");
                }
                None => {
                    owners.insert(key, String::from_utf8(value.to_vec()).unwrap());
                }
            }
        }
        assert_eq!(found, owners);
        owners.len()
    };
    for _ in 0..20 {
        check().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(check().await, OWNERS as usize);
}

/// Two transitions read the same two rows, and each writes one of them if the other is absent: never do both.
pub async fn what_is_read_and_not_written_is_isolated<E: Engine>(engine: Arc<E>) {
    for round in 0..40 {
        let names = [format!("{round} left"), format!("{round} right")];
        let attempts = [0, 1].map(|own| {
            let (engine, names) = (Arc::clone(&engine), names.clone());
            tokio::spawn(async move {
                let own_key = Bytes::from(names[own].clone());
                let claim = Apply::new(names.clone(), move |values, writes| {
                    if values[1 - own].is_some() {
                        return Decision::Abort(false);
                    }
                    writes.put(own_key.clone(), "mine".into());
                    Decision::Commit(true)
                });
                engine.transact(claim).await.unwrap()
            })
        });
        let mut claims = Vec::new();
        for attempt in attempts {
            claims.push(attempt.await.unwrap());
        }
        claims.sort_unstable();
        assert_eq!(claims, [false, true], "round {round}");
        let stored = rows(&*engine, range(&names[0], &format!("{round} righu"))).await;
        assert_eq!(stored.len(), 1, "round {round}");
    }
    // What is read stays as it was.
    put(&*engine, "read", "1").await;
    let read = Apply::new(["read"], |values, writes| {
        writes.put("written".into(), values[0].clone().unwrap_or_default());
        Decision::Commit(())
    });
    engine.transact(read).await.unwrap();
    commit(&*engine, vec![Write::Put("read".into(), "2".into())]).await;
    assert_eq!(engine.get(b"written").await.unwrap(), Some("1".into()));
}

/// Changes a row from one value to another, and its row in an index with it.
fn change(
    key: &'static str,
    old: &'static str,
    new: &'static str,
    commits: bool,
) -> impl Transition<Verdict = ()> {
    Apply::new([key], move |values, writes| {
        assert_eq!(values.len(), 1);
        writes.put(key.into(), new.into());
        writes.delete(format!("index {old} {key}").into());
        writes.put(format!("index {new} {key}").into(), Bytes::new());
        if commits { Decision::Commit(()) } else { Decision::Abort(()) }
    })
}

fn move_index_row(owner: &str, value: u64) -> impl Transition<Verdict = ()> + use<> {
    let owner = owner.to_owned();
    Apply::new([owner.clone()], move |values, writes| {
        if values[0].is_some() {
            writes.delete(format!("index {} {owner}", number(&values[0])).into());
        }
        writes.put(owner.clone().into(), value.to_string().into());
        writes.put(format!("index {value} {owner}").into(), Bytes::new());
        Decision::Commit(())
    })
}
