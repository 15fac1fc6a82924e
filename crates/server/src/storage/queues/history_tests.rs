//! Random histories of many at once, against the chain that each message goes through: Put gives its first receipt, each Get
//! and each Update takes one away and gives another, Delete and expiry end it. What overlaps may come in either order, what
//! does not may not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tavola_wire::queue::{MessageId, PopReceipt};

use super::Found;
use super::model_tests::Random;
use super::tests::{SECOND, World};
use crate::storage::layout::message::Moment;

const WORKERS: u64 = 6;
const STEPS: usize = 150;

/// When something was asked for and when it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    asked: u64,
    answered: u64,
}

#[derive(Clone, Debug)]
enum Event {
    Put { expires: Moment, receipt: PopReceipt, text: String },
    Got { times: u32, receipt: PopReceipt, text: Option<String> },
    Peeked { times: u32, text: Option<String> },
    Updated { from: PopReceipt, receipt: PopReceipt, text: Option<String> },
    Deleted { from: PopReceipt },
}

/// What happened to each message.
#[derive(Default)]
struct History {
    moments: AtomicU64,
    events: Mutex<BTreeMap<MessageId, Vec<(Span, Event)>>>,
}

impl History {
    fn ask(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, asked: u64, id: MessageId, event: Event) {
        let span = Span { asked, answered: self.ask() };
        self.events.lock().unwrap().entry(id).or_default().push((span, event));
    }

