//! Random histories against a model: the table of semantics, section 13 of the reference, in a few lines.
//!
//! Time goes in whole seconds and, with each step, a thousand ticks more, so that no two steps share a moment and the few
//! ticks that a request takes never decide anything. Now and then the wall clock is set, ahead or back: messages are visible by
//! a clock that goes on, and expire by the time of day. What both show is taken from the queue, and when a message is
//! visible and expires from the answers.

use std::collections::BTreeMap;

use tavola_wire::queue::{MessageId, PopReceipt};

use super::stamps::Now;
use super::tests::{SECOND, World};
use crate::storage::layout::message::Moment;

/// SplitMix64: the same history for the same seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

#[derive(Clone, Debug)]
struct Message {
    text: String,
    expires: Moment,
    dequeued: u32,
    receipt: PopReceipt,
}

impl Message {
    fn visible(&self) -> Moment {
        self.receipt.next_visible.into()
    }
}

struct Model {
    now: Now,
    messages: BTreeMap<MessageId, Message>,
}

impl Model {
    fn visible(&self, messages_max: usize) -> Vec<MessageId> {
        let mut visible: Vec<_> = self
            .messages
            .iter()
            .filter(|(_, message)| {
                self.is_alive(message) && message.visible() <= self.now.visible()
            })
            .collect();
        visible.sort_by_key(|(id, message)| (message.visible(), **id));
        visible.into_iter().take(messages_max).map(|(id, _)| *id).collect()
    }

    /// The message, if it is alive and this is its newest receipt.
    fn holds(&self, id: MessageId, receipt: PopReceipt) -> bool {
        let message = self.messages.get(&id);
        message.is_some_and(|message| self.is_alive(message) && message.receipt == receipt)
    }

    fn is_alive(&self, message: &Message) -> bool {
        message.expires > self.now.expired()
    }

    fn alive(&self) -> u64 {
        self.messages.values().filter(|message| self.is_alive(message)).count() as u64
    }

    /// That a message is visible that long from now, but for the few ticks of a request.
    #[track_caller]
    fn assert_hidden_for(&self, receipt: PopReceipt, seconds: i64) {
        let ticks = receipt.next_visible.0 - self.now.stamp.0 - seconds * SECOND;
        assert!((0..1000).contains(&ticks), "{ticks} ticks off");
    }
}

#[tokio::test]
async fn random_histories_are_those_of_the_model() {
    for seed in 0..40 {
        history(seed, 250).await;
    }
}

async fn history(seed: u64, steps: usize) {
    let mut random = Random(seed);
    let mut world = World::new().await;
    let mut model = Model { now: world.queues.stamps.look(), messages: BTreeMap::new() };
    // By how many seconds the wall clock is wrong.
    let mut wrong = 0;
    // All that were ever issued, the newest and the stale ones.
    let mut receipts: Vec<(MessageId, PopReceipt)> = Vec::new();
    for step in 0..steps {
        let seconds = *random.pick(&[0, 0, 0, 1, 1, 2, 5, 30]);
        world.time.advance(seconds * SECOND + 1000);
        if random.below(25) == 0 {
            let other = *random.pick(&[0, 0, 20, -20, 300, -300, 7200, -7200]);
            world.time.step((other - wrong) * SECOND);
            wrong = other;
        }
        model.now = world.queues.stamps.look();
        let place = format!("seed {seed}, step {step}");
        match random.below(20) {
            0..=5 => {
                let lives = *random.pick(&[None, Some(7 * 86_400), Some(40), Some(9)]);
                let hidden = *random.pick(&[0, 0, 0, 1, 3, 8]);
                let text = "t".repeat(*random.pick(&[0, 1, 256, 257, 3000]) as usize);
                let put = world.put(&text, hidden, lives).await;
                model.assert_hidden_for(put.receipt, hidden);
                let expires = lives.map(|seconds| model.now.time_of_day.0 + seconds * SECOND);
                let ticks = expires.map_or(0, |expires| put.expires.0 - expires);
                assert!((0..1000).contains(&ticks), "{place}: {ticks} ticks off");
                let expires = expires.map_or(Moment::NEVER, |_| put.expires.into());
                let message = Message { text, expires, dequeued: 0, receipt: put.receipt };
                receipts.push((put.id, put.receipt));
                assert!(model.messages.insert(put.id, message).is_none(), "{place}");
            }
            6..=10 => {
                let (messages_max, hidden) =
                    (1 + random.below(4) as usize * 10, *random.pick(&[1, 2, 10, 60]));
                let expected = model.visible(messages_max);
                let got = world.get(messages_max, hidden).await;
                let ids: Vec<_> = got.iter().map(super::Found::id).collect();
                assert_eq!(ids, expected, "{place}");
                for found in &got {
                    model.assert_hidden_for(found.receipt(), hidden);
                    let message = model.messages.get_mut(&found.id()).unwrap();
                    message.dequeued += 1;
                    message.receipt = found.receipt();
                    assert_eq!(found.dequeue_count(), message.dequeued, "{place}");
                    assert_eq!(world.text(found).await, message.text, "{place}");
                    receipts.push((found.id(), found.receipt()));
                }
            }
            11 | 12 => {
                let messages_max = 1 + random.below(32) as usize;
                let peeked = world.peek(messages_max).await;
                let ids: Vec<_> = peeked.iter().map(super::Found::id).collect();
                assert_eq!(ids, model.visible(messages_max), "{place}");
                for found in &peeked {
                    let message = &model.messages[&found.id()];
                    assert_eq!(found.dequeue_count(), message.dequeued, "{place}");
                    assert_eq!(world.text(found).await, message.text, "{place}");
                }
            }
            13 | 14 if !receipts.is_empty() => {
                let (id, receipt) = *random.pick(&receipts);
                let hidden = *random.pick(&[0, 0, 1, 20]);
                let long = "long".repeat(200);
                let text = *random.pick(&[None, Some(""), Some("short"), Some(&*long)]);
                let updated = world.update(id, receipt, hidden, text).await;
                assert_eq!(updated.is_some(), model.holds(id, receipt), "{place}");
                if let Some(updated) = updated {
                    model.assert_hidden_for(updated, hidden);
                    let message = model.messages.get_mut(&id).unwrap();
                    assert_ne!(updated, receipt);
                    message.receipt = updated;
                    if let Some(text) = text {
                        message.text = text.to_owned();
                    }
                    receipts.push((id, updated));
                }
            }
            15..=17 if !receipts.is_empty() => {
                let (id, receipt) = *random.pick(&receipts);
                let deleted = world.delete(id, receipt).await;
                assert_eq!(deleted, model.holds(id, receipt), "{place}");
                if deleted {
                    model.messages.remove(&id);
                }
            }
            18 => match random.below(5) {
                0 => {
                    world.clear().await;
                    model.messages.clear();
                }
                1 => {
                    // After a crash the clock is a little ahead.
                    world.restart(false).await;
                }
                2 => world.restart(true).await,
                _ => {
                    let removable = world.queues.removable();
                    world.queues.tidy(|| false).await.unwrap();
                    // A clock that is set back later does not bring them back.
                    model.messages.retain(|_, message| message.expires > removable);
                }
            },
            _ => {
                let count = world.count().await;
                let (alive, stored) = (model.alive(), model.messages.len() as u64);
                assert!((alive..=stored).contains(&count), "{place}: {count} of {alive}..{stored}");
            }
        }
    }
}
