//! What the ways of reading cost beside each other, and how often they are compared.
//!
//! There is no more of a cost model than these numbers: a page begins with an index, reads some rows in order now and then, and
//! goes on with what was cheaper. Both ways get on in the same order, so that to change costs nothing.

/// Entities that are looked up before the index is compared with a scan for the first time; fewer where the build has found
/// a value that a scan is better for. The more have been looked up, the rarer it is compared.
const FIRST_COMPARISON: u64 = 64;
const COMMON_FIRST_COMPARISON: u64 = 4;
/// Entries that have all that is asked, likewise: most queries want no more of them.
const COPIES_FIRST_COMPARISON: u64 = 256;
const GROWTH: u64 = 4;
const COMPARISON_GAP_MAX: u64 = 4096;

/// Rows that are scanned to compare, for each entity that was looked up: a sixth of what that cost.
const COMPARED_ROWS_SHARE: u64 = 2;
const COMPARED_ROWS_MAX: u64 = 512;
/// Rows that are scanned at a time while that is cheaper.
const SCAN_ROWS_MAX: u64 = 4096;
/// Rows that are scanned between two comparisons, more each time: to read entries that show what a scan is better for costs
/// up to as much as the rows themselves. Never all that there are, as long as a value may only be common among those read so far.
const UNCOMPARED_ROWS: u64 = 3 * COMPARED_ROWS_MAX;
const UNCOMPARED_GROWTH: u64 = 8;
const UNCOMPARED_ROWS_MAX: u64 = 64 * UNCOMPARED_ROWS;

/// One look-up costs as much as this many rows of a scan.
const ROWS_PER_LOOK_UP: u64 = 13;
/// An index row that has all that is asked costs as much as this many.
const ROWS_PER_COPY: u64 = 6;
/// Whether a value is so common that a scan is better even than such rows, which is not far off, is asked early where one
/// entity in so many has it.
const COMMON_COPIES_ONE_IN: u64 = ROWS_PER_COPY / 2;

/// Rows of two indexes that are passed for what they have in common cost as much as one and a half as many of a scan.
pub(super) fn rows_passed_meanwhile(rows_scanned: u64) -> u64 {
    2 * rows_scanned / 3
}
/// So many of them count as one look-up where it is decided when to compare.
pub(super) const PASSED_PER_LOOK_UP: u64 = 8;

/// Rows of a scan that cost as much as an entry of an index.
pub(super) fn rows_per_entry(is_covering: bool) -> u64 {
    if is_covering { ROWS_PER_COPY } else { ROWS_PER_LOOK_UP }
}

/// A value is common if one entity in so many has it.
pub(super) fn common_one_in(is_covering: bool) -> u64 {
    if is_covering { COMMON_COPIES_ONE_IN } else { ROWS_PER_LOOK_UP }
}

/// What a page came to that was begun with an index.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Entities that the index has found.
    pub look_ups: u64,
    /// Rows that were scanned all the same.
    pub rows_scanned: u64,
}

impl Work {
    /// What it came to since then.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            look_ups: self.look_ups - before.look_ups,
            rows_scanned: self.rows_scanned - before.rows_scanned,
        }
    }

    /// Whether the scan did more of it than the index, of which so many rows were passed: to compare takes a few rows for each
    /// look-up, and whoever scans more has given the index up.
    pub(super) fn is_scan_most(self, entries: u64) -> bool {
        self.rows_scanned > ROWS_PER_LOOK_UP * self.look_ups + entries
    }
}

/// When an index is compared with a scan.
pub(super) struct Comparisons {
    /// Entities that are looked up before the next one.
    gap: u64,
    next: u64,
}

impl Comparisons {
    pub(super) fn new(is_covering: bool, is_common: bool) -> Self {
        let first = match (is_common, is_covering) {
            (true, _) => COMMON_FIRST_COMPARISON,
            (false, true) => COPIES_FIRST_COMPARISON,
            (false, false) => FIRST_COMPARISON,
        };
        Self { gap: first, next: first }
    }

    pub(super) fn is_due(&self, look_ups: u64) -> bool {
        look_ups >= self.next
    }

    /// Look-ups after which it is due.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Rows that are scanned to compare.
    pub(super) fn rows(&self) -> u64 {
        (COMPARED_ROWS_SHARE * self.gap).min(COMPARED_ROWS_MAX)
    }

