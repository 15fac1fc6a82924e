//! Transitions: whole or not at all, one after the other, each on its own.

use std::sync::Arc;

use bytes::Bytes;

use super::support::{Apply, commit, keys, number, put, random, range, rows};
use crate::{Decision, Engine, Error, Write};

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
