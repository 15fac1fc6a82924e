//! Entity keys as bytes in the service's order.
//!
//! The order of the service is ordinal by UTF-16 code unit, as .NET's. It differs from the byte order of
//! UTF-8 only in that characters above U+FFFF (surrogates in UTF-16, lead byte F0 and above in UTF-8) sort
//! before U+E000..U+FFFF (lead bytes EE and EF). Mapping EE to FE and EF to FF restores it, reversibly,
//! because no UTF-8 text contains FE or FF.
//!
//! An entity key is `ordered(PartitionKey) 00 ordered(RowKey)`. Control characters are forbidden in both, so
//! one zero byte separates without escaping and `"a" < "ab"` holds.

use std::borrow::Cow;
use std::cmp::Ordering;

const LEAD_E000: u8 = 0xEE;
const LEAD_F000: u8 = 0xEF;
/// Distance from a lead byte to its place above every other lead byte.
const LIFT: u8 = 0x10;

/// Separates the partition key from the row key; smaller than any byte of either.
pub const SEPARATOR: u8 = 0;

/// Appends `text` as bytes that sort like its UTF-16 code units.
pub fn push_ordered(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    if text.bytes().any(is_lifted_lead) {
        for byte in out[start..].iter_mut().filter(|byte| is_lifted_lead(**byte)) {
            *byte += LIFT;
        }
    }
}

/// Reads back what [`push_ordered`] wrote; `None` if the bytes cannot have come from it.
pub fn read_ordered(bytes: &[u8]) -> Option<Cow<'_, str>> {
    // Few texts have characters from U+E000 on.
    if bytes.iter().any(|byte| *byte >= LEAD_E000) {
        if bytes.iter().copied().any(is_lifted_lead) {
            return None;
        }
        let lowered = bytes
            .iter()
            .map(|byte| if *byte >= LEAD_E000 + LIFT { byte - LIFT } else { *byte })
            .collect();
        return String::from_utf8(lowered).ok().map(Cow::Owned);
    }
    std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
}

/// Compares two texts in the order of the service, without allocating.
pub fn compare_text(a: &str, b: &str) -> Ordering {
    compare_utf8(a.as_bytes(), b.as_bytes())
}

/// [`compare_text`] for stored bytes, without checking that they are UTF-8.
#[inline]
pub(crate) fn compare_utf8(a: &[u8], b: &[u8]) -> Ordering {
    match a.iter().zip(b).find(|(x, y)| x != y) {
        None => a.len().cmp(&b.len()),
        Some((x, y)) => lift(*x).cmp(&lift(*y)),
    }
}

/// Appends the key of one entity.
pub fn push_entity_key(out: &mut Vec<u8>, partition_key: &str, row_key: &str) {
    debug_assert!(!partition_key.as_bytes().contains(&SEPARATOR));
    debug_assert!(!row_key.as_bytes().contains(&SEPARATOR));
    push_ordered(out, partition_key);
    out.push(SEPARATOR);
    push_ordered(out, row_key);
}

/// Reads back what [`push_entity_key`] wrote: partition key and row key.
pub fn read_entity_key(bytes: &[u8]) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let separator = memchr::memchr(SEPARATOR, bytes)?;
    Some((read_ordered(&bytes[..separator])?, read_ordered(&bytes[separator + 1..])?))
}

fn is_lifted_lead(byte: u8) -> bool {
    byte == LEAD_E000 || byte == LEAD_F000
}

fn lift(byte: u8) -> u8 {
    if is_lifted_lead(byte) { byte + LIFT } else { byte }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ordered(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        push_ordered(&mut out, text);
        out
    }

    fn entity_key(pk: &str, rk: &str) -> Vec<u8> {
        let mut out = Vec::new();
        push_entity_key(&mut out, pk, rk);
        out
    }

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn surrogates_sort_before_private_use() {
        assert!(ordered("\u{1F600}") < ordered("\u{E000}"));
        assert!(ordered("\u{10FFFF}") < ordered("\u{FFFF}"));
        assert!(ordered("\u{D7FF}") < ordered("\u{1F600}"));
        assert_eq!(compare_text("\u{1F600}", "\u{E000}"), Ordering::Less);
    }

    #[test]
    fn bytes_that_are_not_lifted_were_never_written() {
        assert_eq!(ordered("\u{E000}\u{F000}"), b"\xFE\x80\x80\xFF\x80\x80");
        for bytes in [&b"\xEE\x80\x80"[..], b"a\xEF\xBF\xBF", b"\xFE\x80\x80\xEE\x80\x80"] {
            assert_eq!(read_ordered(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_shorter_partition_key_sorts_first_whatever_the_row_key() {
        assert!(entity_key("a", "zzz") < entity_key("ab", ""));
        assert!(entity_key("", "z") < entity_key(" ", ""));
    }

    const KEY_TEXT: &str =
        "([ -~]|[\u{D700}-\u{D7FF}]|[\u{E000}-\u{FFFD}]|[\u{10000}-\u{10FFFF}]){0,6}";

    proptest! {
        #[test]
        fn order_is_that_of_utf16(a in KEY_TEXT, b in KEY_TEXT) {
            let expected = utf16(&a).cmp(&utf16(&b));
            prop_assert_eq!(ordered(&a).cmp(&ordered(&b)), expected);
            prop_assert_eq!(compare_text(&a, &b), expected);
        }

        #[test]
        fn entity_keys_sort_by_partition_then_row(
            a in (KEY_TEXT, KEY_TEXT), b in (KEY_TEXT, KEY_TEXT),
        ) {
            let expected = (utf16(&a.0), utf16(&a.1)).cmp(&(utf16(&b.0), utf16(&b.1)));
            prop_assert_eq!(entity_key(&a.0, &a.1).cmp(&entity_key(&b.0, &b.1)), expected);
        }

        #[test]
        fn entity_keys_round_trip(pk in KEY_TEXT, rk in KEY_TEXT) {
            let key = entity_key(&pk, &rk);
            let (read_pk, read_rk) = read_entity_key(&key).unwrap();
            prop_assert_eq!((read_pk.as_ref(), read_rk.as_ref()), (pk.as_str(), rk.as_str()));
        }
    }
}
