//! The proof from outside: the real binary, over loopback, byte by byte.
//!
//! One test binary with a folder per service and one for what they share, a module per theme. Tests that need no state of their own share one server, and each
//! makes the tables it needs under names that nobody else has. `wire-reference` in comments is the
//! description of the protocol that the service is held to; section numbers are its.

mod support;

use support::random;

mod queue;
mod server;
mod table;
