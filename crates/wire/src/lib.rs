//! The Azure Storage protocol as pure functions: no I/O, no clock, no runtime.
//!
//! Everything that crosses the wire is parsed into a type here, and printed from one. At the top stands what all
//! services share: addresses, versions, signatures, XML documents, error codes. [`table`] is what the table service adds, [`queue`] what the queue service does.

mod append;
pub mod auth;
pub mod cors;
pub mod error;
pub mod error_code;
pub mod explain;
mod header_text;
mod name_list;
pub mod queue;
pub mod refusal;
pub mod service;
pub mod table;
pub mod ticks;
pub mod uri;
pub mod verb;
pub mod version;
pub mod xml;

pub use error::StorageError;
pub use error_code::ErrorCode;
pub use header_text::header_text;
pub use refusal::RefusalReason;
pub use service::Service;
pub use ticks::Ticks;
pub use version::ServiceVersion;
