//! The Azure Table storage protocol as pure functions: no I/O, no clock, no runtime.
//!
//! Everything that crosses the wire is parsed into a type here, and printed from one: EDM values and entities,
//! JSON, `$filter`, `$batch`, XML bodies, signatures, names, limits and error codes.

pub mod entity;
pub mod error;
pub mod filter;
pub mod key;
pub mod select;
pub mod ticks;

pub use error::{ErrorCode, StorageError};
pub use ticks::Ticks;