    /// Somebody's receipt, perhaps an old one.
    fn any_receipt(&self, random: &mut Random) -> Option<(MessageId, PopReceipt)> {
        let events = self.events.lock().unwrap();
        let ids: Vec<_> = events.keys().copied().collect();
        let id = *ids.get(random.below(ids.len().max(1) as u64) as usize)?;
        let receipts = events[&id].iter().filter_map(|(_, event)| match event {
            Event::Put { receipt, .. }
            | Event::Got { receipt, .. }
            | Event::Updated { receipt, .. } => Some(*receipt),
            Event::Peeked { .. } | Event::Deleted { .. } => None,
        });
        // Of the last ones, which have a chance.
        let receipts: Vec<_> = receipts.collect();
        let last = receipts.len().saturating_sub(1 + random.below(3) as usize);
        Some((id, *receipts.get(last)?))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_of_many_at_once_are_chains_in_memory() {
    for seed in 0..10 {
        run(World::new().await, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn histories_of_many_at_once_are_chains_on_disk() {
    for seed in 10..14 {
        let folder = tempfile::tempdir().unwrap();
        run(World::in_folder(folder.path()).await, seed).await;
    }
}

async fn run(world: World, seed: u64) {
    let (world, history) = (Arc::new(world), Arc::new(History::default()));
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (world, history) = (Arc::clone(&world), Arc::clone(&history));
        workers.spawn(async move {
            let mut random = Random(seed * WORKERS + worker);
            for _ in 0..STEPS {
                step(&world, &history, &mut random).await;
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    let mut world = Arc::into_inner(world).expect("all workers have ended");
    for is_orderly in [true, false] {
        world.restart(is_orderly).await;
        world.time.advance(100 * SECOND);
        let left = rest(&world, &history).await;
        let day = world.queues.stamps.look().expired();
        for (id, events) in &*history.events.lock().unwrap() {
            let is_left = check(events);
            let expires = events.iter().find_map(|(_, event)| match event {
                Event::Put { expires, .. } => Some(*expires),
                _ => None,
            });
            assert_eq!(
                left.contains(id),
                is_left && expires > Some(day),
                "seed {seed}: {events:?}"
            );
        }
    }
}

async fn step(world: &World, history: &History, random: &mut Random) {
    let asked = history.ask();
    match random.below(12) {
        0..=3 => {
            let lives = *random.pick(&[None, None, Some(7 * 86_400), Some(3), Some(30)]);
            let hidden = *random.pick(&[0, 0, 0, 1, 2]);
            let text = format!("{asked}").repeat(*random.pick(&[0, 1, 300]));
            let put = world.put(&text, hidden, lives).await;
            let expires = lives.map_or(Moment::NEVER, |_| put.expires.into());
            history.note(asked, put.id, Event::Put { expires, receipt: put.receipt, text });
        }
        4..=6 => {
            let hidden = *random.pick(&[1, 2, 60]);
            for found in world.get(1 + random.below(4) as usize * 8, hidden).await {
                let (times, receipt) = (found.dequeue_count(), found.receipt());
                let text = text_of(world, &found).await;
                history.note(asked, found.id(), Event::Got { times, receipt, text });
            }
        }
        7 => {
            for found in world.peek(1 + random.below(32) as usize).await {
                let (times, text) = (found.dequeue_count(), text_of(world, &found).await);
                history.note(asked, found.id(), Event::Peeked { times, text });
            }
        }
        8 | 9 => {
            let Some((id, from)) = history.any_receipt(random) else { return };
            let text = (random.below(2) == 0).then(|| format!("{asked}").repeat(100));
            let hidden = *random.pick(&[0, 0, 1, 20]);
            if let Some(receipt) = world.update(id, from, hidden, text.as_deref()).await {
                history.note(asked, id, Event::Updated { from, receipt, text });
            }
        }
        10 => {
            let Some((id, from)) = history.any_receipt(random) else { return };
            if world.delete(id, from).await {
                history.note(asked, id, Event::Deleted { from });
            }
        }
        _ => world.time.advance(*random.pick(&[1, 3, 10]) * SECOND / 10),
    }
}

/// `None` if the message was deleted, or its claim ended and another's text came, while it was read.
async fn text_of(world: &World, found: &Found) -> Option<String> {
    let text = world.queues.text(found).await.unwrap()?;
    Some(String::from_utf8(text.to_vec()).unwrap())
}

/// Everything that can still be got.
async fn rest(world: &World, history: &History) -> BTreeSet<MessageId> {
    let mut left = BTreeSet::new();
    loop {
        let asked = history.ask();
        let got = world.get(32, 60).await;
        if got.is_empty() {
            return left;
        }
        for found in got {
            let (times, receipt) = (found.dequeue_count(), found.receipt());
            let text = Some(world.text(&found).await);
            history.note(asked, found.id(), Event::Got { times, receipt, text });
            assert!(left.insert(found.id()), "got twice");
        }
    }
}

/// Follows one message from receipt to receipt. Answers whether it was never deleted.
fn check(events: &[(Span, Event)]) -> bool {
    let puts = events.iter().filter(|(_, event)| matches!(event, Event::Put { .. }));
    assert_eq!(puts.count(), 1, "an id that was given out twice: {events:?}");
    let mut texts = BTreeSet::new();
    let mut given = BTreeSet::new();
    let mut taken = BTreeSet::new();
    let mut times_seen = BTreeSet::new();
    let mut deleted: Option<Span> = None;
    for (span, event) in events {
        let (from, receipt) = match event {
            Event::Put { receipt, text, .. } => {
                texts.insert(text.clone());
                (None, Some(*receipt))
            }
            Event::Got { times, receipt, .. } => {
                assert!(times_seen.insert(*times), "got twice as number {times}: {events:?}");
                (None, Some(*receipt))
            }
            Event::Updated { from, receipt, text } => {
                texts.extend(text.clone());
                (Some(*from), Some(*receipt))
            }
            Event::Deleted { from } => {
                assert!(deleted.replace(*span).is_none(), "deleted twice: {events:?}");
                (Some(*from), None)
            }
            Event::Peeked { .. } => (None, None),
        };
        if let Some(receipt) = receipt {
            assert!(given.insert(key(receipt)), "a receipt was given out twice: {events:?}");
        }
        if let Some(from) = from {
            assert!(taken.insert(key(from)), "a receipt was used twice: {events:?}");
        }
    }
    assert!(taken.is_subset(&given), "{events:?}");
    assert!((1..).zip(&times_seen).all(|(number, times)| number == *times), "{events:?}");
    for (span, event) in events {
        let (Event::Got { text, .. } | Event::Peeked { text, .. }) = event else { continue };
        let is_known = text.as_ref().is_none_or(|text| texts.contains(text));
        assert!(is_known, "a text that nobody wrote: {events:?}");
        let is_after = deleted.is_some_and(|deleted| deleted.answered < span.asked);
        assert!(!is_after, "seen after it was deleted: {events:?}");
    }
    // Each Get that was over before another was asked came before it.
    let gets = events.iter().filter_map(|(span, event)| match event {
        Event::Got { times, .. } | Event::Peeked { times, .. } => Some((span, *times)),
        _ => None,
    });
    let gets: Vec<_> = gets.collect();
    for (early, times) in &gets {
        let is_later = |(late, _): &&(&Span, u32)| early.answered < late.asked;
        assert!(gets.iter().filter(is_later).all(|(_, later)| times <= later), "{events:?}");
    }
    deleted.is_none()
}

fn key(receipt: PopReceipt) -> (i64, String) {
    (receipt.next_visible.0, receipt.to_string())
}
