//! What an operator does with a data folder that no service uses.

pub(crate) mod check;
mod check_indexes;
mod problems;
pub(crate) mod salvage;
mod salvaged_messages;
