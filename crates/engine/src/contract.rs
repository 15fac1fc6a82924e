//! The five verbs of an engine: `get`, `scan`, `snapshot`, `transact`, `drop_range`, and what a transition is.
//!
//! Everything that an engine promises is written here and checked by [`conformance`](crate::conformance). Nothing here
//! is about one engine: how it groups commits, what it keeps on which disk and when it is full is its own affair. What a
//! server must know beside the rows is in [`Status`].

use std::future::Future;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::error::Result;
use crate::status::Status;

/// The longest key an engine takes. The embedded engine writes key lengths as `u16`; the service's own keys
/// stay below 3 KiB.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Reads the latest committed state (an engine) or one fixed state (a snapshot).
pub trait Reader: Send + Sync {
    /// The value under `key`.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// The value under `key` and its version, for a [`Guard`]. An engine that keeps no versions tells
    /// [`Version::UNTRACKED`].
    fn get_versioned(&self, key: &[u8]) -> impl Future<Output = Result<Versioned>> + Send {
        async move { Ok(Versioned { value: self.get(key).await?, version: Version::UNTRACKED }) }
    }

    /// Shows the rows of `range` to `visitor` in key order until it breaks, and hands the visitor back.
    /// One scan sees one state: nothing that is committed while it runs.
    fn scan<V: Visitor>(
        &self,
        range: KeyRange,
        visitor: V,
    ) -> impl Future<Output = Result<V>> + Send;
}

/// A store of ordered bytes. Whatever `transact` has answered is durable.
pub trait Engine: Reader + Status + 'static {
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

    /// Everything it reads, declared beforehand, whether it writes it or not.
    ///
    /// It may also write keys that are not among them, if it owns them: keys that no transition writes without having
    /// declared the same owner here. The row of an index is owned by the row that it points to, for example. So two
    /// transitions that write the same key have a declared key in common, and an engine finds every conflict by
    /// looking at declared keys alone. Keys that it asks for with [`Decision::Read`] count as declared. And it may write a
    /// key that is new, with a part that is given out once, such as a message's: nobody can know of it before the
    /// transition is committed, and so no transition that runs at the same time writes it.
    fn keys(&self) -> &[Bytes];

    /// Rows that it does not read but that must not have changed since the caller read them. Unlike
    /// [`Transition::keys`] they are neither locked nor a conflict between transitions, so that very many may name the
    /// same row. If one has changed, nothing is applied and the caller is told
    /// [`Error::GuardFailed`](crate::Error::GuardFailed).
    fn guards(&self) -> &[Guard] {
        &[]
    }

    /// Whether what it writes only removes, apart from a few bytes that say so, or is what somebody needs to remove something:
    /// an engine without room for more takes it all the same.
    fn frees_space(&self) -> bool {
        false
    }

    /// Decides on the values under [`Transition::keys`], in the same order; after [`Decision::Read`] they are followed by
    /// the values under the keys that it asked for.
    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet)
    -> Decision<Self::Verdict>;
}

/// A row that must still have the version that it had when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pub key: Bytes,
    pub version: Version,
}

/// Tells the states of one row apart: a later state has another version, except that all absences are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

/// What [`Reader::get_versioned`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    pub value: Option<Bytes>,
    pub version: Version,
}

/// Receives the rows of a scan, borrowed.
pub trait Visitor: Send + 'static {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()>;

    /// A visitor for rows further on, that an engine may show it while this one is shown those before: so a long scan may
    /// be read by several threads. `None` if that is of no use.
    fn fork(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Takes over what a fork was shown, which lies right behind what this one was. Breaks where this one would have
    /// broken if it had been shown the rows itself, and after a fork that has broken.
    fn join(&mut self, fork: Self) -> ControlFlow<()>
    where
        Self: Sized,
    {
        drop(fork);
        ControlFlow::Break(())
    }
}

/// What a transition came to. An abort writes nothing.
#[derive(Debug)]
pub enum Decision<V> {
    Commit(V),
    Abort(V),
    /// It has to know these too, which it could not name before it knew the others: the row of a unique index, which
    /// follows from what is stored, for example. It is applied once more, on the values that it had and then on these, and
    /// what it has written so far is forgotten. It may ask once: a second question is a mistake of ours, and fails like
    /// a panic.
    Read(Vec<Bytes>),
}

/// The rows from `start` (included) to `end` (excluded).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Bytes,
    pub end: Bytes,
}

/// The changes of one transition, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WriteSet {
    writes: Vec<Write>,
}

/// One change of a [`WriteSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Put(Bytes, Bytes),
    Delete(Bytes),
}

impl Version {
    /// The version of every row of an engine that keeps none. A guard with it always holds. Only an engine that is not
    /// [shared](Status::is_shared) may tell it: there, all changes pass through one process, which can see to it by
    /// itself that nobody works with an outdated row.
    pub const UNTRACKED: Self = Self(u64::MAX);

    /// The version of a row that is not there, in an engine that keeps versions.
    pub const ABSENT: Self = Self(0);

    /// The version of a row that is there, for engines: a number that the row never had before.
    ///
    /// # Panics
    ///
    /// If the number is one of the two that have a meaning.
    pub fn new(number: u64) -> Self {
        let version = Self(number);
        assert!(version != Self::ABSENT && version != Self::UNTRACKED, "version {number}");
        version
    }
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

/// The least key above `key`: where to read on behind it.
pub fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

fn assert_key(key: &[u8]) {
    assert!(!key.is_empty() && key.len() <= KEY_BYTES_MAX, "key of {} bytes", key.len());
}
