//! Ordered, durable bytes behind five verbs: the storage engines of Tavola.
//!
//! An engine keeps byte keys in byte order and knows nothing of entities, tables or HTTP. Everything the
//! service does is `get`, `scan`, `snapshot`, `transact` or `drop_range`; [`conformance`] is the suite that
//! every engine passes, so that another one (distributed, say) only has to pass it too.

mod any;
pub mod conformance;
mod contract;
mod embedded;
mod error;
mod memory;
mod panics;
mod scan_pool;
mod status;

/// Told of a transition that asks for more keys a second time.
const ASKED_TWICE: &str = "a transition asks for more rows a second time";

pub use any::{AnyEngine, AnySnapshot};
pub use contract::{
    Decision, Engine, Guard, KEY_BYTES_MAX, KeyRange, Reader, Transition, Version, Versioned,
    Visitor, Write, WriteSet, successor,
};
pub use embedded::{
    CheckedRows, EmbeddedEngine, EmbeddedOptions, EmbeddedSnapshot, FileProblem, FilesReport,
    FolderCheck, Histogram, Loss, OpenError, Salvage, Stats, StoreFigures,
};
pub use error::{Error, Result};
pub use memory::{MemoryEngine, MemorySnapshot};
pub use panics::panic_message;
pub use status::{Fullness, Status};
