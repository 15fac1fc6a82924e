//! Dropping a range.

use std::sync::Arc;

use super::support::{commit, keys, put, range};
use crate::{Engine, Write};

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
