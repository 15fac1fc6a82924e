//! The five verbs of an engine: `get`, `scan`, `snapshot`, `transact`, `drop_range`, and what a transition is.
//!
//! Everything that an engine promises is written here and checked by [`conformance`](crate::conformance).

use std::future::Future;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::error::Result;

/// The longest key an engine takes. The embedded engine writes key lengths as `u16`; the service's own keys
/// stay below 3 KiB.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Reads the latest committed state (an engine) or one fixed state (a snapshot).
pub trait Reader: Send + Sync {
    /// The value under `key`.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Shows the rows of `range` to `visitor` in key order until it breaks, and hands the visitor back.
    /// One scan sees one state: nothing that is committed while it runs.
    fn scan<V: Visitor>(
        &self,
        range: KeyRange,
        visitor: V,
    ) -> impl Future<Output = Result<V>> + Send;
}

/// A store of ordered bytes. Whatever `transact` has answered is durable.
pub trait Engine: Reader + 'static {
    type Snapshot: Reader + 'static;

    /// A fixed state to read several times. It never blocks writers.
    fn snapshot(&self) -> impl Future<Output = Result<Self::Snapshot>> + Send;

    /// Runs `transition` atomically and isolated from every other one; durable when it answers.
    fn transact<T: Transition>(
        &self,
        transition: T,
    ) -> impl Future<Output = Result<T::Verdict>> + Send;

    /// Deletes every row of `range` and gives its space back. The caller has made the range unreachable
    /// before: readers may see it half gone, and after a crash the caller calls again.
    fn drop_range(&self, range: KeyRange) -> impl Future<Output = Result<()>> + Send;
}

/// One atomic change. `apply` is pure and may run more than once (a distributed engine retries on conflict):
/// time and ids were captured when the transition was built.
pub trait Transition: Send + 'static {
    type Verdict: Send + 'static;

    /// Everything it reads or writes, declared beforehand.
    fn keys(&self) -> &[Bytes];

    /// Whether the thread that brings it has nobody else to serve, so that it may wait for the disk by itself.
    fn is_alone(&self) -> bool {
        false
    }

    /// Decides on the values under [`Transition::keys`], in the same order.
    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet)
    -> Decision<Self::Verdict>;
}

/// Receives the rows of a scan, borrowed.
pub trait Visitor: Send + 'static {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()>;
}

/// What a transition came to. An abort writes nothing.
#[derive(Debug)]
pub enum Decision<V> {
    Commit(V),
    Abort(V),
}

/// The rows from `start` (included) to `end` (excluded).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Bytes,
    pub end: Bytes,
}

/// The changes of one transition, in order.
#[derive(Debug, Default)]
pub struct WriteSet {
    writes: Vec<Write>,
}

/// One change of a [`WriteSet`].
#[derive(Clone, Debug)]
pub enum Write {
    Put(Bytes, Bytes),
    Delete(Bytes),
}

impl WriteSet {
    /// Sets the value under `key`. Engines may keep both as they are for a while: hand over buffers of their own
    /// size, not slices of something large.
    ///
    /// # Panics
    ///
    /// If `key` is empty or longer than [`KEY_BYTES_MAX`]: a mistake in the key layout, not of a client.
    pub fn put(&mut self, key: Bytes, value: Bytes) {
        assert_key(&key);
        self.writes.push(Write::Put(key, value));
    }

    /// Removes `key`, whether it exists or not.
    ///
    /// # Panics
    ///
    /// As [`WriteSet::put`].
    pub fn delete(&mut self, key: Bytes) {
        assert_key(&key);
        self.writes.push(Write::Delete(key));
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether it takes more room than it gives back, as far as can be told without a look at the rows: deletions
    /// give back, also with a small note that they were made.
    pub(crate) fn takes_room(&self) -> bool {
        let value_bytes = |write: &Write| match write {
            Write::Put(_, value) => value.len(),
            Write::Delete(_) => 0,
        };
        let deletes = self.writes.iter().any(|write| matches!(write, Write::Delete(_)));
        let put_bytes: usize = self.writes.iter().map(value_bytes).sum();
        let gives_back = deletes && put_bytes <= NOTE_BYTES_MAX;
        !self.writes.is_empty() && !gives_back
    }

    pub fn drain(&mut self) -> impl Iterator<Item = Write> + '_ {
        self.writes.drain(..)
    }
}

impl KeyRange {
    /// Whether no key can be in the range.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// Room that a deletion may take for a note: the moment when a table was dropped.
const NOTE_BYTES_MAX: usize = 64;

fn assert_key(key: &[u8]) {
    assert!(!key.is_empty() && key.len() <= KEY_BYTES_MAX, "key of {} bytes", key.len());
}
