//! What a query costs, by how it finds its rows.

use std::fmt;

/// How a query finds its rows, from the cheapest to the dearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryKind {
    /// Every span is one full key.
    Point,
    /// Every span lies in one partition, and the row key is bounded.
    Range,
    /// Every span lies in one partition, at least one is a whole partition.
    PartitionScan,
    /// Some span reaches over partitions.
    TableScan,
}

impl QueryKind {
    /// The word in headers, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Range => "range",
            Self::PartitionScan => "partition scan",
            Self::TableScan => "table scan",
        }
    }
}

impl fmt::Display for QueryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
