//! The features in use that older versions do not know.
//!
//! A folder is of format 1 until the first index, queue or the like is made. Then the folder's marker says format 2, which
//! older versions refuse, and a row lists the features in use, because versions of format 2 differ in what they know. Both
//! are durable before the first row of the feature is written, the marker first: whatever a crash leaves behind is
//! refused by those that do not know it.

use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use tavola_engine::{AnyEngine, Decision, Engine, Error as EngineError, Status};
use tavola_engine::{Reader, Transition, WriteSet};

use super::layout::{Key, features};
use super::{Error, Result};

/// The format that has a list of features.
pub(crate) const FORMAT: u32 = 2;

/// Something that a version must know before it may serve what is stored. Those here are kept in order by this one; a name
/// that is not here, also one that `docs/format.md` reserves, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Feature {
    Index,
    Queue,
}

impl Feature {
    const ALL: [Self; 2] = [Self::Index, Self::Queue];

    /// The name in the list. It is stored: never change one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Queue => "queue",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The features in use.
#[derive(Debug)]
pub(crate) struct Features {
    engine: AnyEngine,
    /// One bit each.
    in_use: AtomicU8,
}

impl Features {
    /// Reads which are in use.
    ///
    /// # Errors
    /// [`Error::UnknownFeature`]: nothing of what is stored may be served.
    pub(crate) async fn open(engine: &AnyEngine) -> Result<Self> {
        let stored = engine.get(&Key::Features.encode()).await?;
        let in_use = stored.as_deref().map_or(Ok(0), known_bits)?;
        if in_use != 0 {
            // A folder that was restored without its marker has got a new one.
            raise_format(engine).await?;
        }
        Ok(Self { engine: engine.clone(), in_use: AtomicU8::new(in_use) })
    }

    /// Sees to it that a feature is in the list, before the first row of it is written.
    pub(crate) async fn ensure(&self, feature: Feature) -> Result<()> {
        if self.in_use.load(Ordering::Acquire) & feature.bit() != 0 {
            return Ok(());
        }
        raise_format(&self.engine).await?;
        let in_use =
            self.engine.transact(Add { keys: [Key::Features.encode()], feature }).await??;
        self.in_use.fetch_or(in_use, Ordering::Release);
        Ok(())
    }

    /// Whether there may be rows of a feature.
    pub(crate) fn is_in_use(&self, feature: Feature) -> bool {
        self.in_use.load(Ordering::Acquire) & feature.bit() != 0
    }
}

/// The features of a list, as a check wants them; `None` if not all are known.
pub(crate) fn read(stored: &[u8]) -> Option<Vec<Feature>> {
    let bits = known_bits(stored).ok()?;
    Some(Feature::ALL.into_iter().filter(|feature| bits & feature.bit() != 0).collect())
}

/// The list that has these.
pub(crate) fn list(in_use: &[Feature]) -> Bytes {
    features::encode(in_use.iter().map(|feature| feature.name()))
}

fn known_bits(stored: &[u8]) -> Result<u8> {
    let names = features::decode(stored);
    let names = names.ok_or_else(|| Error::Corrupt("the list of features in use".into()))?;
    names.into_iter().try_fold(0, |bits, name| {
        match Feature::ALL.into_iter().find(|feature| feature.name() == name) {
            Some(feature) => Ok(bits | feature.bit()),
            None => Err(Error::UnknownFeature(name.to_owned())),
        }
    })
}

async fn raise_format(engine: &AnyEngine) -> Result<()> {
    let engine = engine.clone();
    let raised = tokio::task::spawn_blocking(move || engine.raise_format(FORMAT)).await?;
    let failed = |error| EngineError::Unavailable(format!("cannot mark the folder: {error}"));
    Ok(raised.map_err(failed)?)
}

/// Adds a feature to the list.
struct Add {
    keys: [Bytes; 1],
    feature: Feature,
}

impl Transition for Add {
    type Verdict = Result<u8>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<Result<u8>> {
        let before = match values[0].as_deref().map_or(Ok(0), known_bits) {
            Ok(before) => before,
            Err(error) => return Decision::Abort(Err(error)),
        };
        let bits = before | self.feature.bit();
        if bits == before {
            return Decision::Abort(Ok(bits));
        }
        let in_use = Feature::ALL.into_iter().filter(|feature| bits & feature.bit() != 0);
        writes.put(self.keys[0].clone(), features::encode(in_use.map(Feature::name)));
        Decision::Commit(Ok(bits))
    }
}

#[cfg(test)]
mod tests {
    use tavola_engine::conformance::commit;
    use tavola_engine::{EmbeddedEngine, EmbeddedOptions, MemoryEngine, Write};

    use super::*;

    fn marker(folder: &std::path::Path) -> String {
        std::fs::read_to_string(folder.join("TAVOLA")).unwrap()
    }

    /// The first use marks the folder; another start finds it in use.
    #[tokio::test]
    async fn a_folder_is_of_format_1_until_something_newer_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let open = || EmbeddedEngine::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let engine = AnyEngine::Embedded(open());
        let features = Features::open(&engine).await.unwrap();
        assert!(!features.is_in_use(Feature::Queue));
        assert!(marker(folder.path()).ends_with("format 1\n"));
        for _ in 0..2 {
            features.ensure(Feature::Queue).await.unwrap();
            assert!(features.is_in_use(Feature::Queue) && !features.is_in_use(Feature::Index));
            assert!(marker(folder.path()).ends_with("format 2\n"));
        }
        drop((engine, features));
        let engine = AnyEngine::Embedded(open());
        assert!(Features::open(&engine).await.unwrap().is_in_use(Feature::Queue));
    }

    #[tokio::test]
    async fn a_feature_that_is_not_known_is_refused() {
        for name in ["blob", "sundial"] {
            let engine = AnyEngine::Memory(MemoryEngine::new());
            let row = Write::Put(Key::Features.encode(), features::encode(["queue", name]));
            commit(&engine, vec![row]).await;
            let refused = Features::open(&engine).await.unwrap_err();
            assert!(matches!(&refused, Error::UnknownFeature(found) if found == name));
            assert!(refused.to_string().contains(name), "{refused}");
        }
    }

    #[test]
    fn names_and_bits_are_one_for_each() {
        let names: std::collections::BTreeSet<_> = Feature::ALL.map(Feature::name).into();
        assert_eq!(names.len(), Feature::ALL.len());
        let bits = Feature::ALL.iter().fold(0, |bits, feature| bits | feature.bit());
        assert_eq!(bits.count_ones() as usize, Feature::ALL.len());
    }
}
