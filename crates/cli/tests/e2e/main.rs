//! The proof from outside: the real binary, over loopback, byte by byte.
//!
//! One test binary with a module per theme. Tests that need no state of their own share one server, and each
//! makes the tables it needs under names that nobody else has. `wire-reference` in comments is the
//! description of the protocol that the service is held to; section numbers are its.

mod support;

mod batch;
mod bearer;
mod check;
mod conditions;
mod crash;
#[cfg(target_os = "linux")]
mod disk;
mod entities;
mod filters;
mod guide;
mod limits;
mod model;
mod paging;
mod running;
mod sas;
mod service;
mod shared_key;
mod tables;
mod upgrade;
mod urls;
