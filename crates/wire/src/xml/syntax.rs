//! What XML 1.0 says of characters, names, references and tags, where the library that finds the parts does not look.

use std::borrow::Cow;

/// More than anybody writes: each is compared with those before it.
const ATTRIBUTES_MAX: usize = 32;

/// The characters of XML 1.0; others cannot be written back, not even as references.
pub(crate) fn is_xml_char(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// Where the first character is that XML 1.0 does not have.
pub(crate) fn first_not_xml(text: &str) -> Option<usize> {
    // Nearly always there is none, and bytes are looked at many at a time. U+FFFE and U+FFFF begin with 0xEF.
    let is_suspect =
        |byte: u8| (byte < b' ') & !matches!(byte, b'\t' | b'\n' | b'\r') | (byte == 0xEF);
    if text.bytes().fold(0, |any, byte| any | u8::from(is_suspect(byte))) == 0 {
        return None;
    }
    text.char_indices().find(|(_, char)| !is_xml_char(*char)).map(|(at, _)| at)
}

/// A text that repeats what was sent, of which not everything can stand in a document.
pub(crate) fn only_xml(text: &str) -> Cow<'_, str> {
    match first_not_xml(text) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.replace(|char| !is_xml_char(char), "\u{fffd}")),
    }
}

/// The blanks of XML, which are fewer than those of Unicode.
pub(super) fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n')
}

/// What stands between `&` and `;`: one of the five names, or the number of a character.
pub(super) fn resolve(reference: &str) -> Option<char> {
    let char = match reference.strip_prefix('#') {
        None => match reference {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => return None,
        },
        Some(number) => {
            let (digits, radix) = match number.strip_prefix('x') {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            // The library's own reading takes a sign.
            if !digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
                return None;
            }
            char::from_u32(u32::from_str_radix(digits, radix).ok()?)?
        }
    };
    is_xml_char(char).then_some(char)
}

/// The name of a tag, of which `content` is what stands between its brackets. `None` if that is not a name and attributes,
/// each after a blank, with a quoted value and a name of its own.
pub(super) fn tag_name(content: &str) -> Option<&str> {
    let (name, rest) = content.split_at(content.find(is_blank).unwrap_or(content.len()));
    if !is_name(name) {
        return None;
    }
    let mut names = Vec::new();
    for attribute in Attributes(rest) {
        let (attribute, _) = attribute?;
        if names.len() == ATTRIBUTES_MAX || names.contains(&attribute) {
            return None;
        }
        names.push(attribute);
    }
    Some(name)
}

/// The name without its prefix.
pub(super) fn local_name(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

/// Whether `content`, between `<?xml` and `?>`, declares XML 1.0, and no encoding but that in which it was read.
pub(super) fn is_declaration(content: &str) -> bool {
    // In this order.
    let mut names = ["version", "encoding", "standalone"].into_iter();
    let mut has_version = false;
    for attribute in Attributes(content) {
        let Some((name, value)) = attribute else { return false };
        let is_legal = match name {
            "version" => value == "1.0",
            "encoding" => value.eq_ignore_ascii_case("utf-8"),
            _ => matches!(value, "yes" | "no"),
        };
        if !is_legal || !names.any(|expected| expected == name) {
            return false;
        }
        has_version |= name == "version";
    }
    has_version
}

/// Names and values as they are written; `None` for what is no attribute, and then no more is to be asked for.
struct Attributes<'t>(&'t str);

impl<'t> Iterator for Attributes<'t> {
    type Item = Option<(&'t str, &'t str)>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.0.trim_start_matches(is_blank);
        // A blank is before each.
        let is_apart = start.len() < self.0.len();
        (!start.is_empty()).then(|| self.read(start).filter(|_| is_apart))
    }
}

impl<'t> Attributes<'t> {
    fn read(&mut self, start: &'t str) -> Option<(&'t str, &'t str)> {
        let (name, value) = start.split_once('=')?;
        let (name, value) = (name.trim_end_matches(is_blank), value.trim_start_matches(is_blank));
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, rest) = value[1..].split_once(quote)?;
        self.0 = rest;
        (is_name(name) && is_value(value)).then_some((name, value))
    }
}

