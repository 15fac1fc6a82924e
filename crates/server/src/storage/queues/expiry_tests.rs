//! When messages end: by which clock, how they are counted until they are removed, and what may be looked at to pass and to
//! remove very many.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::join_all;
use tavola_engine::Write;
use tavola_engine::conformance::commit;

use super::Found;
use super::tests::{DAY, SECOND, World};
use crate::storage::layout::message::Place;
use crate::storage::layout::{Key, mark};

/// Also when the wall clock was set back before, by so much that the stamps are ahead of it for hours, or for a while.
#[tokio::test]
async fn a_life_is_counted_by_the_clock_that_ends_it() {
    for back in [0, 30, 62, 300, 3600] {
        let world = World::new().await;
        world.put_now("before").await;
        world.time.step(-back * SECOND);
        let put = world.put("text", 0, Some(100)).await;
        assert_eq!(put.expires.0 - put.inserted.0, 100 * SECOND, "{back}");
        let is_there = async || world.peek(32).await.iter().any(|found| found.id() == put.id);
        for second in 0..99 {
            assert!(is_there().await, "{back} s back, after {second} s");
            world.time.advance(SECOND);
        }
        // A small lead is worked off by going a little slower.
        world.time.advance(16 * SECOND);
        assert!(!is_there().await, "{back} s back");
    }
}

/// A wall clock that is set right again makes those old that were put while it was not.
#[tokio::test]
async fn a_clock_that_is_set_right_destroys_nothing_for_a_while() {
    let world = World::new().await;
    world.time.step(-DAY);
    for _ in 0..10 {
        world.put("meanwhile", 0, Some(3600)).await;
    }
    world.time.step(DAY);
    assert!(world.peek(32).await.is_empty());
    world.queues.tidy(|| false).await.unwrap();
    assert_eq!(world.count().await, 10);
    world.time.advance(601 * SECOND);
    world.queues.tidy(|| false).await.unwrap();
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn a_sweep_that_was_interrupted_goes_on_with_the_next() {
    const EXPIRED: u64 = 600;
    let world = World::new().await;
    for _ in 0..EXPIRED {
        world.put("expires", 0, Some(10)).await;
    }
    world.put("stays", 0, None).await;
    world.time.advance(700 * SECOND);
    // Between queues, before the first of its batches, and the second.
    let left = Cell::new(2);
    let is_done = world.queues.tidy(|| left.replace(left.get() - 1) == 0).await.unwrap();
    let count = world.count().await;
    assert!(!is_done && count > 1 && count < EXPIRED, "{count}");
    // Not counted again in between, as after a start.
    assert!(world.queues.tidy(|| false).await.unwrap());
    assert_eq!(world.count().await, 1);
}

/// Who counts first goes away; the others need not count again, neither one after the other.
#[tokio::test]
async fn messages_are_counted_once_for_all_that_ask() {
    let mut world = World::new().await;
    for _ in 0..1000 {
        world.put_now("text").await;
    }
    world.restart(false).await;
    let mut gone = Box::pin(world.count());
    poll_fn(|context| Poll::Ready(gone.as_mut().poll(context).is_ready())).await;
    drop(gone);
    let live = world.live().await;
    while live.count().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.queues.scanned().0, 1);

    world.restart(false).await;
    let counts = join_all((0..10).map(|_| world.count())).await;
    assert_eq!(counts, [1000; 10]);
    assert_eq!(world.queues.scanned(), (1, 1000));
}

#[tokio::test]
async fn very_many_expired_messages_are_swept_by_looking_at_each_twice() {
    const EXPIRED: usize = 20_000;
    const STAY: usize = 2000;
    let world = World::new().await;
    for _ in 0..STAY {
        world.put("stays", 0, None).await;
    }
    for _ in 0..EXPIRED {
        world.put("expires", 0, Some(10)).await;
    }
    world.time.advance(700 * SECOND);
    assert_eq!(world.peek(32).await.len(), 32);
    let before = world.queues.scanned().1;
    assert!(world.queues.tidy(|| false).await.unwrap());
    assert_eq!(world.count().await, STAY as u64);
    let rows = world.queues.scanned().1 - before;
    assert!(rows < (2 * (STAY + EXPIRED) + 1000) as u64, "{rows} rows");
}

/// Before the first message, between messages, and some that were known when they were alive.
#[tokio::test]
async fn peeks_pass_what_has_expired_once() {
    const EXPIRED: usize = 10_000;
    let world = World::new().await;
    for _ in 0..2 {
        for _ in 0..EXPIRED {
            world.put("expires", 0, Some(10)).await;
        }
        world.put_now("stays").await;
        assert_eq!(world.peek(1).await.len(), 1);
    }
    world.time.advance(11 * SECOND);
    let before = world.queues.scanned().1;
    for _ in 0..20 {
        assert_eq!(world.peek(32).await.len(), 2);
        assert_eq!(world.peek(1).await.len(), 1);
    }
    let rows = world.queues.scanned().1 - before;
    assert!(rows < (2 * EXPIRED + 1000) as u64, "{rows} rows");
    assert_eq!(world.get(32, 30).await.len(), 2);
}

