//! Entities as clients send them: into the stored form, out of it at every metadata level, and in again.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use tavola_wire::Ticks;
use tavola_wire::table::json::{
    EntityBody, EntityFormat, read_changes, read_entity, read_table_name,
};
use tavola_wire::table::names::key_problem;
use tavola_wire::table::negotiate::MetadataLevel;
use tavola_wire::table::stored::{
    EntityRef, EntityWriter, PROPERTIES_MAX, Property, Value, check_name, check_value, merge,
    set_timestamp, sort_by_name,
};

use crate::input::assert_refusal;

pub fn run(data: &[u8]) {
    if let Err(error) = read_table_name(data) {
        assert_refusal(&error);
    }
    let mut body = match read_entity(data) {
        Ok(body) => body,
        Err(error) => return assert_refusal(&error),
    };
    set_timestamp(&mut body.entity, Ticks::parse_iso("2024-02-29T12:34:56.7891234Z").unwrap());
    let entity = EntityRef::parse(&body.entity).expect("what was just read");
    let properties: Vec<_> = entity.properties().map(|property| property.unwrap()).collect();
    stored_form(&body, &properties);
    same_members(data, &body, &properties);
    written_and_read_again(&body, entity, &properties);
    let sorted = sorted_by_name(&properties);
    assert_eq!(properties_of(&merge(entity, entity).unwrap()), properties_of(&sorted));
    assert_eq!(properties_of(&sort_by_name(body.entity.clone()).unwrap()), properties_of(&sorted));
    let changes = read_changes(data).expect("what an insert takes, a change does");
    assert_eq!(properties_of(&changes), properties_of(&body.entity));
}

