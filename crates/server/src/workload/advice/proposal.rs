//! The index that one shape asks for: its parts, and whether another index would do.

use std::collections::BTreeMap;

use super::PARTS_MAX;
use crate::workload::ShapeRecord;

/// How many shapes compare a property, and how many rows they examined.
pub(super) type Popularity<'a> = BTreeMap<&'a str, (usize, u64)>;

/// A shape, and the parts of the index that it asks for.
pub(super) struct Candidate<'a> {
    pub(super) shape: &'a ShapeRecord,
    pub(super) parts: Vec<&'a str>,
    /// How many of the parts are compared by `eq`; behind them is at most one with bounds.
    equals: usize,
}

pub(super) fn popularity<'a>(shapes: &[&'a ShapeRecord]) -> Popularity<'a> {
    let mut popularity = Popularity::new();
    for shape in shapes {
        for name in shape.terms.equals.iter().chain(&shape.terms.bounds) {
            let (count, examined) = popularity.entry(name).or_default();
            *count += 1;
            *examined += shape.examined;
        }
    }
    popularity
}

impl<'a> Candidate<'a> {
    /// Parts in the order in which most shapes can share them. The partition key comes first: behind it lies one
    /// contiguous block for each partition.
    pub(super) fn new(shape: &'a ShapeRecord, popularity: &Popularity<'_>) -> Self {
        let rank = |name: &&str| {
            let (count, examined) = popularity.get(name).copied().unwrap_or_default();
            let reversed = std::cmp::Reverse((count, examined));
            (*name != "PartitionKey", reversed, name.to_string())
        };
        let mut parts: Vec<_> = shape.terms.equals.iter().map(String::as_str).collect();
        parts.sort_by_key(rank);
        parts.truncate(PARTS_MAX);
        let equals = parts.len();
        // Entities come in the order of PartitionKey anyway.
        let bounds = shape.terms.bounds.iter().map(String::as_str);
        let bound = bounds.filter(|name| *name != "PartitionKey").min_by_key(rank);
        if equals < PARTS_MAX {
            parts.extend(bound);
        }
        Self { shape, parts, equals }
    }

    /// Whether it looks into partitions that it names.
    pub(super) fn is_local(&self) -> bool {
        self.parts.first() == Some(&"PartitionKey")
    }

    /// Whether an index with these parts finds the rows as well as its own would.
    pub(super) fn is_served_by(&self, keys: &[impl AsRef<str>]) -> bool {
        let keys: Vec<_> = keys.iter().map(AsRef::as_ref).collect();
        self.is_prefix(&self.parts, self.equals, &keys)
            || (self.is_local()
                && self.parts.len() == self.equals
                && self.equals > 1
                // The rows of one value are ordered by the partition key, so that naming it narrows them.
                && keys.len() == self.equals - 1
                && self.is_prefix(&self.parts[1..], self.equals - 1, &keys))
    }

    /// Values may be given in any order, the bound comes behind them.
    fn is_prefix(&self, parts: &[&str], equals: usize, keys: &[&str]) -> bool {
        let (values, bound) = parts.split_at(equals);
        keys.len() >= parts.len()
            && keys[..equals].iter().all(|key| values.contains(key))
            && bound.first().is_none_or(|bound| keys[equals] == *bound)
    }
}
