//! The Azure Table storage protocol as pure functions: no I/O, no clock, no runtime.
//!
//! Everything that crosses the wire is parsed into a type here, and printed from one: EDM values and
//! entities, JSON, `$filter`, `$batch`, XML bodies, signatures, names, limits and error codes.

mod append;
pub mod auth;
pub mod batch;
pub mod continuation;
pub mod cors;
pub mod entity;
pub mod error;
pub mod filter;
pub mod if_match;
pub mod json;
pub mod key;
pub mod names;
pub mod negotiate;
pub mod select;
pub mod ticks;
pub mod uri;
pub mod verb;
pub mod xml;

pub use error::{ErrorCode, StorageError};
pub use ticks::Ticks;
