//! Loads of the queue service: messages, the operations on them, and what the driver knows of a queue while it measures.

pub mod backlog;
pub mod chores;
pub mod message;
pub mod operations;
pub mod workload;
