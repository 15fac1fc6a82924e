//! Entities as clients send them: one JSON object, read straight into the stored form.
//!
//! Annotations (`Name@odata.type`) may stand before or after their property. `Timestamp`, everything named
//! `odata.*` and nulls are ignored, as the service does, because clients send back what they were given.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use memchr::memchr;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::name_list::NameList;
use crate::table::names::KeyName;
use crate::table::stored::{EdmType, EntityWriter, PROPERTIES_MAX, Value};
use crate::table::stored::{check_name, check_value, parse_guid};
use crate::ticks::Ticks;

/// Members of one object. An entity has 252 properties, each with an annotation or two, and some clients
/// send nulls for all they know; what comes beyond is no entity.
const MEMBERS_MAX: usize = 4096;
const TYPE_ANNOTATION: &str = "@odata.type";

/// What an entity's JSON holds: the keys, and the rest as it will be stored.
#[derive(Debug)]
pub struct EntityBody {
    pub partition_key: Option<String>,
    pub row_key: Option<String>,
    /// Encoded, with the timestamp yet to be set.
    pub entity: Vec<u8>,
}

/// Reads an entity and checks every property.
///
/// The size of the whole is not checked here: it takes the keys, which may come from the URL
/// (see [`crate::table::stored::check_entity`]).
pub fn read_entity(json: &[u8]) -> Result<EntityBody> {
    let (mut partition_key, mut row_key) = (None, None);
    let entity = read_properties(json, |name, annotations, index| {
        let key = read_key(annotations, index)?;
        match name {
            KeyName::PartitionKey => partition_key = key,
            KeyName::RowKey => row_key = key,
        }
        Ok(())
    })?;
    Ok(EntityBody { partition_key, row_key, entity })
}

/// Reads what changes an entity whose keys are in the URL: keys in the body are ignored, of whatever type they are.
/// The result is encoded as [`EntityBody::entity`] is.
pub fn read_changes(json: &[u8]) -> Result<Vec<u8>> {
    read_properties(json, |_, _, _| Ok(()))
}

