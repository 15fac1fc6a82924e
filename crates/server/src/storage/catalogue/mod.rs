//! The things that have a name in an account: one catalogue for every kind, and a cache that every request asks.
//!
//! A kind is a [`Resource`]: how it is stored, and how requests see it. Creating, finding, changing and dropping are
//! the same for all of them.
//!
//! The cache may be behind for the length of a race, never for longer. That is safe because ids are never reused: a
//! write that raced a drop lands in a dead range, which the sweeper clears.

mod cache;
mod queue;
mod table;
mod transitions;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tavola_engine::{AnyEngine, Engine, Reader};
use tavola_wire::Ticks;
use tokio::sync::Notify;

use self::cache::Cache;
use self::transitions::{Create, DropOutcome, DropRecord, Renew, Update};
use super::detached::detached;
use super::layout::{AccountId, Dropped, Record, ResourceId};
use super::{Error, Result};

pub(crate) use queue::Queue;
pub(crate) use table::Table;

/// Names that a catalogue remembers. A table without policies takes some 300 bytes, so that this is about 20 MiB.
/// With more tables in use, the records of some are read again and again.
const CACHED_NAMES_MAX: usize = 65_536;

/// A kind of thing that has a name in an account, as requests see it.
pub(crate) trait Resource: fmt::Debug + Send + Sync + Sized + 'static {
    /// A legal name.
    type Name<'a>;
    type Record: Record;

    /// The name as keys hold it: names that mean the same thing are the same here.
    fn key_name<'a>(name: &'a Self::Name<'_>) -> Cow<'a, str>;

    fn from_record(record: Self::Record) -> Result<Self>;
}

/// The names of one kind.
#[derive(Debug)]
pub(crate) struct Catalogue<R> {
    engine: AnyEngine,
    cache: RwLock<Cache<R>>,
    drop_signal: Arc<Notify>,
}

impl<R: Resource> Catalogue<R> {
    /// `drop_signal` is told of every drop.
    pub(crate) fn new(engine: AnyEngine, drop_signal: Arc<Notify>) -> Self {
        Self { engine, cache: RwLock::new(Cache::new(CACHED_NAMES_MAX)), drop_signal }
    }

    /// Finds the thing of that name.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn find(&self, account: AccountId, name: &R::Name<'_>) -> Result<Arc<R>> {
        let name = R::key_name(name);
        let changes = {
            let cache = self.cache();
            if let Some(found) = cache.get(account, &name) {
                return Ok(found.clone());
            }
            cache.changes()
        };
        let stored = self.engine.get(&R::Record::key(account, &name)).await?;
        let record = decode(&stored.ok_or(Error::NotFound)?)?;
        let found = Arc::new(R::from_record(record)?);
        self.cache_mut().remember(changes, account, &name, found.clone());
        Ok(found)
    }

    /// The record of the thing of that name, as it is stored: what is seldom asked for is not remembered.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn record(&self, account: AccountId, name: &R::Name<'_>) -> Result<R::Record> {
        let stored = self.engine.get(&R::Record::key(account, &R::key_name(name))).await?;
        decode(&stored.ok_or(Error::NotFound)?)
    }

    /// Creates a thing: `record` is called with its id, perhaps more than once.
    ///
    /// # Errors
    /// [`Error::Exists`].
    pub(crate) async fn create(
        self: &Arc<Self>,
        account: AccountId,
        name: &R::Name<'_>,
        record: impl Fn(ResourceId) -> R::Record + Send + 'static,
    ) -> Result<ResourceId> {
        let (catalogue, name) = (Arc::clone(self), R::key_name(name).into_owned());
        detached(async move {
            let transition = Create::new(R::Record::key(account, &name), record);
            let id = catalogue.engine.transact(transition).await??;
            // The drop of an earlier thing of this name may be committed, and the cache not know of it yet.
            catalogue.cache_mut().forget(account, &name);
            Ok(id)
        })
        .await
    }

    /// Changes the record of the thing of that name: `change` is perhaps called more than once.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn update(
        self: &Arc<Self>,
        account: AccountId,
        name: &R::Name<'_>,
        change: impl Fn(&mut R::Record) + Send + 'static,
    ) -> Result<()> {
        let (catalogue, name) = (Arc::clone(self), R::key_name(name).into_owned());
        detached(async move {
            let transition = Update::new(R::Record::key(account, &name), change);
            let verdict = catalogue.engine.transact(transition).await;
            catalogue.cache_mut().forget(account, &name);
            verdict?
        })
        .await
    }

    /// Drops the thing of that name: the name is free at once, its rows are swept later.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn drop_named(
        self: &Arc<Self>,
        account: AccountId,
        name: &R::Name<'_>,
        now: Ticks,
    ) -> Result<()> {
        let (catalogue, name) = (Arc::clone(self), R::key_name(name).into_owned());
        detached(async move {
            let dropped = catalogue.drop_stored(account, &name, now).await;
            catalogue.cache_mut().forget(account, &name);
            catalogue.drop_signal.notify_one();
            dropped
        })
        .await
    }

    /// Gives the thing of that name another id, if it still has this one: what is under the old id is swept later. Answers
    /// the new id.
    ///
    /// # Errors
    /// [`Error::NotFound`], also if the thing has another id by now.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        account: AccountId,
        name: &R::Name<'_>,
        old: ResourceId,
        now: Ticks,
        change: impl Fn(&mut R::Record, ResourceId) + Send + 'static,
    ) -> Result<ResourceId> {
        let (catalogue, name) = (Arc::clone(self), R::key_name(name).into_owned());
        detached(async move {
            let dropped = Dropped { id: old, kind: R::Record::KIND, at: now };
            let transition = Renew::new(R::Record::key(account, &name), dropped, change);
            let verdict = catalogue.engine.transact(transition).await;
            catalogue.cache_mut().forget(account, &name);
            catalogue.drop_signal.notify_one();
            verdict?
        })
        .await
    }

    async fn drop_stored(&self, account: AccountId, name: &str, now: Ticks) -> Result<()> {
        let key = R::Record::key(account, name);
        // The key of the dropped row holds the id, and a transition declares its keys beforehand: read the id, and
        // start again in the unlikely case that the name meanwhile stands for something else.
        loop {
            let stored = self.engine.get(&key).await?.ok_or(Error::NotFound)?;
            let id = decode::<R::Record>(&stored)?.id();
            let dropped = Dropped { id, kind: R::Record::KIND, at: now };
            let transition = DropRecord::<R::Record>::new(key.clone(), dropped);
            match self.engine.transact(transition).await? {
                DropOutcome::Dropped => return Ok(()),
                DropOutcome::NotFound => return Err(Error::NotFound),
                DropOutcome::Replaced => {}
            }
        }
    }

    fn cache(&self) -> RwLockReadGuard<'_, Cache<R>> {
        self.cache.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache_mut(&self) -> RwLockWriteGuard<'_, Cache<R>> {
        self.cache.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn decode<R: Record>(stored: &[u8]) -> Result<R> {
    R::decode(stored).ok_or_else(|| Error::Corrupt("a catalogue row".into()))
}

#[cfg(test)]
mod tests;
