//! Clears the rows of dropped tables.
//!
//! A drop leaves a marker with the table's id. The sweeper drops the id's rows and then, once no request can
//! still hold the id, drops once more and removes the marker. A crash in between leaves the marker, and the
//! next start sweeps again: nothing is lost, nothing leaks.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tavola_engine::{Decision, Engine, Reader, Transition, Visitor, WriteSet};
use tavola_wire::Ticks;
use tokio::sync::Notify;

use crate::state::ServerState;
use crate::storage::layout::{Dropped, Family, Key, ResourceId, ranges_of};

/// Longer than any request that found the table before it was dropped can take to commit.
const STRAGGLER_GRACE: Duration = Duration::from_secs(60);
/// How long to wait before looking again, when there is something to look for.
const RECHECK: Duration = Duration::from_secs(15);

/// Sweeps until the task is ended. No request can hold the id of a table that was dropped before `started`.
pub(crate) async fn run(state: Arc<ServerState>, signal: Arc<Notify>, started: Ticks) {
    let mut swept = Vec::new();
    loop {
        match sweep(&state, started, &mut swept).await {
            Ok(0) => signal.notified().await,
            Ok(_) => {
                // Another drop, or the end of a grace period.
                let _ = tokio::time::timeout(RECHECK, signal.notified()).await;
            }
            Err(tavola_engine::Error::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "sweeping dropped tables failed, will try again");
                tokio::time::sleep(RECHECK).await;
            }
        }
    }
}

/// Sweeps what can be swept now; answers how many tables are left to look at again.
async fn sweep(
    state: &ServerState,
    started: Ticks,
    swept: &mut Vec<ResourceId>,
) -> tavola_engine::Result<usize> {
    let engine = &state.engine;
    let dropped = engine.scan(Family::Dropped.range(), Markers::default()).await?.found;
    swept.retain(|id| dropped.iter().any(|dropped| dropped.id == *id));
    let mut left = 0;
    for dropped in dropped {
        let Dropped { id, kind, at } = dropped;
        let settled = at < started || state.clock.now().0 - at.0 > ticks(STRAGGLER_GRACE);
        if settled || !swept.contains(&id) {
            for range in ranges_of(kind, id) {
                engine.drop_range(range).await?;
            }
            swept.push(id);
            tracing::info!(table = id.0, "rows of a dropped table have been swept");
        }
        if settled {
            engine.transact(RemoveMarker([dropped.key()])).await?;
        } else {
            left += 1;
        }
    }
    Ok(left)
}

fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).expect("a short duration")
}

/// Collects the tables that await sweeping, and when they were dropped.
#[derive(Default)]
struct Markers {
    found: Vec<Dropped>,
}

/// Tables swept in one round; the others wait for the next.
const MARKERS_MAX: usize = 1000;

impl Visitor for Markers {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        if let Ok(Key::Dropped { id }) = Key::decode(key) {
            self.found.extend(Dropped::decode(id, value));
        }
        if self.found.len() < MARKERS_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

struct RemoveMarker([Bytes; 1]);

impl Transition for RemoveMarker {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &self.0
    }

    fn apply(&mut self, _: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        writes.delete(self.0[0].clone());
        Decision::Commit(())
    }
}
