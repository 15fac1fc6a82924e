//! One type for every engine, so that no `E: Engine` parameter climbs into the server.
//!
//! Dispatch and nothing else: what an engine does is written in its own module.

use bytes::Bytes;

use crate::{
    EmbeddedEngine, EmbeddedSnapshot, Engine, KeyRange, MemoryEngine, MemorySnapshot, Reader,
    Result, Stats, Transition, Visitor,
};

/// Whichever engine the configuration asked for. Cheap to clone.
#[derive(Clone, Debug)]
pub enum AnyEngine {
    Embedded(EmbeddedEngine),
    Memory(MemoryEngine),
}

/// A snapshot of an [`AnyEngine`]. Cheap to clone.
#[derive(Clone, Debug)]
pub enum AnySnapshot {
    Embedded(EmbeddedSnapshot),
    Memory(MemorySnapshot),
}

impl AnyEngine {
    /// What the engine counts, if it counts.
    pub fn stats(&self) -> Option<&Stats> {
        match self {
            Self::Embedded(engine) => Some(engine.stats()),
            Self::Memory(_) => None,
        }
    }

    /// Resolves with the reason when the engine can write no more and the process should stop; otherwise never.
    pub async fn failed(&self) -> String {
        match self {
            Self::Embedded(engine) => engine.failed().await,
            Self::Memory(_) => std::future::pending().await,
        }
    }

    /// Finishes what was accepted and accepts no more. Blocks the calling thread meanwhile.
    pub fn close(&self) {
        match self {
            Self::Embedded(engine) => engine.close(),
            Self::Memory(_) => {}
        }
    }
}

impl Reader for AnyEngine {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self {
            Self::Embedded(engine) => engine.get(key).await,
            Self::Memory(engine) => engine.get(key).await,
        }
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        match self {
            Self::Embedded(engine) => engine.scan(range, visitor).await,
            Self::Memory(engine) => engine.scan(range, visitor).await,
        }
    }
}

impl Engine for AnyEngine {
    type Snapshot = AnySnapshot;

    async fn snapshot(&self) -> Result<AnySnapshot> {
        Ok(match self {
            Self::Embedded(engine) => AnySnapshot::Embedded(engine.snapshot().await?),
            Self::Memory(engine) => AnySnapshot::Memory(engine.snapshot().await?),
        })
    }

    async fn transact<T: Transition>(&self, transition: T) -> Result<T::Verdict> {
        match self {
            Self::Embedded(engine) => engine.transact(transition).await,
            Self::Memory(engine) => engine.transact(transition).await,
        }
    }

    async fn drop_range(&self, range: KeyRange) -> Result<()> {
        match self {
            Self::Embedded(engine) => engine.drop_range(range).await,
            Self::Memory(engine) => engine.drop_range(range).await,
        }
    }
}

impl Reader for AnySnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self {
            Self::Embedded(snapshot) => snapshot.get(key).await,
            Self::Memory(snapshot) => snapshot.get(key).await,
        }
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        match self {
            Self::Embedded(snapshot) => snapshot.scan(range, visitor).await,
            Self::Memory(snapshot) => snapshot.scan(range, visitor).await,
        }
    }
}
