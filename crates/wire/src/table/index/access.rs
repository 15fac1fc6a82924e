//! Which rows of an index can belong to entities that a filter matches.
//!
//! The filter becomes boxes with one set of places for each part of the index, joined as the key boxes of a
//! [`Plan`](crate::table::filter::Plan) are. Comparisons of other properties count as "any". Where joining would cost too
//! much the boxes hold more than needed, never less: whoever reads the rows asks the filter about each entity.

use super::definition::IndexDefinition;
use super::line_set::{LineSet, Width};
use super::row::RowRef;
use super::value_line::{after_prefix, is_cut, split_value, whole_ordered_text};
use crate::table::filter::{Comparison, Expr};
use crate::table::stored::key::SEPARATOR;

/// Ranges that one query reads side by side: each of them buffers some rows.
pub const RANGES_MAX: usize = 256;
/// Boxes that one step may make.
const BOXES_MAX: usize = 1024;
/// Pairs of boxes that one filter may intersect.
const PAIRS_MAX: usize = 512;

/// Where to read in an index.
#[derive(Clone, Debug)]
pub struct Access {
    /// Sorted and disjoint; none if nothing can match.
    pub ranges: Vec<AccessRange>,
    /// How many leading parts are compared for equality.
    pub leading_points: usize,
    /// How wide the first part is that is not compared for equality; that of the widest box.
    pub width: Width,
    /// Ranges, if those that one interval of numbers has in their three types count once.
    pub intervals: usize,
    boxes: Vec<PartBox>,
}

/// A range of keys behind the number of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// If all rows have the same parts, the beginning that all their entity keys have but that their keys do not: they
    /// are in the order of entity keys.
    pub ordered: Option<Vec<u8>>,
}

/// Why an index is of no use for a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotUsable {
    /// The filter says nothing about its first part.
    Unrelated,
    /// The filter may match entities that lack a property, and they are not in the index.
    SkipMissing,
    /// The filter may match entities outside a partial index.
    Partial,
    TooManyRanges,
}

/// One set of places for each part.
type PartBox = Vec<LineSet>;

impl IndexDefinition {
    /// The rows that entities have which the filter matches, and perhaps some more.
    ///
    /// # Errors
    /// Why the index is of no use.
    pub fn access(&self, filter: &Expr) -> Result<Access, NotUsable> {
        let names: Vec<&str> = self.keys.iter().map(|part| part.property.as_str()).collect();
        let boxes = Boxes::of(&names, usize::from(self.part_bytes_max), filter);
        if boxes.iter().any(|parts| parts[0].is_all()) {
            return Err(NotUsable::Unrelated);
        }
        let skips = |parts: &PartBox| {
            let mut parts = parts.iter().zip(&self.keys);
            parts.any(|(set, part)| !part.keeps_missing() && set.contains_missing())
        };
        if boxes.iter().any(skips) {
            return Err(NotUsable::SkipMissing);
        }
        if !self.filter_terms().all(|term| self.is_implied(term, filter)) {
            return Err(NotUsable::Partial);
        }
        let points = |parts: &PartBox| parts.iter().take_while(|set| set.is_points()).count();
        let (ranges, depth) = self.ranges(&boxes)?;
        let leading_points = boxes.iter().map(points).min().unwrap_or(self.keys.len()).min(depth);
        let width = boxes.iter().map(width).max().unwrap_or(Width::Points);
        let intervals = boxes.iter().map(intervals).fold(0, usize::saturating_add);
        Ok(Access { ranges, leading_points, width, intervals, boxes })
    }

    /// Whether the filter matches only entities for which the term holds.
    fn is_implied(&self, term: &Comparison, filter: &Expr) -> bool {
        let is_term = |expr: &Expr| matches!(expr, Expr::Compare(comparison) if comparison == term);
        let is_said = match filter {
            Expr::And(terms) => terms.iter().any(is_term),
            other => is_term(other),
        };
        let bytes_max = usize::from(self.part_bytes_max);
        let matched = || Boxes::of(&[&term.property], bytes_max, filter);
        let certain = || LineSet::certain(term, bytes_max);
        is_said || matched().iter().all(|parts| parts[0].is_subset_of(&certain()))
    }

