//! The order of an entity's properties.
//!
//! Insert keeps the client's. Every other write sorts them by name, ordinal by UTF-16 code unit, as the live service
//! does: `Birthday` stands before `age`. Answers show the stored order, so it is made when the entity is written.

use super::entity::{EntityRef, EntityWriter, MalformedEntity, Property};
use super::key::compare_utf8;

/// The entity with its properties sorted by name. Costs one pass where they are already.
///
/// The timestamp of the result is yet to be [set](super::set_timestamp).
///
/// # Errors
/// When the entity is malformed.
pub fn sort_by_name(entity: Vec<u8>) -> Result<Vec<u8>, MalformedEntity> {
    let parsed = EntityRef::parse(&entity)?;
    if is_sorted(parsed)? {
        return Ok(entity);
    }
    let mut writer = EntityWriter::with_capacity(entity.len());
    for property in sorted(parsed)? {
        writer.push_property(&property);
    }
    Ok(writer.finish())
}

/// The properties of an entity, sorted by name.
pub(super) fn sorted(entity: EntityRef<'_>) -> Result<Vec<Property<'_>>, MalformedEntity> {
    let mut properties = Vec::with_capacity(entity.property_count());
    for property in entity.properties() {
        properties.push(property?);
    }
    let in_order = |a: &Property<'_>, b: &Property<'_>| compare_utf8(a.name, b.name).is_le();
    if !properties.is_sorted_by(in_order) {
        // Names are unique, so that there is no order among equal ones to keep.
        properties.sort_unstable_by(|a, b| compare_utf8(a.name, b.name));
    }
    Ok(properties)
}

fn is_sorted(entity: EntityRef<'_>) -> Result<bool, MalformedEntity> {
    let mut last: &[u8] = &[];
    for property in entity.properties() {
        let name = property?.name;
        if compare_utf8(last, name).is_gt() {
            return Ok(false);
        }
        last = name;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::value::Value;
    use super::*;

    fn entity(names: &[&str]) -> Vec<u8> {
        let mut writer = EntityWriter::new();
        for name in names {
            writer.push(name, Value::String(name));
        }
        writer.finish()
    }

    #[test]
    fn names_sort_by_utf16_code_unit() {
        let given = ["sex", "\u{ff21}", "age", "\u{1f600}", "Birthday", "_x", "ager", "\u{e9}"];
        let order = ["Birthday", "_x", "age", "ager", "sex", "\u{e9}", "\u{1f600}", "\u{ff21}"];
        assert_eq!(sort_by_name(entity(&given)).unwrap(), entity(&order));
    }

    #[test]
    fn a_sorted_entity_is_not_copied() {
        let bytes = entity(&["A", "B", "b"]);
        let at = bytes.as_ptr();
        let same = sort_by_name(bytes).unwrap();
        assert_eq!(same.as_ptr(), at);
        assert_eq!(sort_by_name(entity(&[])).unwrap(), entity(&[]));
    }

    #[test]
    fn a_malformed_entity_is_an_error() {
        let mut bytes = entity(&["B", "A"]);
        bytes.pop();
        assert!(sort_by_name(bytes).is_err());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(names in prop::collection::btree_set("\\PC{1,6}", 0..20), seed in any::<u64>()) {
            let mut shuffled: Vec<&str> = names.iter().map(String::as_str).collect();
            if !shuffled.is_empty() {
                let middle = seed as usize % shuffled.len();
                shuffled.rotate_left(middle);
            }
            let mut order = shuffled.clone();
            order.sort_by_key(|name| name.encode_utf16().collect::<Vec<_>>());
            prop_assert_eq!(sort_by_name(entity(&shuffled)).unwrap(), entity(&order));
        }
    }
}
