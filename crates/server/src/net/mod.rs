//! The network below HTTP: sockets, TLS, timers, and limits on what peers can hold.

pub(crate) mod framing;
pub(crate) mod h2_watchdog;
pub(crate) mod head_timer;
pub(crate) mod memory_budget;
pub(crate) mod overload;
pub(crate) mod sniff;
pub(crate) mod stall_timeout;
pub(crate) mod stream_window;
pub(crate) mod tls;
pub(crate) mod transport;
