//! Entities as JSON: what a client sends, and what it receives at the level `minimalmetadata`.

use std::fmt;

use azure_core::Uuid;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use tavola_wire::table::json::push_string;
use tavola_wire::table::stored::EdmType;

use super::{Entity, Stored};
use crate::core::error::{Result, conversion};
use crate::table::value::{DateTime, EdmValue};

const ANNOTATION: &str = "@odata.type";

/// Writes the body of an insert or an update.
pub(crate) fn write_entity(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(b"{\"PartitionKey\":");
    push_string(&mut out, entity.partition_key().as_bytes());
    out.extend_from_slice(b",\"RowKey\":");
    push_string(&mut out, entity.row_key().as_bytes());
    for (name, value) in entity.properties() {
        out.push(b',');
        write_property(&mut out, name, value);
    }
    out.push(b'}');
    out
}

fn write_property(out: &mut Vec<u8>, name: &str, value: &EdmValue) {
    if needs_annotation(value) {
        push_string(out, [name, ANNOTATION].concat().as_bytes());
        out.push(b':');
        push_string(out, value.edm_type().name().as_bytes());
        out.push(b',');
    }
    push_string(out, name.as_bytes());
    out.push(b':');
    match value {
        EdmValue::String(text) => push_string(out, text.as_bytes()),
        EdmValue::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        EdmValue::Int32(value) => out.extend_from_slice(value.to_string().as_bytes()),
        EdmValue::Int64(value) => push_string(out, value.to_string().as_bytes()),
        EdmValue::Double(value) => write_double(out, *value),
        EdmValue::DateTime(moment) => push_string(out, moment.to_iso().as_bytes()),
        EdmValue::Guid(guid) => push_string(out, guid.to_string().as_bytes()),
        EdmValue::Binary(bytes) => push_string(out, STANDARD.encode(bytes).as_bytes()),
    }
}

fn needs_annotation(value: &EdmValue) -> bool {
    match value {
        EdmValue::String(_) | EdmValue::Boolean(_) | EdmValue::Int32(_) => false,
        EdmValue::Double(value) => !value.is_finite(),
        _ => true,
    }
}

fn write_double(out: &mut Vec<u8>, value: f64) {
    let text = if value.is_nan() {
        "\"NaN\"".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "\"Infinity\"".to_owned() } else { "\"-Infinity\"".to_owned() }
    } else {
        // The debug form always has a decimal point or an exponent, and reads back exactly.
        format!("{value:?}")
    };
    out.extend_from_slice(text.as_bytes());
}

/// Reads one entity.
pub(crate) fn read_entity(body: &[u8]) -> Result<Stored<Entity>> {
    let received: Received = serde_json::from_slice(body)?;
    Ok(received.0)
}

/// Reads a page of entities.
pub(crate) fn read_entities(body: &[u8]) -> Result<Vec<Stored<Entity>>> {
    #[derive(serde::Deserialize)]
    struct Page {
        value: Vec<Received>,
    }
    let page: Page = serde_json::from_slice(body)?;
    Ok(page.value.into_iter().map(|received| received.0).collect())
}

/// Reads a page of tables.
pub(crate) fn read_tables(body: &[u8]) -> Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Page {
        value: Vec<Table>,
    }
    let page: Page = serde_json::from_slice(body)?;
    Ok(page.value.into_iter().map(|table| table.name).collect())
}

/// Reads a single element of the list of tables.
pub(crate) fn read_table(body: &[u8]) -> Result<String> {
    Ok(serde_json::from_slice::<Table>(body)?.name)
}

#[derive(serde::Deserialize)]
struct Table {
    #[serde(rename = "TableName")]
    name: String,
}

struct Received(Stored<Entity>);

impl<'de> Deserialize<'de> for Received {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntityVisitor)
    }
}

struct EntityVisitor;

