//! Spans of entity keys, and the boxes of partition and row keys that they are made from.
//!
//! An [`Interval`] is a half-open range of one key's ordered bytes. Since `t 00` is the next byte string after
//! `t`, every comparison has one: `le t` ends before `t 00`, `gt t` begins at it. A [`KeyBox`] is the product of a
//! partition key interval and a row key interval, and [`Span`]s are what a store can scan: ranges of
//! `ordered(PartitionKey) 00 ordered(RowKey)`.
//!
//! All of this rests on keys having no character below U+0020, so that `p 00 ...` holds all of partition `p` and
//! `p 01` comes after all of it and before every longer partition key.

use super::expr::Operator;
use super::kind::QueryKind;
use crate::table::names::{KEY_UNITS_MAX, key_problem};
use crate::table::stored::key::{SEPARATOR, push_entity_key, push_ordered};

/// Follows every key of a partition, and precedes those of partitions with a longer key.
const AFTER_PARTITION: u8 = SEPARATOR + 1;
/// The least character of a key.
const KEY_CHARACTER_MIN: char = ' ';

/// A range of entity keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first key of the range.
    pub start: Vec<u8>,
    /// The first key after the range; `None` reaches to the end of the table.
    pub end: Option<Vec<u8>>,
}

impl Span {
    /// The whole table.
    pub const ALL: Span = Span { start: Vec::new(), end: None };

    /// One full key.
    pub(super) fn point(partition_key: &str, row_key: &str) -> Self {
        let mut start = Vec::with_capacity(partition_key.len() + row_key.len() + 1);
        push_entity_key(&mut start, partition_key, row_key);
        let mut end = Vec::with_capacity(start.len() + 1);
        end.extend_from_slice(&start);
        end.push(SEPARATOR);
        Self { start, end: Some(end) }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// The key, if the span holds one full key and can hold no other.
    pub fn as_point(&self) -> Option<&[u8]> {
        let key = self.end.as_deref()?.strip_suffix(&[SEPARATOR])?;
        (key == self.start && key.contains(&SEPARATOR)).then_some(key)
    }

    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// What a query over this span alone would be.
    pub(super) fn kind(&self) -> QueryKind {
        let separator = memchr::memchr(SEPARATOR, &self.start);
        let (Some(at), Some(end)) = (separator, &self.end) else { return QueryKind::TableScan };
        if end.strip_suffix(&[SEPARATOR]) == Some(&self.start) {
            return QueryKind::Point;
        }
        let partition = &self.start[..at];
        match end.strip_prefix(partition) {
            Some([AFTER_PARTITION]) if at + 1 == self.start.len() => QueryKind::PartitionScan,
            Some([AFTER_PARTITION] | [SEPARATOR, ..]) => QueryKind::Range,
            _ => QueryKind::TableScan,
        }
    }
}

/// Sorts the spans and joins those that overlap or touch.
pub(super) fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let Some(end) = &kept.end else { return true };
        if next.start > *end {
            return false;
        }
        if next.end.as_ref().is_none_or(|next_end| next_end > end) {
            kept.end = next.end.take();
        }
        true
    });
    spans
}

/// A half-open range of the ordered bytes of a partition or row key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: Vec<u8>,
    pub(super) end: Option<Vec<u8>>,
}

impl Interval {
    pub(super) const ALL: Interval = Interval { start: Vec::new(), end: None };

    /// The keys that compare so with the text: none, one or two intervals.
    ///
    /// A text that is no key equals none. One with a control character, or longer than any key, lies just above the
    /// key that it continues.
    pub(super) fn compared(operator: Operator, text: &str) -> Vec<Interval> {
        let is_key = key_problem(text).is_none();
        let (text, operator) = match (operator, continued_key(text)) {
            (Operator::Eq, _) if !is_key => return Vec::new(),
            (Operator::Ne, _) if !is_key => return vec![Self::ALL],
            (Operator::Gt | Operator::Ge, Some(key)) => (key, Operator::Gt),
            (Operator::Lt | Operator::Le, Some(key)) => (key, Operator::Le),
            _ => (text, operator),
        };
        let mut at = Vec::with_capacity(text.len() + 1);
        push_ordered(&mut at, text);
        let after = || [&at[..], &[SEPARATOR]].concat();
        let below = |end| Self { start: Vec::new(), end: Some(end) };
        let from = |start| Self { start, end: None };
        let mut intervals = match operator {
            Operator::Eq => vec![Self { start: at.clone(), end: Some(after()) }],
            Operator::Ne => vec![below(at.clone()), from(after())],
            Operator::Gt => vec![from(after())],
            Operator::Ge => vec![from(at)],
            Operator::Lt => vec![below(at)],
            Operator::Le => vec![below(after())],
        };
        intervals.retain(|interval| !interval.is_empty());
        intervals
    }

