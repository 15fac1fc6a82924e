//! Merge: an entity laid over a stored one.

use super::entity::{EntityRef, EntityWriter, MalformedEntity, Property};

/// `changes` laid over `stored`: properties keep their place, new ones come last, nothing is removed.
///
/// The timestamp of the result is yet to be [set](super::set_timestamp).
///
/// # Errors
/// When either entity is malformed.
pub fn merge(stored: EntityRef<'_>, changes: EntityRef<'_>) -> Result<Vec<u8>, MalformedEntity> {
    let mut added: Vec<Option<Property<'_>>> =
        changes.properties().map(|property| property.map(Some)).collect::<Result<_, _>>()?;
    let mut writer =
        EntityWriter::with_capacity(stored.as_bytes().len() + changes.as_bytes().len());
    for property in stored.properties() {
        let property = property?;
        let change = added
            .iter_mut()
            .find(|change| change.is_some_and(|change| change.name == property.name))
            .and_then(Option::take);
        writer.push_property(&change.unwrap_or(property));
    }
    for property in added.iter().flatten() {
        writer.push_property(property);
    }
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
            entity(&[("A", Value::Int32(1)), ("B", Value::String("b")), ("C", Value::Int32(3))]);
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
