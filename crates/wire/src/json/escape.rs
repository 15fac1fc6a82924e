//! JSON strings.

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

/// Where the first byte stands that a JSON string cannot hold as it is. Looks at eight bytes at a time, because
/// most text has none.
fn first_special(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(chunk) = text[at..].first_chunk() {
        if has_special(u64::from_le_bytes(*chunk)) {
            return exact_special(text, at);
        }
        at += 8;
    }
    // The end is looked at together with bytes before it that are known to be fine.
    match text.last_chunk() {
        Some(chunk) if !has_special(u64::from_le_bytes(*chunk)) => None,
        _ => exact_special(text, at),
    }
}

fn exact_special(text: &[u8], from: usize) -> Option<usize> {
    text[from..].iter().position(|byte| is_special(*byte)).map(|found| from + found)
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Whether one of eight bytes is special. Borrows between bytes can only make it say so once too often.
fn has_special(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS;
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    below(word, b' ') | below(quote, 1) | below(backslash, 1) != 0
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
    }
}