    pub(super) fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// The one key in it, if its bounds say that there is only one.
    pub(super) fn point(&self) -> Option<&[u8]> {
        let point = self.end.as_ref()?.strip_suffix(&[SEPARATOR])?;
        (*point == *self.start).then_some(point)
    }

    fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    fn intersection(&self, other: &Self) -> Option<Self> {
        let start = (&self.start).max(&other.start);
        let end = match (&self.end, &other.end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.as_ref().or(b.as_ref()),
        };
        if end.is_some_and(|end| end <= start) {
            return None;
        }
        Some(Self { start: start.clone(), end: end.cloned() })
    }
}

/// What comes before the first control character of a text, or before it is longer than any key; `None` if it has
/// neither. Every key compares with this as it does with the whole, only that none equals the whole.
fn continued_key(text: &str) -> Option<&str> {
    let mut units = 0;
    let end = text.char_indices().find(|(_, character)| {
        let is_over = *character < KEY_CHARACTER_MIN || units >= KEY_UNITS_MAX;
        units += character.len_utf16();
        is_over
    });
    end.map(|(at, _)| &text[..at])
}

/// Every pair of a partition key and a row key from two intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyBox {
    pub(super) partition: Interval,
    pub(super) row: Interval,
}

impl KeyBox {
    pub(super) const ALL: KeyBox = KeyBox { partition: Interval::ALL, row: Interval::ALL };

    /// Bytes of the bounds.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |it: &Interval| it.start.len() + it.end.as_ref().map_or(0, Vec::len);
        bytes(&self.partition) + bytes(&self.row)
    }

    pub(super) fn intersection(&self, other: &Self) -> Option<Self> {
        let partition = self.partition.intersection(&other.partition)?;
        let row = self.row.intersection(&other.row)?;
        Some(Self { partition, row })
    }

    /// Whether [`KeyBox::span`] holds the keys of the box and no other.
    pub(super) fn is_span(&self) -> bool {
        self.row.is_all() || self.partition.point().is_some()
    }

    /// How little of a table the box covers: the greater, the less.
    pub(super) fn selectivity(&self) -> u8 {
        let bounded = self.partition.end.is_some() || !self.partition.start.is_empty();
        match (self.partition.point(), self.row.point()) {
            (Some(_), Some(_)) => 4,
            (Some(_), None) if !self.row.is_all() => 3,
            (Some(_), None) => 2,
            (None, _) => u8::from(bounded),
        }
    }

    /// The least span that holds the box.
    pub(super) fn span(&self) -> Span {
        Span { start: self.first_key(), end: self.key_after() }
    }

    fn first_key(&self) -> Vec<u8> {
        let Interval { start, .. } = &self.partition;
        if let Some(before) = start.strip_suffix(&[SEPARATOR]) {
            return [before, &[AFTER_PARTITION]].concat();
        }
        // Nothing precedes the empty partition: say so plainly, unless the span is that partition.
        let from_the_first = start.is_empty() && self.row.start.is_empty();
        if from_the_first && self.partition.point().is_none() {
            return Vec::new();
        }
        [start, &[SEPARATOR][..], &self.row.start].concat()
    }

    fn key_after(&self) -> Option<Vec<u8>> {
        let end = self.partition.end.as_ref()?;
        Some(match (end.strip_suffix(&[SEPARATOR]), &self.row.end) {
            (None, _) => end.clone(),
            (Some(last), None) => [last, &[AFTER_PARTITION]].concat(),
            (Some(last), Some(row_end)) => [last, &[SEPARATOR], row_end].concat(),
        })
    }
}
