//! Looking at all messages of a queue: how many there are, and which have expired.
//!
//! That is done once after a start, when the number may be wrong because a request went away at the wrong moment, and when
//! messages have expired. What has expired is not seen any more; it is removed some minutes later, so that a clock which was
//! set wrong for a while, and makes everything expire, destroys nothing.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tavola_engine::{Engine, Error as EngineError, Reader, Visitor};
use tavola_wire::Ticks;

use super::Queues;
use super::live_queue::LiveQueue;
use super::stamps::WriteMark;
use super::transitions::RemoveExpired;
use crate::storage::detached::detached;
use crate::storage::layout::message::{Header, MessageKeys, Moment, Place, place_of};
use crate::storage::layout::{Family, Key, QueueRecord, Record, StoreId, mark};
use crate::storage::{Error, Result};

/// How long expired messages stay.
pub(crate) const EXPIRY_GRACE: Duration = Duration::from_secs(600);
/// Expired messages that are looked for at a time.
const FOUND_MAX: usize = if cfg!(test) { 1000 } else { 65_536 };
/// Messages that are removed in one transaction.
const BATCH: usize = 256;
/// Messages that must have gone before a new low mark is worth a write.
const REMOVED_MIN: u64 = 10_000;
/// Queues that are read from the catalogue at a time.
const QUEUES_PER_PAGE: usize = 1000;

impl Queues {
    /// How many messages there are: not fewer than there are.
    pub(super) async fn count(self: &Arc<Self>, live: &Arc<LiveQueue>) -> Result<u64> {
        loop {
            if let Some(count) = live.count() {
                return Ok(count);
            }
            let (queues, live) = (Arc::clone(self), Arc::clone(live));
            // Also when the client goes away: a queue may take longer to count than any client waits.
            detached(async move {
                let _one_at_a_time = live.surveying.lock().await;
                // Somebody else may have counted them meanwhile.
                if live.count().is_none() {
                    queues.survey(&live, Moment(0)).await?;
                }
                Ok(())
            })
            .await?;
        }
    }

    /// Counts the messages of queues where that has to be done, removes what has expired, and writes low marks. To be
    /// called again and again; `stop` is asked in between. Answers whether all of it is done.
    ///
    /// # Errors
    /// What should be tried again soon. All other queues are looked at before.
    pub(crate) async fn tidy(&self, stop: impl Fn() -> bool) -> Result<bool> {
        let mut from = Family::Queue.range();
        let (mut is_done, mut failed) = (true, None);
        loop {
            let page = self.engine.scan(from.clone(), Stores::default()).await?;
            for store in page.stores {
                if stop() {
                    return Ok(false);
                }
                match self.tidy_queue(store, &stop).await {
                    Ok(is_tidy) => is_done &= is_tidy,
                    Err(Error::Engine(EngineError::Closed)) => {
                        return Err(EngineError::Closed.into());
                    }
                    Err(error) => {
                        let StoreId(store) = store;
                        tracing::warn!(store, %error, "the messages of a queue cannot be looked through");
                        failed = failed.or(Some(error).filter(|error| !error.is_damage()));
                    }
                }
            }
            let Some(next) = page.next else { return failed.map_or(Ok(is_done), Err) };
            from.start = next.into();
        }
    }

    async fn tidy_queue(&self, store: StoreId, stop: &impl Fn() -> bool) -> Result<bool> {
        let known = self.registry.get(store);
        let is_known = known.is_some();
        let live = match known {
            Some(live) => live,
            None => self.registry.add(LiveQueue::new(store, self.read_low_mark(store).await?)),
        };
        let is_done = self.sweep(&live, stop).await?;
        // So that the age of its first message is known; more than that one is for those who ask for messages.
        self.make_ready(&live, 1, 1, self.stamps.look()).await?;
        self.write_low_mark(&live, REMOVED_MIN).await?;
        // It may have been cleared or deleted since its record was read, and must not be counted for ever.
        let dropped = Key::Dropped { id: store.into() }.encode();
        if !is_known && self.engine.get(&dropped).await?.is_some() {
            self.registry.remove(store);
        }
        Ok(is_done)
    }

    /// What expired up to this moment is removed. Nothing is, for a while after the clock jumped.
    pub(super) fn removable(&self) -> Moment {
        // ORDER: the clock notices a jump when it is read.
        let now = self.stamps.look();
        if self.stamps.since_jump().is_some_and(|since| since < EXPIRY_GRACE) {
            return Moment(0);
        }
        let grace = i64::try_from(EXPIRY_GRACE.as_secs()).unwrap_or(i64::MAX);
        Ticks(now.time_of_day.0 - grace * Ticks::PER_SECOND).into()
    }

