//! Who may do what: shared keys, shared access signatures and the times they are valid for.
//!
//! The functions here are pure: they take header and query texts, the account's keys and the time
//! of the request, and answer with a type that proves the check or with the error of the service.
//! They hold no state, read no clock, and know nothing of accounts beyond their keys.

pub mod key;
pub(crate) mod policy;
pub mod sas;
pub mod shared_key;

pub use key::{AccountKey, Signature, is_same_secret};
pub use policy::{AccessPolicy, SignedIdentifier};

/// The string that should have been signed is told up to this length: more than that of any client, and strangers do not
/// get answers as large as what they may send.
const STRING_TOLD_BYTES_MAX: usize = 16 * 1024;
