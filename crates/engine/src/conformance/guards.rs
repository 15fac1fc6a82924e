//! Guards: rows that must still be as they were read.
//!
//! An engine that keeps no versions says so with [`Version::UNTRACKED`], and is not shared. Then a guard holds whatever
//! happens; otherwise it holds exactly as long as its row stays.

use std::sync::Arc;

use bytes::Bytes;

use super::support::{Apply, delete, number, put, range};
use crate::{Decision, Engine, Error, Reader, Version, WriteSet};

pub async fn an_untracked_version_always_holds<E: Engine>(engine: Arc<E>) {
    for value in ["1", "2"] {
        engine.transact(set("a", value).guarded_by("row", Version::UNTRACKED)).await.unwrap();
        put(&*engine, "row", value).await;
    }
    assert_eq!(engine.get(b"a").await.unwrap(), Some("2".into()));
}

pub async fn a_guard_holds_while_its_row_stays<E: Engine>(engine: Arc<E>) {
    let absent = engine.get_versioned(b"row").await.unwrap();
    assert_eq!(absent.value, None);
    engine.transact(set("a", "1").guarded_by("row", absent.version)).await.unwrap();
    put(&*engine, "row", "1").await;
    let read = engine.get_versioned(b"row").await.unwrap();
    assert_eq!(read.value, Some("1".into()));
    let snapshot = engine.snapshot().await.unwrap();
    assert_eq!(snapshot.get_versioned(b"row").await.unwrap(), read);
    // Others change meanwhile, and are dropped.
    put(&*engine, "other", "1").await;
    delete(&*engine, "other").await;
    engine.drop_range(range("s", "z")).await.unwrap();
    for value in ["2", "3"] {
        engine.transact(set("a", value).guarded_by("row", read.version)).await.unwrap();
    }
    assert_eq!(engine.get(b"a").await.unwrap(), Some("3".into()));
    assert_eq!(engine.get_versioned(b"row").await.unwrap(), read);
}

/// Put again with the same value, deleted, made anew, dropped: each is a change.
pub async fn a_guard_fails_once_its_row_has_changed<E: Engine>(engine: Arc<E>) {
    let absent = engine.get_versioned(b"row").await.unwrap().version;
    let mut earlier = vec![absent];
    for is_dropped in [false, true, false] {
        for _ in 0..2 {
            put(&*engine, "row", "1").await;
            earlier.push(assert_only_current_holds(&*engine, &earlier).await);
        }
        if is_dropped {
            engine.drop_range(range("row", "rox")).await.unwrap();
        } else {
            delete(&*engine, "row").await;
        }
        // All absences are alike.
        assert_eq!(assert_only_current_holds(&*engine, &earlier[1..]).await, absent);
    }
}

pub async fn a_failed_guard_writes_nothing<E: Engine>(engine: Arc<E>) {
    put(&*engine, "row", "1").await;
    put(&*engine, "stays", "1").await;
    let stays = engine.get_versioned(b"stays").await.unwrap().version;
    let outdated = engine.get_versioned(b"row").await.unwrap().version;
    put(&*engine, "row", "2").await;
    if is_untracked(&*engine, outdated) {
        return;
    }
    let guarded = set("a", "1").guarded_by("stays", stays).guarded_by("row", outdated);
    assert!(matches!(engine.transact(guarded).await, Err(Error::GuardFailed)));
    // Not even applied.
    let applied = Apply::new(["a"], |_, _| -> Decision<()> { panic!("applied") });
    let applied = engine.transact(applied.guarded_by("row", outdated)).await;
    assert!(matches!(applied, Err(Error::GuardFailed)));
    assert_eq!(engine.get(b"a").await.unwrap(), None);
}

/// Writers rely on a row that somebody changes all the time: none is committed under another state than it has read.
pub async fn guards_are_checked_at_the_moment_of_the_commit<E: Engine>(engine: Arc<E>) {
    put(&*engine, "epoch", "0").await;
    let version = engine.get_versioned(b"epoch").await.unwrap().version;
    if is_untracked(&*engine, version) {
        return;
    }
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                for _ in 0..40 {
                    let epoch = engine.get_versioned(b"epoch").await.unwrap();
                    let key = Bytes::from(format!("writer {writer}"));
                    let value = epoch.value.unwrap();
                    // The epoch is also read, to see what the guard has let through.
                    let write = Apply::new(["epoch"], move |values, writes| {
                        writes.put(key.clone(), value.clone());
                        Decision::Commit(number(&values[0]) == number(&Some(value.clone())))
                    });
                    match engine.transact(write.guarded_by("epoch", epoch.version)).await {
                        Ok(is_same) => assert!(is_same),
                        Err(error) => assert!(matches!(error, Error::GuardFailed), "{error}"),
                    }
                }
            })
        })
        .collect();
    for epoch in 1..100 {
        put(&*engine, "epoch", &epoch.to_string()).await;
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Of the versions that the row had and the one that it has, only the last one holds; tells it.
async fn assert_only_current_holds<E: Engine>(engine: &E, earlier: &[Version]) -> Version {
    let current = engine.get_versioned(b"row").await.unwrap().version;
    engine.transact(set("a", "1").guarded_by("row", current)).await.unwrap();
    for version in earlier {
        let outcome = engine.transact(set("a", "1").guarded_by("row", *version)).await;
        if is_untracked(engine, current) {
            outcome.unwrap();
        } else {
            assert_ne!(*version, current);
            assert!(matches!(outcome, Err(Error::GuardFailed)), "{version:?} holds");
        }
    }
    current
}

/// Whether the engine keeps no versions, as only those may that are not shared.
fn is_untracked<E: Engine>(engine: &E, version: Version) -> bool {
    let is_untracked = version == Version::UNTRACKED;
    assert!(!(is_untracked && engine.is_shared()), "a shared engine must keep versions");
    is_untracked
}

fn set(
    key: &'static str,
    value: &'static str,
) -> Apply<impl FnMut(&[Option<Bytes>], &mut WriteSet) -> Decision<()> + Send + 'static> {
    Apply::new([key], move |_, writes| {
        writes.put(key.into(), value.into());
        Decision::Commit(())
    })
}
