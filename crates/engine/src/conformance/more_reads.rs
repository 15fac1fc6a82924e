//! Transitions that ask for more keys: the second round sees everything, and nothing of the first is left.

use std::sync::Arc;

use bytes::Bytes;

use super::support::{Apply, keys, put};
use crate::{Decision, Engine, Error, Transition};

pub async fn more_reads_follow_the_first_values<E: Engine>(engine: Arc<E>) {
    put(&*engine, "first", "second").await;
    put(&*engine, "second", "2").await;
    let follow = |start: &'static str| {
        Apply::new([start], move |values, _| match values {
            [Some(next)] => Decision::Read(vec![next.clone(), Bytes::from_static(b"absent")]),
            seen => Decision::Commit(seen.to_vec()),
        })
    };
    let seen = engine.transact(follow("first")).await.unwrap();
    assert_eq!(seen, [Some("second".into()), Some("2".into()), None]);
    // Without a question there is one round.
    assert_eq!(engine.transact(follow("nothing")).await.unwrap(), [None]);
}

pub async fn what_was_written_before_more_reads_is_forgotten<E: Engine>(engine: Arc<E>) {
    for (commits, expected) in [(false, &[][..]), (true, &["second round"])] {
        let transition = Apply::new(["a"], move |values, writes| {
            if values.len() == 1 {
                writes.put("a".into(), "1".into());
                writes.put("first round".into(), "1".into());
                return Decision::Read(vec![Bytes::from_static(b"b")]);
            }
            writes.put("second round".into(), "2".into());
            if commits { Decision::Commit(()) } else { Decision::Abort(()) }
        });
        engine.transact(transition).await.unwrap();
        assert_eq!(keys(&*engine, "a", "z").await, expected);
    }
}

/// Many want the same few names at the same time, and know the name that they want only after the first read: each
/// name is claimed once.
pub async fn more_reads_see_what_was_written_at_the_same_time<E: Engine>(engine: Arc<E>) {
    const TASKS: u64 = 16;
    const NAMES: u64 = 20;
    for task in 0..TASKS {
        put(&*engine, &format!("wish {task}"), "0").await;
    }
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let mut claims = 0;
                for _ in 0..NAMES {
                    claims += u64::from(engine.transact(claim(task)).await.unwrap());
                }
                claims
            })
        })
        .collect();
    let mut claims = 0;
    for task in tasks {
        claims += task.await.unwrap();
    }
    assert_eq!(claims, NAMES);
    assert_eq!(keys(&*engine, "name ", "name!").await.len() as u64, NAMES);
}

pub async fn who_asks_for_more_reads_twice_fails_alone<E: Engine>(engine: Arc<E>) {
    let asking = Apply::new(["a"], |_, writes| -> Decision<()> {
        writes.put("a".into(), "1".into());
        Decision::Read(vec![Bytes::from_static(b"b")])
    });
    assert!(matches!(engine.transact(asking).await, Err(Error::Panicked(_))));
    assert_eq!(engine.get(b"a").await.unwrap(), None);
    put(&*engine, "b", "1").await;
    assert_eq!(keys(&*engine, "a", "z").await, ["b"]);
}

/// Claims the name that the task wishes for, if it is free, and wishes for the next one in any case.
fn claim(task: u64) -> impl Transition<Verdict = bool> {
    let wish = format!("wish {task}");
    Apply::new([wish.clone()], move |values, writes| {
        let wished = String::from_utf8_lossy(values[0].as_deref().unwrap_or(b"0")).into_owned();
        let name = Bytes::from(format!("name {wished}"));
        let [_, taken] = values else { return Decision::Read(vec![name]) };
        let next = wished.parse::<u64>().unwrap_or(0) + 1;
        writes.put(wish.clone().into(), next.to_string().into());
        if taken.is_none() {
            writes.put(name, "taken".into());
        }
        Decision::Commit(taken.is_none())
    })
}
