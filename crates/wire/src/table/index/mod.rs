//! Index tables: what an index is declared as, the rows that an entity has in it, and which of them a filter needs.
//!
//! Every property value has one place on a [line of bytes](value_line), so that a comparison is a set of intervals on it.
//! An index row is the places of the entity's values, one behind the other, and then the entity's own key. Nothing here
//! reads storage, and nothing here decides about a row: an index proposes keys, and the filter itself is asked about each.

mod access;
mod definition;
mod line_set;
mod row;
#[cfg(test)]
mod tests_support;
pub mod value_line;
mod view_key;

pub use access::{Access, AccessRange, NotUsable, RANGES_MAX};
pub use definition::{
    DefinitionError, FILTER_COMPARISONS_MAX, INCLUDED_NAMES_MAX, Include, IndexDefinition, Missing,
    PART_BYTES_MAX, PARTS_MAX, Part,
};
pub use line_set::{LineInterval, LineSet, Width};
pub use row::{IndexRow, RowMaker, RowRef, RowScratch};
pub use view_key::{origin_keys, place_of, read_escaped};

/// The table that indexes are declared in, which the server itself keeps.
pub const INDEXES_TABLE: &str = "TavolaIndexes";
