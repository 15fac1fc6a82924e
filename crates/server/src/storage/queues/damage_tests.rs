//! What is damaged is left out, and keeps nothing else back.

use bytes::Bytes;
use tavola_engine::Write;
use tavola_engine::conformance::commit;
use tavola_wire::Ticks;
use tavola_wire::queue::QueueName;
use tavola_wire::queue::metadata::Metadata;

use super::tests::{ACCOUNT, SECOND, World};
use crate::storage::layout::message::{MessageKeys, Place};
use crate::storage::layout::{Key, StoreId};

/// Read by one scan or one by one; those that were damaged or lost.
#[tokio::test]
async fn texts_that_cannot_be_read_are_left_out() {
    let world = World::new().await;
    let long = "long ".repeat(100);
    let mut put = Vec::new();
    for _ in 0..6 {
        put.push(world.put_now(&long).await);
    }
    world.overwrite_text(&put[1], Some(b"\xFFdamaged")).await;
    world.overwrite_text(&put[4], None).await;
    let is_there = [true, false, true, true, false, true];
    for _ in 0..2 {
        for found in [world.peek(32).await, world.get(32, 1).await] {
            for group in [&found[..], &found[..2], &found[4..]] {
                let texts = world.queues.texts(group).await.unwrap();
                let expected = group.iter().map(|it| it.id()).zip(&texts).all(|(id, text)| {
                    let at = put.iter().position(|put| put.id == id).unwrap();
                    text.is_some() == is_there[at]
                });
                assert!(expected, "{texts:?}");
            }
        }
        world.time.advance(2 * SECOND);
    }
    world.clear().await;
    assert!(world.peek(32).await.is_empty());
}

#[tokio::test]
async fn a_header_that_cannot_be_read_keeps_nothing_back() {
    let world = World::new().await;
    let keys = MessageKeys(world.live().await.store);
    for number in 0..5 {
        let put = world.put_now("text").await;
        if number % 2 == 0 {
            let place = Place { visible: put.receipt.next_visible.into(), id: put.id };
            let damaged = Bytes::from(vec![2; 40]);
            commit(&world.engine, vec![Write::Put(keys.header(place), damaged)]).await;
        }
    }
    assert_eq!(world.peek(32).await.len(), 2);
    let (scans, _) = world.queues.scanned();
    assert_eq!(world.peek(32).await.len(), 2);
    assert_eq!(world.queues.scanned().0, scans, "it was passed");
    assert_eq!(world.get(32, 30).await.len(), 2);
}

/// The first of them has a mark that cannot be read: it is used as before, and so are the others.
#[tokio::test]
async fn a_damaged_queue_keeps_no_other_from_being_tidied() {
    let mut world = World::new().await;
    let (other, now) = (QueueName::parse("queue").unwrap(), Ticks(0));
    let created = world.queues.create(&world.features, ACCOUNT, &other, Metadata::default(), now);
    created.await.unwrap();
    let StoreId(damaged) = world.live().await.store;
    for _ in 0..3 {
        world.put("expires", 0, Some(10)).await;
        let text = Bytes::from_static(b"expires");
        world.queues.put(ACCOUNT, &other, text, (0, Some(10)), Bytes::new()).await.unwrap();
    }
    let mark = Key::LowMark { store: StoreId(damaged) }.encode();
    commit(&world.engine, vec![Write::Put(mark, Bytes::from_static(b"?"))]).await;
    world.restart(false).await;
    world.time.advance(700 * SECOND);
    // The restart may have been after a jump of the clock.
    world.queues.tidy(|| false).await.unwrap();
    world.time.advance(700 * SECOND);
    world.queues.tidy(|| false).await.unwrap();
    assert_eq!(world.queues.describe(ACCOUNT, &other).await.unwrap().1, 0);
    assert_eq!(world.count().await, 0);
    world.put_now("later").await;
    assert_eq!(world.get(32, 1).await.len(), 1);
    world.restart(true).await;
    world.clear().await;
    assert_eq!(world.count().await, 0);
}