    /// So many rows were scanned. Where a scan was better for long, it will be again: entities that lie close together come in
    /// groups.
    pub(super) fn done(&mut self, look_ups: u64, rows: u64) {
        self.gap = match rows > COMPARED_ROWS_MAX {
            true => COMMON_FIRST_COMPARISON,
            false => (GROWTH * self.gap).min(COMPARISON_GAP_MAX),
        };
        self.next = look_ups + self.gap;
    }
}

/// What is scanned before entries are read again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    Nothing,
    Rows(u64),
    Rest,
}

/// How many rows a scan reads at a time beside an index.
pub(super) struct ScanSteps {
    rows: u64,
    uncompared: u64,
    /// Whether the build has found a value that a scan is better for, among all entities of the table.
    is_common: bool,
}

impl ScanSteps {
    pub(super) fn first(rows: u64, is_common: bool) -> Self {
        Self { rows, uncompared: UNCOMPARED_ROWS, is_common }
    }

    /// Before many ranges are read.
    pub(super) fn before(ranges: usize) -> Self {
        Self::first(COMPARED_ROWS_SHARE * ranges as u64, false)
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows.min(SCAN_ROWS_MAX)
    }

    pub(super) fn grow(&mut self) {
        self.rows = (GROWTH * self.rows).min(SCAN_ROWS_MAX);
    }

    /// Matches alone have shown that the scan is cheaper.
    pub(super) fn told_by_matches(&mut self, rows: u64, matches: u64) {
        match is_sure(rows, matches) {
            true => self.rows = SCAN_ROWS_MAX,
            false => self.grow(),
        }
    }

    /// Entries have shown it, which were read for that.
    pub(super) fn told_by_entries(&mut self, rows: u64, matches: u64) -> Stretch {
        self.rows = match is_sure(rows, matches) {
            true => SCAN_ROWS_MAX,
            false => (GROWTH * self.rows).min(COMPARED_ROWS_MAX),
        };
        if rows < COMPARED_ROWS_MAX {
            return Stretch::Nothing;
        }
        if self.is_common && self.uncompared > UNCOMPARED_ROWS {
            // A scan without an end in between is read by several threads. The next page begins with the index again.
            return Stretch::Rest;
        }
        let rows = self.uncompared;
        self.uncompared = (UNCOMPARED_GROWTH * rows).min(UNCOMPARED_ROWS_MAX);
        Stretch::Rows(rows)
    }
}

/// Where most rows match, the scan will go on, and not in many small steps.
fn is_sure(rows: u64, matches: u64) -> bool {
    2 * matches >= rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a list of values, each of which has its rows in one place, only the first few would be scanned.
    #[test]
    fn where_a_scan_was_better_it_is_soon_compared_again() {
        let mut comparisons = Comparisons::new(false, false);
        let mut gap = |rows| {
            let before = comparisons.next();
            comparisons.done(before, rows);
            comparisons.next() - before
        };
        assert_eq!([gap(128), gap(512), gap(512)], [256, 1024, 4096]);
        assert_eq!([gap(1000), gap(1000), gap(128)], [4, 4, 16]);
    }

    /// Rows that are scanned, and how often entries are read meanwhile, until there is nothing more to compare.
    fn compared(is_common: bool, rows_max: u64) -> (u64, u64) {
        let mut steps = ScanSteps::first(COMMON_FIRST_COMPARISON * COMPARED_ROWS_SHARE, is_common);
        let (mut scanned, mut compared) = (0, 0);
        while scanned < rows_max {
            let rows = steps.rows();
            scanned += rows;
            compared += 1;
            match steps.told_by_entries(rows, 0) {
                Stretch::Nothing => {}
                Stretch::Rows(rows) => scanned += rows,
                Stretch::Rest => break,
            }
        }
        (scanned, compared)
    }

    /// Or a long table would be read in many steps, by one thread and with entries in between.
    #[test]
    fn a_value_that_is_common_everywhere_is_soon_left_to_a_scan() {
        let (scanned, compared) = compared(true, u64::MAX);
        assert!(scanned <= 4096 && compared <= 6, "{scanned} rows, {compared} comparisons");
    }

    /// A value may be common at the begin of the table and rare behind it.
    #[test]
    fn other_values_are_compared_ever_more_seldom_and_again() {
        let (_, compared_first) = compared(false, 100_000);
        let (_, compared_later) = compared(false, 1_000_000);
        assert!(compared_first <= 8 && compared_later > 10, "{compared_first}, {compared_later}");
    }
}
