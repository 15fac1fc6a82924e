//! Entity group transactions on the wire: the multipart request and the multipart response of
//! `$batch`.
//!
//! The reader is tolerant, since every client writes these bodies in its own way; the writer is
//! exact to the byte, since clients take the answers apart with regular expressions. What a batch
//! may contain (one table, one partition, no row twice) is decided by the operation that runs it.
//!
//! The client's half is here too: [`BatchRequestWriter`] and [`read_response`].

mod multipart;
pub mod request;
mod request_writer;
pub mod response;
mod response_reader;

pub use request::{BatchRequest, Changeset, Operation, Part};
pub use request_writer::{BatchRequestWriter, OutgoingOperation};
pub use response::{BatchWriter, PartResponse};
pub use response_reader::{PartReply, read_response};

/// The largest body of a transaction, and so of every request of the table service.
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
