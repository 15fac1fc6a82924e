//! A long scan on several threads, while nobody else needs them.
//!
//! What has not been read yet is divided into parts, each with a visitor of its own that is a fork of the first. A part is
//! read while those before it still are, and when the scan has come to it, its visitor joins the first one. Keys are divided
//! by their bytes, which say little about where the rows are: so all threads stop after some rows, and one that has
//! nothing left to do gets half of what the first part has left.
//!
//! Nobody is to wait because a scan is quicker: after another call has come, the scan goes on alone for some rows.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use crate::embedded::scan::row_scan::{Progress, RowScan};
use crate::scan_pool::{Cancelled, Running, ScanPermit, ScanPool};
use crate::{Result, Visitor};

/// Rows that are read by one thread before others are thought of: most scans end there.
const ROWS_ALONE: usize = 4096;
/// Rows of each part between two moments at which parts are divided: few until the parts are alike.
const ROUND_ROWS_MIN: usize = 1024;
const ROUND_ROWS_MAX: usize = 16 * 1024;

/// A part, and how far it has been read.
type Part<V> = (RowScan<V>, Progress);

pub(crate) struct ParallelScan<'p, V> {
    pool: &'p ScanPool,
    permit: ScanPermit,
    /// Threads beside the first.
    helpers_max: usize,
    /// The parts behind the first, in order. One that could not be read fails the scan when it comes to it.
    ahead: VecDeque<Result<Part<V>>>,
    round_rows: usize,
}

impl<'p, V: Visitor> ParallelScan<'p, V> {
    /// Shows the visitor the rest of a scan. `latest_call` tells the calls apart that come to the engine meanwhile.
    pub(crate) async fn finish(
        pool: &'p ScanPool,
        helpers_max: usize,
        scan: RowScan<V>,
        latest_call: impl Fn() -> u64,
    ) -> Result<V> {
        let permit = pool.permit().await?;
        let (mut first, mut progress) = read(permit.clone(), scan, ROWS_ALONE).done().await??;
        let (ahead, round_rows) = (VecDeque::new(), ROUND_ROWS_MIN);
        let mut all = Self { pool, permit, helpers_max, ahead, round_rows };
        let mut is_alone = true;
        while progress == Progress::More {
            let before = latest_call();
            let read = all.round(first, is_alone).await?;
            (first, progress) = all.join(read)?;
            is_alone = latest_call() == before;
        }
        Ok(first.into_visitor())
    }

    /// Reads some rows of the first part, and with helpers some of those ahead.
    async fn round(&mut self, mut first: RowScan<V>, with_helpers: bool) -> Result<Part<V>> {
        let helpers = if with_helpers { self.helpers_max } else { 0 };
        let rows = self.round_rows;
        let is_unread = |part: &Result<Part<V>>| {
            part.as_ref().is_ok_and(|(_, progress)| *progress == Progress::More)
        };
        let unread = self.ahead.iter().filter(|part| is_unread(part)).count();
        let fork = if unread < helpers { first.visitor.fork() } else { None };
        let first = Running::start(self.permit.clone(), move |cancelled: &Cancelled| {
            let later = fork.map(|fork| first.split(fork)).transpose()?.flatten();
            let progress = first.read(rows, cancelled)?;
            Ok((first, progress, later))
        });
        let mut ahead = VecDeque::with_capacity(self.ahead.len() + 1);
        let mut permits = (0..helpers).map_while(|_| self.pool.try_permit());
        for part in self.ahead.drain(..) {
            ahead.push_back(match part {
                Ok((scan, Progress::More)) => match permits.next() {
                    Some(permit) => PartAhead::Running(read(permit, scan, rows)),
                    None => PartAhead::Waiting(Ok((scan, Progress::More))),
                },
                other => PartAhead::Waiting(other),
            });
        }
        drop(permits);
        let mut is_uneven = false;
        for part in ahead {
            self.ahead.push_back(match part {
                PartAhead::Waiting(part) => part,
                PartAhead::Running(reading) => {
                    let part = reading.done().await.and_then(|part| part);
                    is_uneven |= !is_unread(&part);
                    part
                }
            });
        }
        let (first, progress, later) = first.done().await??;
        if let Some(later) = later {
            self.ahead.push_front(Ok((later, Progress::More)));
        }
        self.round_rows = if is_uneven { ROUND_ROWS_MIN } else { (2 * rows).min(ROUND_ROWS_MAX) };
        Ok((first, progress))
    }

    /// Goes on with the next part for as long as the first one is at its end.
    fn join(&mut self, (mut first, mut progress): Part<V>) -> Result<Part<V>> {
        while progress == Progress::AtEnd {
            let Some(part) = self.ahead.pop_front() else { break };
            let (next, next_progress) = part?;
            let (next, fork) = next.exchange_visitor(first.into_visitor());
            first = next;
            progress = match first.visitor.join(fork) {
                ControlFlow::Continue(()) => next_progress,
                ControlFlow::Break(()) => Progress::Broken,
            };
        }
        Ok((first, progress))
    }
}

enum PartAhead<V> {
    Running(Running<Result<Part<V>>>),
    Waiting(Result<Part<V>>),
}

/// Shows the visitor of a scan some rows, on another thread.
fn read<V: Visitor>(
    permit: ScanPermit,
    mut scan: RowScan<V>,
    rows: usize,
) -> Running<Result<Part<V>>> {
    Running::start(permit, move |cancelled| {
        let progress = scan.read(rows, cancelled)?;
        Ok((scan, progress))
    })
}

#[cfg(test)]
#[path = "parallel_scan_tests.rs"]
mod tests;
