//! Scans: the first rows where they are asked for, the rest in the pool.

pub(crate) mod inline_scan;
pub(crate) mod row_scan;
