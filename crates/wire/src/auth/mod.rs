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

/// The account of the storage emulator, which every client knows for development.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
/// The public key of the storage emulator's account.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The string that should have been signed is told up to this length: more than that of any client, and strangers do not
/// get answers as large as what they may send.
const STRING_TOLD_BYTES_MAX: usize = 16 * 1024;
