//! An engine that keeps everything in memory and forgets it at the end: for tests and throw-away servers.
//!
//! Rows live in a persistent B-tree (`imbl::OrdMap`): a snapshot is a clone of its root, costs nothing and never
//! blocks writers, who copy only the nodes they touch. Transitions run under the write lock one by one; there is
//! no queue, so this engine is never busy with writes. Every row has a version, the number of the commit that wrote it, so
//! that guards are checked here although nobody else can change a row.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use imbl::OrdMap;

use crate::scan_pool::{CANCEL_CHECK_ROWS, Cancelled, ScanPool};
use crate::{
    ASKED_TWICE, Decision, Engine, Error, Guard, KeyRange, Reader, Result, Status, Transition,
    Version, Versioned, Visitor, Write, WriteSet, panic_message,
};

/// Scans beyond this many at a time wait: they only burn processor, more would not be faster.
const SCANS_RUNNING_MAX: usize = 8;

/// Scans that may wait for a permit; as many as a server has connections in bad times.
const SCANS_WAITING_MAX: usize = 1024;

/// How many rows `drop_range` removes before it lets other writers in.
const DROP_CHUNK_ROWS: usize = 1000;

/// Ordered bytes in memory. Cheap to clone; clones share the rows.
#[derive(Clone, Debug)]
pub struct MemoryEngine {
    shared: Arc<Shared>,
}

/// The rows of a [`MemoryEngine`] at one moment.
#[derive(Clone, Debug)]
pub struct MemorySnapshot {
    rows: Rows,
    shared: Arc<Shared>,
}

#[derive(Clone, Debug, Default)]
struct Rows {
    by_key: OrdMap<Bytes, Row>,
    /// Commits so far.
    commits: u64,
}

#[derive(Clone, Debug)]
struct Row {
    value: Bytes,
    version: Version,
}

#[derive(Debug)]
struct Shared {
    rows: RwLock<Rows>,
    scans: ScanPool,
}

impl MemoryEngine {
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                rows: RwLock::default(),
                scans: ScanPool::new(SCANS_RUNNING_MAX, SCANS_WAITING_MAX),
            }),
        }
    }

    fn rows(&self) -> Rows {
        // A poisoned lock is no concern: rows change only after `apply` has returned.
        self.shared.rows.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<R>(&self, change: impl FnOnce(&mut Rows) -> R) -> R {
        change(&mut self.shared.rows.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader for MemoryEngine {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.shared.rows.read().unwrap_or_else(PoisonError::into_inner).value(key))
    }

    async fn get_versioned(&self, key: &[u8]) -> Result<Versioned> {
        Ok(self.shared.rows.read().unwrap_or_else(PoisonError::into_inner).versioned(key))
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        let rows = self.rows();
        self.shared.scans.run(move |cancelled| visit(&rows, &range, visitor, cancelled)).await
    }
}

impl Engine for MemoryEngine {
    type Snapshot = MemorySnapshot;

    async fn snapshot(&self) -> Result<MemorySnapshot> {
        Ok(MemorySnapshot { rows: self.rows(), shared: Arc::clone(&self.shared) })
    }

    async fn transact<T: Transition>(&self, mut transition: T) -> Result<T::Verdict> {
        self.change(|rows| {
            if !transition.guards().iter().all(|guard| rows.holds(guard)) {
                return Err(Error::GuardFailed);
            }
            let mut values: Vec<_> = transition.keys().iter().map(|key| rows.value(key)).collect();
            let mut writes = WriteSet::default();
            let mut decision = apply(&mut transition, &values, &mut writes)?;
            if let Decision::Read(keys) = &decision {
                values.extend(keys.iter().map(|key| rows.value(key)));
                drop(writes.drain());
                decision = apply(&mut transition, &values, &mut writes)?;
            }
            match decision {
                Decision::Commit(verdict) => {
                    rows.commit(&mut writes);
                    Ok(verdict)
                }
                Decision::Abort(verdict) => Ok(verdict),
                Decision::Read(_) => Err(Error::Panicked(ASKED_TWICE.into())),
            }
        })
    }

    async fn drop_range(&self, range: KeyRange) -> Result<()> {
        loop {
            let removed = self.change(|rows| {
                let dropped = rows.range(&range).take(DROP_CHUNK_ROWS);
                let keys: Vec<_> = dropped.map(|(key, _)| key.clone()).collect();
                for key in &keys {
                    rows.by_key.remove(key.as_ref());
                }
                keys.len()
            });
            if removed < DROP_CHUNK_ROWS {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Status for MemoryEngine {}

impl Reader for MemorySnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.rows.value(key))
    }

    async fn get_versioned(&self, key: &[u8]) -> Result<Versioned> {
        Ok(self.rows.versioned(key))
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        let rows = self.rows.clone();
        self.shared.scans.run(move |cancelled| visit(&rows, &range, visitor, cancelled)).await
    }
}

impl Rows {
    fn value(&self, key: &[u8]) -> Option<Bytes> {
        self.by_key.get(key).map(|row| row.value.clone())
    }

    fn version(&self, key: &[u8]) -> Version {
        self.by_key.get(key).map_or(Version::ABSENT, |row| row.version)
    }

    fn versioned(&self, key: &[u8]) -> Versioned {
        Versioned { value: self.value(key), version: self.version(key) }
    }

    fn holds(&self, guard: &Guard) -> bool {
        guard.version == Version::UNTRACKED || guard.version == self.version(&guard.key)
    }

    fn commit(&mut self, writes: &mut WriteSet) {
        self.commits += 1;
        let version = Version::new(self.commits);
        for write in writes.drain() {
            match write {
                Write::Put(key, value) => self.by_key.insert(key, Row { value, version }),
                Write::Delete(key) => self.by_key.remove(key.as_ref()),
            };
        }
    }

    fn range<'a>(
        &'a self,
        range: &KeyRange,
    ) -> impl Iterator<Item = (&'a Bytes, &'a Row)> + use<'a> {
        // An inverted range is empty here; the map would panic on it.
        let end = range.end.clone().max(range.start.clone());
        self.by_key.range(range.start.clone()..end)
    }
}

fn apply<T: Transition>(
    transition: &mut T,
    values: &[Option<Bytes>],
    writes: &mut WriteSet,
) -> Result<Decision<T::Verdict>> {
    catch_unwind(AssertUnwindSafe(|| transition.apply(values, writes)))
        .map_err(|panic| Error::Panicked(panic_message(&*panic).into()))
}

fn visit<V: Visitor>(rows: &Rows, range: &KeyRange, mut visitor: V, cancelled: &Cancelled) -> V {
    for (index, (key, row)) in rows.range(range).enumerate() {
        let abandoned = index % CANCEL_CHECK_ROWS == 0 && cancelled.is_set();
        if abandoned || visitor.visit(key, &row.value).is_break() {
            break;
        }
    }
    visitor
}
