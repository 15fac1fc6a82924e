//! The messages of queues: put, get, peek, update, delete, clear.
//!
//! Correctness rests on the rows alone: a message has one header, whose key holds the moment from which on it is visible,
//! and whoever moves or removes it needs that key to be there. What is in memory makes it quick and can be lost: where a
//! queue begins and which messages come next ([`live_queue`]), how many there are ([`survey`]).
//!
//! A message operation passes the gate of its queue, which Clear and Delete Queue close: what was acknowledged before one
//! of them is gone with it, what is acknowledged after it stays.

mod depth;
mod found;
mod head_scan;
mod live_queue;
mod random_bits;
mod registry;
mod stamps;
mod survey;
mod texts;
mod transitions;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tavola_engine::{AnyEngine, Engine, Error as EngineError, Reader, Transition};
use tavola_wire::Ticks;
use tavola_wire::queue::metadata::Metadata;
use tavola_wire::queue::{MessageId, PopReceipt, QueueName};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};

use self::found::receipt;
use self::head_scan::{PeekScan, READY_MAX};
use self::live_queue::{LiveQueue, Writing};
use self::random_bits::RandomBits;
use self::registry::Registry;
use self::stamps::{Now, Stamps};
use self::texts::{Unreadable, split_text};
use self::transitions::{Claim, DeleteMessage, PutMessage, UpdateMessage};
use super::Result;
use super::catalogue::{Catalogue, Queue};
use super::detached::{carry_on, detached};
use super::features::{Feature, Features};
use super::layout::message::{Header, MessageKeys, Moment, Place};
use super::layout::{AccountId, QueueRecord};
use crate::clock::hybrid::TimeSource;

pub(crate) use found::{Found, Put};

/// Marks that are on their way to the disk at a time when the server stops.
const MARKS_AT_A_TIME: usize = 256;

/// The queues of all accounts.
#[derive(Debug)]
pub(crate) struct Queues {
    engine: AnyEngine,
    catalogue: Arc<Catalogue<Queue>>,
    stamps: Stamps,
    registry: Registry,
    random: RandomBits,
    /// Messages that were told to be left out.
    unreadable: Unreadable,
    /// Scans for the messages of a queue, and the rows that they looked at.
    scans: AtomicU64,
    rows_scanned: AtomicU64,
}

/// A queue that neither Clear nor Delete Queue can touch until this is dropped.
struct OpenQueue {
    live: Arc<LiveQueue>,
    _gate: OwnedRwLockReadGuard<()>,
}

impl OpenQueue {
    fn keys(&self) -> MessageKeys {
        MessageKeys(self.live.store)
    }
}

impl Queues {
    /// `time` is what stamps are made of; they go on after the last that was given out.
    pub(crate) async fn open(
        engine: AnyEngine,
        catalogue: Arc<Catalogue<Queue>>,
        time: Arc<dyn TimeSource>,
    ) -> Result<Self> {
        let stamps = Stamps::open(engine.clone(), time).await?;
        let (registry, random) = (Registry::default(), RandomBits::new());
        let (scans, rows_scanned) = (AtomicU64::new(0), AtomicU64::new(0));
        let unreadable = Unreadable::default();
        Ok(Self { engine, catalogue, stamps, registry, random, unreadable, scans, rows_scanned })
    }

    /// Creates a queue.
    ///
    /// # Errors
    /// [`Error::Exists`].
    pub(crate) async fn create(
        &self,
        features: &Features,
        account: AccountId,
        name: &QueueName<'_>,
        metadata: Metadata,
        now: Ticks,
    ) -> Result<()> {
        features.ensure(Feature::Queue).await?;
        let before = self.registry.forgotten();
        let store = self.catalogue.create_queue(account, name, metadata, now).await?;
        self.registry.add_new(store, before);
        Ok(())
    }

