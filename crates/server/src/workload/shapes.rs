//! The shapes of the queries that ran, and what each of them cost.
//!
//! One look per page, never per row. Of many shapes those stay that made the server look at most rows: whatever is
//! behind 1/512 of all rows examined is among them. Only pages that an index could have found faster are shown to it.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tavola_wire::Ticks;
use tavola_wire::table::filter::{Expr, QueryKind};
use tavola_wire::table::select::Select;

use super::shape::{self, Terms};
use super::space_saving::SpaceSaving;
use crate::storage::layout::{AccountId, TableId};

/// Shapes that are counted at a time.
const SHAPES_MAX: usize = 512;

/// Pages with fewer rows say nothing about the share that matches.
const SHARE_ROWS_MIN: u64 = 100;

#[derive(Debug)]
pub(crate) struct QueryShapes {
    sketch: Mutex<SpaceSaving<ShapeRecord>>,
    hasher: RandomState,
}

/// One shape in one table, since it has a counter.
#[derive(Clone, Debug)]
pub(crate) struct ShapeRecord {
    pub account: AccountId,
    pub table: TableId,
    pub table_name: String,
    /// The filter without literals, and what is selected.
    pub text: String,
    pub terms: Terms,
    /// Selected properties; none if entities are returned whole.
    pub select: BTreeSet<String>,
    /// The dearest way in which a page of it found its rows.
    pub kind: QueryKind,
    /// First pages.
    pub executions: u64,
    pub examined: u64,
    pub returned: u64,
    /// Bytes of the pages.
    pub bytes: u64,
    pub time: Duration,
    /// The largest share of the rows of a page that matched.
    pub largest_share: f64,
    pub last_seen: Ticks,
}

/// What one page came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFigures {
    pub kind: QueryKind,
    pub is_first: bool,
    pub examined: u64,
    pub returned: u64,
    pub bytes: u64,
    pub time: Duration,
    pub at: Ticks,
}

impl Default for QueryShapes {
    fn default() -> Self {
        Self { sketch: Mutex::new(SpaceSaving::new(SHAPES_MAX)), hasher: RandomState::new() }
    }
}

impl QueryShapes {
    /// Counts one page of a query.
    pub(crate) fn note(
        &self,
        (account, table, table_name): (AccountId, TableId, &str),
        expr: &Expr,
        select: Option<&str>,
        page: PageFigures,
    ) {
        let select = selected(select);
        let text = shape::text(expr, &select);
        let key = self.hasher.hash_one((table.0, &text));
        let new = || ShapeRecord {
            account,
            table,
            table_name: table_name.to_owned(),
            text: shape::shown(text),
            terms: Terms::of(expr),
            // What is too much to keep is too much for an index.
            select: if shape::is_small(select.iter()) { select } else { BTreeSet::new() },
            kind: page.kind,
            executions: 0,
            examined: 0,
            returned: 0,
            bytes: 0,
            time: Duration::ZERO,
            largest_share: 0.0,
            last_seen: page.at,
        };
        let mut sketch = self.sketch.lock().unwrap_or_else(PoisonError::into_inner);
        sketch.note(key, page.examined.max(1), new).add(page);
    }

    /// The shapes of an account.
    pub(crate) fn of(&self, account: AccountId) -> Vec<ShapeRecord> {
        let sketch = self.sketch.lock().unwrap_or_else(PoisonError::into_inner);
        let records = sketch.counters().map(|counter| &counter.value);
        records.filter(|record| record.account == account).cloned().collect()
    }
}

impl ShapeRecord {
    fn add(&mut self, page: PageFigures) {
        self.kind = self.kind.max(page.kind);
        self.executions += u64::from(page.is_first);
        self.examined += page.examined;
        self.returned += page.returned;
        self.bytes += page.bytes;
        self.time += page.time;
        self.last_seen = self.last_seen.max(page.at);
        if page.examined >= SHARE_ROWS_MIN {
            let share = page.returned as f64 / page.examined as f64;
            self.largest_share = self.largest_share.max(share);
        }
    }
}

/// The names of a `$select`, none if it selects everything. One that cannot be read has been refused before.
fn selected(select: Option<&str>) -> BTreeSet<String> {
    match select.map(Select::parse) {
        Some(Ok(Some(select))) if !select.is_all() => select.names().iter().cloned().collect(),
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::filter::parse;

    use super::*;

    const ACCOUNT: AccountId = AccountId(1);

    fn page(examined: u64, returned: u64) -> PageFigures {
        PageFigures {
            kind: QueryKind::TableScan,
            is_first: true,
            examined,
            returned,
            bytes: 100 * returned,
            time: Duration::from_millis(1),
            at: Ticks::MIN_STORED,
        }
    }

    fn note(shapes: &QueryShapes, filter: &str, select: Option<&str>, page: PageFigures) {
        shapes.note((ACCOUNT, TableId(1), "table"), &parse(filter).unwrap(), select, page);
    }

    #[test]
    fn pages_of_one_shape_add_up() {
        let shapes = QueryShapes::default();
        note(&shapes, "Town eq 'Redmond'", Some("A,B"), page(1000, 10));
        let next = PageFigures { is_first: false, ..page(500, 200) };
        note(&shapes, "Town eq 'Seattle'", Some(" B , A"), next);
        note(&shapes, "Town eq 'Seattle'", Some("*"), page(5, 5));
        let mut found = shapes.of(ACCOUNT);
        found.sort_by_key(|record| record.examined);
        let [whole, selected] = &found[..] else { panic!("{found:?}") };
        assert_eq!(selected.text, "Town eq <String> select A,B");
        assert_eq!((selected.executions, selected.examined, selected.returned), (1, 1500, 210));
        assert_eq!((selected.bytes, selected.time), (21_000, Duration::from_millis(2)));
        assert!((selected.largest_share - 0.4).abs() < 1e-9);
        assert_eq!((whole.text.as_str(), whole.executions), ("Town eq <String>", 1));
        assert_eq!(whole.largest_share, 0.0, "too few rows to tell");
    }

    #[test]
    fn tables_and_accounts_are_told_apart() {
        let shapes = QueryShapes::default();
        let expr = parse("A eq 1").unwrap();
        shapes.note((ACCOUNT, TableId(1), "one"), &expr, None, page(1, 1));
        shapes.note((ACCOUNT, TableId(2), "two"), &expr, None, page(1, 1));
        shapes.note((AccountId(2), TableId(3), "one"), &expr, None, page(1, 1));
        assert_eq!(shapes.of(ACCOUNT).len(), 2);
        assert_eq!(shapes.of(AccountId(2)).len(), 1);
    }

    #[test]
    fn dear_shapes_stay_among_many_cheap_ones() {
        let shapes = QueryShapes::default();
        for number in 0..10 * SHAPES_MAX {
            note(&shapes, &format!("Property{number} eq 1"), None, page(10, 1));
            note(&shapes, "Town eq 'Redmond'", None, page(1000, 1));
        }
        let found = shapes.of(ACCOUNT);
        assert_eq!(found.len(), SHAPES_MAX);
        let town = found.iter().find(|record| record.text == "Town eq <String>").unwrap();
        assert_eq!(town.executions, 10 * SHAPES_MAX as u64);
    }
}
