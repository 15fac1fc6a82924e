//! What queues do at the edges: the traps of the design, and what may be looked at to find a message.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use tavola_engine::conformance::commit;
use tavola_engine::{
    AnyEngine, EmbeddedEngine, EmbeddedOptions, MemoryEngine, Reader, Visitor, Write,
};
use tavola_wire::Ticks;
use tavola_wire::queue::metadata::Metadata;
use tavola_wire::queue::{MessageId, PopReceipt, QueueName};
use tokio::sync::Notify;

use super::live_queue::LiveQueue;
use super::{Found, Put, Queues};
use crate::clock::hybrid::tests::TestTime;
use crate::storage::catalogue::Catalogue;
use crate::storage::features::Features;
use crate::storage::layout::message::MessageKeys;
use crate::storage::layout::{AccountId, Family, Key};
use crate::storage::{Error, Result};

pub(super) const SECOND: i64 = Ticks::PER_SECOND;
pub(super) const DAY: i64 = 86_400 * SECOND;
const START: i64 = 63_000_000_000 * SECOND;
pub(super) const ACCOUNT: AccountId = AccountId(1);

/// One queue, in an engine that outlives the server, with clocks that go as they are told.
pub(crate) struct World {
    pub(super) engine: AnyEngine,
    pub(super) time: Arc<TestTime>,
    pub(crate) queues: Arc<Queues>,
    pub(super) features: Features,
}

pub(super) fn name() -> QueueName<'static> {
    QueueName::parse("orders").unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(AnyEngine::Memory(MemoryEngine::new())).await
    }

    /// On a disk: writes are answered after a while.
    pub(super) async fn in_folder(folder: &std::path::Path) -> Self {
        let engine = EmbeddedEngine::open(folder, EmbeddedOptions::default()).unwrap();
        Self::with(AnyEngine::Embedded(engine)).await
    }

    async fn with(engine: AnyEngine) -> Self {
        let time = TestTime::new(START);
        let queues = open(&engine, &time).await;
        let features = Features::open(&engine).await.unwrap();
        let world = Self { engine, time, queues, features };
        world.create().await.unwrap();
        world
    }

    pub(super) async fn create(&self) -> Result<()> {
        let now = Ticks(START);
        self.queues.create(&self.features, ACCOUNT, &name(), Metadata::default(), now).await
    }

    /// As after a crash, or an orderly stop.
    pub(super) async fn restart(&mut self, is_orderly: bool) {
        if is_orderly {
            self.queues.close().await;
        }
        self.queues = open(&self.engine, &self.time).await;
    }

    pub(super) async fn put(&self, text: &str, visible_after: i64, lives: Option<i64>) -> Put {
        let text = Bytes::copy_from_slice(text.as_bytes());
        let times = (visible_after, lives);
        self.queues.put(ACCOUNT, &name(), text, times, Bytes::new()).await.unwrap()
    }

    /// The queue may be gone.
    pub(super) async fn try_put(&self, text: &'static str) -> Result<Put> {
        let text = Bytes::from_static(text.as_bytes());
        self.queues.put(ACCOUNT, &name(), text, (0, Some(7 * 86_400)), Bytes::new()).await
    }

    pub(super) async fn delete_queue(&self) {
        self.queues.delete_queue(ACCOUNT, &name(), Ticks(START)).await.unwrap();
    }

    pub(crate) async fn put_now(&self, text: &str) -> Put {
        self.put(text, 0, Some(7 * 86_400)).await
    }

    pub(super) async fn get(&self, messages_max: usize, hidden_for: i64) -> Vec<Found> {
        self.queues.get(ACCOUNT, &name(), messages_max, hidden_for).await.unwrap()
    }

    pub(crate) async fn peek(&self, messages_max: usize) -> Vec<Found> {
        self.queues.peek(ACCOUNT, &name(), messages_max).await.unwrap()
    }

    pub(super) async fn update(
        &self,
        id: MessageId,
        receipt: PopReceipt,
        hidden_for: i64,
        text: Option<&str>,
    ) -> Option<PopReceipt> {
        let text = text.map(|text| Bytes::copy_from_slice(text.as_bytes()));
        let message = Some((id, receipt));
        let body = Bytes::new();
        self.queues.update(ACCOUNT, &name(), message, hidden_for, text, body).await.unwrap()
    }

    pub(super) async fn delete(&self, id: MessageId, receipt: PopReceipt) -> bool {
        self.queues.delete(ACCOUNT, &name(), Some((id, receipt))).await.unwrap()
    }

    pub(super) async fn clear(&self) {
        self.queues.clear(ACCOUNT, &name(), Ticks(START)).await.unwrap();
    }

    pub(super) async fn count(&self) -> u64 {
        self.queues.describe(ACCOUNT, &name()).await.unwrap().1
    }

    pub(super) async fn text(&self, found: &Found) -> String {
        let text = self.queues.text(found).await.unwrap().expect("a text");
        String::from_utf8(text.to_vec()).unwrap()
    }

    pub(super) async fn live(&self) -> Arc<LiveQueue> {
        self.queues.live(ACCOUNT, &name()).await.unwrap()
    }

    /// Puts something else where the text of a message is, or nothing.
    pub(crate) async fn overwrite_text(&self, put: &Put, stored: Option<&'static [u8]>) {
        let key = MessageKeys(self.live().await.store).text(put.expires.into(), put.id);
        let write = match stored {
            Some(stored) => Write::Put(key, Bytes::from_static(stored)),
            None => Write::Delete(key),
        };
        commit(&self.engine, vec![write]).await;
    }

    async fn texts(&self, found: &[Found]) -> Vec<String> {
        let mut texts = Vec::new();
        for found in found {
            texts.push(self.text(found).await);
        }
        texts
    }
}

