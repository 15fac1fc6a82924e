//! Merge: an entity laid over a stored one.

use std::cmp::Ordering;

use super::entity::{EntityRef, EntityWriter, MalformedEntity};
use super::key::compare_utf8;
use super::order::sorted;

/// `changes` laid over `stored`: nothing is removed, and all properties are sorted by name.
///
/// The timestamp of the result is yet to be [set](super::set_timestamp).
///
/// # Errors
/// When either entity is malformed.
pub fn merge(stored: EntityRef<'_>, changes: EntityRef<'_>) -> Result<Vec<u8>, MalformedEntity> {
    let mut writer =
        EntityWriter::with_capacity(stored.as_bytes().len() + changes.as_bytes().len());
    let mut kept = sorted(stored)?.into_iter().peekable();
    for change in sorted(changes)? {
        while let Some(property) =
            kept.next_if(|property| compare_utf8(property.name, change.name) == Ordering::Less)
        {
            writer.push_property(&property);
        }
        kept.next_if(|property| property.name == change.name);
        writer.push_property(&change);
    }
    kept.for_each(|property| writer.push_property(&property));
    Ok(writer.finish())
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;

    fn entity(properties: &[(&str, Value<'_>)]) -> Vec<u8> {
        let mut writer = EntityWriter::new();
        for (name, value) in properties {
            writer.push(name, *value);
        }
        writer.finish()
    }

    #[test]
    fn changes_replace_add_and_never_remove() {
        let stored =
            entity(&[("C", Value::Int32(3)), ("A", Value::Int32(1)), ("B", Value::String("b"))]);
        let changes = entity(&[("D", Value::Boolean(true)), ("B", Value::Int64(2))]);
        let merged =
            merge(EntityRef::parse(&stored).unwrap(), EntityRef::parse(&changes).unwrap()).unwrap();
        let expected = entity(&[
            ("A", Value::Int32(1)),
            ("B", Value::Int64(2)),
            ("C", Value::Int32(3)),
            ("D", Value::Boolean(true)),
        ]);
        assert_eq!(merged, expected);
    }

    #[test]
    fn names_differ_by_case() {
        let stored = entity(&[("name", Value::Int32(1))]);
        let changes = entity(&[("Name", Value::Int32(2))]);
        let merged =
            merge(EntityRef::parse(&stored).unwrap(), EntityRef::parse(&changes).unwrap()).unwrap();
        assert_eq!(EntityRef::parse(&merged).unwrap().property_count(), 2);
    }

    #[test]
    fn a_malformed_entity_is_an_error() {
        let stored = entity(&[("A", Value::Int32(1))]);
        let changes = entity(&[]);
        let cut = EntityRef::parse(&stored[..stored.len() - 1]).unwrap();
        assert!(merge(cut, EntityRef::parse(&changes).unwrap()).is_err());
    }
}
