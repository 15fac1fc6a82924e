//! Signatures that were made with a key of a user, not of the account.
//!
//! Such keys are handed out to the bearers of Entra tokens. None are handed out here, so a token that was signed with one
//! is refused by its fields alone, before anything else of it is looked at.

/// Whether only a user-delegation signature has a field of this name: who the user is, and how long the key is valid.
pub(super) fn is_field(name: &str) -> bool {
    matches!(name, "skoid" | "sktid" | "skt" | "ske" | "sks" | "skv")
}
