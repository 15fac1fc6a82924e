//! The client library against the real binary; see `support.rs` for why these tests are here.

mod support;

mod entities;
mod operations;
mod retries;
mod sas;
mod typed;
