//! The client library against the real binary; see `support.rs` for why these tests are here.

mod support;

mod blocking;
mod bulk;
mod connect;
mod docs;
mod encryption;
mod entities;
mod examples;
mod indexes;
mod operations;
mod patterns;
mod queue;
mod resume;
mod retries;
mod sas;
mod split;
mod test_server;
mod tls;
mod tokens;
mod typed;
