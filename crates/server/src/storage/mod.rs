//! The rows in the engine. Nothing here knows a request, a service or a wire code: the services name the errors.
//!
//! [`layout`] has every key and value, [`catalogue`] the things that have a name in an account, [`accounts`] the rows of
//! the accounts themselves, [`queues`] the messages of queues.

pub(crate) mod accounts;
pub(crate) mod catalogue;
pub(crate) mod detached;
mod error;
pub(crate) mod features;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod queues;

use std::time::Duration;

use bytes::Bytes;

pub(crate) use error::{Error, Result};

/// Longer than any write that has begun can take to be made: one to a table that was dropped meanwhile, say.
pub(crate) const STRAGGLER_GRACE: Duration = Duration::from_secs(60);

/// The id to give out, and what the stored sequence is then.
fn next_id(sequence: Option<&[u8]>) -> Result<(u64, Bytes)> {
    layout::sequence::allocate(sequence).ok_or_else(|| Error::Corrupt("the id sequence".into()))
}
