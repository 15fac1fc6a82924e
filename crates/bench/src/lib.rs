//! Measures servers that speak the Azure Table and Queue protocols: beside each other, and beside what the machine allows.
//!
//! A measurement is worth something only as a ratio within one run on one machine, so the commands interleave what
//! they compare, round by round, and no test asserts a time. The driver knows the protocol (`tavola-wire`) and no
//! server: the servers it starts are processes, like anyone's.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints reports and progress")]

pub mod bare;
pub mod bare_engine;
pub mod clock;
pub mod commands;
pub mod entity;
pub mod goals;
pub mod histogram;
pub mod host;
pub mod http;
pub mod load;
pub mod machine;
pub mod measure;
pub mod micro;
pub mod operations;
pub mod page;
pub mod process;
pub mod queue;
pub mod random;
pub mod record;
pub mod request;
pub mod servers;
pub mod soak;
pub mod stage;
pub mod table;
pub mod target;
pub mod workload;
pub mod zipf;
