//! JSON strings.

use crate::append::push_start;

/// Appends `text` (UTF-8) as a JSON string, quotes included.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends `text` (UTF-8) as the inside of a JSON string.
pub(super) fn push_escaped(out: &mut Vec<u8>, mut text: &[u8]) {
    while let Some(at) = first_special(text) {
        out.extend_from_slice(&text[..at]);
        match text[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}

/// Names up to this length are looked at and copied in one go.
const SHORT_BYTES: usize = 16;

/// Appends `"name":`, where `name` is the first `length` bytes of `bytes`. The bytes behind a short name are copied along
/// and cut off again, and nearly all names are short.
#[inline(always)]
pub(super) fn push_name(out: &mut Vec<u8>, bytes: &[u8], length: usize) {
    out.push(b'"');
    if (1..=SHORT_BYTES).contains(&length)
        && let Some(chunk) = bytes.first_chunk()
        && !any_special(chunk, length)
    {
        push_start(out, chunk, length);
    } else {
        push_escaped(out, &bytes[..length]);
    }
    out.extend_from_slice(b"\":");
}

/// Whether one of the first `count` bytes is special. `count` is at least 1.
#[inline]
fn any_special(chunk: &[u8; SHORT_BYTES], count: usize) -> bool {
    let word = u128::from_le_bytes(*chunk);
    let [low, high] = [word as u64, (word >> 64) as u64].map(marks_of_specials);
    let marks = u128::from(high) << 64 | u128::from(low);
    marks << (8 * (SHORT_BYTES - count)) != 0
}

/// Where the first byte stands that a JSON string cannot hold as it is. Looks at sixteen bytes at a time, because
/// most text has none.
fn first_special(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(chunk) = text[at..].first_chunk() {
        if any_special(chunk, SHORT_BYTES) {
            return exact_special(text, at);
        }
        at += SHORT_BYTES;
    }
    // The end is looked at together with bytes before it that are known to be fine.
    let is_fine = match (text.last_chunk(), text.first_chunk(), text.last_chunk()) {
        (Some(end), ..) => !any_special(end, SHORT_BYTES),
        (None, Some(start), Some(end)) => {
            let marks = [start, end].map(|bytes| marks_of_specials(u64::from_le_bytes(*bytes)));
            marks[0] | marks[1] == 0
        }
        _ => false,
    };
    if is_fine { None } else { exact_special(text, at) }
}

fn exact_special(text: &[u8], from: usize) -> Option<usize> {
    text[from..].iter().position(|byte| is_special(*byte)).map(|found| from + found)
}

fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

/// The highest bit of each of eight bytes that is special. Bytes behind a special one may be marked too.
#[inline]
fn marks_of_specials(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_le_bytes([b'\\'; 8]);
    const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
    // Each subtraction borrows from the highest bit of a byte that is too small for it.
    let controls = word.wrapping_sub(SPACES);
    let quotes = (word ^ QUOTES).wrapping_sub(ONES);
    let backslashes = (word ^ BACKSLASHES).wrapping_sub(ONES);
    (controls | quotes | backslashes) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(text in "(.|[\u{0}-\u{1f}\"\\\\]){0,40}") {
            let mut out = Vec::new();
            push_string(&mut out, text.as_bytes());
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        /// Whatever stands behind the name, and however much of it.
        #[test]
        fn a_name_amid_bytes_is_written_like_one_of_its_own(
            text in "(.|[a-z]{3}|[\u{0}-\u{1f}\"\\\\]){0,6}", behind in "(.|[\"\\\\]){0,20}",
        ) {
            let (mut out, mut expected) = (b"before".to_vec(), b"before".to_vec());
            push_name(&mut out, format!("{text}{behind}").as_bytes(), text.len());
            push_string(&mut expected, text.as_bytes());
            expected.push(b':');
            prop_assert_eq!(out, expected);
        }
    }
}
