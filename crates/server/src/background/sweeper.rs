//! Clears the rows of dropped tables, and of whatever else can be dropped.
//!
//! A drop leaves a row with the id and the kind. The sweeper drops the rows of the id and then, once no request can
//! still have the id, drops once more and removes the row of the drop. A crash in between leaves that row, and the
//! next start sweeps again: nothing is lost, nothing leaks.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tavola_engine::{AnyEngine, Decision, Engine, Reader, Transition, Visitor, WriteSet};
use tavola_wire::Ticks;
use tokio::sync::Notify;

use super::{Next, Stop, Task};
use crate::clock::Clock;
use crate::storage::layout::{Dropped, Family, Key, ResourceId, ranges_of};
use crate::storage::{Result, STRAGGLER_GRACE};

/// How long to wait before looking again, when there is something to look for.
const RECHECK: Duration = Duration::from_secs(15);
/// Drops that one round looks at; the others wait for the next.
const DROPS_PER_ROUND_MAX: usize = 1000;

#[derive(Debug)]
pub(crate) struct Sweeper {
    engine: AnyEngine,
    clock: Arc<Clock>,
    drop_signal: Arc<Notify>,
    /// When this process began to serve.
    started: Ticks,
    /// Swept, but not for the last time.
    swept: HashSet<ResourceId>,
}

impl Sweeper {
    /// `drop_signal` tells of drops. No request has the id of what was dropped before `started`, because no other
    /// process serves from the same engine.
    pub(crate) fn new(
        engine: AnyEngine,
        clock: Arc<Clock>,
        drop_signal: Arc<Notify>,
        started: Ticks,
    ) -> Self {
        Self { engine, clock, drop_signal, started, swept: HashSet::new() }
    }
}

impl Task for Sweeper {
    const NAME: &'static str = "sweeping what was dropped";

    fn trigger(&self) -> Arc<Notify> {
        self.drop_signal.clone()
    }

    async fn round(&mut self, stop: &Stop) -> Result<Next> {
        let drops = self.engine.scan(Family::Dropped.range(), Drops::default()).await?;
        self.swept.retain(|id| drops.found.iter().any(|dropped| dropped.id == *id));
        let mut settled = 0;
        for dropped in &drops.found {
            if stop.is_requested() {
                break;
            }
            settled += usize::from(self.sweep(dropped).await?);
        }
        Ok(match drops.found.len() {
            // There may be more.
            DROPS_PER_ROUND_MAX if settled > 0 => Next::After(Duration::ZERO),
            found if found == settled => Next::WhenAsked,
            _ => Next::After(RECHECK),
        })
    }
}

impl Sweeper {
    /// Sweeps what was dropped, unless it was swept and is to be swept again later. Answers whether that is all.
    async fn sweep(&mut self, dropped: &Dropped) -> Result<bool> {
        let Dropped { id, kind, at } = *dropped;
        let is_settled = at < self.started || self.clock.now().0 - at.0 > ticks(STRAGGLER_GRACE);
        if is_settled || !self.swept.contains(&id) {
            for range in ranges_of(kind, id) {
                self.engine.drop_range(range).await?;
            }
            self.swept.insert(id);
            tracing::info!(id = id.0, ?kind, "the rows of what was dropped have been swept");
        }
        if is_settled {
            self.engine.transact(Remove([dropped.key()])).await?;
        }
        Ok(is_settled)
    }
}

fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).expect("a short duration")
}

/// Collects what awaits sweeping.
#[derive(Default)]
struct Drops {
    found: Vec<Dropped>,
}

impl Visitor for Drops {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let dropped = match Key::decode(key) {
            Ok(Key::Dropped { id }) => Dropped::decode(id, value),
            _ => None,
        };
        match dropped {
            Some(dropped) => self.found.push(dropped),
            None => {
                let row = key.escape_ascii();
                tracing::warn!(%row, "a row says of what was dropped nothing that can be read");
            }
        }
        if self.found.len() < DROPS_PER_ROUND_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

struct Remove([Bytes; 1]);

impl Transition for Remove {
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

#[cfg(test)]
#[path = "sweeper_tests.rs"]
mod tests;
