//! The order of keys: ordinal by UTF-16 code unit, computed on UTF-8 bytes.
//!
//! The service was written for a platform whose strings are UTF-16, so partition and row keys sort
//! by 16-bit unit. Rust strings sort by code point, which differs for one case only: characters
//! above U+FFFF are surrogate pairs (0xD800..=0xDFFF) in UTF-16 and so sort before U+E000..=U+FFFF.
//! No collation and no case folding live here.

use std::cmp::Ordering;

/// Compares two texts by their UTF-16 code units, without encoding them.
pub fn compare_utf16(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).find(|(x, y)| x != y) {
        Some((x, y)) => rank(*x).cmp(&rank(*y)),
        None => a.len().cmp(&b.len()),
    }
}

/// Lifts the lead bytes of U+E000..=U+FFFF (0xEE, 0xEF) above those of four-byte characters
/// (0xF0..=0xF4).
///
/// The first bytes that differ are either both lead bytes or both continuation bytes; the latter
/// are below 0xC0 and keep their order, which is that of the code units as both characters have the
/// same lead byte.
fn rank(byte: u8) -> u8 {
    if byte == 0xEE || byte == 0xEF { byte + 0x10 } else { byte }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(a: &str, b: &str) -> Ordering {
        a.encode_utf16().cmp(b.encode_utf16())
    }

    #[test]
    fn surrogate_pairs_sort_before_the_private_use_area() {
        assert_eq!(compare_utf16("\u{1F600}", "\u{FFFD}"), Ordering::Less);
        assert_eq!(compare_utf16("\u{E000}", "\u{10FFFF}"), Ordering::Greater);
        assert_eq!(compare_utf16("\u{D7FF}", "\u{10000}"), Ordering::Less);
        assert_eq!(compare_utf16("a", "a\0"), Ordering::Less);
        assert_eq!(compare_utf16("A", "a"), Ordering::Less);
        assert_eq!(compare_utf16("", ""), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn agrees_with_encoded_comparison(a in any::<String>(), b in any::<String>()) {
            prop_assert_eq!(compare_utf16(&a, &b), naive(&a, &b));
        }

        #[test]
        fn agrees_on_texts_that_share_a_prefix(
            prefix in "[a\u{e9}\u{1F600}]{0,4}",
            a in "[\u{7f}\u{80}\u{7ff}\u{800}\u{d7ff}\u{e000}\u{efff}\u{f000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
            b in "[\u{7f}\u{80}\u{7ff}\u{800}\u{d7ff}\u{e000}\u{efff}\u{f000}\u{ffff}\u{10000}\u{10ffff}]{0,3}",
        ) {
            let (a, b) = (format!("{prefix}{a}"), format!("{prefix}{b}"));
            prop_assert_eq!(compare_utf16(&a, &b), naive(&a, &b));
        }
    }
}
