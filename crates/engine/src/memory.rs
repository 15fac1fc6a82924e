//! An engine that keeps everything in memory and forgets it at the end: for tests and throw-away servers.
//!
//! Rows live in a persistent B-tree (`imbl::OrdMap`): a snapshot is a clone of its root, costs nothing and never
//! blocks writers, who copy only the nodes they touch. Transitions run under the write lock one by one; there is
//! no queue, so this engine is never busy with writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use imbl::OrdMap;

use crate::scan_pool::{CANCEL_CHECK_ROWS, Cancelled, ScanPool};
use crate::{
    Decision, Engine, Error, KeyRange, Reader, Result, Transition, Visitor, Write, WriteSet,
    panic_message,
};

type Rows = OrdMap<Bytes, Bytes>;

/// ScanPool beyond this many at a time wait: they only burn processor, more would not be faster.
const SCANS_RUNNING_MAX: usize = 8;

/// ScanPool that may wait for a turn; as many as a server has connections in bad times.
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
        Ok(self.shared.rows.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
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
            let values: Vec<_> =
                transition.keys().iter().map(|key| rows.get(key.as_ref()).cloned()).collect();
            let mut writes = WriteSet::default();
            let apply = AssertUnwindSafe(|| transition.apply(&values, &mut writes));
            match catch_unwind(apply) {
                Ok(Decision::Commit(verdict)) => {
                    for write in writes.drain() {
                        match write {
                            Write::Put(key, value) => rows.insert(key, value),
                            Write::Delete(key) => rows.remove(key.as_ref()),
                        };
                    }
                    Ok(verdict)
                }
                Ok(Decision::Abort(verdict)) => Ok(verdict),
                Err(panic) => Err(Error::Panicked(panic_message(&*panic).into())),
            }
        })
    }

    async fn drop_range(&self, range: KeyRange) -> Result<()> {
        loop {
            let removed = self.change(|rows| {
                let keys: Vec<_> = range_of(rows, &range)
                    .take(DROP_CHUNK_ROWS)
                    .map(|(key, _)| key.clone())
                    .collect();
                for key in &keys {
                    rows.remove(key.as_ref());
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

impl Reader for MemorySnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.rows.get(key).cloned())
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        let rows = self.rows.clone();
        self.shared.scans.run(move |cancelled| visit(&rows, &range, visitor, cancelled)).await
    }
}

fn visit<V: Visitor>(rows: &Rows, range: &KeyRange, mut visitor: V, cancelled: &Cancelled) -> V {
    for (index, (key, value)) in range_of(rows, range).enumerate() {
        let abandoned = index % CANCEL_CHECK_ROWS == 0 && cancelled.is_set();
        if abandoned || visitor.visit(key, value).is_break() {
            break;
        }
    }
    visitor
}

fn range_of<'a>(
    rows: &'a Rows,
    range: &'a KeyRange,
) -> impl Iterator<Item = (&'a Bytes, &'a Bytes)> {
    // An inverted range is empty here; the map would panic on it.
    let end = range.end.clone().max(range.start.clone());
    rows.range(range.start.clone()..end)
}
