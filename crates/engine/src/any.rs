//! One type for every engine, so that no `E: Engine` parameter climbs into the server.
//!
//! Dispatch and nothing else: what an engine does is written in its own module.

use bytes::Bytes;

#[cfg(feature = "test-hooks")]
use crate::conformance::Rerun;
use crate::{
    EmbeddedEngine, EmbeddedSnapshot, Engine, Fullness, KeyRange, MemoryEngine, MemorySnapshot,
    Reader, Result, Stats, Status, Transition, Versioned, Visitor,
};

/// Whichever engine the configuration asked for. Cheap to clone.
#[derive(Clone, Debug)]
pub enum AnyEngine {
    Embedded(EmbeddedEngine),
    Memory(MemoryEngine),
    /// The embedded engine, with every transition run more than once.
    #[cfg(feature = "test-hooks")]
    Rerun(Rerun<EmbeddedEngine>),
}

/// A snapshot of an [`AnyEngine`]. Cheap to clone.
#[derive(Clone, Debug)]
pub enum AnySnapshot {
    Embedded(EmbeddedSnapshot),
    Memory(MemorySnapshot),
}

/// The same expression for whichever engine it is.
macro_rules! dispatch {
    ($any:expr, $engine:ident => $call:expr) => {
        match $any {
            Self::Embedded($engine) => $call,
            Self::Memory($engine) => $call,
            #[cfg(feature = "test-hooks")]
            Self::Rerun($engine) => $call,
        }
    };
}

impl AnyEngine {
    /// What the engine counts, if it counts.
    pub fn stats(&self) -> Option<&Stats> {
        match self {
            Self::Embedded(engine) => Some(engine.stats()),
            Self::Memory(_) => None,
            #[cfg(feature = "test-hooks")]
            Self::Rerun(engine) => Some(engine.inner().stats()),
        }
    }
}

impl Reader for AnyEngine {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        dispatch!(self, engine => engine.get(key).await)
    }

    async fn get_versioned(&self, key: &[u8]) -> Result<Versioned> {
        dispatch!(self, engine => engine.get_versioned(key).await)
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        dispatch!(self, engine => engine.scan(range, visitor).await)
    }
}

impl Engine for AnyEngine {
    type Snapshot = AnySnapshot;

    async fn snapshot(&self) -> Result<AnySnapshot> {
        Ok(match self {
            Self::Embedded(engine) => AnySnapshot::Embedded(engine.snapshot().await?),
            Self::Memory(engine) => AnySnapshot::Memory(engine.snapshot().await?),
            #[cfg(feature = "test-hooks")]
            Self::Rerun(engine) => AnySnapshot::Embedded(engine.snapshot().await?),
        })
    }

    async fn transact<T: Transition>(&self, transition: T) -> Result<T::Verdict> {
        dispatch!(self, engine => engine.transact(transition).await)
    }

    async fn drop_range(&self, range: KeyRange) -> Result<()> {
        dispatch!(self, engine => engine.drop_range(range).await)
    }
}

impl Status for AnyEngine {
    fn is_shared(&self) -> bool {
        dispatch!(self, engine => engine.is_shared())
    }

    fn fullness(&self) -> Fullness {
        dispatch!(self, engine => engine.fullness())
    }

    async fn failed(&self) -> String {
        dispatch!(self, engine => engine.failed().await)
    }

    fn raise_format(&self, format: u32) -> std::io::Result<()> {
        dispatch!(self, engine => engine.raise_format(format))
    }

    fn close(&self) {
        dispatch!(self, engine => engine.close());
    }
}

impl Reader for AnySnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self {
            Self::Embedded(snapshot) => snapshot.get(key).await,
            Self::Memory(snapshot) => snapshot.get(key).await,
        }
    }

    async fn get_versioned(&self, key: &[u8]) -> Result<Versioned> {
        match self {
            Self::Embedded(snapshot) => snapshot.get_versioned(key).await,
            Self::Memory(snapshot) => snapshot.get_versioned(key).await,
        }
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        match self {
            Self::Embedded(snapshot) => snapshot.scan(range, visitor).await,
            Self::Memory(snapshot) => snapshot.scan(range, visitor).await,
        }
    }
}
