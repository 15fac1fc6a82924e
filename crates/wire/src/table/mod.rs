//! What is the table service's alone: names and resources, OData JSON, `$filter`, `$batch`, conditions and paging.
//!
//! [`stored`] is the same data at rest: `docs/format.md` byte by byte.

pub mod batch;
pub mod continuation;
pub mod filter;
pub mod if_match;
pub mod index;
pub mod json;
pub mod names;
pub mod negotiate;
pub mod resource;
pub mod select;
pub mod stored;

pub use resource::{ResourcePath, UrlKey, UrlKeyProblem, key_count_error};
