//! What the clients of all services share: the way of a request, who asks, where to, and what went wrong.
//!
//! Nothing here knows what a service stores: what differs between services is a [`service::ServiceSpec`].

pub(crate) mod attempts;
pub(crate) mod builder;
pub(crate) mod clock;
pub(crate) mod connect_retry;
pub(crate) mod connection_string;
pub(crate) mod credential;
pub(crate) mod error;
pub(crate) mod options;
pub(crate) mod pager;
pub(crate) mod pipeline;
pub(crate) mod races;
pub(crate) mod response;
pub(crate) mod result;
pub(crate) mod service;
pub(crate) mod shared_key_policy;
pub(crate) mod stop;
pub(crate) mod task;
pub(crate) mod transport;
pub(crate) mod transport_error;
