//! What of a URL may be logged. The query never is; a signature can still stand in the path, when a client has encoded
//! the question mark.

use std::borrow::Cow;

/// What a signature follows, in lower case.
const BEFORE_SIGNATURE: [&str; 2] = ["sig=", "sig%3d"];
const REDACTED: &str = "(redacted)";

/// The path, cut off where a signature begins. What comes after it is no path.
pub(crate) fn path(path: &str) -> Cow<'_, str> {
    let lower = path.to_ascii_lowercase();
    let signatures =
        BEFORE_SIGNATURE.iter().filter_map(|name| Some(lower.find(name)? + name.len()));
    match signatures.min() {
        None => Cow::Borrowed(path),
        Some(end) => Cow::Owned(format!("{}{REDACTED}", &path[..end])),
    }
}

/// The text up to a number of bytes, cut off between characters. What a client sends must not make a line of the log as long
/// as its request.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_off_between_characters() {
        assert_eq!(shortened(&"\u{e4}".repeat(100), 101), "\u{e4}".repeat(50));
        assert_eq!(shortened("short", 101), "short");
    }

    #[test]
    fn signatures_are_cut_off() {
        for (given, logged) in [
            ("/acct/tbl()", "/acct/tbl()"),
            (
                "/acct/tbl(PartitionKey='sign',RowKey='')",
                "/acct/tbl(PartitionKey='sign',RowKey='')",
            ),
            ("/acct/tbl%3Fsv=1&sig=abc%3D&sp=r", "/acct/tbl%3Fsv=1&sig=(redacted)"),
            ("/acct/tbl%3fsv%3d1%26SIG%3Dabc", "/acct/tbl%3fsv%3d1%26SIG%3D(redacted)"),
            ("/%73ig%3Dx/sig=y&sig%3Dz", "/%73ig%3Dx/sig=(redacted)"),
        ] {
            assert_eq!(path(given), logged);
        }
    }
}
