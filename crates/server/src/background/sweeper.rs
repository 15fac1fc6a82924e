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
use crate::storage::layout::{self, EntityKeys, TableId};

/// Longer than any request that found the table before it was dropped can take to commit.
const STRAGGLER_GRACE: Duration = Duration::from_secs(60);
/// How long to wait before looking again, when there is something to look for.
const RECHECK: Duration = Duration::from_secs(15);

/// Wakes the sweeper.
#[derive(Debug, Default)]
pub(crate) struct SweepSignal(Notify);

impl SweepSignal {
    /// A table has been dropped.
    pub(crate) fn table_dropped(&self) {
        self.0.notify_one();
    }
}

/// Sweeps until the task is ended. No request can hold the id of a table that was dropped before `started`.
pub(crate) async fn run(state: Arc<ServerState>, started: Ticks) {
    let mut swept = Vec::new();
    loop {
        match sweep(&state, started, &mut swept).await {
            Ok(0) => state.catalogue.sweep.0.notified().await,
            Ok(_) => {
                // Another drop, or the end of a grace period.
                let _ = tokio::time::timeout(RECHECK, state.catalogue.sweep.0.notified()).await;
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
    swept: &mut Vec<TableId>,
) -> tavola_engine::Result<usize> {
    let engine = &state.engine;
    let dropped = engine.scan(layout::all_dropped(), Markers::default()).await?.found;
    swept.retain(|id| dropped.iter().any(|(dropped, _)| dropped == id));
    let mut left = 0;
    for (id, at) in dropped {
        let settled = at < started || state.clock.now().0 - at.0 > ticks(STRAGGLER_GRACE);
        if settled || !swept.contains(&id) {
            engine.drop_range(EntityKeys::of(id).all()).await?;
            swept.push(id);
            tracing::info!(table = id.0, "rows of a dropped table have been swept");
        }
        if settled {
            engine.transact(RemoveMarker([layout::dropped_key(id)])).await?;
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
    found: Vec<(TableId, Ticks)>,
}

/// Tables swept in one round; the others wait for the next.
const MARKERS_MAX: usize = 1000;

impl Visitor for Markers {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        if let (Some(id), Some(at)) = (layout::id_of(key), layout::decode_moment(value)) {
            self.found.push((TableId(id), at));
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

    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, _: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        writes.delete(self.0[0].clone());
        Decision::Commit(())
    }
}
