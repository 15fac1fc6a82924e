//! Work that no request waits for.

pub mod sweeper;
