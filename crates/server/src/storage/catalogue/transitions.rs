//! The changes of the catalogue, each one transition of the engine.

use std::marker::PhantomData;

use bytes::Bytes;
use tavola_engine::{Decision, Transition, WriteSet};

use super::decode;
use crate::storage::layout::{AccountId, Dropped, Key, Record, ResourceId};
use crate::storage::{Error, Result, next_id};

/// Puts a new record under a free name.
pub(super) struct Create<F> {
    keys: [Bytes; 2],
    record: F,
}

impl<F> Create<F> {
    pub(super) fn new(key: Bytes, record: F) -> Self {
        Self { keys: [Key::Sequence.encode(), key], record }
    }
}

impl<R, F> Transition for Create<F>
where
    R: Record,
    F: Fn(ResourceId) -> R + Send + 'static,
{
    type Verdict = Result<ResourceId>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Result<ResourceId>> {
        if values[1].is_some() {
            return Decision::Abort(Err(Error::Exists));
        }
        let (id, next) = match next_id(values[0].as_deref()) {
            Ok(allocated) => allocated,
            Err(error) => return Decision::Abort(Err(error)),
        };
        writes.put(self.keys[0].clone(), next);
        writes.put(self.keys[1].clone(), (self.record)(ResourceId(id)).encode());
        Decision::Commit(Ok(ResourceId(id)))
    }
}

/// Changes a record in place.
pub(super) struct Update<R, F> {
    keys: [Bytes; 1],
    change: F,
    record: PhantomData<fn(&mut R)>,
}

impl<R, F: Fn(&mut R)> Update<R, F> {
    pub(super) fn new(key: Bytes, change: F) -> Self {
        Self { keys: [key], change, record: PhantomData }
    }
}

impl<R, F> Transition for Update<R, F>
where
    R: Record,
    F: Fn(&mut R) + Send + 'static,
{
    type Verdict = Result<()>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<Result<()>> {
        let Some(stored) = &values[0] else { return Decision::Abort(Err(Error::NotFound)) };
        match decode::<R>(stored) {
            Ok(mut record) => {
                (self.change)(&mut record);
                writes.put(self.keys[0].clone(), record.encode());
                Decision::Commit(Ok(()))
            }
            Err(error) => Decision::Abort(Err(error)),
        }
    }
}

/// Removes a record and leaves word for the sweeper.
pub(super) struct DropRecord<R> {
    /// Its record, the mark, and the records that go with it.
    keys: Vec<Bytes>,
    dropped: Dropped,
    names_with_it: Vec<String>,
    record: PhantomData<fn(R)>,
}

pub(super) enum DropOutcome {
    Dropped,
    NotFound,
    /// The name stands for something else than when it was read.
    Replaced,
}

impl<R: Record> DropRecord<R> {
    pub(super) fn new(
        account: AccountId,
        key: Bytes,
        dropped: Dropped,
        names_with_it: Vec<String>,
    ) -> Self {
        let mut keys = vec![key, dropped.key()];
        keys.extend(names_with_it.iter().map(|name| R::key(account, name)));
        Self { keys, dropped, names_with_it, record: PhantomData }
    }
}

impl<R: Record> Transition for DropRecord<R> {
    type Verdict = DropOutcome;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// Its rows go later, and take more than the marker.
    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<DropOutcome> {
        let Some(stored) = &values[0] else { return Decision::Abort(DropOutcome::NotFound) };
        let is_same = |record: R| {
            record.id() == self.dropped.id && record.names_with_it() == self.names_with_it
        };
        if !R::decode(stored).is_some_and(is_same) {
            return Decision::Abort(DropOutcome::Replaced);
        }
        writes.delete(self.keys[0].clone());
        writes.put(self.keys[1].clone(), self.dropped.encode());
        self.keys[2..].iter().for_each(|key| writes.delete(key.clone()));
        Decision::Commit(DropOutcome::Dropped)
    }
}

/// Gives a record another id, and leaves word of the old one for the sweeper.
pub(super) struct Renew<R, F> {
    keys: [Bytes; 3],
    dropped: Dropped,
    change: F,
    record: PhantomData<fn(&mut R)>,
}

impl<R, F: Fn(&mut R, ResourceId)> Renew<R, F> {
    pub(super) fn new(key: Bytes, dropped: Dropped, change: F) -> Self {
        let keys = [Key::Sequence.encode(), key, dropped.key()];
        Self { keys, dropped, change, record: PhantomData }
    }
}

impl<R, F> Transition for Renew<R, F>
where
    R: Record,
    F: Fn(&mut R, ResourceId) + Send + 'static,
{
    type Verdict = Result<ResourceId>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// What is under the old id goes later, and takes more than the marker.
    fn frees_space(&self) -> bool {
        true
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Result<ResourceId>> {
        let Some(stored) = &values[1] else { return Decision::Abort(Err(Error::NotFound)) };
        let mut record = match decode::<R>(stored) {
            Ok(record) if record.id() == self.dropped.id => record,
            Ok(_) => return Decision::Abort(Err(Error::NotFound)),
            Err(error) => return Decision::Abort(Err(error)),
        };
        let (id, next) = match next_id(values[0].as_deref()) {
            Ok(allocated) => allocated,
            Err(error) => return Decision::Abort(Err(error)),
        };
        (self.change)(&mut record, ResourceId(id));
        writes.put(self.keys[0].clone(), next);
        writes.put(self.keys[1].clone(), record.encode());
        writes.put(self.keys[2].clone(), self.dropped.encode());
        Decision::Commit(Ok(ResourceId(id)))
    }
}