    /// Counts the messages of a queue and removes those that expired a while ago, if there is need of either. Answers whether
    /// everything is gone that has to go.
    async fn sweep(&self, live: &LiveQueue, stop: &impl Fn() -> bool) -> Result<bool> {
        let _one_at_a_time = live.surveying.lock().await;
        let removable = self.removable();
        if !live.is_uncounted() && live.next_expiry() > removable {
            return Ok(true);
        }
        let Survey { mut found, next_expiry_after, .. } = self.survey(live, removable).await?;
        let keys = MessageKeys(live.store);
        loop {
            for places in found.places.chunks(BATCH) {
                if stop() {
                    return Ok(false);
                }
                let remove = RemoveExpired::new(keys, places.to_vec(), removable);
                live.swept(self.engine.transact(remove).await?);
            }
            let Some(rest) = found.rest else { break };
            // What has expired is moved no more, so that it is all behind the last one.
            let more = MoreExpired { found: ExpiredMessages::new(removable), rows: 0 };
            let more = self.engine.scan(keys.headers_from(rest), more).await?;
            self.count_scan(more.rows);
            found = more.found;
        }
        live.swept_all(removable, next_expiry_after);
        Ok(true)
    }

    /// Counts the messages of a queue, and looks for those that expired up to a moment. Nobody else counts them.
    async fn survey(&self, live: &LiveQueue, removable: Moment) -> Result<Survey> {
        // ORDER: with the gate closed, so that a change is either in the snapshot or counted after it.
        let (snapshot, changes, first_known) = {
            let _closed = live.gate().write_owned().await;
            (self.engine.snapshot().await?, live.changes(), live.first_known())
        };
        let all = MessageKeys(live.store).headers_from(Place::MIN);
        let survey = snapshot.scan(all, Survey::new(removable)).await?;
        self.count_scan(survey.rows);
        if let Some(first) = survey.first.filter(|first| *first < first_known) {
            let StoreId(store) = live.store;
            tracing::error!(
                store,
                "messages lie before the mark where their queue begins; they are looked for there again"
            );
            live.found_before(first);
            self.write_low_mark(live, 0).await?;
        }
        // Until they are gone, those that have expired are the next to expire.
        live.counted(survey.messages, changes, survey.next_expiry);
        Ok(survey)
    }

    /// Where the messages of a queue begin, as it was written down last. Without that they are looked for from the first on.
    pub(super) async fn read_low_mark(&self, store: StoreId) -> Result<Place> {
        let stored = self.engine.get(&Key::LowMark { store }.encode()).await?;
        let Some(stored) = stored else { return Ok(Place::MIN) };
        Ok(mark::decode_low(&stored).unwrap_or_else(|| {
            let StoreId(store) = store;
            tracing::error!(
                store,
                "the mark where a queue begins cannot be read; it is done without"
            );
            Place::MIN
        }))
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

/// Messages to be removed.
struct ExpiredMessages {
    removable: Moment,
    places: Vec<Place>,
    /// The first that was not taken, because there were so many.
    rest: Option<Place>,
}

impl ExpiredMessages {
    fn new(removable: Moment) -> Self {
        Self { removable, places: Vec::new(), rest: None }
    }

    /// Takes a message, if it is one of them. Answers whether it is.
    fn take(&mut self, place: Place, expires: Moment) -> bool {
        if expires > self.removable {
            return false;
        }
        match self.places.len() < FOUND_MAX {
            true => self.places.push(place),
            false => self.rest = self.rest.or(Some(place)),
        }
        true
    }
}

/// Counts messages and looks for those to be removed.
struct Survey {
    messages: i64,
    rows: usize,
    /// The place of the first.
    first: Option<Place>,
    /// None of them expires before; and none of those that stay.
    next_expiry: Moment,
    next_expiry_after: Moment,
    found: ExpiredMessages,
}

impl Survey {
    fn new(removable: Moment) -> Self {
        let (next_expiry, next_expiry_after) = (Moment::NEVER, Moment::NEVER);
        let found = ExpiredMessages::new(removable);
        Self { messages: 0, rows: 0, first: None, next_expiry, next_expiry_after, found }
    }
}

impl Visitor for Survey {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.rows += 1;
        let (Some(place), Some(expires)) = (place_of(key), Header::expiry_of(value)) else {
            return ControlFlow::Continue(());
        };
        self.messages += 1;
        self.first = self.first.or(Some(place));
        self.next_expiry = self.next_expiry.min(expires);
        if !self.found.take(place, expires) {
            self.next_expiry_after = self.next_expiry_after.min(expires);
        }
        ControlFlow::Continue(())
    }
}

/// Looks for messages to be removed, where a survey has found more than it took.
struct MoreExpired {
    found: ExpiredMessages,
    rows: usize,
}

impl Visitor for MoreExpired {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.rows += 1;
        if let (Some(place), Some(expires)) = (place_of(key), Header::expiry_of(value)) {
            self.found.take(place, expires);
        }
        match self.found.rest {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
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
