//! Stored bytes: an entity's, which only a broken disk makes malformed, and which must be refused then, not
//! believed and not stumbled over.

use tavola_wire::table::filter::{Program, Scratch, parse};
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::negotiate::MetadataLevel;
use tavola_wire::table::stored::{
    EdmType, EntityRef, EntityWriter, MalformedEntity, Property, Value, check_entity, merge,
    set_timestamp,
};

pub fn run(data: &[u8]) {
    let entity = match EntityRef::parse(data) {
        Ok(entity) => entity,
        Err(MalformedEntity { at }) => return assert!(at <= data.len()),
    };
    read(entity);
    written(entity);
    filtered(entity);
    merged(entity);
    let _ = check_entity("p", "r", entity);
}

/// Reads every property; if all of them are what a writer wrote, they are written again.
fn read(entity: EntityRef<'_>) {
    let mut count = 0;
    let mut writer = EntityWriter::new();
    for property in entity.properties() {
        count += 1;
        assert!(count <= entity.property_count() + 1, "reading ends");
        let Ok(property) = property else { return };
        let (Some(name), Some(value)) = (property.name_str(), property.value()) else { return };
        assert_eq!(value.edm_type(), property.edm_type);
        writer.push(name, value);
    }
    assert_eq!(count, entity.property_count());
    let mut rewritten = writer.finish();
    set_timestamp(&mut rewritten, entity.timestamp());
    // A length may be spelled longer than needed, nothing else.
    assert!(rewritten.len() <= entity.as_bytes().len());
    let rewritten = EntityRef::parse(&rewritten).expect("what was just written");
    let pairs = entity.properties().zip(rewritten.properties());
    for (before, after) in pairs.map(|(before, after)| (before.unwrap(), after.unwrap())) {
        assert_eq!((before.name, before.edm_type), (after.name, after.edm_type));
        assert_eq!(format!("{:?}", before.value()), format!("{:?}", after.value()));
    }
}

/// As JSON at every level: a document with everything in it, or an error. Only whether texts are UTF-8 is left to
/// the checksums of the engine, since texts are copied as they are.
fn written(entity: EntityRef<'_>) {
    let properties: Result<Vec<_>, _> = entity.properties().collect();
    let is_typed = |property: &Property<'_>| {
        property.edm_type == EdmType::String || property.value().is_some()
    };
    let whole = properties.as_ref().is_ok_and(|all| all.iter().all(is_typed));
    let properties = properties.unwrap_or_default();
    let is_text = properties.iter().all(|it| {
        let is_text = it.edm_type != EdmType::String || it.value().is_some();
        is_text && it.name_str().is_some()
    });
    let names: Vec<_> = properties.iter().filter_map(Property::name_str).collect();
    for level in [MetadataLevel::None, MetadataLevel::Minimal, MetadataLevel::Full] {
        for select in [None, Some(names.first().copied().unwrap_or("Absent"))] {
            let Ok(format) = EntityFormat::new(level, "http://h/a", "a", "tbl", select) else {
                return;
            };
            let mut out = Vec::new();
            let result = format.push_element(&mut out, "p", "r", entity);
            // What is not selected is not looked at.
            assert!(result.is_ok() == whole || (result.is_ok() && select.is_some()));
            if whole && is_text {
                let json: serde_json::Value = serde_json::from_slice(&out).expect("a document");
                let members = json.as_object().expect("an object");
                let missing = names.iter().find(|name| !members.contains_key(**name));
                assert!(select.is_some() || missing.is_none(), "{missing:?}");
            }
        }
    }
}

fn filtered(entity: EntityRef<'_>) {
    for filter in ["A eq 1", "A eq 'a' or B lt 5L or C ge 1.5 or D or E eq X'00'"] {
        let program = Program::new(&parse(filter).expect("a filter"));
        let _ = program.matches(b"p\0r", entity, &mut Scratch::default());
    }
}

fn merged(entity: EntityRef<'_>) {
    let mut writer = EntityWriter::new();
    writer.push("A", Value::Int32(1));
    let one = writer.finish();
    let one = EntityRef::parse(&one).expect("an entity");
    for (stored, changes) in [(entity, one), (one, entity)] {
        let Ok(merged) = merge(stored, changes) else { continue };
        let merged = EntityRef::parse(&merged).expect("what was just written");
        assert!(merged.properties().all(|property| property.is_ok()));
        assert!(merged.property_count() <= entity.property_count() + 1);
        assert!(merged.properties().flatten().any(|property| property.name == b"A"));
    }
}
