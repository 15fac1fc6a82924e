//! `$filter`: text to tree, tree to key spans and a program over encoded entities.
//!
//! A filter is [parsed](fn@parse) into an [`Expr`], and the expression becomes a [`Plan`]: the spans of entity
//! keys that can hold a match, and a [`Program`] for what the spans do not say. The grammar is small, the
//! typing is the service's own (a literal widens to the property's type, a property never widens, a missing
//! property fails every comparison), and both are written down in `docs/compatibility.md`.
//!
//! Nothing here reads storage: the owner of the rows scans the spans and asks the program.

mod compile;
mod expr;
mod kind;
mod lexer;
mod parse;
mod plan;
mod spans;
mod table_filter;

pub use expr::{Comparison, Expr, Literal, Operator};
pub use kind::QueryKind;
pub use parse::parse;
pub use plan::Plan;
pub use spans::Span;
pub use table_filter::TableFilter;

pub use crate::table::stored::{Program, Scratch};

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