    /// The ranges of the boxes, and of how many parts: where all parts make too many, those of the first ones hold more.
    fn ranges(&self, boxes: &[PartBox]) -> Result<(Vec<AccessRange>, usize), NotUsable> {
        let depths = (1..=self.keys.len()).rev();
        let ranges_of = |depth: usize| {
            let mut ranges = Vec::new();
            for parts in boxes {
                self.push_ranges(&mut ranges, &parts[..depth])?;
            }
            let ranges = merge(ranges);
            if ranges.len() > RANGES_MAX { Err(NotUsable::TooManyRanges) } else { Ok(ranges) }
        };
        let mut fitting = depths.filter_map(|depth| Some((ranges_of(depth).ok()?, depth)));
        fitting.next().ok_or(NotUsable::TooManyRanges)
    }

    /// The ranges of a box, or of its first parts: equal leading parts make longer prefixes, and the first other part ends them.
    fn push_ranges(
        &self,
        ranges: &mut Vec<AccessRange>,
        parts: &[LineSet],
    ) -> Result<(), NotUsable> {
        let mut prefixes = vec![Vec::new()];
        for set in parts {
            let mut longer = Vec::new();
            for prefix in &prefixes {
                for interval in set.intervals() {
                    let bound = |at: &[u8]| [&prefix[..], at].concat();
                    if interval.is_point {
                        longer.push(bound(&interval.start));
                    } else {
                        let (start, end) = (bound(&interval.start), bound(&interval.end));
                        ranges.push(AccessRange { start, end, ordered: None });
                    }
                    if longer.len() + ranges.len() > BOXES_MAX {
                        return Err(NotUsable::TooManyRanges);
                    }
                }
            }
            prefixes = longer;
        }
        let is_whole = parts.len() == self.keys.len();
        ranges.extend(prefixes.into_iter().map(|prefix| match is_whole {
            true => self.ordered_range(prefix),
            false => AccessRange { end: after_prefix(&prefix), start: prefix, ordered: None },
        }));
        Ok(())
    }

    fn ordered_range(&self, prefix: Vec<u8>) -> AccessRange {
        let partition_key = split_value(&prefix)
            .filter(|_| self.is_local() && !self.unique)
            .and_then(|(first, _)| whole_ordered_text(first));
        let beginning = partition_key.map_or_else(Vec::new, |mut key| {
            key.push(SEPARATOR);
            key
        });
        // In a unique index several rows may have the same parts only if one was cut, and then they are in no order.
        let is_ordered = !self.unique || !parts(&prefix).any(is_cut);
        let ordered = is_ordered.then_some(beginning);
        AccessRange { end: after_prefix(&prefix), start: prefix, ordered }
    }
}

fn width(parts: &PartBox) -> Width {
    let mut widths = parts.iter().map(LineSet::width);
    widths.find(|width| *width != Width::Points).unwrap_or(Width::Points)
}

fn intervals(parts: &PartBox) -> usize {
    let leading = parts.iter().take_while(|set| set.is_points()).count();
    let sets = parts.iter().take(leading + 1);
    sets.map(LineSet::intervals_of_one_type).fold(1, usize::saturating_mul)
}

/// The places that a prefix is made of.
fn parts(prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = prefix;
    std::iter::from_fn(move || {
        let part;
        (part, rest) = split_value(rest)?;
        Some(part)
    })
}

impl Access {
    /// Whether every range is in the order of entity keys.
    pub fn is_ordered(&self) -> bool {
        self.ranges.iter().all(|range| range.ordered.is_some())
    }

    /// Whether a part is compared in every box, one of those at least that are not known.
    pub fn compares_beside(&self, is_known: impl Fn(usize) -> bool) -> bool {
        self.boxes.iter().all(|parts| {
            parts.iter().enumerate().any(|(place, set)| !set.is_all() && !is_known(place))
        })
    }

