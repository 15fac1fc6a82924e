//! The end of a prefix: the first text after all texts that start with it.

/// The least text above every text with this prefix, in the order of the service; `None` if there is none, and every text
/// from the prefix on has it or follows it.
///
/// The order is that of UTF-16 code units: characters above U+FFFF come before U+E000.
///
/// ```
/// use tavola_client::prefix_end;
///
/// assert_eq!(prefix_end("EMP_").as_deref(), Some("EMP`"));
/// assert_eq!(prefix_end("a\u{ffff}").as_deref(), Some("b"));
/// assert_eq!(prefix_end(""), None);
/// ```
pub fn prefix_end(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = next_character(last) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

/// The next character by UTF-16 code unit.
fn next_character(character: char) -> Option<char> {
    match character {
        // The surrogates, which stand for the characters above U+FFFF, are next.
        '\u{d7ff}' => Some('\u{10000}'),
        '\u{10ffff}' => Some('\u{e000}'),
        '\u{ffff}' => None,
        _ => char::from_u32(u32::from(character) + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tavola_wire::table::stored::key::compare_text;

    use super::*;

    const TEXT: &str =
        "[a-c\u{d7fe}-\u{d7ff}\u{e000}\u{fffe}-\u{ffff}\u{10000}\u{10fffe}-\u{10ffff}]{0,3}";

    proptest! {
        /// A text has the prefix exactly when it lies from the prefix to its end.
        #[test]
        fn the_range_holds_the_prefixed_and_no_others(prefix in TEXT, text in TEXT) {
            let after = compare_text(&text, &prefix).is_ge();
            let before = prefix_end(&prefix).is_none_or(|end| compare_text(&text, &end).is_lt());
            let all_last = prefix.chars().all(|character| character == '\u{ffff}');
            if !all_last || prefix.is_empty() {
                prop_assert_eq!(after && before, text.starts_with(&prefix));
            }
        }
    }
}
