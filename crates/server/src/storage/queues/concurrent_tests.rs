//! Many producers and consumers at once: no message is lost, none is claimed twice while its claim lasts, and of two that
//! use the same receipt one wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use tavola_wire::queue::MessageId;

use super::tests::{SECOND, World};
use crate::storage::Error;

const PRODUCERS: usize = 4;
const CONSUMERS: usize = 8;
const MESSAGES: usize = 300;

/// Who has claimed a message, and how often it was got.
type Claims = BTreeMap<MessageId, (Option<usize>, u32)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_message_is_lost_or_claimed_twice_in_memory() {
    race(Arc::new(World::new().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_message_is_lost_or_claimed_twice_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    race(Arc::new(World::in_folder(folder.path()).await)).await;
}

async fn race(world: Arc<World>) {
    let put: Arc<Mutex<BTreeSet<_>>> = Arc::default();
    let claims: Arc<Mutex<Claims>> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    for producer in 0..PRODUCERS {
        let (world, put) = (Arc::clone(&world), Arc::clone(&put));
        tasks.spawn(async move {
            for number in 0..MESSAGES {
                let text = format!("{producer}-{number}").repeat(1 + number % 100);
                let id = world.put_now(&text).await.id;
                put.lock().unwrap().insert(id);
            }
        });
    }
    let gone: Arc<Mutex<BTreeSet<_>>> = Arc::default();
    // Those who only look make messages ready for the others, too.
    for messages_max in [1, 5, 32] {
        let (world, gone) = (Arc::clone(&world), Arc::clone(&gone));
        tasks.spawn(async move {
            while gone.lock().unwrap().len() < PRODUCERS * MESSAGES {
                let peeked = world.peek(messages_max).await;
                assert!(peeked.is_sorted_by(|a, b| a.place < b.place), "{peeked:?}");
                world.queues.tidy(|| false).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
    }
    for consumer in 0..CONSUMERS {
        let (world, claims, gone) = (Arc::clone(&world), Arc::clone(&claims), Arc::clone(&gone));
        tasks.spawn(async move {
            while gone.lock().unwrap().len() < PRODUCERS * MESSAGES {
                let got = world.get(1 + consumer * 4, 3600).await;
                for found in &got {
                    let mut claims = claims.lock().unwrap();
                    let (owner, times) = claims.entry(found.id()).or_default();
                    assert_eq!(owner.replace(consumer), None, "claimed twice");
                    *times += 1;
                    assert_eq!(found.dequeue_count(), *times);
                }
                for (number, found) in got.iter().enumerate() {
                    let (id, receipt) = (found.id(), found.receipt());
                    claims.lock().unwrap().get_mut(&id).unwrap().0 = None;
                    if number % 3 == 2 {
                        // Given back, for whoever comes next.
                        world.update(id, receipt, 0, None).await.expect("it is ours");
                        continue;
                    }
                    let (one, other) =
                        tokio::join!(world.delete(id, receipt), world.delete(id, receipt));
                    assert!(one ^ other, "one winner");
                    assert!(gone.lock().unwrap().insert(id), "deleted twice");
                }
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!(*put.lock().unwrap(), *gone.lock().unwrap());
    world.time.advance(7200 * SECOND);
    assert!(world.get(32, 1).await.is_empty());
    assert_eq!(world.count().await, 0);
}

/// Puts beside Clears, and beside queues that are deleted and made again: what was begun after one of them was answered is
/// there, and what was answered before one was begun is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_put_after_a_clear_stays_and_what_was_put_before_it_goes() {
    for is_deleted in [false, true] {
        let world = Arc::new(World::new().await);
        for round in 0..100 {
            let moments = Arc::new(AtomicUsize::new(0));
            let mut putting = tokio::task::JoinSet::new();
            for _ in 0..4 {
                let (world, moments) = (Arc::clone(&world), Arc::clone(&moments));
                putting.spawn(async move {
                    let mut puts = Vec::new();
                    for _ in 0..10 {
                        let begun = moments.fetch_add(1, Ordering::SeqCst);
                        if let Ok(put) = world.try_put("text").await {
                            puts.push((begun, moments.fetch_add(1, Ordering::SeqCst), put.id));
                        }
                        tokio::task::yield_now().await;
                    }
                    puts
                });
            }
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            let begun = moments.fetch_add(1, Ordering::SeqCst);
            match is_deleted {
                false => world.clear().await,
                true => {
                    world.delete_queue().await;
                    world.create().await.unwrap();
                }
            }
            let answered = moments.fetch_add(1, Ordering::SeqCst);
            let puts: Vec<_> = putting.join_all().await.concat();
            let mut there = BTreeSet::new();
            loop {
                let got = world.get(32, 3600).await;
                if got.is_empty() {
                    break;
                }
                there.extend(got.iter().map(super::Found::id));
            }
            for (put_begun, put_answered, id) in puts {
                let is_there = there.remove(&id);
                assert!(is_there || put_begun < answered, "round {round}: a message was lost");
                assert!(!is_there || put_answered > begun, "round {round}: a message came back");
            }
            assert!(there.is_empty());
            world.clear().await;
            assert_eq!(world.count().await, 0);
        }
    }
}

/// A Put that has found the queue and waits at its gate, behind a Clear or a Delete Queue: it must not put its message where
/// nobody looks any more.
#[tokio::test]
async fn a_put_that_waits_behind_a_clear_is_not_lost() {
    for is_deleted in [false, true] {
        let world = Arc::new(World::new().await);
        let closed = world.live().await.gate().write_owned().await;
        let mut ending = {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                match is_deleted {
                    false => world.clear().await,
                    true => world.delete_queue().await,
                }
            })
        };
        let mut putting = {
            let world = Arc::clone(&world);
            Box::pin(async move { world.try_put("text").await })
        };
        for _ in 0..10 {
            assert!((&mut ending).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert!((&mut putting).now_or_never().is_none());
        drop(closed);
        ending.await.unwrap();
        match (is_deleted, putting.await) {
            (false, Ok(put)) => {
                let got = world.get(32, 30).await;
                assert_eq!(got.iter().map(super::Found::id).collect::<Vec<_>>(), [put.id]);
            }
            (true, put) => assert!(matches!(put, Err(Error::NotFound)), "{put:?}"),
            (false, Err(error)) => panic!("{error}"),
        }
    }
}
