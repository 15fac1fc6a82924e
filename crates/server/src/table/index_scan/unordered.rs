//! Filling a page from ranges that are in no order.
//!
//! A pass over them tells their first entities, and behind which one there are none. That is worth it while they are short
//! beside the table; and where their entities lie close together, a scan is sooner at each than a look-up.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tavola_engine::Reader;
use tavola_wire::explain::{How, Reason};
use tavola_wire::table::filter::{QueryKind, Span};

use super::candidate::Candidate;
use super::cost::{Comparisons, ScanSteps, rows_per_entry};
use super::entry::Entry;
use super::ordered::Ordered;
use super::sorted::{Pass, PassLimits, pass, rows_worth};
use super::spans::up_to;
use super::{LOOK_UPS_PER_YIELD, Run};
use crate::error::Result;

/// Rows of a partition that are read before a long range of an index is.
const PARTITION_ROWS: u64 = 1000;
/// Rows of a range that are passed before any entities are read.
const SHORT_RANGE_ROWS: u64 = 256;
/// Rows of a table that are read before a longer range is passed: they may fill the page.
const TABLE_ROWS: u64 = 256;
/// The last entries are looked up sooner than anything is compared.
const LAST_UNCOMPARED: usize = 256;
/// Passes over an unordered range for one page.
const PASSES_MAX: usize = 3;
/// Rows that a table is taken to have if that is not known: what was counted before a crash may be lost.
const ROWS_UNTOLD: u64 = 100_000;