impl<'de> Visitor<'de> for EntityVisitor {
    type Value = Received;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entity")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Received, A::Error> {
        use serde::de::Error as _;
        let mut parts = Parts::default();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value::<Scalar>()?;
            parts.accept(name, value).map_err(A::Error::custom)?;
        }
        parts.finish().map(Received).map_err(A::Error::custom)
    }
}

/// An entity in the making. Annotations come directly before their values, and are taken anywhere.
#[derive(Default)]
struct Parts {
    partition_key: String,
    row_key: String,
    etag: String,
    timestamp: Option<DateTime>,
    properties: Vec<(String, Scalar)>,
    annotations: Vec<(String, EdmType)>,
}

impl Parts {
    fn accept(&mut self, name: String, value: Scalar) -> Result<()> {
        match (name.as_str(), value) {
            ("PartitionKey", Scalar::String(key)) => self.partition_key = key,
            ("RowKey", Scalar::String(key)) => self.row_key = key,
            ("Timestamp", Scalar::String(text)) => self.timestamp = DateTime::parse_iso(&text),
            ("odata.etag", Scalar::String(etag)) => self.etag = etag,
            (_, Scalar::Null) => {}
            (member, _) if member.starts_with("odata.") => {}
            (member, Scalar::String(kind)) if member.ends_with(ANNOTATION) => {
                let property = member[..member.len() - ANNOTATION.len()].to_owned();
                let kind = EdmType::from_name(&kind)
                    .ok_or_else(|| conversion(format!("a property has an unknown type: {kind}")))?;
                self.annotations.push((property, kind));
            }
            (_, value) => self.properties.push((name, value)),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Stored<Entity>> {
        let mut entity = Entity::new(self.partition_key, self.row_key);
        for (name, value) in self.properties {
            let annotation = self.annotations.iter().position(|(property, _)| *property == name);
            let value = match annotation.map(|at| self.annotations.swap_remove(at)) {
                Some((_, kind)) => value.typed(kind)?,
                None => value.inferred(),
            };
            entity.push(name, value);
        }
        Ok(Stored::new(entity, self.etag).with_timestamp(self.timestamp))
    }
}

/// A value as JSON has it.
enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    String(String),
}

impl Scalar {
    fn typed(self, kind: EdmType) -> Result<EdmValue> {
        let value = match (kind, self) {
            (EdmType::String, Self::String(text)) => Some(EdmValue::String(text)),
            (EdmType::Boolean, Self::Boolean(value)) => Some(EdmValue::Boolean(value)),
            (EdmType::Int32, Self::Integer(value)) => {
                i32::try_from(value).ok().map(EdmValue::Int32)
            }
            (EdmType::Int64, Self::Integer(value)) => Some(EdmValue::Int64(value)),
            (EdmType::Int64, Self::String(text)) => text.parse().ok().map(EdmValue::Int64),
            (EdmType::Double, Self::Number(value)) => Some(EdmValue::Double(value)),
            (EdmType::Double, Self::Integer(value)) => Some(EdmValue::Double(value as f64)),
            // Rust reads "NaN", "Infinity" and "-Infinity" as the service writes them.
            (EdmType::Double, Self::String(text)) => text.parse().ok().map(EdmValue::Double),
            (EdmType::DateTime, Self::String(text)) => {
                DateTime::parse_iso(&text).map(EdmValue::DateTime)
            }
            (EdmType::Guid, Self::String(text)) => Uuid::parse_str(&text).ok().map(EdmValue::Guid),
            (EdmType::Binary, Self::String(text)) => {
                STANDARD.decode(text).ok().map(EdmValue::Binary)
            }
            _ => None,
        };
        value.ok_or_else(|| conversion(format!("a value is not of its type: type={}", kind.name())))
    }