    /// Removes a queue with all its messages.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn delete_queue(
        self: &Arc<Self>,
        account: AccountId,
        name: &QueueName<'_>,
        now: Ticks,
    ) -> Result<()> {
        let (queues, name) = (Arc::clone(self), name.clone().into_owned());
        detached(async move {
            let (live, _closed) = queues.close_gate(account, &name).await?;
            queues.catalogue.drop_named(account, &name, now).await?;
            queues.registry.remove(live.store);
            Ok(())
        })
        .await
    }

    /// Removes all messages of a queue.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn clear(
        self: &Arc<Self>,
        account: AccountId,
        name: &QueueName<'_>,
        now: Ticks,
    ) -> Result<()> {
        let (queues, name) = (Arc::clone(self), name.clone().into_owned());
        detached(async move {
            let (live, _closed) = queues.close_gate(account, &name).await?;
            let before = queues.registry.forgotten();
            let store = queues.catalogue.renew_store(account, &name, live.store, now).await?;
            queues.registry.remove(live.store);
            queues.registry.add_new(store, before);
            Ok(())
        })
        .await
    }

    /// Puts a message that is visible after so many seconds and expires after so many, or never. `body` is kept until the
    /// message is stored: it carries the memory that is reserved for it.
    ///
    /// # Errors
    /// [`Error::NotFound`] for the queue.
    pub(crate) async fn put(
        &self,
        account: AccountId,
        name: &QueueName<'_>,
        text: Bytes,
        (visible_after, lives): (i64, Option<i64>),
        body: Bytes,
    ) -> Result<Put> {
        let queue = self.pass(account, name).await?;
        let Now { stamp, time_of_day } = self.stamps.now().await?;
        let visible = after(stamp, visible_after);
        // Its life is counted by the clock that ends it.
        let expires = lives.map_or(Moment::NEVER, |seconds| after(time_of_day, seconds));
        let id = MessageId::at(stamp, self.random.next());
        let place = Place { visible, id };
        let (text, row) = split_text(queue.keys(), expires, id, text);
        let inserted = time_of_day;
        let header = Header { inserted, expires, dequeue_count: 0, is_updated: false, text };
        let put = PutMessage::new(queue.keys().header(place), header.encode(), row, body);
        queue.live.note_expiry(expires);
        let writing = queue.live.begin_put(visible);
        self.commit(queue, put, writing, |()| 0).await?;
        let receipt = receipt(visible, &header);
        Ok(Put { id, inserted, expires: expires.ticks(), receipt })
    }

    /// Gets up to so many messages and hides them for so many seconds.
    ///
    /// # Errors
    /// [`Error::NotFound`] for the queue.
    pub(crate) async fn get(
        &self,
        account: AccountId,
        name: &QueueName<'_>,
        messages_max: usize,
        hidden_for: i64,
    ) -> Result<Vec<Found>> {
        let mut queue = self.pass(account, name).await?;
        let store = queue.live.store;
        loop {
            let horizon = self.stamps.look();
            let mut taken = self.take(&queue.live, messages_max, horizon).await?;
            if taken.len() == 0 {
                return Ok(Vec::new());
            }
            // ORDER: after waiting for others, so that nobody hides a message until a moment that is past.
            let now = self.stamps.now().await?;
            taken.pass_expired(now);
            if taken.len() == 0 {
                continue;
            }
            let visible = after(now.stamp, hidden_for);
            let places = taken.places().collect();
            let claim = Claim::new(queue.keys(), places, now.expired(), visible);
            let claimed;
            (claimed, queue) = self.commit(queue, claim, taken.begin_write(visible), |_| 0).await?;
            // A commit may take its time.
            let now = self.stamps.look();
            let alive = claimed.into_iter().filter(|(_, header)| header.expires > now.expired());
            let found = |(id, header)| Found { store, place: Place { visible, id }, header };
            let found: Vec<_> = alive.map(found).collect();
            if !found.is_empty() {
                return Ok(found);
            }
            // All of them were deleted, moved or expired since they were seen.
        }
    }

    /// The messages that [`Queues::get`] would get.
    ///
    /// # Errors
    /// [`Error::NotFound`] for the queue.
    pub(crate) async fn peek(
        &self,
        account: AccountId,
        name: &QueueName<'_>,
        messages_max: usize,
    ) -> Result<Vec<Found>> {
        let queue = self.pass(account, name).await?;
        let now = self.stamps.look();
        self.make_ready(&queue.live, messages_max, READY_MAX, now).await?;
        if let Some(places) = queue.live.first_ready(messages_max, now)
            && let Some(found) = self.read_all(&queue, &places).await?
        {
            return Ok(found);
        }
        let Some(start) = queue.live.first_place(now) else { return Ok(Vec::new()) };
        let scan = PeekScan::new(now, messages_max);
        let scan = self.engine.scan(queue.keys().headers_from(start), scan).await?;
        self.count_scan(scan.rows);
        let store = queue.live.store;
        let found = |(place, header)| Found { store, place, header };
        Ok(scan.found.into_iter().map(found).collect())
    }

    /// Reads messages whose places are known; `None` if one is not there any more.
    async fn read_all(&self, queue: &OpenQueue, places: &[Place]) -> Result<Option<Vec<Found>>> {
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            let header = self.engine.get(&queue.keys().header(*place)).await?;
            let Some(header) = header.as_deref().and_then(Header::decode) else { return Ok(None) };
            found.push(Found { store: queue.live.store, place: *place, header });
        }
        Ok(Some(found))
    }

    /// Hides a message for so many seconds from now, and replaces its text if there is one. Answers the new receipt; `None`
    /// if the receipt is not that of a message, or not any more.
    ///
    /// # Errors
    /// [`Error::NotFound`] for the queue.
    pub(crate) async fn update(
        &self,
        account: AccountId,
        name: &QueueName<'_>,
        message: Option<(MessageId, PopReceipt)>,
        hidden_for: i64,
        text: Option<Bytes>,
        body: Bytes,
    ) -> Result<Option<PopReceipt>> {
        let queue = self.pass(account, name).await?;
        let Some((id, receipt)) = message else { return Ok(None) };
        let now = self.stamps.now().await?;
        let place = Place { visible: receipt.next_visible.into(), id };
        let mut visible = after(now.stamp, hidden_for);
        if visible == place.visible {
            // The receipt would not change.
            visible.0 += 1;
        }
        let to = Place { visible, id };
        let update =
            UpdateMessage::new(queue.keys(), place, to, receipt, now.expired(), text, body);
        let writing = queue.live.begin_write(visible);
        let (updated, queue) = self.commit(queue, update, writing, |_| 0).await?;
        if updated.is_some() {
            queue.live.forget(place);
        }
        Ok(updated.map(|header| found::receipt(visible, &header)))
    }

    /// Deletes a message. Answers whether the receipt was that of a message.
    ///
    /// # Errors
    /// [`Error::NotFound`] for the queue.
    pub(crate) async fn delete(
        &self,
        account: AccountId,
        name: &QueueName<'_>,
        message: Option<(MessageId, PopReceipt)>,
    ) -> Result<bool> {
        let queue = self.pass(account, name).await?;
        let Some((id, receipt)) = message else { return Ok(false) };
        let now = self.stamps.look();
        let place = Place { visible: receipt.next_visible.into(), id };
        let delete = DeleteMessage::new(queue.keys(), place, receipt, now.expired());
        let writing = queue.live.begin_delete();
        let change = |is_deleted: &bool| -i64::from(*is_deleted);
        let (is_deleted, queue) = self.commit(queue, delete, writing, change).await?;
        if is_deleted {
            queue.live.forget(place);
        }
        Ok(is_deleted)
    }

    /// The record of a queue, and how many messages it has: not fewer than there are.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn describe(
        self: &Arc<Self>,
        account: AccountId,
        name: &QueueName<'_>,
    ) -> Result<(QueueRecord, u64)> {
        loop {
            let record = self.catalogue.record(account, name).await?;
            let live = self.live(account, name).await?;
            // Cleared in between.
            if live.store == record.store {
                return Ok((record, self.count(&live).await?));
            }
        }
    }

    /// Writes down what the next start is quicker with. Nobody uses the queues any more.
    pub(crate) async fn close(&self) {
        // Many at a time, which share their syncs. One that is damaged keeps the others from nothing.
        let marks = stream::iter(self.registry.all())
            .map(|live| async move { self.write_low_mark(&live, 1).await.err() })
            .buffer_unordered(MARKS_AT_A_TIME);
        let failed = marks.fold(None, |failed, error| ready(failed.or(error))).await;
        // ORDER: last, because marks take stamps.
        if let Some(error) = failed.or(self.stamps.close().await.err()) {
            tracing::warn!(%error, "not all marks of queues were written; the next start does without");
        }
    }

    /// Scans so far, and the rows that they looked at.
    #[cfg(test)]
    fn scanned(&self) -> (u64, u64) {
        (self.scans.load(Ordering::Relaxed), self.rows_scanned.load(Ordering::Relaxed))
    }

    fn count_scan(&self, rows: usize) {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.rows_scanned.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Makes a change, of which the queue knows in memory, and which changes the number of messages by `change`. Also if the
    /// request goes away meanwhile: the engine makes it all the same, and the queue has to hear what came of it.
    async fn commit<T: Transition>(
        &self,
        queue: OpenQueue,
        transition: T,
        writing: Writing,
        change: impl FnOnce(&T::Verdict) -> i64 + Send + 'static,
    ) -> Result<(T::Verdict, OpenQueue)> {
        let engine = self.engine.clone();
        carry_on(async move {
            match engine.transact(transition).await {
                Ok(verdict) => {
                    writing.finish(change(&verdict));
                    Ok((verdict, queue))
                }
                Err(error) => {
                    // Of others it is not known whether the change was made.
                    let is_certain = matches!(
                        error,
                        EngineError::Busy
                            | EngineError::Full
                            | EngineError::GuardFailed
                            | EngineError::Unavailable(_)
                            | EngineError::Panicked(_)
                    );
                    if is_certain {
                        writing.refused();
                    }
                    Err(error.into())
                }
            }
        })
        .await
    }

    /// Passes the gate of a queue.
    async fn pass(&self, account: AccountId, name: &QueueName<'_>) -> Result<OpenQueue> {
        loop {
            let live = self.live(account, name).await?;
            let gate = live.gate().read_owned().await;
            // ORDER: looked up again behind the gate, where it cannot change: it may have been cleared or dropped, and even
            // forgotten, between the two.
            let queue = self.catalogue.find(account, name).await?;
            if queue.store == live.store {
                return Ok(OpenQueue { live, _gate: gate });
            }
        }
    }

    /// Lets no message operation pass until the guard is dropped, and waits for those that have.
    async fn close_gate(
        &self,
        account: AccountId,
        name: &QueueName<'_>,
    ) -> Result<(Arc<LiveQueue>, OwnedRwLockWriteGuard<()>)> {
        loop {
            let live = self.live(account, name).await?;
            let closed = live.gate().write_owned().await;
            // ORDER: looked up again behind the gate, as in `pass`. If another Clear was quicker, what came after it goes
            // with this one.
            let queue = self.catalogue.find(account, name).await?;
            if queue.store == live.store {
                return Ok((live, closed));
            }
        }
    }

    async fn live(&self, account: AccountId, name: &QueueName<'_>) -> Result<Arc<LiveQueue>> {
        let store = self.catalogue.find(account, name).await?.store;
        match self.registry.get(store) {
            Some(live) => Ok(live),
            None => {
                let low = self.read_low_mark(store).await?;
                Ok(self.registry.add(LiveQueue::new(store, low)))
            }
        }
    }
}

/// So many seconds after a stamp.
fn after(now: Ticks, seconds: i64) -> Moment {
    Ticks(now.0.saturating_add(seconds.saturating_mul(Ticks::PER_SECOND))).min(Ticks::MAX).into()
}

#[cfg(test)]
mod expiry_tests;

#[cfg(test)]
mod damage_tests;

#[cfg(test)]
mod model_tests;

#[cfg(test)]
mod concurrent_tests;

#[cfg(test)]
mod history_tests;

#[cfg(test)]
#[path = "queue_tests.rs"]
pub(crate) mod tests;
