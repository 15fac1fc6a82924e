//! The values of headers as text.

use std::borrow::Cow;

/// A value as UTF-8; other bytes as Latin-1, which HTTP once meant and some clients still write.
pub fn header_text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.iter().copied().map(char::from).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_utf_8_is_latin_1() {
        for (value, expected) in [
            (&b"plain"[..], "plain"),
            ("\u{e9}\u{20ac}".as_bytes(), "\u{e9}\u{20ac}"),
            (b"caf\xe9", "caf\u{e9}"),
            (b"\xff\x80", "\u{ff}\u{80}"),
        ] {
            assert_eq!(header_text(value), expected);
        }
    }
}
