//! The proof from outside: the real binary, over loopback, byte by byte.
//!
//! One test binary with a module per theme. Tests that need no state of their own share one server, and each
//! makes the tables it needs under names that nobody else has. `wire-reference` in comments is the
//! description of the protocol that the service is held to; section numbers are its.

mod support;

use support::random;

mod bad_input;
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
mod histories;
mod hostile;
mod limits;
mod local_user;
mod measuring;
mod model;
mod network_path;
mod paging;
mod running;
mod sas;
mod sas_model;
mod sas_random;
mod secrets;
mod service;
mod shared_key;
mod stranger;
mod tables;
mod upgrade;
mod urls;
