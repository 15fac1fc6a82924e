//! Scans: the first rows where they are asked for, the rest in the pool, and long ones on several of its threads.

pub(crate) mod inline_scan;
mod middle;
pub(crate) mod parallel_scan;
pub(crate) mod row_scan;
