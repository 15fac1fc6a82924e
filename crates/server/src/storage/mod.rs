//! What is kept in the engine, and where. Knows no request and no wire code: the services name the errors.
//!
//! [`layout`] knows every key and value, [`catalogue`] what has a name in an account, [`accounts`] the rows of accounts.

pub(crate) mod accounts;
pub(crate) mod catalogue;
pub(crate) mod detached;
mod error;
pub(crate) mod layout;

pub(crate) use error::{Error, Result};