    fn inferred(self) -> EdmValue {
        match self {
            Self::Boolean(value) => EdmValue::Boolean(value),
            Self::Integer(value) => {
                i32::try_from(value).map_or(EdmValue::Int64(value), EdmValue::Int32)
            }
            Self::Number(value) => EdmValue::Double(value),
            Self::String(text) => EdmValue::String(text),
            Self::Null => unreachable!("nulls are dropped as they come"),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;
        impl Visitor<'_> for ScalarVisitor {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value of a property")
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Boolean(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Integer(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(i64::try_from(value).map_or(Scalar::Number(value as f64), Scalar::Integer))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value))
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::String(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Scalar, E> {
                Ok(Scalar::String(text))
            }
        }
        deserializer.deserialize_any(ScalarVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The entity of the reference, section 4.1, at the level that the client asks for.
    #[test]
    fn a_recorded_entity_is_read() {
        let body = br#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#t/@Element","odata.etag":"W/\"datetime'2017-11-10T02%3A44%3A47.6221962Z'\"","PartitionKey":"p","RowKey":"r","Timestamp":"2017-11-10T02:44:47.6221962Z","age@odata.type":"Edm.Int64","age":"39","married":true,"ratio":3.1,"evenratio":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","other":20,"gone":null,"clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#;
        let stored = read_entity(body).unwrap();
        assert_eq!(stored.etag.as_ref(), "W/\"datetime'2017-11-10T02%3A44%3A47.6221962Z'\"");
        assert_eq!(stored.timestamp.unwrap().to_etag(), stored.etag.as_ref());
        let names: Vec<_> = stored.properties().map(|(name, _)| name.to_owned()).collect();
        assert!(!names.contains(&"gone".to_owned()));
        let expected = Entity::new("p", "r")
            .with("age", 39_i64)
            .with("married", true)
            .with("ratio", 3.1)
            .with("evenratio", 3.0)
            .with("birthday", DateTime::parse_iso("1970-10-04").unwrap())
            .with("binary", b"binary")
            .with("other", 20)
            .with("clsid", Uuid::parse_str("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap());
        assert_eq!(stored.value, expected);
    }

    #[test]
    fn a_late_annotation_counts() {
        let stored = read_entity(br#"{"A":"7","A@odata.type":"Edm.Int64"}"#).unwrap();
        assert_eq!(stored.value("A"), Some(&EdmValue::Int64(7)));
    }

    #[test]
    fn values_that_are_not_of_their_type_are_refused() {
        for body in [
            r#"{"A@odata.type":"Edm.Int64","A":"x"}"#,
            r#"{"A@odata.type":"Edm.Guid","A":"x"}"#,
            r#"{"A@odata.type":"Edm.Shape","A":"x"}"#,
            r#"{"A":[1]}"#,
            r"[]",
        ] {
            assert!(read_entity(body.as_bytes()).is_err(), "{body}");
        }
    }

    fn any_value() -> impl Strategy<Value = EdmValue> {
        prop_oneof![
            any::<String>().prop_map(EdmValue::String),
            any::<bool>().prop_map(EdmValue::Boolean),
            any::<i32>().prop_map(EdmValue::Int32),
            any::<i64>().prop_map(EdmValue::Int64),
            (proptest::num::f64::NORMAL | proptest::num::f64::ZERO | proptest::num::f64::INFINITE)
                .prop_map(EdmValue::Double),
            (DateTime::MIN_STORED.0..=DateTime::MAX.0)
                .prop_map(|ticks| EdmValue::DateTime(tavola_wire::Ticks(ticks))),
            any::<u128>().prop_map(|bits| EdmValue::Guid(Uuid::from_u128(bits))),
            any::<Vec<u8>>().prop_map(EdmValue::Binary),
        ]
    }

    proptest! {
        /// Our own writer and reader agree on every value, and the service's reader on what was written.
        #[test]
        fn entities_round_trip(key in "[ -~]{0,8}", value in any_value()) {
            let entity = Entity::new(key, "\u{1F600}\"\\").with("Prop", value);
            let body = write_entity(&entity);
            prop_assert_eq!(read_entity(&body).unwrap().value, entity.clone());
            let served = tavola_wire::table::json::read_entity(&body).unwrap();
            prop_assert_eq!(served.partition_key.as_deref(), Some(entity.partition_key()));
        }
    }
}
