//! The Tavola server: listener, authentication, routing, operations, key layout, metrics.
//!
//! [`handle`] is the table of contents of a request; [`storage::layout`] says where everything lies in the engine;
//! [`table`] has one file per operation. The protocol itself is `tavola-wire`, the storage `tavola-engine`.

mod admin;
mod auth;
mod background;
mod clock;
pub mod config;
mod connection;
mod context;
mod error;
#[cfg(debug_assertions)]
mod fault;
mod handle;
mod listener;
mod metrics;
mod net;
mod operator;
mod request;
mod start;
mod state;
mod storage;
mod table;

pub use operator::check::{CheckProgress, CheckReport, check};
pub use operator::salvage::{SalvageError, SalvageReport, salvage};
pub use start::{RunningServer, StartError, start};
pub use tavola_engine::panic_message;
