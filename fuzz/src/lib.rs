//! One function per reader of a stranger's bytes. Each takes whatever bytes there are and panics when the reader
//! breaks a promise: not only by a panic of its own, but by an answer that an independent reading refutes, by
//! text that does not come back, or by an error that the protocol does not have.
//!
//! The same functions run under libFuzzer (`fuzz_targets/`) and over the committed files (`tests/replay.rs`).

#![forbid(unsafe_code)]

pub mod authorization;
pub mod batch;
pub mod continuation;
pub mod encoded_entity;
pub mod filter;
pub mod json_entity;
pub mod long_form;
pub mod names;
pub mod queue_message;
pub mod sas;
pub mod service_sas;
pub mod url;
pub mod value_line;
pub mod xml;

mod input;
mod model;

/// A target's name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, under the name of its corpus.
pub const TARGETS: [Target; 14] = [
    ("authorization", authorization::run),
    ("batch", batch::run),
    ("continuation", continuation::run),
    ("encoded_entity", encoded_entity::run),
    ("filter", filter::run),
    ("json_entity", json_entity::run),
    ("long_form", long_form::run),
    ("names", names::run),
    ("queue_message", queue_message::run),
    ("sas", sas::run),
    ("service_sas", service_sas::run),
    ("url", url::run),
    ("value_line", value_line::run),
    ("xml", xml::run),
];
