//! Headers of our own, by which a client asks what its query cost and learns it.
//!
//! They are off unless asked for: an answer without the question has none of them.

/// Asks for an explanation, with the value `true`.
pub const EXPLAIN: &str = "x-tavola-explain";
/// How the rows were found: the name of a [`QueryKind`](crate::table::filter::QueryKind).
pub const QUERY_KIND: &str = "x-tavola-query-kind";
/// The kind of a query whose rows an index found.
pub const KIND_INDEX: &str = "index";
/// Rows that were read for this page.
pub const ROWS_EXAMINED: &str = "x-tavola-rows-examined";
/// Rows that matched, and stand in this page.
pub const ROWS_RETURNED: &str = "x-tavola-rows-returned";
/// Ranges of keys that the plan of the query had.
pub const KEY_SPANS: &str = "x-tavola-key-spans";
/// The indexes that found the rows, separated by commas. In a request: the one to use, or `none`.
pub const INDEX: &str = "x-tavola-index";
/// What a request writes there to use no index; no index has this name.
pub const NO_INDEX: &str = "none";
/// How the indexes were used.
pub const INDEX_USE: &str = "x-tavola-index-use";
/// Index rows that were passed for this page.
pub const INDEX_ENTRIES: &str = "x-tavola-index-entries";
/// Indexes that might have helped, each with the reason why it was not used.
pub const INDEX_NOT_USED: &str = "x-tavola-index-not-used";

/// A word of [`INDEX_USE`]: how the rows of an index came into the order of entity keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// They are in it.
    Ordered,
    /// The first of a page were picked out.
    Sorted,
    /// Several ranges that are in it were merged.
    Merged,
    /// Those were taken that two indexes have.
    Intersected,
    /// They did not: the index is read as a table.
    Browsed,
}

/// A word of [`INDEX_NOT_USED`]: why an index was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Building,
    Failed,
    SkipMissing,
    Partial,
    TooWide,
    TooManyStreams,
    Hint,
}

impl How {
    pub const ALL: [How; 5] =
        [Self::Ordered, Self::Sorted, Self::Merged, Self::Intersected, Self::Browsed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Sorted => "sorted",
            Self::Merged => "merged",
            Self::Intersected => "intersected",
            Self::Browsed => "browsed",
        }
    }
}

impl Reason {
    pub const ALL: [Reason; 7] = [
        Self::Building,
        Self::Failed,
        Self::SkipMissing,
        Self::Partial,
        Self::TooWide,
        Self::TooManyStreams,
        Self::Hint,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Building => "building",
            Self::Failed => "failed",
            Self::SkipMissing => "skip-missing",
            Self::Partial => "partial",
            Self::TooWide => "too-wide",
            Self::TooManyStreams => "too-many-streams",
            Self::Hint => "hint",
        }
    }
}
