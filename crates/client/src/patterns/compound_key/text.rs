//! Texts in keys: what a key cannot hold is written otherwise, everything else stands as it is.
//!
//! `/ \ # ?` and control characters are not allowed in keys. Each of them is written as the character below it and a mark,
//! `~1`, so that it keeps its place in the order: `/` is `.~1`. The character below is marked too, by `~0`, but only where it
//! stands before `~` or a character above it; a mail address or a file name stays what it is. The separator of a compound
//! key is treated like a forbidden character in the parts where it would be taken for one.
//!
//! The order of texts is the order of what is written, with one exception: control characters below the blank come after
//! it, because nothing that a key can hold comes before it. With a blank as separator, they keep their place too.

use crate::Result;
use crate::error::{conversion, refused};

/// After the neighbour of a character: which of the two is meant.
const MARK: char = '~';
const NEIGHBOUR: char = '0';
const ESCAPED: char = '1';

/// How the parts of a key are written: with which separator, and whether it can be mistaken in this part.
///
/// [`KeyPart`](super::KeyPart)s hand it on to the parts that they are made of.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::patterns::compound_key::{KeyPart, KeyStyle};
///
/// let mut key = String::new();
/// "a_b/c".to_owned().write_part(&mut key, KeyStyle::WHOLE)?;
/// assert_eq!(key, "a_b.~1c", "alone, nothing else is mistaken");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyStyle {
    separator: Option<char>,
}

impl KeyStyle {
    /// A part that nothing follows: separators in it are plain characters.
    pub const WHOLE: Self = Self { separator: None };

    /// A part that a separator follows.
    pub(crate) const fn before(separator: char) -> Self {
        Self { separator: Some(separator) }
    }

    /// Appends a text.
    pub(crate) fn push_text(self, text: &str, key: &mut String) {
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let is_before_mark = rest.peek().is_some_and(|next| *next >= MARK);
            self.push_character(character, is_before_mark, key);
        }
    }

    fn push_character(self, character: char, is_before_mark: bool, key: &mut String) {
        let code = u32::from(character);
        match character {
            '\0'..='!' if self.separator == Some(' ') => key.push_str(&format!("!{code:02X}")),
            '\0'..='\x1f' => key.push_str(&format!(" {MARK}{ESCAPED}{code:02X}")),
            '\x7f'..='\u{9f}' => key.push_str(&format!("~{MARK}{ESCAPED}{code:02X}")),
            _ if self.is_escaped(character) => {
                let below = char::from_u32(code - 1).expect("a character has one below it");
                key.extend([below, MARK, ESCAPED]);
            }
            _ if is_before_mark && self.is_neighbour(character) => {
                key.extend([character, MARK, NEIGHBOUR]);
            }
            _ => key.push(character),
        }
    }

    /// Reads a text back.
    pub(crate) fn read_text(self, text: &str) -> Result<String> {
        let mut value = String::with_capacity(text.len());
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let read = match character {
                '!' if self.separator == Some(' ') => read_code(&mut rest),
                _ if self.is_neighbour(character) && rest.next_if_eq(&MARK).is_some() => {
                    read_marked(character, &mut rest)
                }
                _ => Some(character),
            };
            value.push(read.ok_or_else(|| malformed(text))?);
        }
        // One value has one key: other ways to write it would be other entities.
        let mut written = String::with_capacity(text.len());
        self.push_text(&value, &mut written);
        if written == text { Ok(value) } else { Err(malformed(text)) }
    }

    fn is_escaped(self, character: char) -> bool {
        matches!(character, '#' | '/' | '?' | '\\') || self.separator == Some(character)
    }

    /// Whether the character is used to write another.
    fn is_neighbour(self, character: char) -> bool {
        match character {
            '"' | '.' | '>' | '[' | MARK => true,
            ' ' => self.separator != Some(' '),
            _ => self.separator.is_some_and(|separator| {
                separator != ' ' && u32::from(character) + 1 == u32::from(separator)
            }),
        }
    }
}

/// The separators that keys can have: all but letters, digits, and what is used to write other characters.
pub(crate) const fn is_separator(character: char) -> bool {
    matches!(character, ' ' | '_' | '-' | ':' | ';' | ',' | '|' | '+' | '=' | '&')
}

pub(crate) fn check_separator(character: char) -> Result<char> {
    match is_separator(character) {
        true => Ok(character),
        false => Err(refused(format!(
            "keys can be separated by a blank or one of _-:;,|+=&: separator={character:?}"
        ))),
    }
}

