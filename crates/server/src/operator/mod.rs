//! What an operator does with a data folder that no service uses.

pub(crate) mod check;
pub(crate) mod salvage;
mod salvaged_messages;