/// Encodes the properties of an object, and hands its keys to `on_key`.
fn read_properties(
    json: &[u8],
    mut on_key: impl FnMut(KeyName, &Annotations<'_>, usize) -> Result<()>,
) -> Result<Vec<u8>> {
    let members = read_members(json)?;
    let mut writer = EntityWriter::with_capacity(json.len());
    let annotations = Annotations::of(&members);
    let mut names = NameList::default();
    let mut scratch = Vec::new();
    let mut count = 0;
    for (index, member) in members.iter().enumerate() {
        let name = member.name.as_ref();
        if memchr(b'@', name.as_bytes()).is_some() || name.starts_with("odata.") {
            continue;
        }
        if !names.insert(name).1 {
            return Err(ErrorCode::DuplicatePropertiesSpecified.into());
        }
        match name {
            "Timestamp" => {}
            "PartitionKey" => on_key(KeyName::PartitionKey, &annotations, index)?,
            "RowKey" => on_key(KeyName::RowKey, &annotations, index)?,
            _ => {
                check_name(name)?;
                let Some(value) = read_value(&annotations, index, &mut scratch)? else { continue };
                check_value(name, &value)?;
                count += 1;
                if count > PROPERTIES_MAX {
                    return Err(ErrorCode::TooManyProperties.into());
                }
                writer.push(name, value);
            }
        }
    }
    Ok(writer.finish())
}

/// Reads the body of Create Table, `{"TableName":"x"}`.
pub fn read_table_name(json: &[u8]) -> Result<String> {
    let members = read_members(json)?;
    let mut named = members.into_iter().filter(|member| member.name == "TableName");
    let first = named.next();
    if named.next().is_some() {
        return Err(ErrorCode::DuplicatePropertiesSpecified.into());
    }
    match first {
        Some(Member { value: Scalar::String(name), .. }) => Ok(name.into_owned()),
        Some(Member { value: Scalar::Null, .. }) | None => {
            Err(ErrorCode::PropertiesNeedValue.into())
        }
        Some(_) => Err(ErrorCode::InvalidInput.into()),
    }
}

/// A key as a member: a string, or nothing.
fn read_key(annotations: &Annotations<'_>, index: usize) -> Result<Option<String>> {
    let annotated = annotations.edm_type(index)?;
    match (&annotations.members[index].value, annotated) {
        (Scalar::Null, _) => Ok(None),
        (Scalar::String(text), None | Some(EdmType::String)) => Ok(Some(text.to_string())),
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

/// The typed value of a member, or `None` for a null. Binaries are decoded into `scratch`.
fn read_value<'a>(
    annotations: &Annotations<'a>,
    index: usize,
    scratch: &'a mut Vec<u8>,
) -> Result<Option<Value<'a>>> {
    let annotated = annotations.edm_type(index)?;
    let value = &annotations.members[index].value;
    let typed = match annotated {
        None => infer(value),
        Some(edm_type) => convert(value, edm_type, scratch),
    };
    match value {
        Scalar::Null => Ok(None),
        _ => typed.map(Some).ok_or_else(StorageError::processing),
    }
}

/// The type that an un-annotated value has. Integers beyond 32 bits are doubles on the live service.
fn infer<'a>(value: &'a Scalar<'_>) -> Option<Value<'a>> {
    Some(match value {
        Scalar::Null => return None,
        Scalar::String(text) => Value::String(text),
        Scalar::Boolean(value) => Value::Boolean(*value),
        Scalar::Double(value) => Value::Double(plain_zero(*value)),
        Scalar::Integer(value) => match i32::try_from(*value) {
            Ok(value) => Value::Int32(value),
            Err(_) => Value::Double(*value as f64),
        },
    })
}

/// A value as the type its annotation names; `None` if it is not one.
fn convert<'a>(
    value: &'a Scalar<'_>,
    edm_type: EdmType,
    scratch: &'a mut Vec<u8>,
) -> Option<Value<'a>> {
    Some(match (edm_type, value) {
        (EdmType::String, Scalar::String(text)) => Value::String(text),
        (EdmType::Boolean, Scalar::Boolean(value)) => Value::Boolean(*value),
        (EdmType::Boolean, Scalar::String(text)) => Value::Boolean(match text.as_ref() {
            // Recorded in any case: "False", "TRUE".
            text if text.eq_ignore_ascii_case("true") => true,
            text if text.eq_ignore_ascii_case("false") => false,
            _ => return None,
        }),
        (EdmType::Int32, Scalar::Integer(value)) => Value::Int32(i32::try_from(*value).ok()?),
        (EdmType::Int32, Scalar::String(text)) => Value::Int32(text.parse().ok()?),
        (EdmType::Int64, Scalar::Integer(value)) => Value::Int64(i64::try_from(*value).ok()?),
        (EdmType::Int64, Scalar::String(text)) => Value::Int64(text.parse().ok()?),
        (EdmType::Double, Scalar::Integer(value)) => Value::Double(*value as f64),
        (EdmType::Double, Scalar::Double(value)) => Value::Double(plain_zero(*value)),
        (EdmType::Double, Scalar::String(text)) => Value::Double(parse_double(text)?),
        (EdmType::DateTime, Scalar::String(text)) => Value::DateTime(Ticks::parse_iso(text)?),
        (EdmType::Guid, Scalar::String(text)) => Value::Guid(parse_guid(text)?),
        (EdmType::Binary, Scalar::String(text)) => {
            scratch.clear();
            BASE64.decode_vec(text.as_bytes(), scratch).ok()?;
            Value::Binary(scratch)
        }
        _ => return None,
    })
}

/// A double as text: the three specials, or a number (Rust would read `inf` and `nan` too).
fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => {
            let number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            let value = number.then(|| text.parse().ok()).flatten();
            value.filter(|value: &f64| value.is_finite()).map(plain_zero)
        }
    }
}

