//! The Tavola server: listener, authentication, routing, operations, key layout, metrics.
//!
//! [`handle`] is the table of contents of a request; [`storage::layout`] says where everything lies in the engine;
//! [`table`] has one file per operation. The protocol itself is `tavola-wire`, the storage `tavola-engine`.

mod admin;
mod arrival;
mod auth;
mod background;
mod clock;
pub mod config;
mod connection;
mod context;
mod error;
mod handle;
mod listener;
mod metrics;
mod net;
mod operations;
mod operator;
mod request;
mod services;
mod start;
mod state;
mod storage;
mod table;
mod tenant;
#[cfg(feature = "test-hooks")]
mod test_hooks;
mod workload;

pub use operator::check::{CheckProgress, CheckReport, check};
pub use operator::salvage::{SalvageError, SalvageReport, salvage};
pub use services::SERVICES;
pub use start::{RunningServer, StartError, start};
pub use tavola_engine::panic_message;
