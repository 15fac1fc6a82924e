//! Work that no request waits for.

pub(crate) mod sweeper;
