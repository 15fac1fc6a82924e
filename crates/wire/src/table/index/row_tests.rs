use proptest::prelude::*;

use super::*;
use crate::table::index::tests_support::entity;
use crate::table::stored::key::push_entity_key;
use crate::table::stored::merge;

const NAMES: &[&str] = &["Town", "Age", "Name"];

fn rows(
    definitions: &[IndexDefinition],
    entity_key: &[u8],
    bytes: &[u8],
) -> Vec<Option<(Vec<u8>, Vec<u8>)>> {
    let mut rows = vec![None; definitions.len()];
    let entity = EntityRef::parse(bytes).unwrap();
    RowMaker::new(definitions)
        .rows(entity_key, entity, &mut RowScratch::default(), |index, row| {
            rows[index] = Some((row.parts_and_suffix.to_vec(), row.value.to_vec()));
        })
        .unwrap();
    rows
}

fn definition(keys: &str, include: &str, filter: &str, unique: bool) -> IndexDefinition {
    IndexDefinition::parse(keys, include, filter, unique).unwrap()
}

fn customer() -> Vec<u8> {
    let mut writer = EntityWriter::new();
    writer.push("Town", Value::String("Redmond"));
    writer.push("Age", Value::Int32(30));
    let mut bytes = writer.finish();
    set_timestamp(&mut bytes, crate::Ticks(600_000_000_000_000_000));
    bytes
}

#[test]
fn the_bytes_of_rows() {
    let cases = [
        ("Town", false, &b"\x48Redmond\0\0p\0r"[..], &b"\x01"[..]),
        ("Age,Name", false, b"\x38\x80\0\0\x1e\x05p\0r", b"\x01"),
        ("PartitionKey,Town", false, b"\x48p\0\0\x48Redmond\0\0r", b"\x01"),
        ("Town", true, b"\x48Redmond\0\0", b"\x03\0\x03p\0r"),
        ("RowKey", false, b"\x48r\0\0p\0r", b"\x01"),
    ];
    for (keys, unique, key, value) in cases {
        let made = rows(&[definition(keys, "", "", unique)], b"p\0r", &customer());
        assert_eq!(made, [Some((key.to_vec(), value.to_vec()))], "{keys}");
    }
}

#[test]
fn entities_may_be_left_out() {
    let definitions = [
        definition("Name", "", "", false),
        definition("Town,Name!", "", "", false),
        definition("Name?", "", "", false),
        definition("Town", "", "Age ge 18", false),
        definition("Town", "", "Age gt 30", false),
    ];
    let made = rows(&definitions, b"p\0r", &customer());
    let has_row: Vec<_> = made.iter().map(Option::is_some).collect();
    assert_eq!(has_row, [false, false, true, true, false]);
}

#[test]
fn a_partition_key_that_was_cut_stands_behind_the_parts() {
    let long = "p".repeat(600);
    let mut entity_key = Vec::new();
    push_entity_key(&mut entity_key, &long, "r");
    let local = definition("PartitionKey,Town", "", "", false);
    let made = rows(std::slice::from_ref(&local), &entity_key, &customer());
    let (key, value) = made[0].as_ref().unwrap();
    assert_eq!(RowRef::read(&local, key, value).unwrap().entity_key, entity_key);
}

#[test]
fn long_values_have_rows_of_their_own_in_a_unique_index() {
    let unique = definition("Town,Name?", "", "", true);
    let row = |town: &str, name: &str| {
        let mut writer = EntityWriter::new();
        writer.push("Town", Value::String(town));
        writer.push("Name", Value::String(name));
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, crate::Ticks(1));
        let made = rows(std::slice::from_ref(&unique), b"p\0r", &bytes);
        made[0].clone().unwrap()
    };
    let long = "x".repeat(600);
    let all = [
        row(&format!("{long}a"), "n"),
        row(&format!("{long}b"), "n"),
        row(&format!("{long}a"), "m"),
        row(&format!("{long}a"), &format!("n{long}")),
        row(&long[..512], "n"),
        row("x", "n"),
    ];
    for (place, (key, value)) in all.iter().enumerate() {
        assert!(RowRef::read(&unique, key, value).is_some());
        assert!(all[..place].iter().all(|(other, _)| other != key), "row {place}");
    }
    assert_eq!(row(&format!("{long}a"), "n"), all[0]);
    // Without a hash where one belongs, or with one where none does.
    let (key, value) = &all[0];
    assert!(RowRef::read(&unique, &key[..key.len() - CUT_HASH_BYTES], value).is_none());
    let (key, value) = &all[5];
    assert!(RowRef::read(&unique, &[&key[..], &[1; CUT_HASH_BYTES]].concat(), value).is_none());
}

