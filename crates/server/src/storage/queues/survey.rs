//! Looking at all messages of a queue: how many there are, and which have expired.
//!
//! That is done once after a start, when the number may be wrong because a request went away at the wrong moment, and when
//! messages have expired. What has expired is not seen any more; it is removed some minutes later, so that a clock which was
//! set wrong for a while, and makes everything expire, destroys nothing.

use std::ops::ControlFlow;
use std::time::Duration;

use tavola_engine::{Engine, Reader, Visitor};
use tavola_wire::Ticks;

use super::Queues;
use super::live_queue::LiveQueue;
use super::stamps::WriteMark;
use super::transitions::RemoveExpired;
use crate::storage::layout::message::{Header, MessageKeys, Moment, Place, place_of};
use crate::storage::layout::{Family, Key, QueueRecord, Record, StoreId, mark};
use crate::storage::{Error, Result};

/// How long expired messages stay.
pub(crate) const EXPIRY_GRACE: Duration = Duration::from_secs(600);
/// Expired messages that one survey removes; the others wait for the next.
const REMOVED_MAX: usize = 65_536;
/// Messages that are removed in one transaction.
const BATCH: usize = 256;
/// Messages that must have gone before a new low mark is worth a write.
const REMOVED_MIN: u64 = 10_000;
/// Queues that are read from the catalogue at a time.
const QUEUES_PER_PAGE: usize = 1000;

impl Queues {
    /// How many messages there are: not fewer than there are.
    pub(super) async fn count(&self, live: &LiveQueue) -> Result<u64> {
        loop {
            if let Some(count) = live.count() {
                return Ok(count);
            }
            self.survey(live).await?;
        }
    }

    /// Counts the messages of queues where that has to be done, removes what has expired, and writes low marks. To be
    /// called again and again; `stop` is asked in between. Answers whether all of it is done.
    pub(crate) async fn tidy(&self, stop: impl Fn() -> bool) -> Result<bool> {
        let mut from = Family::Queue.range();
        let mut is_done = true;
        loop {
            let page = self.engine.scan(from.clone(), Stores::default()).await?;
            for store in page.stores {
                if stop() {
                    return Ok(false);
                }
                is_done &= self.tidy_queue(store).await?;
            }
            let Some(next) = page.next else { return Ok(is_done) };
            from.start = next.into();
        }
    }

    async fn tidy_queue(&self, store: StoreId) -> Result<bool> {
        let known = self.registry.get(store);
        let is_known = known.is_some();
        let live = match known {
            Some(live) => live,
            None => self.registry.add(LiveQueue::new(store, self.read_low_mark(store).await?)),
        };
        let mut is_done = true;
        if live.is_uncounted() || live.next_expiry() <= self.removable().await? {
            is_done = self.survey(&live).await?;
        }
        // So that the age of its first message is known.
        self.first_place(&live, self.stamps.now().await?).await?;
        self.write_low_mark(&live, REMOVED_MIN).await?;
        // It may have been cleared or deleted since its record was read, and must not be counted for ever.
        let dropped = Key::Dropped { id: store.into() }.encode();
        if !is_known && self.engine.get(&dropped).await?.is_some() {
            self.registry.remove(store);
        }
        Ok(is_done)
    }

    /// What expired up to this moment is removed. Nothing is, for a while after the clock jumped.
    async fn removable(&self) -> Result<Moment> {
        // ORDER: the clock notices a jump when it is read.
        let now = self.stamps.now().await?;
        if self.stamps.since_jump().is_some_and(|since| since < EXPIRY_GRACE) {
            return Ok(Moment(0));
        }
        let grace = i64::try_from(EXPIRY_GRACE.as_secs()).unwrap_or(i64::MAX);
        Ok(Ticks(now.time_of_day.0 - grace * Ticks::PER_SECOND).into())
    }

    /// Answers whether everything that has to go is gone.
    async fn survey(&self, live: &LiveQueue) -> Result<bool> {
        let _one_at_a_time = live.surveying.lock().await;
        let removable = self.removable().await?;
        // ORDER: with the gate closed, so that a change is either in the snapshot or counted after it.
        let (snapshot, changes) = {
            let _closed = live.gate().write_owned().await;
            (self.engine.snapshot().await?, live.changes())
        };
        let keys = MessageKeys(live.store);
        let all = snapshot.scan(keys.headers_from(Place::MIN), Survey::new(removable)).await?;
        drop(snapshot);
        live.counted(all.messages, changes, all.next_expiry);
        for places in all.expired.chunks(BATCH) {
            let remove = RemoveExpired::new(keys, places.to_vec(), removable);
            live.swept(self.engine.transact(remove).await?);
        }
        let is_done = all.expired.len() < REMOVED_MAX;
        if is_done {
            live.swept_all(removable);
        }
        Ok(is_done)
    }

    pub(super) async fn read_low_mark(&self, store: StoreId) -> Result<Place> {
        let stored = self.engine.get(&Key::LowMark { store }.encode()).await?;
        let Some(stored) = stored else { return Ok(Place::MIN) };
        mark::decode_low(&stored).ok_or_else(|| Error::Corrupt("the low mark of a queue".into()))
    }

    /// Writes where the messages of a queue begin, if so many have gone since that was done.
    pub(super) async fn write_low_mark(&self, live: &LiveQueue, removed_min: u64) -> Result<()> {
        if !live.needs_low_mark(removed_min) {
            return Ok(());
        }
        let low = {
            // ORDER: with the gate closed, or else a message could be on its way to a moment before the mark, and nobody
            // would find it after a crash.
            let _closed = live.gate().write_owned().await;
            live.low_mark(self.stamps.next().await?.into())
        };
        let Some(low) = low else { return Ok(()) };
        let keys = [Key::LowMark { store: live.store }.encode()];
        Ok(self.engine.transact(WriteMark { keys, mark: mark::encode_low(low) }).await?)
    }
}

/// Counts messages and collects those to be removed.
struct Survey {
    removable: Moment,
    messages: i64,
    next_expiry: Moment,
    expired: Vec<Place>,
}

impl Survey {
    fn new(removable: Moment) -> Self {
        Self { removable, messages: 0, next_expiry: Moment::NEVER, expired: Vec::new() }
    }
}

impl Visitor for Survey {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let (Some(place), Some(expires)) = (place_of(key), Header::expiry_of(value)) else {
            return ControlFlow::Continue(());
        };
        self.messages += 1;
        if expires <= self.removable && self.expired.len() < REMOVED_MAX {
            self.expired.push(place);
        } else {
            self.next_expiry = self.next_expiry.min(expires);
        }
        ControlFlow::Continue(())
    }
}

/// Where the queues of all accounts keep their messages.
#[derive(Default)]
struct Stores {
    stores: Vec<StoreId>,
    /// Where to go on.
    next: Option<Vec<u8>>,
}

impl Visitor for Stores {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        if self.stores.len() == QUEUES_PER_PAGE {
            self.next = Some(key.to_vec());
            return ControlFlow::Break(());
        }
        if let Some(record) = QueueRecord::decode(value) {
            self.stores.push(record.store);
        }
        ControlFlow::Continue(())
    }
}
