//! What the clients of all services share: the way of a request, who asks, where to, and what went wrong.
//!
//! Nothing here knows what a service stores.

pub(crate) mod attempts;
pub(crate) mod clock;
pub(crate) mod connection_string;
pub(crate) mod credential;
pub(crate) mod error;
pub(crate) mod pipeline;
pub(crate) mod transport;