#[test]
fn what_is_no_row_is_told() {
    let town = definition("Town", "", "", false);
    let unique = definition("Town", "", "", true);
    assert!(RowRef::read(&town, b"\x48Red", b"\x01").is_none());
    assert!(RowRef::read(&town, b"\x48Red\0\0p\0r", b"").is_none());
    assert!(RowRef::read(&town, b"\x48Red\0\0p\0r", b"\x01x").is_none());
    assert!(RowRef::read(&town, b"\x48Red\0\0p\0r", b"\x03\0\x03p\0r").is_none());
    assert!(RowRef::read(&unique, b"\x48Red\0\0", b"\x03\0\x04p\0r").is_none());
    assert!(RowRef::read(&unique, b"\x48Red\0\0p", b"\x03\0\x03p\0r").is_none());
}

#[test]
fn a_change_of_other_properties_has_the_same_rows() {
    let state = |town: &str, remark: &str, ticks| {
        let mut writer = EntityWriter::new();
        writer.push("Remark", Value::String(remark));
        writer.push("Town", Value::String(town));
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, crate::Ticks(ticks));
        bytes
    };
    let old = state("Redmond", "a", 1);
    let has_same_rows = |definition: &IndexDefinition, new: &[u8]| {
        let maker = RowMaker::new([definition]);
        maker.has_same_rows(EntityRef::parse(&old).unwrap(), EntityRef::parse(new).unwrap())
    };
    let town = definition("Town,Name?", "", "", false);
    assert!(has_same_rows(&town, &state("Redmond", "b", 2)));
    assert!(!has_same_rows(&town, &state("Seattle", "a", 2)));
    let remark = {
        let mut writer = EntityWriter::new();
        writer.push("Remark", Value::String("b"));
        writer.finish()
    };
    let has_same_rows_with = |definition: &IndexDefinition, merged: &[u8]| {
        RowMaker::new([definition]).has_same_rows_with(EntityRef::parse(merged).unwrap())
    };
    assert!(has_same_rows_with(&town, &remark));
    // Although it has the town that the entity has already.
    assert!(!has_same_rows_with(&town, &state("Redmond", "b", 2)));
    // What has the timestamp changes with every write, and a filter may look at anything.
    for other in [
        definition("Town", "*", "", false),
        definition("Town", "Name", "", false),
        definition("Timestamp", "", "", false),
        definition("Town", "", "Remark eq 'a'", false),
    ] {
        assert!(!has_same_rows(&other, &state("Redmond", "b", 2)), "{other:?}");
        assert!(!has_same_rows_with(&other, &remark), "{other:?}");
    }
}

proptest! {
    #[test]
    fn rows_that_are_said_to_be_the_same_are(
        old in entity(NAMES), new in entity(NAMES),
        keys in prop::sample::select(vec!["Town?", "Town,Age", "PartitionKey,Name", "Timestamp"]),
        include in prop::sample::select(vec!["", "*", "Name"]),
        filter in prop::sample::select(vec!["", "Age gt 0"]),
    ) {
        let definitions = [definition(keys, include, filter, false), definition("Age", "", "", true)];
        let maker = RowMaker::new(&definitions);
        let [old_state, new_state] = [&old, &new].map(|bytes| EntityRef::parse(bytes).unwrap());
        if maker.has_same_rows(old_state, new_state) {
            prop_assert_eq!(rows(&definitions, b"p\0r", &old), rows(&definitions, b"p\0r", &new));
        }
        if maker.has_same_rows_with(new_state) {
            let mut merged = merge(old_state, new_state).unwrap();
            set_timestamp(&mut merged, new_state.timestamp());
            prop_assert_eq!(rows(&definitions, b"p\0r", &old), rows(&definitions, b"p\0r", &merged));
        }
    }

    #[test]
    fn rows_are_read_back(
        bytes in entity(NAMES),
        partition_key in "[a-c]{0,2}", row_key in "[a-c\u{e000}]{0,2}",
        keys in prop::sample::select(vec![
            "Town?", "Town,Age", "PartitionKey,Town", "PartitionKey", "RowKey,Name", "Timestamp,Town",
        ]),
        include in prop::sample::select(vec!["", "*", "Name,Age"]),
        unique: bool,
    ) {
        let mut entity_key = Vec::new();
        push_entity_key(&mut entity_key, &partition_key, &row_key);
        let definition = definition(keys, include, "", unique);
        let made = rows(std::slice::from_ref(&definition), &entity_key, &bytes);
        if let Some((key, value)) = &made[0] {
            let row = RowRef::read(&definition, key, value).unwrap();
            prop_assert_eq!(&row.entity_key[..], &entity_key[..]);
            prop_assert_eq!(row.copy.is_some(), !include.is_empty());
            if include == "*" {
                prop_assert_eq!(row.copy.unwrap(), &bytes[..]);
            }
            if include == "Name,Age" {
                let whole = EntityRef::parse(&bytes).unwrap();
                let copy = EntityRef::parse(row.copy.unwrap()).unwrap();
                prop_assert_eq!(copy.timestamp(), whole.timestamp());
                for property in whole.properties().map(Result::unwrap) {
                    let covered = definition.covers(property.name_str().unwrap());
                    let found = copy.properties().map(Result::unwrap).any(|it| {
                        (it.name, it.edm_type, it.payload)
                            == (property.name, property.edm_type, property.payload)
                    });
                    prop_assert_eq!(found, covered);
                }
            }
        }
    }
}
