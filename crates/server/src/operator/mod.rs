//! What an operator does with a data folder that no service uses.

pub(crate) mod check;
mod check_indexes;
mod check_queues;
mod problems;
pub(crate) mod salvage;
mod salvaged_messages;
