//! Percent-encoding, strictly and once: `%2520` is the text `%20`, never a space.
//!
//! A path and a query string differ only in `+`. Text without escapes is borrowed, which is the
//! usual case.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::syntax_error;
use crate::error::Result;

/// Decodes a path or a part of one; `+` is a plus sign.
///
/// # Errors
/// 400 `InvalidInput` on a broken escape or when the decoded bytes are not UTF-8.
pub fn decode_path(raw: &str) -> Result<Cow<'_, str>> {
    match memchr(b'%', raw.as_bytes()) {
        None => Ok(Cow::Borrowed(raw)),
        Some(first) => decode(raw, first, false).map(Cow::Owned),
    }
}

/// Decodes a name or a value of a query string; `+` is a space.
///
/// # Errors
/// 400 `InvalidInput` on a broken escape or when the decoded bytes are not UTF-8.
pub fn decode_query(raw: &str) -> Result<Cow<'_, str>> {
    match memchr2(b'%', b'+', raw.as_bytes()) {
        None => Ok(Cow::Borrowed(raw)),
        Some(first) => decode(raw, first, true).map(Cow::Owned),
    }
}

fn decode(raw: &str, first: usize, plus_is_space: bool) -> Result<String> {
    // In place: what is decoded is never longer.
    let mut text = raw.as_bytes().to_vec();
    let (mut from, mut to) = (first, first);
    while let Some(&byte) = text.get(from) {
        text[to] = match byte {
            b'%' => {
                let digits = text.get(from + 1..from + 3).ok_or_else(syntax_error)?;
                let (Some(high), Some(low)) = (hex_value(digits[0]), hex_value(digits[1])) else {
                    return Err(syntax_error());
                };
                from += 2;
                high << 4 | low
            }
            b'+' if plus_is_space => b' ',
            other => other,
        };
        from += 1;
        to += 1;
    }
    text.truncate(to);
    String::from_utf8(text).map_err(|error| syntax_error().caused_by(error))
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Appends a value of a query string: everything but the unreserved characters of RFC 3986 is encoded, so that no part
/// of the way reads it otherwise.
pub fn push_encoded(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.extend(escape(byte).map(char::from)),
        }
    }
}

/// Writes a key as it stands between the quotes of `Location`, `odata.id` and `odata.editLink`: a
/// quote is doubled and left raw, everything unsafe is percent-encoded UTF-8.
pub fn write_key(key: &str, out: &mut Vec<u8>) {
    for &byte in key.as_bytes() {
        match byte {
            b'\'' => out.extend_from_slice(b"''"),
            // The unreserved marks of RFC 2396, which is the set that leaves the quote raw.
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(byte),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'(' | b')' => out.push(byte),
            _ => out.extend_from_slice(&escape(byte)),
        }
    }
}

fn escape(byte: u8) -> [u8; 3] {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    [b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]
}

/// Writes `table(PartitionKey='p',RowKey='r')`: the edit link, and what follows `BASE/` in an
/// entity's URL.
pub fn write_entity_link(table: &str, partition_key: &str, row_key: &str, out: &mut Vec<u8>) {
    out.reserve(table.len() + partition_key.len() + row_key.len() + 28);
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    write_key(partition_key, out);
    out.extend_from_slice(b"',RowKey='");
    write_key(row_key, out);
    out.extend_from_slice(b"')");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(key: &str) -> String {
        let mut out = Vec::new();
        write_key(key, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_path_is_decoded_once_and_plus_stays() {
        // Wire reference 1.3, rules 1 and 3.
        assert_eq!(decode_path("%2520").unwrap(), "%20");
        assert_eq!(decode_path("a+b").unwrap(), "a+b");
        assert_eq!(decode_path("Tables(%27t%27)").unwrap(), "Tables('t')");
        assert_eq!(decode_path("%C3%A9").unwrap(), "\u{e9}");
        assert!(matches!(decode_path("plain").unwrap(), Cow::Borrowed(_)));
    }

    #[test]
    fn a_query_reads_plus_as_space() {
        // Wire reference 1.4: legacy Python.
        let filter = decode_query("PartitionKey+eq+%27003%27").unwrap();
        assert_eq!(filter, "PartitionKey eq '003'");
        assert_eq!(decode_query("a%2Bb").unwrap(), "a+b");
    }

    #[test]
    fn broken_escapes_and_bad_utf8_are_refused() {
        for raw in ["%", "%4", "%zz", "%f", "a%2", "%C3", "%FF%FE", "%C3%28", "%+1"] {
            let error = decode_path(raw).unwrap_err();
            assert_eq!(error.status(), 400, "{raw}");
            assert_eq!(error.message(), "Bad Request - Error in query syntax.", "{raw}");
            assert!(decode_query(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn links_encode_keys_as_the_recording_does() {
        // Wire reference 2.2.
        assert_eq!(encoded("A'aaa\"_b"), "A''aaa%22_b");
        assert_eq!(encoded("%20 \u{e9}"), "%2520%20%C3%A9");
        let mut link = Vec::new();
        write_entity_link("t", "O'B r", "1", &mut link);
        assert_eq!(link, b"t(PartitionKey='O''B%20r',RowKey='1')");
    }

    proptest! {
        #[test]
        fn decoding_never_panics(raw in any::<String>()) {
            let _ = decode_path(&raw);
            let _ = decode_query(&raw);
        }

        #[test]
        fn an_encoded_key_decodes_to_itself(key in any::<String>()) {
            let encoded = encoded(&key);
            prop_assert_eq!(decode_path(&encoded).unwrap(), key.replace('\'', "''"));
        }

        #[test]
        fn an_encoded_value_decodes_to_itself(value in any::<String>()) {
            let mut encoded = String::new();
            push_encoded(&value, &mut encoded);
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic() && !b"&=+".contains(&byte)));
            prop_assert_eq!(decode_query(&encoded).unwrap(), value.as_str());
            prop_assert_eq!(decode_path(&encoded).unwrap(), value);
        }

        #[test]
        fn an_encoded_key_is_safe_in_a_header(key in any::<String>()) {
            prop_assert!(encoded(&key).bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }
}
