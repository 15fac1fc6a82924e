//! Indexes that the server keeps beside the entities of a table.
//!
//! A row of an index changes in the same transition as its entity ([`row_changes`]). Which indexes a request works with is
//! the [`Schema`] of the table that it found; [`generation`] knows when nobody works with an older one any more, which
//! is what a change of [state](crate::storage::layout::IndexState) waits for. [`definitions`] are the steps of an index's
//! life as changes of the table's record, [`backfill`] adds what was written before the index was declared.

pub(crate) mod backfill;
mod build_progress;
pub(crate) mod build_records;
pub(crate) mod definitions;
pub(crate) mod generation;
#[cfg(test)]
mod interleaving_tests;
mod registry;
pub(crate) mod row_changes;
mod schema;
pub(crate) mod sketch;
mod statistics;
pub(crate) mod verify;

pub(crate) use crate::storage::layout::IndexState;
pub(crate) use build_progress::{BuildProgress, Builds, Entities};
pub(crate) use registry::{IndexRegistry, TableKey};
pub(crate) use schema::{Index, Schema};