/// It may have expired by a clock that is wrong, and then is the next again when the clock is right.
#[tokio::test]
async fn what_expires_before_it_is_claimed_is_passed_like_any_other() {
    let world = World::new().await;
    for _ in 0..3 {
        world.put("text", 0, Some(3600)).await;
    }
    let live = world.live().await;
    let queues = &world.queues;
    let mut taken = queues.take(&live, 2, queues.stamps.look()).await.unwrap();
    assert_eq!(taken.len(), 2);
    world.time.step(8 * DAY);
    taken.pass_expired(queues.stamps.now().await.unwrap());
    assert_eq!(taken.len(), 0);
    drop(taken);
    assert!(world.get(32, 30).await.is_empty());
    world.time.step(-8 * DAY);
    assert_eq!(world.get(32, 30).await.len(), 3);
}

/// The first message is alive and known, the second is passed because it has expired, or seemed to: neither takes the other with
/// it, not over a stop either.
#[tokio::test]
async fn what_expires_between_others_takes_none_of_them_with_it() {
    let mut world = World::new().await;
    let mut put = Vec::new();
    for (number, lives) in [None, Some(60), None, Some(60), None].into_iter().enumerate() {
        put.push(world.put(&number.to_string(), 0, lives).await.id);
    }
    let all = put.clone();
    let stay = [put[0], put[2], put[4]];
    let peeked =
        async |world: &World| -> Vec<_> { world.peek(32).await.iter().map(Found::id).collect() };
    // Made ready for those who come next.
    assert_eq!(world.peek(1).await.len(), 1);
    let early = world.queues.stamps.look();
    world.time.step(3600 * SECOND);
    assert_eq!(peeked(&world).await, stay);
    world.time.step(-3600 * SECOND);
    assert_eq!(peeked(&world).await, all);

    world.time.advance(100 * SECOND);
    assert_eq!(peeked(&world).await, stay);
    // Those who asked before, and come after others.
    let (live, before) = (world.live().await, world.queues.scanned());
    assert!(live.readiness(1, early).is_some());
    assert_eq!(peeked(&world).await, stay);
    assert_eq!(world.queues.scanned(), before, "one that is late is no clock that was set back");

    world.restart(true).await;
    assert_eq!(peeked(&world).await, stay);
    assert_eq!(world.get(32, 30).await.len(), 3);
}

/// A version before this one could write a mark behind messages that were there.
#[tokio::test]
async fn messages_before_a_mark_that_is_wrong_are_found_when_they_are_counted() {
    let mut world = World::new().await;
    for _ in 0..300 {
        world.put_now("text").await;
    }
    let store = world.live().await.store;
    let behind = Place::first_at(world.queues.stamps.next().await.unwrap().into());
    let mark = Write::Put(Key::LowMark { store }.encode(), mark::encode_low(behind));
    commit(&world.engine, vec![mark]).await;
    world.restart(false).await;
    assert!(world.peek(32).await.is_empty());
    assert!(world.queues.tidy(|| false).await.unwrap());
    assert_eq!(world.peek(32).await.len(), 32);
    world.restart(true).await;
    let mut got = 0;
    while got < 300 {
        let more = world.get(32, 30).await.len();
        assert!(more > 0, "{got} were got");
        got += more;
    }
}

/// Also where nobody has passed it since it expired: its age would grow for ever in the metrics.
#[tokio::test]
async fn what_is_swept_is_not_the_oldest_any_more() {
    let world = World::new().await;
    world.put("expires", 0, Some(20)).await;
    world.time.advance(SECOND);
    let stays = world.put("stays", 0, None).await;
    world.queues.tidy(|| false).await.unwrap();
    let live = world.live().await;
    assert!(live.oldest().unwrap().0 < stays.inserted.0);
    world.time.advance(640 * SECOND);
    world.queues.tidy(|| false).await.unwrap();
    assert!(live.oldest().unwrap().0 >= stays.inserted.0);
}

/// All queues are looked at, also those that nobody gets messages from: what is kept of them is little.
#[tokio::test]
async fn tidying_makes_one_message_ready() {
    let mut world = World::new().await;
    for _ in 0..100 {
        world.put_now("text").await;
    }
    world.restart(false).await;
    world.queues.tidy(|| false).await.unwrap();
    let live = world.live().await;
    let now = world.queues.stamps.look();
    assert!(live.oldest().is_some());
    assert!(live.first_ready(1, now).is_some() && live.first_ready(2, now).is_none());
    let ids: Vec<_> = world.get(32, 30).await.iter().map(Found::id).collect();
    assert!(ids.len() == 32 && ids.is_sorted());
}
