//! Which ranges of which indexes were found to be too wide a short while ago, so that not every query finds it out again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tavola_wire::table::filter::Expr;

use super::shape;
use crate::storage::layout::TableId;

/// Values change, and so does how many rows have one.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Shapes that are remembered at a time. When there are more, all are forgotten: each costs one query a little.
const SHAPES_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct WideRanges {
    shapes: Mutex<HashMap<(TableId, u16, u64), Instant>>,
}

impl WideRanges {
    pub(crate) fn remember(&self, table: TableId, index: u16, filter: &Expr) {
        let mut shapes = self.lock();
        if shapes.len() >= SHAPES_MAX {
            shapes.clear();
        }
        shapes.insert((table, index, shape_of(filter)), Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(TableId, u16, u64), Instant>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn knows(&self, table: TableId, index: u16, filter: &Expr) -> bool {
        let mut shapes = self.lock();
        if shapes.is_empty() {
            return false;
        }
        let key = (table, index, shape_of(filter));
        let is_fresh = shapes.get(&key).is_some_and(|since| since.elapsed() < REMEMBERED);
        if !is_fresh {
            shapes.remove(&key);
        }
        is_fresh
    }
}

/// A number for the filter without its literals.
fn shape_of(filter: &Expr) -> u64 {
    let mut hasher = DefaultHasher::new();
    shape::filter_text(filter).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::filter::parse;

    use super::*;

    #[test]
    fn shapes_are_without_literals() {
        let wide = WideRanges::default();
        let filter = |text: &str| parse(text).unwrap();
        wide.remember(TableId(1), 1, &filter("Age gt 30"));
        assert!(wide.knows(TableId(1), 1, &filter("Age gt 40")));
        for other in ["Age gt 30L", "Age ge 30", "Name gt 30", "Age gt 30 and true"] {
            assert!(!wide.knows(TableId(1), 1, &filter(other)), "{other}");
        }
        assert!(!wide.knows(TableId(1), 2, &filter("Age gt 30")));
        assert!(!wide.knows(TableId(2), 1, &filter("Age gt 30")));
    }

    #[test]
    fn memory_is_bounded() {
        let wide = WideRanges::default();
        for index in 0..=u16::try_from(SHAPES_MAX).unwrap() {
            wide.remember(TableId(1), index, &Expr::ALL);
        }
        assert!(wide.lock().len() <= SHAPES_MAX);
    }
}
