//! What an operator is told of requests, beside metrics: why callers were refused, and the access log.

pub(crate) mod access;
pub(crate) mod refusals;
