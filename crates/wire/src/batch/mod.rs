//! Entity group transactions on the wire: the multipart request and the multipart response of
//! `$batch`.
//!
//! The reader is tolerant, since every client writes these bodies in its own way; the writer is
//! exact to the byte, since clients take the answers apart with regular expressions. What a batch
//! may contain (one table, one partition, no row twice) is decided by the operation that runs it.

mod multipart;
pub mod request;
pub mod response;

pub use request::{BatchRequest, Changeset, Operation, Part};
pub use response::{BatchWriter, PartResponse};