    /// Whether the parts of a row that was found in the ranges are such that the filter may match its entity.
    pub fn allows(&self, row: &RowRef<'_>) -> bool {
        self.boxes.iter().any(|parts| {
            parts.iter().zip(row.parts).all(|(set, part)| set.is_all() || set.contains(part))
        })
    }
}

/// Sorts the ranges and joins those that overlap.
fn merge(mut ranges: Vec<AccessRange>) -> Vec<AccessRange> {
    ranges.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| b.end.cmp(&a.end)));
    ranges.dedup_by(|next, kept| {
        if next.start >= kept.end {
            return false;
        }
        if next.end > kept.end {
            kept.end = std::mem::take(&mut next.end);
        }
        // What is not the same range is in no order any more.
        if next.start != kept.start || next.ordered.is_none() {
            kept.ordered = kept.ordered.take().filter(|_| next.ordered.is_some());
        }
        true
    });
    ranges
}

/// Finds boxes, for properties of these names.
struct Boxes<'a> {
    names: &'a [&'a str],
    bytes_max: usize,
    pairs_left: usize,
}

impl<'a> Boxes<'a> {
    fn of(names: &'a [&'a str], bytes_max: usize, filter: &Expr) -> Vec<PartBox> {
        Self { names, bytes_max, pairs_left: PAIRS_MAX }.cover(filter, false)
    }

    fn any(&self) -> PartBox {
        vec![LineSet::all(); self.names.len()]
    }

    fn cover(&mut self, expr: &Expr, negated: bool) -> Vec<PartBox> {
        match expr {
            Expr::Constant(value) if *value == negated => Vec::new(),
            Expr::Constant(_) => vec![self.any()],
            Expr::Compare(comparison) => self.comparison(comparison, negated),
            Expr::Not(inner) => self.cover(inner, !negated),
            Expr::And(terms) if !negated => self.all_of(terms, negated),
            Expr::Or(terms) if negated => self.all_of(terms, negated),
            Expr::And(terms) | Expr::Or(terms) => self.any_of(terms, negated),
        }
    }

    fn comparison(&self, comparison: &Comparison, negated: bool) -> Vec<PartBox> {
        let mut parts = self.any();
        if let Some(place) = self.names.iter().position(|name| *name == comparison.property) {
            parts[place] = LineSet::compared(comparison, negated, self.bytes_max);
        }
        if parts.iter().any(LineSet::is_empty) { Vec::new() } else { vec![parts] }
    }

    fn any_of(&mut self, terms: &[Expr], negated: bool) -> Vec<PartBox> {
        let mut union: Vec<PartBox> = Vec::new();
        for term in terms {
            for parts in self.cover(term, negated) {
                if is_any(&parts) || union.len() == BOXES_MAX {
                    return vec![self.any()];
                }
                union.push(parts);
            }
        }
        union
    }

    fn all_of(&mut self, terms: &[Expr], negated: bool) -> Vec<PartBox> {
        let mut covers: Vec<_> = terms.iter().map(|term| self.cover(term, negated)).collect();
        covers.sort_by_key(Vec::len);
        covers.into_iter().fold(vec![self.any()], |a, b| self.both(a, b))
    }

    /// The intersection; the shorter side alone where that is too dear.
    fn both(&mut self, a: Vec<PartBox>, b: Vec<PartBox>) -> Vec<PartBox> {
        if a.first().is_some_and(is_any) {
            return b;
        }
        if b.first().is_some_and(is_any) {
            return a;
        }
        let Some(left) = self.pairs_left.checked_sub(a.len().saturating_mul(b.len())) else {
            return a;
        };
        self.pairs_left = left;
        let pairs = a.iter().flat_map(|x| b.iter().map(move |y| intersection(x, y)));
        pairs.flatten().collect()
    }
}

fn is_any(parts: &PartBox) -> bool {
    parts.iter().all(LineSet::is_all)
}

fn intersection(a: &PartBox, b: &PartBox) -> Option<PartBox> {
    let sets: PartBox = a.iter().zip(b).map(|(x, y)| x.intersection(y)).collect();
    (!sets.iter().any(LineSet::is_empty)).then_some(sets)
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