/// The service has one zero.
fn plain_zero(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

/// The annotations of an object, found by the name of their property. Nearly always they stand directly before it.
struct Annotations<'a> {
    members: &'a [Member<'a>],
    /// The names that those elsewhere annotate.
    strays: NameList<&'a str>,
    /// The first annotation of each of those names, in the same order.
    stray_members: Vec<&'a Member<'a>>,
}

impl<'a> Annotations<'a> {
    fn of(members: &'a [Member<'a>]) -> Self {
        let mut annotations = Self { members, strays: NameList::default(), stray_members: vec![] };
        for (index, member) in members.iter().enumerate() {
            let Some(name) = annotated_name(member) else { continue };
            let next = members.get(index + 1).map(|next| next.name.as_ref());
            if next != Some(name) && annotations.strays.insert(name).1 {
                annotations.stray_members.push(member);
            }
        }
        annotations
    }

    /// The type that the annotation of a member names, wherever in the object it stands. The first of several
    /// counts, or the one directly before the member.
    fn edm_type(&self, index: usize) -> Result<Option<EdmType>> {
        let name = self.members[index].name.as_ref();
        let before = index.checked_sub(1).map(|before| &self.members[before]);
        let before = before.filter(|member| annotated_name(member) == Some(name));
        match before.or_else(|| self.find(name)).map(|member| &member.value) {
            None | Some(Scalar::Null) => Ok(None),
            Some(Scalar::String(name)) => {
                EdmType::from_name(name).map(Some).ok_or_else(StorageError::processing)
            }
            Some(_) => Err(StorageError::processing()),
        }
    }

    fn find(&self, name: &str) -> Option<&'a Member<'a>> {
        let position = self.strays.position(name.as_bytes())?;
        Some(self.stray_members[position])
    }
}

/// The name of the property that a member annotates, if it is an annotation.
fn annotated_name<'m>(member: &'m Member<'_>) -> Option<&'m str> {
    member.name.strip_suffix(TYPE_ANNOTATION)
}

struct Member<'a> {
    name: Cow<'a, str>,
    value: Scalar<'a>,
}

/// A JSON value that a property can have.
enum Scalar<'a> {
    Null,
    Boolean(bool),
    Integer(i128),
    Double(f64),
    String(Cow<'a, str>),
}

fn read_members(json: &[u8]) -> Result<Vec<Member<'_>>> {
    let json = json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json);
    // Checked once as a whole, not string by string.
    let text =
        std::str::from_utf8(json).map_err(|error| StorageError::processing().caused_by(error))?;
    serde_json::from_str::<Members<'_>>(text)
        .map(|members| members.0)
        .map_err(|error| StorageError::processing().caused_by(error))
}

