//! Index rows that are not in the order of entity keys: one pass over their range keeps the first keys of a page.
//!
//! Nothing is kept between pages, so each page passes the range again. That is worth it while the range is short in
//! comparison with the table, which is not known before: the pass gives up when it has seen too many. The branches of an `or`
//! that several indexes serve are passed together.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use tavola_engine::{Reader, Visitor};
use tavola_wire::table::filter::Span;
use tavola_wire::table::index::RowRef;

use super::candidate::Candidate;
use super::entry::Entry;
use super::smallest::Smallest;
use super::spans::is_in;
use crate::error::{Result, corrupt, engine_error};
use crate::net::memory_budget::Reservation;
use crate::storage::layout::{IndexKeys, parts_and_suffix_of};

/// Rows that are passed at least before a range counts as too wide, and at most.
const ROWS_MIN: u64 = 64;
const ROWS_MAX: u64 = 131_072;
/// Entries that a pass keeps beyond what the page may hold, in case some do not match after all.
const SPARE: usize = 64;
/// Rows between two looks at the clock.
const ROWS_PER_TIME_CHECK: u64 = 1024;

/// What one pass has found.
pub(super) enum Pass {
    /// The first entries, in order; whether there are no more; and the key of the very last one.
    Found { entries: Vec<Entry>, is_all: bool, last: Vec<u8>, memory: Reservation },
    /// There are more rows than is worth it: in these, of the first candidates.
    TooWide(Vec<Wide>),
    /// The time was up.
    Late,
}

/// So many of the ranges of a candidate have more than so many rows together.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    pub ranges: usize,
    pub rows: u64,
}

/// How many rows of a range are worth passing for a page of this many entities out of that many: a scan finds a small page
/// sooner, and a table of few rows too.
pub(super) fn rows_worth(top: usize, table_rows: u64) -> u64 {
    let worth = (top as f64 * table_rows as f64).sqrt();
    (worth as u64).clamp(ROWS_MIN, ROWS_MAX)
}

/// Passes the ranges of the candidates once. What one of them finds is a part of what is looked for.
pub(super) async fn pass(
    reader: &impl Reader,
    candidates: &[Candidate],
    keys: impl Fn(u16) -> IndexKeys,
    spans: &Arc<[Span]>,
    limits: PassLimits,
    memory: Reservation,
) -> Result<(Pass, u64)> {
    let mut passing = Passing {
        candidate: candidates[0].clone(),
        spans: spans.clone(),
        from: limits.from,
        rows_left: limits.rows_max,
        rows_to_time_check: ROWS_PER_TIME_CHECK,
        deadline: limits.deadline,
        smallest: Smallest::new(limits.entries + SPARE, memory),
        last: Vec::new(),
        passed: 0,
        outcome: Outcome::Fine,
    };
    let mut wide = Vec::new();
    for candidate in candidates {
        let keys = keys(candidate.index().number);
        let rows_before = passing.rows_left;
        passing.candidate = candidate.clone();
        for (ranges, range) in (1..).zip(&candidate.access.ranges) {
            let range = keys.range(&range.start, Some(&range.end));
            passing = reader.scan(range, passing).await.map_err(engine_error)?;
            match passing.outcome {
                Outcome::Fine => {}
                Outcome::TooWide => {
                    wide.push(Wide { ranges, rows: rows_before });
                    return Ok((Pass::TooWide(wide), passing.passed));
                }
                Outcome::Late => return Ok((Pass::Late, passing.passed)),
                Outcome::Malformed => return Err(corrupt("a row of an index")),
            }
            tokio::task::yield_now().await;
        }
        let rows = (rows_before - passing.rows_left).saturating_sub(1);
        wide.push(Wide { ranges: candidate.access.ranges.len(), rows });
    }
    let Passing { smallest, last, passed, .. } = passing;
    let (entries, is_all, memory) = smallest.finish();
    Ok((Pass::Found { entries, is_all, last, memory }, passed))
}

pub(super) struct PassLimits {
    /// Entities before this one are not wanted.
    pub from: Vec<u8>,
    /// Entities that the page may hold.
    pub entries: usize,
    /// Rows after which the range counts as too wide.
    pub rows_max: u64,
    pub deadline: Instant,
}

/// Keeps the entries with the smallest keys of the rows that it passes.
struct Passing {
    candidate: Candidate,
    spans: Arc<[Span]>,
    from: Vec<u8>,
    rows_left: u64,
    rows_to_time_check: u64,
    deadline: Instant,
    smallest: Smallest,
    /// The largest key of all, kept or not.
    last: Vec<u8>,
    passed: u64,
    outcome: Outcome,
}

#[derive(Clone, Copy)]
enum Outcome {
    Fine,
    TooWide,
    Late,
    Malformed,
}

impl Passing {
    fn pass(&mut self, key: &[u8], value: &[u8]) -> Result<(), Outcome> {
        let definition = &self.candidate.index().definition;
        let row =
            RowRef::read(definition, parts_and_suffix_of(key), value).ok_or(Outcome::Malformed)?;
        self.rows_left = self.rows_left.checked_sub(1).ok_or(Outcome::TooWide)?;
        if *row.entity_key >= *self.from && is_in(&self.spans, &row.entity_key) {
            self.passed += 1;
            if self.candidate.access.allows(&row) {
                if *row.entity_key > *self.last {
                    self.last.clear();
                    self.last.extend_from_slice(&row.entity_key);
                }
                if self.smallest.accepts(&row.entity_key) {
                    self.smallest.push(Entry::of(&self.candidate, row));
                }
            }
        }
        self.rows_to_time_check -= 1;
        if self.rows_to_time_check == 0 {
            self.rows_to_time_check = ROWS_PER_TIME_CHECK;
            if Instant::now() >= self.deadline {
                return Err(Outcome::Late);
            }
        }
        Ok(())
    }
}

impl Visitor for Passing {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        match self.pass(key, value) {
            Ok(()) => ControlFlow::Continue(()),
            Err(outcome) => {
                self.outcome = outcome;
                ControlFlow::Break(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_is_relative_to_page_and_table() {
        assert_eq!(rows_worth(1000, 1_000_000), 31_622);
        assert_eq!(rows_worth(1, 1_000_000), 1000);
        assert_eq!(rows_worth(1, 0), ROWS_MIN);
        assert_eq!(rows_worth(1000, u64::MAX), ROWS_MAX);
    }
}
