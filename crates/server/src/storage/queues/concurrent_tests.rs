//! Many producers and consumers at once: no message is lost, none is claimed twice while its claim lasts, and of two that
//! use the same receipt one wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tavola_wire::queue::MessageId;

use super::tests::{SECOND, World};

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

/// Puts and Gets beside Clears: what was put after the last one is there, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_acknowledged_after_a_clear_stays() {
    let world = Arc::new(World::new().await);
    for _ in 0..50 {
        let putting = {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                for number in 0..20 {
                    world.put_now(&number.to_string()).await;
                }
            })
        };
        let getting = {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                for _ in 0..20 {
                    world.get(3, 3600).await;
                }
            })
        };
        world.clear().await;
        putting.await.unwrap();
        getting.await.unwrap();
        world.clear().await;
        let put = world.put_now("after").await;
        let got = world.get(32, 3600).await;
        assert_eq!(got.iter().map(super::Found::id).collect::<Vec<_>>(), [put.id]);
        assert_eq!(world.count().await, 1);
        world.clear().await;
    }
}
