//! Headers of our own, by which a client asks what its query cost and learns it.
//!
//! They are off unless asked for: an answer without the question has none of them.

/// Asks for an explanation, with the value `true`.
pub const EXPLAIN: &str = "x-tavola-explain";
/// How the rows were found: the name of a [`QueryKind`](crate::table::filter::QueryKind).
pub const QUERY_KIND: &str = "x-tavola-query-kind";
/// Rows that were read for this page.
pub const ROWS_EXAMINED: &str = "x-tavola-rows-examined";
/// Rows that matched, and stand in this page.
pub const ROWS_RETURNED: &str = "x-tavola-rows-returned";
/// Ranges of keys that the plan of the query had.
pub const KEY_SPANS: &str = "x-tavola-key-spans";
