//! How fast an index is built: at full speed while nobody else writes, and else for a part of the committer's time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tavola_engine::AnyEngine;

/// While others write, a chunk is followed by this many times the time it took: a fifth of the committer's time.
const REST_FACTOR: u32 = 4;
/// The longest such rest: one slow chunk must not stop a build.
const REST_MAX: Duration = Duration::from_secs(1);
/// With more requests waiting, a build waits too.
const QUEUE_SHORT: u64 = 64;
/// How long it then waits before it looks again.
const QUEUE_PAUSE: Duration = Duration::from_millis(10);

/// What a chunk may take, while others want to write.
pub(super) struct Pace {
    begun: Instant,
    transitions: u64,
}

impl Pace {
    pub(super) fn begin(engine: &AnyEngine) -> Self {
        Self { begun: Instant::now(), transitions: transitions(engine) }
    }

    /// How long to rest after a chunk.
    pub(super) fn rest(&self, engine: &AnyEngine) -> Duration {
        let Some(stats) = engine.stats() else { return Duration::ZERO };
        if stats.queue_depth.load(Ordering::Relaxed) > QUEUE_SHORT {
            return QUEUE_PAUSE;
        }
        let others = transitions(engine).saturating_sub(self.transitions + 1);
        if others == 0 {
            return Duration::ZERO;
        }
        (self.begun.elapsed() * REST_FACTOR).min(REST_MAX)
    }
}

fn transitions(engine: &AnyEngine) -> u64 {
    engine.stats().map_or(0, |stats| stats.transitions.load(Ordering::Relaxed))
}