/// Whether a value has references where it has an `&`, and no tag.
fn is_value(value: &str) -> bool {
    let mut parts = value.split('&');
    let is_plain = parts.next().is_some_and(|first| !first.contains('<'));
    let is_reference = |part: &str| {
        let reference = part.split_once(';').and_then(|(name, _)| resolve(name));
        reference.is_some() && !part.contains('<')
    };
    is_plain && parts.all(is_reference)
}

fn is_name(name: &str) -> bool {
    name.chars().next().is_some_and(is_name_start) && name.chars().all(is_name_char)
}

fn is_name_start(char: char) -> bool {
    matches!(char,
        ':' | '_' | 'A'..='Z' | 'a'..='z'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}'
        | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

fn is_name_char(char: char) -> bool {
    is_name_start(char)
        || matches!(char,
            '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_does_not_have_are_found() {
        for char in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let expected = (!is_xml_char(char)).then_some(40);
            let text =
                format!("{}{char}{}", "\u{e9}\t".repeat(10) + "0123456789", "a\r\n".repeat(10));
            assert_eq!(first_not_xml(&text), expected, "{char:?}");
        }
    }

    #[test]
    fn references_are_names_or_numbers() {
        for (reference, char) in [
            ("amp", '&'),
            ("apos", '\''),
            ("#65", 'A'),
            ("#x41", 'A'),
            ("#x00000000000000000041", 'A'),
            ("#13", '\r'),
            ("#x10FFFF", '\u{10ffff}'),
        ] {
            assert_eq!(resolve(reference), Some(char), "{reference}");
        }
        for reference in [
            "",
            "#",
            "#x",
            "nbsp",
            "AMP",
            "amp ",
            "#0",
            "#1",
            "#xFFFE",
            "#xD800",
            "#x110000",
            "#99999999999",
            "#+65",
            "#-1",
            "#X41",
            "# 65",
            "#6 5",
            "#x4G",
        ] {
            assert_eq!(resolve(reference), None, "{reference}");
        }
    }

    #[test]
    fn tags_have_names_and_attributes() {
        for content in
            ["a", "a ", "p:a.-1", "\u{e9}\u{b7}", "a b='c'", "a\r\n\tb = \"'\" c='\"&lt;&#x41;>' "]
        {
            let name = content.split(is_blank).next();
            assert_eq!(tag_name(content), name, "{content}");
        }
        for content in [
            "",
            " a",
            "1a",
            "a,b",
            "a/",
            "a /",
            "\u{b7}a",
            "a\u{a0}b='c'",
            "a\u{d7}",
            "a b",
            "a b=c",
            "a b='c",
            "a b='c'd='e'",
            "a b='c'/",
            "a b='c' b='d'",
            "a b='<'",
            "a b='&'",
            "a b='&nbsp;'",
            "a b='&#1;'",
            "a b='& ;'",
            "a ='c'",
            "a 1b='c'",
            "a b='&lt;<'",
        ] {
            assert_eq!(tag_name(content), None, "{content}");
        }
        let attributes = |count: usize| {
            let names = (0..count).map(|number| format!(" a{number}=''"));
            format!("a{}", names.collect::<String>())
        };
        assert!(tag_name(&attributes(ATTRIBUTES_MAX)).is_some());
        assert!(tag_name(&attributes(ATTRIBUTES_MAX + 1)).is_none());
    }

    #[test]
    fn declarations_are_of_xml_1_0_in_utf_8() {
        for content in [
            " version='1.0'",
            " version = \"1.0\" encoding='utf-8'",
            " version='1.0' encoding='UTF-8' standalone='yes' ",
            "\r\nversion='1.0'\tstandalone='no'",
        ] {
            assert!(is_declaration(content), "{content}");
        }
        for content in [
            "",
            " ",
            "version='1.0'",
            " encoding='utf-8'",
            " version='1.1'",
            " version=''",
            " version=1.0",
            " version='1.0'encoding='utf-8'",
            " version='1.0' encoding='utf-16'",
            " version='1.0' encoding='iso-8859-1'",
            " version='1.0' encoding=''",
            " version='1.0' standalone='maybe'",
            " version='1.0' standalone='yes' encoding='utf-8'",
            " version='1.0' version='1.0'",
            " version='1.0' other='1'",
            " VERSION='1.0'",
        ] {
            assert!(!is_declaration(content), "{content}");
        }
    }
}
