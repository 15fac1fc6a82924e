//! The limits of an entity, with the code that each violation has.

use super::entity::{EntityRef, Property};
use super::value::{EdmType, Value};
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::ticks::Ticks;

/// Properties of one entity, the three system properties not counted.
pub const PROPERTIES_MAX: usize = 252;
/// UTF-16 code units of a property's name.
pub(crate) const NAME_UNITS_MAX: usize = 255;
/// UTF-16 code units of a string: 64 KiB.
pub(crate) const STRING_UNITS_MAX: usize = 32 * 1024;
pub const BINARY_BYTES_MAX: usize = 64 * 1024;
/// One entity, in the size model of the service (see [`check_entity`]).
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;

/// The length of a text as the service counts it.
pub fn utf16_units(text: &[u8]) -> usize {
    // A code point has one lead byte; those of four bytes take two units.
    text.iter().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(*byte >= 0xF0)).sum()
}

/// A property's name: a C# identifier of at most 255 characters.
pub fn check_name(name: &str) -> Result<()> {
    // Nearly every name is short and plain ASCII.
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = name.as_bytes();
    if let [first, ..] = bytes
        && !first.is_ascii_digit()
        && bytes.len() <= NAME_UNITS_MAX
        && bytes.iter().all(is_plain)
    {
        return Ok(());
    }
    if name.len() > NAME_UNITS_MAX && utf16_units(name.as_bytes()) > NAME_UNITS_MAX {
        return Err(ErrorCode::PropertyNameTooLong.into());
    }
    let starts_well = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    if !starts_well || !name.chars().all(is_identifier_part) {
        return Err(ErrorCode::PropertyNameInvalid.into());
    }
    Ok(())
}

fn is_identifier_part(character: char) -> bool {
    match character {
        '_' => true,
        character if character.is_ascii() => character.is_ascii_alphanumeric(),
        // Letters, digits, combining and formatting characters: the service is generous, and so are we.
        character => !character.is_whitespace() && !character.is_control(),
    }
}

/// A property's value: the size of strings and binaries, the range of dates.
///
/// # Errors
/// 400 `PropertyValueTooLarge`, or `EntityTooLarge` for a value that no entity has room for; `OutOfRangeInput` for dates.
pub fn check_value(name: &str, value: &Value<'_>) -> Result<()> {
    let (bytes, bytes_max) = match value {
        // A text never has more UTF-16 units than UTF-8 bytes.
        Value::String(text) if text.len() <= STRING_UNITS_MAX => return Ok(()),
        Value::String(text) => (2 * utf16_units(text.as_bytes()), 2 * STRING_UNITS_MAX),
        Value::Binary(bytes) => (bytes.len(), BINARY_BYTES_MAX),
        Value::DateTime(moment) if *moment < Ticks::MIN_STORED => {
            return Err(out_of_range(name, *moment));
        }
        _ => return Ok(()),
    };
    if bytes >= ENTITY_BYTES_MAX {
        Err(ErrorCode::EntityTooLarge.into())
    } else if bytes > bytes_max {
        Err(ErrorCode::PropertyValueTooLarge.into())
    } else {
        Ok(())
    }
}

fn out_of_range(name: &str, moment: Ticks) -> StorageError {
    // The service prints the invariant culture's month/day/year.
    let iso = moment.to_iso_padded();
    let value = format!("{}/{}/{} {}", &iso[5..7], &iso[8..10], &iso[0..4], &iso[11..19]);
    StorageError::with_detail(
        ErrorCode::OutOfRangeInput,
        format!("The '{name}' parameter of value '{value}' is out of range."),
    )
}

/// A whole entity: the number of its properties and its size.
///
/// The size is that of the service's capacity model: 4 + 2 per unit of the keys, and per property
/// 8 + 2 per unit of the name + the value (strings 4 + 2 per unit, binaries 4 + length).
pub fn check_entity(partition_key: &str, row_key: &str, entity: EntityRef<'_>) -> Result<()> {
    if entity.property_count() > PROPERTIES_MAX {
        return Err(ErrorCode::TooManyProperties.into());
    }
    // No text takes more than twice its UTF-8 bytes, so most entities are seen to fit at a glance.
    let key_bytes = partition_key.len() + row_key.len();
    let most = 2 * (entity.as_bytes().len() + key_bytes) + 16 * entity.property_count();
    if most <= ENTITY_BYTES_MAX {
        return Ok(());
    }
    let keys = utf16_units(partition_key.as_bytes()) + utf16_units(row_key.as_bytes());
    let properties: usize =
        entity.properties().flatten().map(|property| stored_size(&property)).sum();
    if 4 + 2 * keys + properties > ENTITY_BYTES_MAX {
        return Err(ErrorCode::EntityTooLarge.into());
    }
    Ok(())
}

