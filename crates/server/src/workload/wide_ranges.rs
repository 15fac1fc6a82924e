//! Which ranges of which indexes were found to be too wide a short while ago, so that not every query finds it out again.
//!
//! A range that had more rows than a query could pass says nothing of narrower ones, nor of a query that may pass more. It
//! says that whatever contains it has so many rows as well.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tavola_wire::table::index::AccessRange;

use crate::storage::layout::TableId;

/// Values change, and so does how many rows have one.
const REMEMBERED: Duration = Duration::from_secs(60);
/// What is remembered of one index.
const WIDE_PER_INDEX_MAX: usize = 8;
/// Bytes of bounds that are remembered. When there are more, all are forgotten: each costs one query a little.
const BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct WideRanges {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_index: HashMap<(TableId, u16), Vec<Wide>>,
    bytes: usize,
}

/// Ranges that have more rows together than this.
#[derive(Debug)]
struct Wide {
    bounds: Vec<(Vec<u8>, Vec<u8>)>,
    rows: u64,
    since: Instant,
}

impl WideRanges {
    /// Remembers that these ranges have more than so many rows.
    pub(crate) fn remember(&self, table: TableId, index: u16, ranges: &[AccessRange], rows: u64) {
        if rows == 0 {
            return;
        }
        let bounds = ranges.iter().map(|range| (range.start.clone(), range.end.clone())).collect();
        let wide = Wide { bounds, rows, since: Instant::now() };
        let mut known = self.lock();
        known.bytes += wide.bytes();
        if known.bytes > BYTES_MAX {
            *known = Known { bytes: wide.bytes(), ..Known::default() };
        }
        let of_index = known.by_index.entry((table, index)).or_default();
        of_index.push(wide);
        if of_index.len() > WIDE_PER_INDEX_MAX {
            let oldest = of_index.remove(0);
            known.bytes -= oldest.bytes();
        }
    }

    /// How many rows these ranges surely have at least.
    pub(crate) fn rows(&self, table: TableId, index: u16, ranges: &[AccessRange]) -> u64 {
        let known = self.lock();
        let of_index = known.by_index.get(&(table, index)).map_or(&[][..], Vec::as_slice);
        let wide = of_index.iter().filter(|wide| wide.is_young() && wide.is_in(ranges));
        wide.map(|wide| wide.rows.saturating_add(1)).max().unwrap_or(0)
    }

    /// Forgets what is too old to count: bounds are values that somebody asked for.
    pub(crate) fn forget_old(&self) {
        let known = &mut *self.lock();
        known.by_index.retain(|_, of_index| {
            of_index.retain(Wide::is_young);
            !of_index.is_empty()
        });
        known.bytes = known.by_index.values().flatten().map(Wide::bytes).sum();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wide {
    fn is_young(&self) -> bool {
        self.since.elapsed() < REMEMBERED
    }

    fn bytes(&self) -> usize {
        let of_bounds = self.bounds.iter().map(|(start, end)| start.len() + end.len());
        size_of::<Self>() + of_bounds.sum::<usize>()
    }

    /// Whether ranges, which are sorted and disjoint, contain all of these.
    fn is_in(&self, ranges: &[AccessRange]) -> bool {
        self.bounds.iter().all(|(start, end)| {
            let behind = ranges.partition_point(|range| range.start <= *start);
            behind.checked_sub(1).is_some_and(|at| *end <= ranges[at].end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(1);

    fn range(start: &str, end: &str) -> AccessRange {
        AccessRange { start: start.into(), end: end.into(), ordered: None }
    }

    #[test]
    fn what_contains_a_wide_range_is_wide() {
        let wide = WideRanges::default();
        wide.remember(TABLE, 1, &[range("b", "d"), range("f", "g")], 100);
        let rows = |ranges: &[AccessRange]| wide.rows(TABLE, 1, ranges);
        assert_eq!(rows(&[range("b", "d"), range("f", "g")]), 101);
        assert_eq!(rows(&[range("a", "h")]), 101);
        // Narrower ranges, other indexes.
        for narrower in [&[range("b", "d")][..], &[range("b", "c"), range("f", "g")], &[]] {
            assert_eq!(rows(narrower), 0, "{narrower:?}");
        }
        assert_eq!(wide.rows(TABLE, 2, &[range("a", "h")]), 0);
        assert_eq!(wide.rows(TableId(2), 1, &[range("a", "h")]), 0);
        wide.remember(TABLE, 1, &[range("b", "c")], 300);
        wide.remember(TABLE, 1, &[range("f", "g")], 0);
        assert_eq!(rows(&[range("a", "h")]), 301);
        assert_eq!(wide.lock().by_index.values().flatten().count(), 2, "no rows are no news");
    }

    #[test]
    fn memory_is_bounded() {
        let wide = WideRanges::default();
        let long = "x".repeat(BYTES_MAX / 64);
        for number in 0..1000 {
            wide.remember(TABLE, number % 100, &[range(&long, &long)], 1);
            assert!(wide.lock().bytes <= BYTES_MAX);
        }
        let known = wide.lock();
        let bytes = known.by_index.values().flatten().map(Wide::bytes).sum::<usize>();
        assert_eq!(known.bytes, bytes);
        assert!(known.by_index.values().all(|of_index| of_index.len() <= WIDE_PER_INDEX_MAX));
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let wide = WideRanges::default();
        wide.remember(TABLE, 1, &[range("b", "d")], 100);
        wide.remember(TABLE, 2, &[range("b", "d")], 100);
        for old in wide.lock().by_index.get_mut(&(TABLE, 1)).unwrap() {
            old.since -= REMEMBERED;
        }
        assert_eq!(wide.rows(TABLE, 1, &[range("b", "d")]), 0);
        wide.remember(TABLE, 2, &[range("f", "g")], 100);
        wide.forget_old();
        assert_eq!(wide.rows(TABLE, 2, &[range("b", "d")]), 101);
        let known = wide.lock();
        assert_eq!(known.by_index.keys().collect::<Vec<_>>(), [&(TABLE, 2)]);
        let bytes = known.by_index.values().flatten().map(Wide::bytes).sum::<usize>();
        assert_eq!(known.bytes, bytes);
    }
}