struct Members<'a>(Vec<Member<'a>>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(24);
                while let Some(name) = map.next_key::<Scalar<'de>>()? {
                    let Scalar::String(name) = name else {
                        return Err(serde::de::Error::custom("member names are strings"));
                    };
                    if members.len() == MEMBERS_MAX {
                        return Err(serde::de::Error::custom("too many members"));
                    }
                    members.push(Member { name, value: map.next_value()? });
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;

        // Arrays and objects have no visit function here, and are refused for it.
        impl<'de> Visitor<'de> for ScalarVisitor {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, number, boolean or null")
            }

            fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Boolean(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Integer(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Integer(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Double(value))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::String(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::String(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_any(ScalarVisitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::stored::EntityRef;

    fn debug(json: &str) -> String {
        match read_entity(json.as_bytes()) {
            Err(error) => format!("{error}"),
            Ok(body) => {
                let entity = EntityRef::parse(&body.entity).unwrap();
                let properties: Vec<_> = entity
                    .properties()
                    .map(|property| {
                        let property = property.unwrap();
                        format!("{}={:?}", property.name_str().unwrap(), property.value().unwrap())
                    })
                    .collect();
                properties.join(" ")
            }
        }
    }

    const PROCESSING: &str = "InvalidInput: An error occurred while processing this request.";
    const NOT_VALID: &str = "InvalidInput: One of the request inputs is not valid.";

    #[test]
    fn types_are_inferred_without_annotation() {
        assert_eq!(
            debug(
                r#"{"S":"x","B":true,"I":-5,"D":1.5,"E":1e2,"L":5454161346626,"Z":-0.0,"F":3.0}"#
            ),
            "S=String(\"x\") B=Boolean(true) I=Int32(-5) D=Double(1.5) E=Double(100.0) \
             L=Double(5454161346626.0) Z=Double(0.0) F=Double(3.0)"
        );
        assert_eq!(
            debug(r#"{"A":2147483647,"B":2147483648}"#),
            "A=Int32(2147483647) B=Double(2147483648.0)"
        );
    }

    #[test]
    fn annotations_are_honoured_before_and_after_their_property() {
        assert_eq!(
            debug(r#"{"a@odata.type":"Edm.Int64","a":"39","b":"5","b@odata.type":"Edm.Int64"}"#),
            "a=Int64(39) b=Int64(5)"
        );
        assert_eq!(
            debug(
                r#"{"d@odata.type":"Edm.Double","d":5,"n@odata.type":"Edm.Double","n":"-Infinity",
                    "s@odata.type":"Edm.Double","s":"3.14","t@odata.type":"Edm.Boolean","t":"TRUE",
                    "i@odata.type":"Edm.Int32","i":7,"x@odata.type":"Edm.String","x":"",
                    "y@odata.type":"Edm.Int64","y":9}"#
            ),
            "d=Double(5.0) n=Double(-inf) s=Double(3.14) t=Boolean(true) i=Int32(7) x=String(\"\") y=Int64(9)"
        );
        assert_eq!(
            debug(
                r#"{"b@odata.type":"Edm.Binary","b":"YmluYXJ5","g@odata.type":"Edm.Guid",
                    "g":"C9DA6455-213d-42c9-9a79-3e9149a57833","t@odata.type":"Edm.DateTime","t":"1601-01-01"}"#
            ),
            format!(
                "b=Binary({:?}) g=Guid({:?}) t=DateTime({:?})",
                b"binary",
                parse_guid("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap(),
                Ticks::MIN_STORED
            )
        );
    }

    #[test]
    fn many_annotations_are_found_too() {
        let count = 100;
        let mut members = Vec::new();
        members.extend((0..count).map(|n| format!(r#""p{n}":"{n}""#)));
        members.extend((0..count).rev().map(|n| format!(r#""p{n}@odata.type":"Edm.Int64""#)));
        // The first of several counts.
        members.extend((0..count).map(|n| format!(r#""p{n}@odata.type":"Edm.Guid""#)));
        members.push(r#""q":"5""#.to_owned());
        let expected: Vec<_> = (0..count).map(|n| format!("p{n}=Int64({n})")).collect();
        let expected = format!("{} q=String(\"5\")", expected.join(" "));
        assert_eq!(debug(&format!("{{{}}}", members.join(","))), expected);
    }

    #[test]
    fn what_clients_send_back_is_ignored() {
        assert_eq!(
            debug(
                r#"{"odata.etag":"W/\"x\"","odata.metadata":null,"Timestamp@odata.type":"Edm.DateTime",
                    "Timestamp":"0001-01-01T00:00:00Z","PartitionKey@odata.type":"Edm.String",
                    "PartitionKey":"p","RowKey":"r","X@odata.type@odata.type":"Edm.String",
                    "N":null,"M@odata.type":"Edm.Int64","M":null,"ETag":"mine"}"#
            ),
            "ETag=String(\"mine\")"
        );
        let body = read_entity(br#"{"PartitionKey":"p","RowKey":null}"#).unwrap();
        assert_eq!((body.partition_key.as_deref(), body.row_key), (Some("p"), None));
    }

    #[test]
    fn values_that_are_not_of_their_type_are_refused() {
        for json in [
            r#"{"a@odata.type":"Edm.Int32","a":2147483648}"#,
            r#"{"a@odata.type":"Edm.Int64","a":"9223372036854775808"}"#,
            r#"{"a@odata.type":"Edm.Int64","a":"x"}"#,
            r#"{"a@odata.type":"Edm.Guid","a":"x"}"#,
            r#"{"a@odata.type":"Edm.Binary","a":"*"}"#,
            r#"{"a@odata.type":"Edm.DateTime","a":"yesterday"}"#,
            r#"{"a@odata.type":"Edm.Boolean","a":"yes"}"#,
            r#"{"a@odata.type":"Edm.Double","a":"inf"}"#,
            r#"{"a@odata.type":"Edm.String","a":5}"#,
            r#"{"a@odata.type":"Edm.Whatever","a":5}"#,
            r#"{"a@odata.type":5,"a":5}"#,
            r#"{"a":[1]}"#,
            r#"{"a":{"b":1}}"#,
            r#"[1]"#,
            r#""x""#,
            "",
            "{",
            r#"{"a":1}x"#,
            "{\"a\":\"\u{1}\"}",
        ] {
            assert_eq!(debug(json), PROCESSING, "{json}");
        }
        assert_eq!(debug(r#"{"PartitionKey":5}"#), NOT_VALID);
        assert_eq!(debug(r#"{"RowKey@odata.type":"Edm.Int64","RowKey":"5"}"#), NOT_VALID);
    }

    /// Recorded: PUT, PATCH and MERGE take their keys from the URL and do not look at these.
    #[test]
    fn changes_ignore_keys_of_any_type() {
        let plain = read_changes(br#"{"A":1}"#).unwrap();
        for json in [
            r#"{"PartitionKey@odata.type":"Edm.Guid","PartitionKey":"x","A":1}"#,
            r#"{"RowKey@odata.type":"Edm.Whatever","RowKey":"x","A":1}"#,
            r#"{"PartitionKey":5,"A":1,"RowKey":null}"#,
        ] {
            assert_eq!(read_changes(json.as_bytes()).unwrap(), plain, "{json}");
        }
        assert!(read_changes(br#"{"RowKey":"1","RowKey":"1"}"#).is_err());
    }

    #[test]
    fn names_may_come_once() {
        assert!(debug(r#"{"a":1,"a":2}"#).starts_with("DuplicatePropertiesSpecified"));
        assert!(
            debug(r#"{"RowKey":"1","RowKey":"1"}"#).starts_with("DuplicatePropertiesSpecified")
        );
        assert_eq!(debug(r#"{"Birthday":1,"birthday":2}"#), "Birthday=Int32(1) birthday=Int32(2)");
        let many: Vec<_> = (0..100).chain([7]).map(|index| format!("\"p{index}\":1")).collect();
        assert!(debug(&format!("{{{}}}", many.join(","))).starts_with("DuplicateProperties"));
    }

    #[test]
    fn counts_are_limited() {
        let of = |count: usize, value: &str| {
            let members: Vec<_> = (0..count).map(|index| format!("\"p{index}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(debug(&of(252, "1")).starts_with("p0=Int32(1)"));
        assert!(debug(&of(253, "1")).starts_with("TooManyProperties"));
        assert_eq!(debug(&of(300, "null")), "");
        assert_eq!(debug(&of(5000, "null")), PROCESSING);
    }

    #[test]
    fn the_body_of_create_table_names_it() {
        assert_eq!(read_table_name(br#"{"TableName":"x"}"#).unwrap(), "x");
        let code = |json: &str| read_table_name(json.as_bytes()).unwrap_err().code();
        assert_eq!(code("{}"), ErrorCode::PropertiesNeedValue);
        assert_eq!(code(r#"{"TableName":5}"#), ErrorCode::InvalidInput);
        let twice = r#"{"TableName":"x","TableName":"x"}"#;
        assert_eq!(code(twice), ErrorCode::DuplicatePropertiesSpecified);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_entity(&bytes);
        }
    }
}
