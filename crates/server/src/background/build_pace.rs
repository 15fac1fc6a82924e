//! How fast indexes are built: at full speed while nobody else writes, and else for a part of the committer's time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tavola_engine::AnyEngine;

/// While others write, a chunk is followed by this many times the time it took: a fifth of the committer's time.
const REST_FACTOR: u32 = 4;
/// The longest such rest: one slow chunk must not stop a build.
const REST_MAX: Duration = Duration::from_secs(1);
/// With more requests waiting, a build waits too.
const QUEUE_SHORT: u64 = 64;
/// How long it then waits at least before it looks again.
const QUEUE_PAUSE: Duration = Duration::from_millis(10);

/// Tells the chunks of all builds from what others write.
#[derive(Debug, Default)]
pub(super) struct BuildPace {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// One chunk, from when it is begun until it is dropped.
pub(super) struct ChunkPace<'p> {
    pace: &'p BuildPace,
    begun_at: Instant,
    /// Transitions of the engine before it.
    transitions: u64,
    /// Chunks that had ended before it: those behind them may be among the transitions that come.
    ended: u64,
}

impl BuildPace {
    pub(super) fn begin(&self, engine: &AnyEngine) -> ChunkPace<'_> {
        let ended = self.ended.load(Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        let transitions = transitions(engine);
        ChunkPace { pace: self, begun_at: Instant::now(), transitions, ended }
    }
}

impl ChunkPace<'_> {
    /// Ends the chunk: how long to rest after it.
    pub(super) fn rest(self, engine: &AnyEngine) -> Duration {
        let Some(stats) = engine.stats() else { return Duration::ZERO };
        let shortest = match stats.queue_depth.load(Ordering::Relaxed) > QUEUE_SHORT {
            true => QUEUE_PAUSE,
            false => Duration::ZERO,
        };
        let chunks = self.pace.begun.load(Ordering::Relaxed).saturating_sub(self.ended);
        let others = transitions(engine).saturating_sub(self.transitions + chunks);
        let rest = match others {
            0 => Duration::ZERO,
            _ => (self.begun_at.elapsed() * REST_FACTOR).min(REST_MAX),
        };
        rest.max(shortest)
    }
}

impl Drop for ChunkPace<'_> {
    fn drop(&mut self) {
        self.pace.ended.fetch_add(1, Ordering::Relaxed);
    }
}

fn transitions(engine: &AnyEngine) -> u64 {
    engine.stats().map_or(0, |stats| stats.transitions.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use tavola_engine::conformance::commit;
    use tavola_engine::{EmbeddedEngine, EmbeddedOptions, Write};

    use super::*;

    async fn write(engine: &AnyEngine) {
        commit(engine, vec![Write::Put("key".into(), "value".into())]).await;
    }

    #[tokio::test]
    async fn builds_rest_for_others_and_not_for_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let engine = EmbeddedEngine::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let engine = AnyEngine::Embedded(engine);
        let pace = BuildPace::default();
        // Two builds whose chunks overlap, each with one transition.
        let mut running = pace.begin(&engine);
        for _ in 0..10 {
            let next = pace.begin(&engine);
            write(&engine).await;
            assert_eq!(running.rest(&engine), Duration::ZERO);
            running = next;
        }
        for _ in 0..3 {
            write(&engine).await;
        }
        assert!(running.rest(&engine) > Duration::ZERO);
    }
}