/// The entity as every write but an insert stores it.
fn sorted_by_name(properties: &[Property<'_>]) -> Vec<u8> {
    let mut named: Vec<_> = properties
        .iter()
        .map(|property| (property.name_str().unwrap(), property.value().unwrap()))
        .collect();
    named.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
    let mut writer = EntityWriter::new();
    named.into_iter().for_each(|(name, value)| writer.push(name, value));
    writer.finish()
}

/// Within the limits, each name once, and the bytes that a writer writes.
fn stored_form(body: &EntityBody, properties: &[Property<'_>]) {
    assert!(properties.len() <= PROPERTIES_MAX);
    let mut names = BTreeSet::new();
    let mut writer = EntityWriter::new();
    for property in properties {
        let (name, value) = (property.name_str().unwrap(), property.value().unwrap());
        check_name(name).expect("a checked name");
        check_value(name, &value).expect("a checked value");
        assert!(names.insert(name), "{name} is there twice");
        writer.push(name, value);
    }
    assert_eq!(properties_of(&writer.finish()), properties_of(&body.entity));
}

/// The bytes behind the timestamp.
fn properties_of(entity: &[u8]) -> &[u8] {
    &entity[10..]
}

/// The same members as a plain reading of the same JSON has.
fn same_members(data: &[u8], body: &EntityBody, properties: &[Property<'_>]) {
    let data = data.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(data);
    let json: Json = serde_json::from_slice(data).expect("JSON that was read is JSON");
    let members = json.as_object().expect("an entity is an object");
    let is_text = |name: &str| members.get(name).and_then(Json::as_str);
    assert_eq!(body.partition_key.as_deref(), is_text("PartitionKey"));
    assert_eq!(body.row_key.as_deref(), is_text("RowKey"));
    let is_property = |name: &&String| {
        let is_system = ["PartitionKey", "RowKey", "Timestamp"].contains(&name.as_str());
        !is_system
            && !name.contains('@')
            && !name.starts_with("odata.")
            && !members[*name].is_null()
    };
    let expected: BTreeSet<_> = members.keys().filter(is_property).map(String::as_str).collect();
    let found: BTreeSet<_> = properties.iter().map(|it| it.name_str().unwrap()).collect();
    assert_eq!(found, expected);
    // A name that is spelled with an escape may come twice unseen: then this reading knows no better.
    if data.contains(&b'\\') {
        return;
    }
    let annotations = data.windows(11).filter(|text| text == b"@odata.type").count();
    for property in properties {
        let name = property.name_str().unwrap();
        match (members.get(&format!("{name}@odata.type")), annotations) {
            (Some(Json::String(named)), 1) => {
                assert_eq!(property.edm_type.name(), named, "{name}");
                annotated(&members[name], property.value().unwrap());
            }
            (None, 0) => inferred(&members[name], property.value().unwrap()),
            _ => {}
        }
    }
}

/// Wire reference 4.2: the type of a value that names none.
fn inferred(json: &Json, value: Value<'_>) {
    match json {
        Json::String(text) => assert_eq!(value, Value::String(text)),
        Json::Bool(truth) => assert_eq!(value, Value::Boolean(*truth)),
        Json::Number(number) => match number.as_i64().map(i32::try_from) {
            Some(Ok(int)) => assert_eq!(value, Value::Int32(int)),
            _ => assert_eq!(value, Value::Double(number.as_f64().unwrap())),
        },
        other => panic!("{other} is no value"),
    }
}

/// Wire reference 4.2: what may stand for a value of each type.
fn annotated(json: &Json, value: Value<'_>) {
    match (value, json) {
        (Value::String(text), Json::String(json)) => assert_eq!(text, json),
        (Value::Boolean(truth), Json::Bool(json)) => assert_eq!(truth, *json),
        (Value::Boolean(truth), Json::String(json)) => assert_eq!(truth.to_string(), *json),
        (Value::Int32(int), Json::Number(json)) => assert_eq!(Some(i64::from(int)), json.as_i64()),
        (Value::Int64(int), Json::Number(json)) => assert_eq!(Some(int), json.as_i64()),
        (Value::Int32(int), Json::String(json)) => assert_eq!(Ok(int), json.parse()),
        (Value::Int64(int), Json::String(json)) => assert_eq!(Ok(int), json.parse()),
        (Value::Double(double), Json::Number(json)) => assert_eq!(Some(double), json.as_f64()),
        (Value::Double(double), Json::String(json)) => {
            let expected: f64 = json.parse().expect("a number");
            assert!(double == expected || (double.is_nan() && json == "NaN"), "{json}");
            assert!(double.is_finite() || ["NaN", "Infinity", "-Infinity"].contains(&&**json));
        }
        (Value::DateTime(moment), Json::String(json)) => {
            assert!(moment >= Ticks::MIN_STORED && json.len() >= 10, "{json}");
            // Without an offset the date is that of the text.
            if !json[10..].contains(['+', '-']) {
                assert_eq!(moment.to_iso()[..10], json[..10]);
            }
        }
        (Value::Guid(guid), Json::String(json)) => {
            let digits: String = guid.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(json.to_lowercase().replace('-', ""), digits);
        }
        (Value::Binary(bytes), Json::String(json)) => assert_eq!(STANDARD.encode(bytes), *json),
        (value, json) => panic!("{value:?} from {json}"),
    }
}

fn written_and_read_again(body: &EntityBody, entity: EntityRef<'_>, properties: &[Property<'_>]) {
    let key = |key: &Option<String>| {
        let key = key.as_deref().unwrap_or("key");
        if key_problem(key).is_none() { key.to_owned() } else { "other".to_owned() }
    };
    let (partition_key, row_key) = (key(&body.partition_key), key(&body.row_key));
    for level in [MetadataLevel::None, MetadataLevel::Minimal, MetadataLevel::Full] {
        let format = EntityFormat::new(level, "http://host/acct", "acct", "tbl", None).unwrap();
        let mut out = Vec::new();
        format.push_element(&mut out, &partition_key, &row_key, entity).expect("an entity");
        let json: Json = serde_json::from_slice(&out).expect("what is written is JSON");
        assert_eq!(json["Timestamp"], "2024-02-29T12:34:56.7891234Z");
        let mut list = Vec::new();
        format.push_list_start(&mut list);
        format.push_item(&mut list, true, &partition_key, &row_key, entity).unwrap();
        format.push_item(&mut list, false, &partition_key, &row_key, entity).unwrap();
        format.push_list_end(&mut list);
        let list: Json = serde_json::from_slice(&list).expect("what is written is JSON");
        assert_eq!(list["value"].as_array().map(Vec::len), Some(2));

        let again = read_entity(&out).expect("what is written can be read");
        assert_eq!(again.partition_key.as_deref(), Some(partition_key.as_str()));
        assert_eq!(again.row_key.as_deref(), Some(row_key.as_str()));
        if level == MetadataLevel::None {
            let count = EntityRef::parse(&again.entity).unwrap().property_count();
            assert_eq!(count, properties.len());
        } else {
            assert_eq!(properties_of(&again.entity), properties_of(&body.entity), "{json}");
        }
    }
    selected(entity, properties, &partition_key, &row_key);
}

/// A projection has the names that were asked for and no other, in any number.
fn selected(
    entity: EntityRef<'_>,
    properties: &[Property<'_>],
    partition_key: &str,
    row_key: &str,
) {
    let names = properties.iter().step_by(2).map(|it| it.name_str().unwrap());
    let names: Vec<_> = names.chain(["RowKey", "Absent__"]).collect();
    let select = names.join(",");
    let format =
        EntityFormat::new(MetadataLevel::None, "http://host/acct", "acct", "tbl", Some(&select));
    let mut out = Vec::new();
    format.unwrap().push_element(&mut out, partition_key, row_key, entity).unwrap();
    let json: Json = serde_json::from_slice(&out).expect("what is written is JSON");
    let found: BTreeSet<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, names.into_iter().collect());
}