struct Rows(usize);

impl Visitor for Rows {
    fn visit(&mut self, _: &[u8], _: &[u8]) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

async fn open(engine: &AnyEngine, time: &Arc<TestTime>) -> Arc<Queues> {
    let catalogue = Arc::new(Catalogue::new(engine.clone(), Arc::<Notify>::default()));
    Arc::new(Queues::open(engine.clone(), catalogue, time.clone()).await.unwrap())
}

#[tokio::test]
async fn peeking_at_messages_that_are_known_scans_nothing() {
    let world = World::new().await;
    for number in 0..10 {
        world.put_now(&number.to_string()).await;
    }
    let first = world.peek(3).await;
    let (scans, _) = world.queues.scanned();
    let again = world.peek(3).await;
    assert_eq!(world.queues.scanned().0, scans);
    let ids = |found: &[Found]| found.iter().map(Found::id).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&first));
    // One that is gone is noticed, and one that comes before the others is seen.
    let got = world.get(1, 0).await;
    assert_eq!(ids(&got), ids(&first[..1]));
    world.time.advance(SECOND);
    assert_eq!(world.peek(10).await.len(), 10);
}

#[tokio::test]
async fn messages_come_in_the_order_in_which_they_were_put() {
    let world = World::new().await;
    for number in 0..100 {
        world.put_now(&number.to_string()).await;
    }
    let mut seen = Vec::new();
    for messages_max in [1, 32, 7, 32, 32] {
        let peeked: Vec<_> = world.peek(messages_max).await.iter().map(Found::id).collect();
        let got = world.get(messages_max, 30).await;
        assert_eq!(got.iter().map(Found::id).collect::<Vec<_>>(), peeked);
        assert!(got.iter().all(|found| found.receipt() == got[0].receipt()));
        seen.extend(world.texts(&got).await);
    }
    assert_eq!(seen, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(world.get(1, 30).await.is_empty());
}

#[tokio::test]
async fn a_message_is_visible_at_its_moment_and_gone_at_its_expiry() {
    let world = World::new().await;
    let put = world.put("hidden", 5, Some(60)).await;
    let left = put.receipt.next_visible.0 - put.inserted.0;
    assert_eq!(left, 5 * SECOND);
    world.time.advance(left - 100);
    assert!(world.peek(1).await.is_empty());
    world.time.advance(100 + 10);
    assert_eq!(world.peek(1).await[0].dequeue_count(), 0);
    world.time.advance(55 * SECOND - 1000);
    assert_eq!(world.get(1, 1).await.len(), 1);
    world.time.advance(2 * SECOND);
    assert!(world.get(1, 1).await.is_empty());
    assert!(!world.delete(put.id, put.receipt).await);
}

/// Trap 1: the moment of an update is the one that the message has already.
#[tokio::test]
async fn a_receipt_changes_even_if_the_moment_would_not() {
    let world = World::new().await;
    let put = world.put("text", 30, Some(86_400)).await;
    world.time.advance(10 * SECOND);
    let first = world.update(put.id, put.receipt, 20, None).await.unwrap();
    assert_ne!(first.next_visible, put.receipt.next_visible);
    // Many updates to about the same moment, some of which would meet.
    let mut receipt = first;
    for _ in 0..50 {
        let next = world.update(put.id, receipt, 20, None).await.unwrap();
        assert_ne!(next, receipt);
        assert!(!world.delete(put.id, receipt).await);
        receipt = next;
    }
    assert!(world.delete(put.id, receipt).await);
}

/// Trap 2: a message that is given back again and again queues up behind those that wait.
#[tokio::test]
async fn giving_a_message_back_does_not_starve_others() {
    let world = World::new().await;
    let loud = world.put_now("loud").await;
    world.put_now("quiet").await;
    world.update(loud.id, loud.receipt, 0, None).await.unwrap();
    let got = world.get(1, 30).await;
    assert_eq!(world.texts(&got).await, ["quiet"]);
}

/// Trap 3: what was found before a Clear is not handed out after it.
#[tokio::test]
async fn clear_takes_what_is_ready_with_it() {
    let world = World::new().await;
    for _ in 0..100 {
        world.put_now("old").await;
    }
    let claimed = world.get(1, 30).await;
    world.clear().await;
    assert_eq!((world.count().await, world.get(32, 30).await.len()), (0, 0));
    assert!(world.peek(32).await.is_empty());
    assert!(!world.delete(claimed[0].id(), claimed[0].receipt()).await);
    world.put_now("new").await;
    let got = world.get(32, 30).await;
    assert_eq!((world.texts(&got).await, world.count().await), (vec!["new".to_owned()], 1));
}

/// Trap 4: receipts of another life of the queue.
#[tokio::test]
async fn a_queue_that_was_made_again_knows_no_receipts() {
    let world = World::new().await;
    let put = world.put_now("old").await;
    world.queues.delete_queue(ACCOUNT, &name(), Ticks(START)).await.unwrap();
    let missing = world.queues.get(ACCOUNT, &name(), 1, 30).await;
    assert!(matches!(missing, Err(Error::NotFound)));
    world.create().await.unwrap();
    assert!(!world.delete(put.id, put.receipt).await);
    assert_eq!(world.update(put.id, put.receipt, 0, None).await, None);
    assert!(world.get(1, 30).await.is_empty());
}

/// Trap 5: a text that is gone is no empty text.
#[tokio::test]
async fn a_text_that_is_gone_went_with_its_message() {
    let world = World::new().await;
    let put = world.put_now(&"x".repeat(1000)).await;
    let found = world.get(1, 30).await.remove(0);
    world.overwrite_text(&put, None).await;
    assert_eq!(world.queues.text(&found).await.unwrap(), None);
}

/// Trap 6.
#[tokio::test]
async fn a_message_may_live_for_ever() {
    let world = World::new().await;
    let put = world.put(&"y".repeat(1000), 0, None).await;
    assert_eq!(put.expires, Ticks::MAX);
    world.time.advance(3000 * DAY);
    let got = world.get(1, 30).await;
    assert_eq!((got[0].expires(), world.text(&got[0]).await.len()), (Ticks::MAX, 1000));
    assert!(world.delete(got[0].id(), got[0].receipt()).await);
}

/// Trap 9: a clock that jumps makes everything expire; nothing is destroyed until that has lasted.
#[tokio::test]
async fn a_clock_that_jumps_destroys_nothing() {
    let world = World::new().await;
    for number in 0..10 {
        world.put(&number.to_string(), 0, Some(86_400)).await;
    }
    world.time.step(8 * DAY);
    assert!(world.peek(32).await.is_empty());
    for _ in 0..9 {
        assert!(world.queues.tidy(|| false).await.unwrap());
        assert_eq!(world.count().await, 10, "still stored");
        world.time.advance(60 * SECOND);
    }
    world.time.advance(120 * SECOND);
    world.queues.tidy(|| false).await.unwrap();
    assert_eq!(world.count().await, 0);
}

/// Read together or one by one, with others between them, gone ones among them, and short ones that are in their headers.
#[tokio::test]
async fn texts_that_are_read_together_are_those_of_their_messages() {
    let world = World::new().await;
    let long = |number: usize| format!("{number} ").repeat(200);
    for number in 0..60 {
        let text = if number % 7 == 3 { number.to_string() } else { long(number) };
        let lives = if number % 11 == 5 { 3600 } else { 7200 };
        world.put(&text, 0, Some(lives)).await;
        if number == 30 {
            world.time.advance(5 * SECOND);
        }
    }
    let all = world.get(32, 1).await.into_iter().chain(world.get(32, 1).await).collect::<Vec<_>>();
    for gone in [4, 20, 40] {
        assert!(world.delete(all[gone].id(), all[gone].receipt()).await);
    }
    for step in [1, 2, 5] {
        for found in all.iter().step_by(step).cloned().collect::<Vec<_>>().chunks(9) {
            let texts = world.queues.texts(found).await.unwrap();
            for (found, text) in found.iter().zip(texts) {
                assert_eq!(text, world.queues.text(found).await.unwrap(), "{:?}", found.id());
            }
        }
    }
    let neighbours = &all[6..15];
    assert!(!world.queues.scan_texts(neighbours).await.unwrap().is_empty(), "they are scanned for");
}

/// What seemed to expire is there again when the clock is right, also if the service was restarted in between.
#[tokio::test]
async fn a_clock_that_was_wrong_for_a_while_destroys_nothing() {
    for is_orderly in [None, Some(false), Some(true)] {
        let mut world = World::new().await;
        for number in 0..10 {
            world.put(&number.to_string(), 0, Some(86_400)).await;
        }
        world.time.step(8 * DAY);
        if let Some(is_orderly) = is_orderly {
            world.restart(is_orderly).await;
        }
        assert!(world.queues.tidy(|| false).await.unwrap());
        assert!(world.peek(32).await.is_empty());
        let meanwhile = world.put("meanwhile", 0, Some(86_400)).await;
        world.time.advance(60 * SECOND);
        world.time.step(-8 * DAY);
        for _ in 0..3 {
            assert!(world.queues.tidy(|| false).await.unwrap());
            assert_eq!((world.count().await, world.peek(32).await.len()), (11, 11));
            world.restart(true).await;
            world.time.advance(600 * SECOND);
        }
        assert!(world.delete(meanwhile.id, meanwhile.receipt).await);
        assert_eq!(world.get(32, 30).await.len(), 10);
        world.time.advance(2 * DAY);
        assert!(world.get(32, 30).await.is_empty());
        world.queues.tidy(|| false).await.unwrap();
        world.time.advance(601 * SECOND);
        world.queues.tidy(|| false).await.unwrap();
        assert_eq!(world.count().await, 0);
    }
}

/// The engine makes what was asked for, whoever still waits for it.
#[tokio::test]
async fn messages_of_requests_that_went_away_are_counted_and_keep_nobody_back() {
    const GONE: usize = 20;
    const EXPIRED: usize = 5000;
    let folder = tempfile::tempdir().unwrap();
    let world = World::in_folder(folder.path()).await;
    // From here on the next that a put waits for is the engine.
    world.put_now("first").await;
    for _ in 1..GONE {
        let (name, text) = (name(), Bytes::from_static(b"gone"));
        let mut put = Box::pin(world.queues.put(ACCOUNT, &name, text, (0, None), Bytes::new()));
        poll_fn(|context| Poll::Ready(put.as_mut().poll(context).is_ready())).await;
    }
    let mut seen = 0;
    while seen < GONE {
        seen = world.peek(32).await.len();
        assert!(world.count().await >= seen as u64);
        tokio::task::yield_now().await;
    }
    for _ in 0..EXPIRED {
        world.put("expires", 0, Some(1)).await;
    }
    world.time.advance(2 * SECOND);
    assert_eq!(world.get(32, 30).await.len(), GONE);
    assert!(world.get(32, 30).await.is_empty());
    let before = world.queues.scanned();
    for _ in 0..100 {
        assert!(world.get(32, 30).await.is_empty());
    }
    assert_eq!(world.queues.scanned(), before, "no look at the rows");
}

/// A message may lie anywhere behind a write whose end nobody knows: it is looked for from there on, to the end.
#[tokio::test]
async fn expired_messages_behind_a_write_of_unknown_end_are_passed() {
    const EXPIRED: usize = 10_000;
    let world = World::new().await;
    let live = world.live().await;
    drop(live.begin_write(Ticks(START).into()));
    for _ in 0..EXPIRED {
        world.put("expires", 0, Some(1)).await;
    }
    world.put_now("stays").await;
    world.time.advance(2 * SECOND);
    for _ in 0..3 {
        let (scans, _) = world.queues.scanned();
        assert_eq!(world.peek(1).await.len(), 1);
        assert_eq!(world.get(1, 1).await.len(), 1);
        assert!(world.get(1, 1).await.is_empty());
        assert!(world.queues.scanned().0 - scans < 20);
        world.time.advance(2 * SECOND);
    }
}

#[tokio::test]
async fn expired_messages_go_after_a_while_and_others_stay() {
    let world = World::new().await;
    for number in 0..20 {
        // Some in rows of their own, some hidden for longer than they live.
        let text = number.to_string().repeat(1 + 300 * (number % 2));
        world.put(&text, number as i64 % 3, Some(10)).await;
    }
    world.put("stays", 0, None).await;
    world.time.advance(11 * SECOND);
    assert_eq!(world.peek(32).await.len(), 1);
    world.queues.tidy(|| false).await.unwrap();
    assert_eq!(world.count().await, 21, "within the grace");
    world.time.advance(600 * SECOND);
    world.queues.tidy(|| false).await.unwrap();
    assert_eq!((world.count().await, world.peek(32).await.len()), (1, 1));
    for (family, expected) in [(Family::Message, 1), (Family::MessageText, 0)] {
        let Rows(rows) = world.engine.scan(family.range(), Rows(0)).await.unwrap();
        assert_eq!(rows, expected);
    }
}

/// A wall clock that steps back hides no message and repeats no receipt, also over a restart.
#[tokio::test]
async fn a_clock_that_steps_back_only_delays() {
    let mut world = World::new().await;
    let mut receipts = Vec::new();
    for is_orderly in [true, false, true] {
        world.put_now("text").await;
        world.time.step(-3600 * SECOND);
        let mut got = world.get(1, 5).await;
        assert_eq!(got.len(), 1, "visible at once");
        for _ in 0..3 {
            receipts.push((got[0].id(), got[0].receipt().next_visible));
            world.time.advance(6 * SECOND);
            got = world.get(1, 5).await;
            assert_eq!(got.len(), 1, "visible again in time");
        }
        world.restart(is_orderly).await;
        assert!(world.delete(got[0].id(), got[0].receipt()).await);
    }
    let all = receipts.len();
    receipts.sort_unstable();
    receipts.dedup();
    assert_eq!(receipts.len(), all);
}

#[tokio::test]
async fn an_empty_queue_is_known_to_be_empty() {
    let world = World::new().await;
    let put = world.put("hidden", 3600, Some(86_400)).await;
    world.get(1, 1).await;
    let before = world.queues.scanned();
    for _ in 0..1000 {
        assert!(world.get(32, 30).await.is_empty() && world.peek(32).await.is_empty());
        world.time.advance(SECOND / 10);
    }
    assert_eq!(world.queues.scanned(), before, "no look at the rows");
    world.update(put.id, put.receipt, 0, None).await.unwrap();
    assert_eq!(world.get(32, 30).await.len(), 1);
}

/// Who asks again and again, for messages that are not there or are left where they are, has nothing written.
#[tokio::test]
async fn polls_write_nothing() {
    let world = World::new().await;
    let put = world.put_now("there").await;
    let mark = async || world.engine.get(&Key::ClockMark.encode()).await.unwrap();
    let before = mark().await;
    for _ in 0..100 {
        world.time.advance(SECOND);
        assert_eq!(world.peek(32).await.len(), 1);
    }
    assert_eq!(mark().await, before);
    assert!(world.delete(put.id, put.receipt).await);
    for _ in 0..100 {
        world.time.advance(SECOND);
        assert!(world.peek(32).await.is_empty() && world.get(32, 30).await.is_empty());
    }
    assert_eq!(mark().await, before);
    world.put_now("another").await;
    assert_eq!(world.get(32, 30).await.len(), 1);
    assert_ne!(mark().await, before);
}

/// After very many have gone, with very many hidden and very many waiting: the same few rows.
#[tokio::test]
async fn a_message_is_found_without_passing_others() {
    let world = World::new().await;
    const MANY: usize = 10_000;
    for _ in 0..MANY {
        world.put_now("a").await;
    }
    let before = world.queues.scanned();
    for _ in 0..MANY {
        let got = world.get(1, 3600).await.remove(0);
        assert!(world.delete(got.id(), got.receipt()).await);
    }
    let (scans, rows) = world.queues.scanned();
    assert!(rows - before.1 <= (MANY + MANY / 100) as u64, "{rows} rows for {MANY} messages");
    assert!(scans - before.0 <= (MANY / 100) as u64, "{scans} scans");

    for _ in 0..MANY {
        world.put("hidden", 3600, Some(86_400)).await;
    }
    world.put_now("the one").await;
    let before = world.queues.scanned().1;
    assert_eq!(world.peek(1).await.len(), 1);
    assert_eq!(world.get(32, 3600).await.len(), 1);
    assert!(world.get(32, 3600).await.is_empty());
    let rows = world.queues.scanned().1 - before;
    assert!(rows <= 8, "{rows} rows");
}

/// A restart finds the beginning from the mark that an orderly stop left.
#[tokio::test]
async fn counts_and_beginnings_are_found_again_after_a_restart() {
    for is_orderly in [true, false] {
        let mut world = World::new().await;
        for number in 0..100 {
            world.put_now(&number.to_string()).await;
        }
        for found in world.get(32, 30).await {
            assert!(world.delete(found.id(), found.receipt()).await);
        }
        assert_eq!(world.get(8, 30).await.len(), 8);
        world.restart(is_orderly).await;
        assert_eq!(world.count().await, 68);
        let got = world.get(1, 30).await;
        assert_eq!(world.texts(&got).await, ["40"]);
        world.put_now("later").await;
        assert_eq!(world.count().await, 69);
        world.restart(is_orderly).await;
        // After a crash the clock is a little ahead.
        world.time.advance(40 * SECOND);
        let mut seen = 0;
        loop {
            let got = world.get(32, 30).await;
            if got.is_empty() {
                break;
            }
            seen += got.len();
        }
        assert_eq!(seen, 69);
    }
}

/// A request that goes away in the middle takes nothing with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_abandoned_requests_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::in_folder(folder.path()).await;
    const MANY: usize = 200;
    for number in 0..MANY {
        world.put_now(&number.to_string()).await;
    }
    // Each is dropped at some point of its way.
    for micros in 0..300_u64 {
        let patience = std::time::Duration::from_micros(micros);
        let _ = tokio::time::timeout(patience, world.get(1 + micros as usize % 8, 1)).await;
    }
    world.time.advance(2 * SECOND);
    let mut seen = std::collections::BTreeSet::new();
    // What an abandoned request had begun may still be made.
    for _ in 0..100 {
        seen.extend(world.get(32, 3600).await.iter().map(Found::id));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        world.time.advance(2 * SECOND);
    }
    assert_eq!(seen.len(), MANY);
    assert_eq!(world.count().await, MANY as u64);
}