fn read_marked(
    neighbour: char,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Option<char> {
    match (rest.next()?, neighbour) {
        (NEIGHBOUR, _) => Some(neighbour),
        (ESCAPED, ' ' | MARK) => read_code(rest),
        (ESCAPED, _) => char::from_u32(u32::from(neighbour) + 1),
        _ => None,
    }
}

fn read_code(rest: &mut impl Iterator<Item = char>) -> Option<char> {
    let digits: String = rest.take(2).collect();
    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
}

pub(super) fn malformed(key: &str) -> azure_core::Error {
    conversion(format!("the key is not of this form: key={key}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tavola_wire::table::names::{KeyProblem, key_problem};
    use tavola_wire::table::stored::key::compare_text;

    use super::*;

    const SEPARATORS: [Option<char>; 6] =
        [None, Some(' '), Some('_'), Some('-'), Some(':'), Some('|')];

    fn written(text: &str, separator: Option<char>) -> String {
        let mut key = String::new();
        KeyStyle { separator }.push_text(text, &mut key);
        key
    }

    /// Every key and value that the guide prints stands as it is printed.
    #[test]
    fn the_keys_of_the_guide_stand_as_printed() {
        for text in [
            "jonesj@contoso.com",
            "jonesj1@contoso.com",
            "000223",
            "empid_000123_2012",
            "Jones",
            "O'Brien",
            "van der Berg",
            "EMPLOYEE_000123",
            "queue 2014-07-31T18:00:00Z (1).log",
            "José",
        ] {
            assert_eq!(written(text, None), text);
        }
    }

    #[test]
    fn what_a_key_cannot_hold_is_written_by_its_neighbour() {
        for (text, separator, key) in [
            ("a/b\\c#d?e", None, "a.~1b[~1c\"~1d>~1e"),
            ("a.b", None, "a.b"),
            (".~", None, ".~0~"),
            ("a.é", None, "a.~0é"),
            ("\u{1}\u{80}", None, " ~101~~180"),
            ("a_b", Some('_'), "a^~1b"),
            ("a b!", Some(' '), "a!20b!21"),
        ] {
            assert_eq!(written(text, separator), key, "{text}");
        }
    }

    #[test]
    fn other_ways_to_write_a_text_are_no_keys() {
        for text in [".~", ".~2", ".~0", ".~0a", " ~1", " ~141", "~~1", "~~141", "a~~1zz"] {
            assert!(KeyStyle::WHOLE.read_text(text).is_err(), "{text}");
        }
        for text in ["!", "!0", "!41", "!0a"] {
            assert!(KeyStyle::before(' ').read_text(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn texts_round_trip_and_are_legal(text in any::<String>(), index in 0..SEPARATORS.len()) {
            let separator = SEPARATORS[index];
            let key = written(&text, separator);
            prop_assert!(!matches!(key_problem(&key), Some(KeyProblem::Forbidden(_))), "{}", key);
            prop_assert!(separator.is_none_or(|separator| !key.contains(separator)), "{}", key);
            prop_assert_eq!(KeyStyle { separator }.read_text(&key).unwrap(), text);
        }

        /// By UTF-16 code unit, as the service compares.
        #[test]
        fn the_order_is_kept(
            a in "[ -~\u{7f}-\u{a1}\u{ffff}\u{10000}]{0,4}",
            b in "[ -~\u{7f}-\u{a1}\u{ffff}\u{10000}]{0,4}",
            index in 0..SEPARATORS.len(),
        ) {
            let key = |text: &str| written(text, SEPARATORS[index]);
            prop_assert_eq!(compare_text(&key(&a), &key(&b)), compare_text(&a, &b));
        }

        /// The marks are where the order breaks first.
        #[test]
        fn the_order_is_kept_among_neighbours(
            a in "[ \".>\\[~/#?\\\\^_,:01a-]{0,5}", b in "[ \".>\\[~/#?\\\\^_,:01a-]{0,5}",
            index in 0..SEPARATORS.len(),
        ) {
            let key = |text: &str| written(text, SEPARATORS[index]);
            prop_assert_eq!(compare_text(&key(&a), &key(&b)), compare_text(&a, &b));
            prop_assert_eq!(KeyStyle { separator: SEPARATORS[index] }.read_text(&key(&a)).unwrap(), a);
        }

        /// A blank as separator keeps the order of control characters too.
        #[test]
        fn with_a_blank_everything_keeps_its_place(a in "[\u{0}-\u{22}]{0,3}", b in "[\u{0}-\u{22}]{0,3}") {
            let key = |text: &str| written(text, Some(' '));
            prop_assert_eq!(compare_text(&key(&a), &key(&b)), compare_text(&a, &b));
        }
    }
}
