//! The commands: each a question, each with an answer that can be kept.

pub mod compare;
pub mod footprint;
pub mod growth;
pub mod indexes;
pub mod latency;
pub mod mixed;
pub mod queues;
pub mod run;
