//! One request: its head, its body, its id, and its reply.

pub(crate) mod body;
pub(crate) mod head;
pub(crate) mod header_case;
pub(crate) mod ids;
pub(crate) mod notes;
pub(crate) mod redact;
pub(crate) mod reply;
pub(crate) mod respond;
pub(crate) mod signed_query;
