//! Sets of places on the [value line](super::value_line), as sorted disjoint intervals.
//!
//! An interval is a half-open range of bytes. Its bounds stand between encoded values, never within one, so that it holds
//! an encoded value if and only if it holds every key that begins with it.

use std::cmp::Ordering;

use super::value_line::{Tag, after_prefix, push_value};
use crate::table::filter::{Comparison, Literal, Operator};
use crate::table::stored::{EdmType, Value};

/// Places from `start` on and before `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineInterval {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// Whether it holds one place: then `start` is that place.
    pub is_point: bool,
}

impl LineInterval {
    fn point(place: Vec<u8>) -> Self {
        Self { end: after_prefix(&place), start: place, is_point: true }
    }

    fn range(start: Vec<u8>, end: Vec<u8>) -> Self {
        Self { start, end, is_point: false }
    }

    /// All values with a tag.
    fn tag(tag: Tag) -> Self {
        let interval = Self::range(vec![tag as u8], vec![tag.next()]);
        Self { is_point: matches!(tag, Tag::Missing | Tag::NotANumber), ..interval }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && *key < *self.end
    }

    fn intersection(&self, other: &Self) -> Option<Self> {
        let (start, end) = ((&self.start).max(&other.start), (&self.end).min(&other.end));
        (start < end).then(|| Self {
            start: start.clone(),
            end: end.clone(),
            is_point: self.is_point || other.is_point,
        })
    }
}

/// How much of the line a set takes: the less, the fewer rows are there, as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    Points,
    /// From one value to another.
    TwoSided,
    /// Everything on one side of a value.
    OneSided,
    /// What `ne` leaves, or all.
    AllButPlaces,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSet {
    intervals: Vec<LineInterval>,
}

impl LineSet {
    pub const NONE: LineSet = LineSet { intervals: Vec::new() };

    /// Every value, and none at all.
    pub fn all() -> Self {
        let (first, end) = (Tag::Missing as u8, Tag::String.next());
        Self { intervals: vec![LineInterval::range(vec![first], vec![end])] }
    }

    pub fn intervals(&self) -> &[LineInterval] {
        &self.intervals
    }

    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    pub fn is_all(&self) -> bool {
        *self == Self::all()
    }

    /// Whether a place, or a key that begins with one, is in the set.
    pub fn contains(&self, key: &[u8]) -> bool {
        let after = self.intervals.partition_point(|interval| *interval.start <= *key);
        after.checked_sub(1).is_some_and(|at| self.intervals[at].contains(key))
    }

    pub fn contains_missing(&self) -> bool {
        self.contains(&[Tag::Missing as u8])
    }

    /// Whether every interval is one place.
    pub fn is_points(&self) -> bool {
        self.intervals.iter().all(|interval| interval.is_point)
    }

    /// How much of the line it takes, as far as its form tells.
    pub fn width(&self) -> Width {
        let is_bound = |at: &[u8]| at.len() > 1;
        let is_two_sided =
            |it: &LineInterval| it.is_point || is_bound(&it.start) && is_bound(&it.end);
        let is_missing = |it: &LineInterval| *it.end == [Tag::Missing.next()];
        let is_place = |it: &LineInterval| {
            is_missing(it) || is_bound(&it.start) && it.end == after_prefix(&it.start)
        };
        if self.is_points() {
            Width::Points
        } else if self.intervals.iter().all(is_two_sided) {
            Width::TwoSided
        } else if self.complement().intervals.iter().all(is_place) {
            Width::AllButPlaces
        } else {
            Width::OneSided
        }
    }

