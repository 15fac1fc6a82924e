//! What is kept in the engine, and where: [`layout`] knows every key, [`catalogue`] which things there are.

pub(crate) mod catalogue;
pub(crate) mod detached;
pub(crate) mod layout;
