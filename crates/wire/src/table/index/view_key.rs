//! The keys that the rows of an index have when it is read as a table.
//!
//! The partition key is the first part, the row key the further parts, then the partition key and the row key of the
//! entity, joined by `|`. Texts stand as they are, with `~` and two digits for what a key must not hold; other values have
//! a `~` and a letter for their type. Two rows never have the same keys.

use std::fmt::Write as _;

use super::definition::IndexDefinition;
use super::row::RowRef;
use super::value_line::{self, Decoded};
use crate::table::filter::Literal;
use crate::table::stored::key::{read_entity_key, read_ordered};
use crate::table::stored::{EdmType, Value, guid_text, parse_guid};
use crate::ticks::Ticks;

/// Stands between the parts of a row key.
const SEPARATOR: char = '|';
/// Begins an escape or a typed value.
const MARK: char = '~';

impl RowRef<'_> {
    /// The keys of the row; `None` if no such row was ever written.
    pub fn view_keys(&self, definition: &IndexDefinition) -> Option<(String, String)> {
        let (first, further) = self.parts[..definition.keys.len()].split_first()?;
        let mut partition_key = String::new();
        push_part(&mut partition_key, &value_line::decode(first)?);
        let mut row_key = String::new();
        for part in further {
            push_part(&mut row_key, &value_line::decode(part)?);
            row_key.push(SEPARATOR);
        }
        let (entity_partition_key, entity_row_key) = read_entity_key(&self.entity_key)?;
        push_escaped(&mut row_key, &entity_partition_key);
        row_key.push(SEPARATOR);
        push_escaped(&mut row_key, &entity_row_key);
        Some((partition_key, row_key))
    }
}

/// The keys of the entity that a row with this row key points to; `None` if no row has such a key.
pub fn origin_keys(row_key: &str) -> Option<(String, String)> {
    let mut parts = row_key.rsplit(SEPARATOR);
    let (entity_row_key, partition_key) = (parts.next()?, parts.next()?);
    Some((read_escaped(partition_key)?, read_escaped(entity_row_key)?))
}

/// The place on the value line of the part that a text stands for; `None` if it stands for none, or for many.
pub fn place_of(text: &str, bytes_max: usize) -> Option<Vec<u8>> {
    let mut place = Vec::new();
    let mut push = |value: Value<'_>| value_line::push_value(&mut place, value, bytes_max);
    let typed = text.strip_prefix(MARK).and_then(|rest| rest.split_at_checked(1));
    let is_whole = match typed {
        Some(("-", "")) => {
            value_line::push_missing(&mut place);
            true
        }
        Some(("b", value)) => push(Value::Boolean(value.parse().ok()?)),
        Some(("i", value)) => push(Value::Int32(value.parse().ok()?)),
        Some(("l", value)) => push(Value::Int64(value.parse().ok()?)),
        Some(("d", value)) => push(Value::Double(value.parse().ok()?)),
        Some(("t", value)) => push(Value::DateTime(Ticks::parse_iso(value)?)),
        Some(("g", value)) => push(Value::Guid(parse_guid(value)?)),
        Some(("x", value)) => push(Value::Binary(&read_hex(value)?)),
        _ => push(Value::String(&read_escaped(text)?)),
    };
    // Several values may have been cut to the same.
    is_whole.then_some(place)
}

fn push_part(out: &mut String, part: &Decoded) {
    let written = match part {
        Decoded::Missing => write!(out, "~-"),
        Decoded::Value(value) => push_literal(out, value),
        Decoded::Cut(EdmType::String, ordered) => {
            // It may have been cut within a character.
            let whole = (ordered.len().saturating_sub(3)..=ordered.len()).rev();
            let text = whole.filter_map(|end| read_ordered(&ordered[..end])).next();
            push_escaped(out, &text.unwrap_or_default());
            write!(out, "~+")
        }
        Decoded::Cut(_, bytes) => push_hex(out, bytes).and_then(|()| write!(out, "~+")),
    };
    written.expect("a string takes every write");
}