fn stored_size(property: &Property<'_>) -> usize {
    let value = match property.edm_type {
        EdmType::String => 4 + 2 * utf16_units(property.payload),
        EdmType::Binary => 4 + property.payload.len(),
        _ => property.payload.len(),
    };
    8 + 2 * utf16_units(property.name) + value
}

#[cfg(test)]
mod tests {
    use super::super::entity::EntityWriter;
    use super::*;

    fn code(result: Result<()>) -> Option<ErrorCode> {
        result.err().map(|error| error.code())
    }

    #[test]
    fn names_are_identifiers_of_255_characters() {
        for name in ["A", "_x", "Ünïcode", "名前", "a1", &"n".repeat(255)] {
            assert_eq!(code(check_name(name)), None, "{name}");
        }
        for name in ["", "123", "a-b", "a b", "a.b", "a\u{a0}b"] {
            assert_eq!(code(check_name(name)), Some(ErrorCode::PropertyNameInvalid), "{name}");
        }
        assert_eq!(code(check_name(&"n".repeat(256))), Some(ErrorCode::PropertyNameTooLong));
        assert_eq!(code(check_name(&"ü".repeat(255))), None);
    }

    #[test]
    fn strings_are_counted_in_utf16_units() {
        let largest = "x".repeat(STRING_UNITS_MAX);
        assert_eq!(code(check_value("P", &Value::String(&largest))), None);
        let accented = "é".repeat(STRING_UNITS_MAX);
        assert_eq!(code(check_value("P", &Value::String(&accented))), None);
        let emoji = "\u{1F600}".repeat(STRING_UNITS_MAX / 2 + 1);
        let too_large = Some(ErrorCode::PropertyValueTooLarge);
        assert_eq!(code(check_value("P", &Value::String(&emoji))), too_large);
        assert_eq!(code(check_value("P", &Value::Binary(&[0; BINARY_BYTES_MAX]))), None);
        assert_eq!(code(check_value("P", &Value::Binary(&[0; BINARY_BYTES_MAX + 1]))), too_large);
    }

    #[test]
    fn a_value_as_large_as_an_entity_makes_the_entity_too_large() {
        let bytes = vec![0; ENTITY_BYTES_MAX];
        let text = "x".repeat(ENTITY_BYTES_MAX / 2);
        for (value, expected) in [
            (Value::Binary(&bytes[1..]), ErrorCode::PropertyValueTooLarge),
            (Value::Binary(&bytes), ErrorCode::EntityTooLarge),
            (Value::String(&text[1..]), ErrorCode::PropertyValueTooLarge),
            (Value::String(&text), ErrorCode::EntityTooLarge),
        ] {
            assert_eq!(code(check_value("P", &value)), Some(expected));
        }
    }

    #[test]
    fn a_date_before_1601_is_out_of_range() {
        let error = check_value("Prop", &Value::DateTime(Ticks(0))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::OutOfRangeInput);
        assert_eq!(
            error.message(),
            "The 'Prop' parameter of value '01/01/0001 00:00:00' is out of range."
        );
        assert_eq!(code(check_value("Prop", &Value::DateTime(Ticks::MIN_STORED))), None);
    }

    #[test]
    fn an_entity_has_a_largest_count_and_size() {
        let of = |count: usize, text: &str| {
            let mut writer = EntityWriter::new();
            for index in 0..count {
                writer.push(&format!("P{index:03}"), Value::String(text));
            }
            writer.finish()
        };
        let check = |bytes: &[u8]| code(check_entity("p", "r", EntityRef::parse(bytes).unwrap()));
        assert_eq!(check(&of(252, "x")), None);
        assert_eq!(check(&of(253, "x")), Some(ErrorCode::TooManyProperties));
        // 15 properties of 64 KiB fit, 16 do not leave room for names and keys.
        let largest = "x".repeat(STRING_UNITS_MAX);
        assert_eq!(check(&of(15, &largest)), None);
        assert_eq!(check(&of(16, &largest)), Some(ErrorCode::EntityTooLarge));
    }
}