    /// How many intervals there are if those of the three types of numbers, which one comparison makes, count once.
    pub fn intervals_of_one_type(&self) -> usize {
        let of = |tag: Tag| {
            self.intervals.iter().filter(|it| it.start.first() == Some(&(tag as u8))).count()
        };
        let numbers = [Tag::Double, Tag::Int32, Tag::Int64].map(of);
        let others = self.intervals.len() - numbers.iter().sum::<usize>();
        others + numbers.into_iter().max().unwrap_or(0)
    }

    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.intersection(&other.complement()).is_empty()
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.intervals.iter().peekable(), other.intervals.iter().peekable());
        let mut intervals = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            intervals.extend(x.intersection(y));
            match x.end.cmp(&y.end) {
                Ordering::Less => drop(a.next()),
                _ => drop(b.next()),
            }
        }
        Self { intervals }
    }

    pub fn union(&self, other: &Self) -> Self {
        Self::of([&self.intervals[..], &other.intervals[..]].concat())
    }

    /// Every place that is not in the set.
    pub fn complement(&self) -> Self {
        let all = Self::all().intervals.remove(0);
        let mut intervals = Vec::new();
        let mut start = all.start;
        for interval in &self.intervals {
            if start < interval.start {
                intervals.push(LineInterval::range(start, interval.start.clone()));
            }
            start = interval.end.clone();
        }
        if start < all.end {
            intervals.push(LineInterval::range(start, all.end));
        }
        Self { intervals }
    }

    /// Sorts the intervals and joins those that overlap or touch, except that neighbouring points stay points.
    fn of(mut intervals: Vec<LineInterval>) -> Self {
        intervals.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| b.end.cmp(&a.end)));
        intervals.dedup_by(|next, kept| {
            let touches = next.start == kept.end && !(next.is_point && kept.is_point);
            if next.start >= kept.end && !touches {
                return false;
            }
            if next.end > kept.end {
                kept.end = std::mem::take(&mut next.end);
                kept.is_point = false;
            }
            true
        });
        Self { intervals }
    }

    /// The places of values for which the comparison holds, or does not hold when `negated`: all of them, and where
    /// values were cut to `bytes_max`, perhaps some more.
    pub fn compared(comparison: &Comparison, negated: bool, bytes_max: usize) -> Self {
        let sides = Sides::of(&comparison.literal, bytes_max);
        match negated {
            false => sides.holding(comparison.operator, Bound::Upper),
            true => sides.holding(comparison.operator, Bound::Lower).complement(),
        }
    }

    /// The places of values for which the comparison certainly holds.
    pub fn certain(comparison: &Comparison, bytes_max: usize) -> Self {
        Sides::of(&comparison.literal, bytes_max).holding(comparison.operator, Bound::Lower)
    }
}

/// Whether values that cannot be told from the literal are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Lower,
    Upper,
}

/// The line as one literal divides it. Missing values are on no side.
struct Sides {
    less: Vec<LineInterval>,
    equal: Vec<LineInterval>,
    greater: Vec<LineInterval>,
    /// Neither less, nor equal, nor greater: NaN beside a number.
    unordered: Vec<LineInterval>,
    /// Values of which the line keeps only what they share with the literal.
    unclear: Vec<LineInterval>,
}

impl Sides {
    fn of(literal: &Literal, bytes_max: usize) -> Self {
        let mut sides = Self {
            less: Vec::new(),
            equal: Vec::new(),
            greater: Vec::new(),
            unordered: Vec::new(),
            unclear: Vec::new(),
        };
        for tag in Tag::ALL {
            let Some(edm_type) = tag.edm_type() else { continue };
            match widened(literal, edm_type) {
                None => sides.less.push(LineInterval::tag(tag)),
                Some(_) if tag == Tag::NotANumber => sides.unordered.push(LineInterval::tag(tag)),
                Some(value) => sides.divide(tag, value, bytes_max),
            }
        }
        sides
    }

    /// Divides the values of one tag by a value of the same type.
    fn divide(&mut self, tag: Tag, value: Value<'_>, bytes_max: usize) {
        let mut place = Vec::new();
        let is_whole = push_value(&mut place, value, bytes_max);
        let at = LineInterval::point(place);
        self.less.push(LineInterval::range(vec![tag as u8], at.start.clone()));
        self.greater.push(LineInterval::range(at.end.clone(), vec![tag.next()]));
        if is_whole { self.equal.push(at) } else { self.unclear.push(at) }
    }

    fn holding(self, operator: Operator, bound: Bound) -> LineSet {
        let order = |sides: Vec<LineInterval>, order: Option<Ordering>| {
            operator.holds(order).then_some(sides).into_iter().flatten()
        };
        let unclear = if bound == Bound::Upper { self.unclear } else { Vec::new() };
        // A value that was cut may be the literal, or stand before or behind it.
        let intervals = order(self.less, Some(Ordering::Less))
            .chain(order(self.equal, Some(Ordering::Equal)))
            .chain(order(self.greater, Some(Ordering::Greater)))
            .chain(order(self.unordered, None))
            .chain(unclear)
            .filter(|interval| interval.start < interval.end);
        LineSet::of(intervals.collect())
    }
}

/// The literal as a value of the stored type, if the two compare.
fn widened(literal: &Literal, stored: EdmType) -> Option<Value<'_>> {
    Some(match (literal, stored) {
        (Literal::Int32(value), EdmType::Int64) => Value::Int64(i64::from(*value)),
        (Literal::Int32(value), EdmType::Double) => Value::Double(f64::from(*value)),
        // As the comparison of stored values has it: the literal is rounded.
        (Literal::Int64(value), EdmType::Double) => Value::Double(*value as f64),
        (literal, stored) if literal.edm_type() == stored => literal.as_value(),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "line_set_tests.rs"]
mod tests;