impl<R: Reader> Run<'_, R> {
    /// Whether one of them was short enough.
    pub(super) async fn first_sorted(&mut self, all: &[Vec<Candidate>]) -> Result<bool> {
        if self.query.hint.is_forced() {
            return self.passes(&all[0], u64::MAX).await;
        }
        for (number, candidates) in all.iter().enumerate() {
            let rows_max = self.rows_worth(candidates);
            if self.sorted(candidates, rows_max.min(SHORT_RANGE_ROWS)).await? {
                all[..number].iter().for_each(|wide| self.note_too_wide(wide));
                return Ok(true);
            }
            if rows_max <= SHORT_RANGE_ROWS {
                self.note_too_wide(candidates);
            }
        }
        if self.query.kind == QueryKind::PartitionScan {
            self.scan(PARTITION_ROWS).await?;
        } else {
            let is_covering = all[0].iter().all(Candidate::is_covering);
            let steps = ScanSteps::first(TABLE_ROWS, false);
            self.scan_while_full(steps, rows_per_entry(is_covering)).await?;
        }
        for candidates in all {
            if self.is_done() {
                return Ok(true);
            }
            let rows_max = self.rows_worth(candidates);
            // The others have been tried.
            if rows_max > SHORT_RANGE_ROWS {
                if self.sorted(candidates, rows_max).await? {
                    return Ok(true);
                }
                self.note_too_wide(candidates);
            }
        }
        Ok(false)
    }

    /// Whether the ranges of these were short enough for what they may find together.
    async fn sorted(&mut self, candidates: &[Candidate], rows_max: u64) -> Result<bool> {
        Ok(self.may_be_short(candidates, rows_max) && self.passes(candidates, rows_max).await?)
    }

    fn note_too_wide(&mut self, candidates: &[Candidate]) {
        for candidate in candidates {
            let reason = (candidate.index().name.clone(), Reason::TooWide);
            if !self.used.not_used.contains(&reason) {
                self.used.not_used.push(reason);
            }
        }
    }

    /// How many rows of their ranges are worth passing for this page.
    fn rows_worth(&self, candidates: &[Candidate]) -> u64 {
        let rows = match candidates[0].index().statistics.rows() {
            0 => ROWS_UNTOLD,
            rows => rows,
        };
        rows_worth(self.query.top, rows)
    }

    /// Whether their ranges are not known to have more rows than these.
    fn may_be_short(&self, candidates: &[Candidate], rows_max: u64) -> bool {
        let wide_ranges = &self.context.state.workload.wide_ranges;
        let rows_of =
            |it: &Candidate| wide_ranges.rows(self.table.id, it.index().number, &it.access.ranges);
        candidates.iter().map(rows_of).fold(0, u64::saturating_add) <= rows_max
    }

    /// Shows the entities of their ranges, unless these have more rows than so many or take too long. Whether it did.
    async fn passes(&mut self, candidates: &[Candidate], rows_max: u64) -> Result<bool> {
        let state = self.context.state;
        let spans: Arc<[Span]> = self.query.spans.into();
        for _ in 0..PASSES_MAX {
            if self.is_done() {
                break;
            }
            let now = Instant::now();
            let limits = PassLimits {
                from: self.from.clone(),
                entries: self.query.top,
                rows_max,
                // The rest is for the scan that then comes.
                deadline: now + self.deadline().saturating_duration_since(now) / 2,
            };
            let memory = state.memory_budget.reservation();
            let keys = |number| self.index_keys(number);
            let (outcome, passed) =
                pass(self.reader, candidates, keys, &spans, limits, memory).await?;
            self.used.entries += passed;
            let (entries, is_all, last, _memory) = match outcome {
                Pass::Found { entries, is_all, last, memory } => (entries, is_all, last, memory),
                Pass::TooWide(wide) => {
                    for (candidate, wide) in candidates.iter().zip(wide) {
                        let (table, index) = (self.table.id, candidate.index().number);
                        let ranges = &candidate.access.ranges[..wide.ranges];
                        state.workload.wide_ranges.remember(table, index, ranges, wide.rows);
                    }
                    return Ok(false);
                }
                Pass::Late => return Ok(false),
            };
            self.note(How::Sorted, candidates);
            self.spans = Cow::Owned(up_to(self.query.spans, &last));
            let before = self.work;
            let is_covering = candidates.iter().all(Candidate::is_covering);
            self.show_all(Listed { entries: entries.into(), is_all }, is_covering).await?;
            self.is_at_end |= is_all && !self.is_done();
            if self.work.since(before).is_scan_most(0) {
                // It is to go on, up to the last of them.
                break;
            }
        }
        Ok(true)
    }

    async fn show_all(&mut self, mut listed: Listed, is_covering: bool) -> Result<()> {
        let is_compared = !self.query.hint.is_forced();
        let mut comparisons = Comparisons::new(is_covering, false);
        let mut look_ups = 0;
        while !self.is_done()
            && let Some(entry) = listed.entries.pop_front()
        {
            if *entry.entity_key < *self.from {
                // It has been scanned.
                continue;
            }
            self.show(entry).await?;
            look_ups += 1;
            if look_ups % LOOK_UPS_PER_YIELD == 0 {
                tokio::task::yield_now().await;
            }
            if is_compared && !listed.is_short() && comparisons.is_due(look_ups) {
                let steps = ScanSteps::first(comparisons.rows(), false);
                let ahead = Ahead::Listed(&listed);
                let rows = self.scan_while_cheaper(ahead, steps, rows_per_entry(is_covering));
                comparisons.done(look_ups, rows.await?);
            }
        }
        Ok(())
    }
}

/// The next entries of a pass, in order.
pub(super) struct Listed {
    entries: VecDeque<Entry>,
    /// Whether there are no more.
    is_all: bool,
}

impl Listed {
    fn is_short(&self) -> bool {
        self.is_all && self.entries.len() <= LAST_UNCOMPARED
    }

    /// Whether there are that many from one key on and before another. Where the list ends it is not known how many there are.
    fn has(&self, enough: u64, from: &[u8], until: &[u8]) -> bool {
        let before = |key: &[u8]| self.entries.partition_point(|entry| *entry.entity_key < *key);
        let (passed, next) = (before(from), before(until));
        let is_known = self.is_all || next < self.entries.len();
        (next - passed) as u64 >= enough || !is_known && next > passed
    }
}

/// Entries that a scan is compared with.
pub(super) enum Ahead<'a, 's> {
    Ordered(&'a mut Ordered<'s>),
    Listed(&'a Listed),
}

impl Ahead<'_, '_> {
    /// Whether there are that many entries from one key on and before another, or so many rows have to be passed to find them.
    pub(super) async fn has(
        &mut self,
        enough: u64,
        rows_max: u64,
        reader: &impl Reader,
        from: &[u8],
        until: &[u8],
    ) -> Result<bool> {
        match self {
            Self::Ordered(entries) => entries.has(enough, rows_max, reader, from, until).await,
            Self::Listed(listed) => Ok(listed.has(enough, from, until)),
        }
    }
}