fn push_literal(out: &mut String, value: &Literal) -> std::fmt::Result {
    match value {
        Literal::String(text) => {
            push_escaped(out, text);
            Ok(())
        }
        Literal::Boolean(value) => write!(out, "~b{value}"),
        Literal::Int32(value) => write!(out, "~i{value}"),
        Literal::Int64(value) => write!(out, "~l{value}"),
        Literal::Double(value) => write!(out, "~d{value:?}"),
        Literal::DateTime(moment) => write!(out, "~t{}", moment.to_iso()),
        Literal::Guid(guid) => write!(out, "~g{}", String::from_utf8_lossy(&guid_text(guid))),
        Literal::Binary(bytes) => push_hex(out, bytes),
    }
}

fn push_hex(out: &mut String, bytes: &[u8]) -> std::fmt::Result {
    out.push_str("~x");
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

fn read_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(pair).collect()).flatten()
}

fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match u32::from(character) {
            code @ (..=0x1F | 0x7F..=0x9F) => drop(write!(out, "~{code:02X}")),
            code if "/\\#?|~".contains(character) => drop(write!(out, "~{code:02X}")),
            _ => out.push(character),
        }
    }
}

/// A text as it was before characters of it were escaped; `None` if nobody wrote it so.
pub fn read_escaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(MARK) {
        let (digits, behind) = after.split_at_checked(2)?;
        if digits.bytes().any(|byte| !byte.is_ascii_digit() && !byte.is_ascii_uppercase()) {
            return None;
        }
        out.push_str(before);
        out.push(char::from(u8::from_str_radix(digits, 16).ok()?));
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::index::tests_support::{entity, value};
    use crate::table::index::{RowMaker, RowScratch};
    use crate::table::names::key_problem;
    use crate::table::stored::EntityRef;
    use crate::table::stored::key::push_entity_key;

    #[test]
    fn keys_are_readable() {
        let cases = [
            (Value::String("Redmond"), "Redmond"),
            (Value::String("a/b|c~"), "a~2Fb~7Cc~7E"),
            (Value::Int32(30), "~i30"),
            (Value::Int64(-3), "~l-3"),
            (Value::Double(0.5), "~d0.5"),
            (Value::Boolean(true), "~btrue"),
            (Value::DateTime(Ticks::parse_iso("2026-11-16").unwrap()), "~t2026-11-16T00:00:00Z"),
            (Value::Binary(&[1, 255]), "~x01ff"),
            (Value::Guid([0x11; 16]), "~g11111111-1111-1111-1111-111111111111"),
        ];
        for (value, expected) in cases {
            let mut place = Vec::new();
            value_line::push_value(&mut place, value, 512);
            let mut text = String::new();
            push_part(&mut text, &value_line::decode(&place).unwrap());
            assert_eq!(text, expected);
            assert_eq!(place_of(&text, 512), Some(place));
        }
        for text in ["~", "~i", "~ix", "~zz", "~2f", "~x0", "a~2"] {
            assert_eq!(place_of(text, 512), None, "{text}");
        }
        assert_eq!(origin_keys("Smith|p~7C|r"), Some(("p|".to_owned(), "r".to_owned())));
        assert_eq!(origin_keys("r"), None);
    }

    proptest! {
        #[test]
        fn texts_stand_for_their_places(value in value()) {
            let mut place = Vec::new();
            let is_whole = value_line::push_value(&mut place, value.as_value(), 8);
            let mut text = String::new();
            push_part(&mut text, &value_line::decode(&place).unwrap());
            prop_assert_eq!(key_problem(&text), None);
            prop_assert_eq!(place_of(&text, 8), is_whole.then_some(place));
        }

        #[test]
        fn entities_are_found_again(
            bytes in entity(&["A", "B"]),
            partition_key in "[a|~é]{0,4}", row_key in "[a|~é]{0,4}",
        ) {
            let definition = IndexDefinition::parse("A?,B", "", "", false).unwrap();
            let mut key = Vec::new();
            push_entity_key(&mut key, &partition_key, &row_key);
            let entity = EntityRef::parse(&bytes).unwrap();
            let maker = RowMaker::new([&definition]);
            maker.rows(&key, entity, &mut RowScratch::default(), |_, row| {
                let row = RowRef::read(&definition, row.parts_and_suffix, row.value).unwrap();
                let (_, view_row_key) = row.view_keys(&definition).unwrap();
                assert_eq!(origin_keys(&view_row_key), Some((partition_key.clone(), row_key.clone())));
            }).unwrap();
        }
    }
}
