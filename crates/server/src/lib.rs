//! The Tavola table service: listener, authentication, routing, operations, key layout, metrics.
//!
//! [`handle`] is the table of contents of a request; [`layout`] says where everything lies in the engine;
//! [`table`] has one file per operation. The protocol itself is `tavola-wire`, the storage `tavola-engine`.

mod admin;
pub mod auth;
mod background;
mod body;
mod catalogue;
mod check;
mod clock;
pub mod config;
mod connection;
mod context;
mod cors;
mod engine_metrics;
mod error;
#[cfg(debug_assertions)]
mod fault;
mod handle;
mod head;
mod head_timer;
mod http2;
mod ids;
mod jwks;
mod layout;
mod message_memory;
mod metrics;
mod patience;
mod redact;
mod refuse;
mod respond;
mod route;
mod run;
mod self_wake;
mod server;
mod services;
mod signed_query;
mod sniff;
mod solitude;
mod table;
mod tls;
mod transport;
mod uninterrupted;

pub use check::{CheckProgress, CheckReport, check};
pub use run::{RunningServer, StartError, start};
pub use tavola_engine::panic_message;
