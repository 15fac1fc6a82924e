//! What the queue service adds to the protocol that all services share.

pub mod answers;
