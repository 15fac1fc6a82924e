//! Entities as clients read them, written from the stored bytes without decoding them first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::escape::{push_escaped, push_name, push_string};
use crate::error::Result;
use crate::table::negotiate::MetadataLevel;
use crate::table::select::{SELECT_NAMES_MAX, Select};
use crate::table::stored::{EdmType, EntityRef, MalformedEntity, Property, Value, push_guid};
use crate::ticks::Ticks;
use crate::uri::percent::write_entity_link;

/// How the entities of one response are written.
#[derive(Clone, Debug)]
pub struct EntityFormat {
    level: MetadataLevel,
    /// `BASE/`, the service root as the client addressed it, escaped for JSON.
    base: Vec<u8>,
    account: String,
    table: String,
    /// The list of `$select` as it was sent, which `odata.metadata` echoes even when it is empty.
    select_text: Option<String>,
    select: Option<Select>,
}

impl EntityFormat {
    /// What ends a list.
    pub const LIST_END: &[u8] = b"]}";

    /// # Errors
    /// 400 `InvalidInput` for a `$select` of too many names.
    pub fn new(
        level: MetadataLevel,
        base: &str,
        account: &str,
        table: &str,
        select: Option<&str>,
    ) -> Result<Self> {
        // Without metadata none of them is written.
        let [base, account, table] = match level {
            MetadataLevel::None => [""; 3],
            MetadataLevel::Minimal | MetadataLevel::Full => [base, account, table],
        };
        let mut escaped = Vec::with_capacity(base.len());
        push_escaped(&mut escaped, base.as_bytes());
        let projection = select.map(Select::parse).transpose()?.flatten();
        Ok(Self {
            level,
            base: escaped,
            account: account.into(),
            table: table.into(),
            select_text: select.map(str::to_owned),
            select: projection.filter(|select| !select.is_all()),
        })
    }

    pub fn level(&self) -> MetadataLevel {
        self.level
    }

    /// The properties that are written of each entity; `None` for all of them.
    pub fn selected(&self) -> Option<&[String]> {
        self.select.as_ref().map(Select::names)
    }

    /// Appends one entity as a document of its own.
    pub fn push_element(
        &self,
        out: &mut Vec<u8>,
        partition_key: &str,
        row_key: &str,
        entity: EntityRef<'_>,
    ) -> Result<(), MalformedEntity> {
        out.push(b'{');
        if self.level != MetadataLevel::None {
            self.push_metadata(out, b"/@Element");
            out.push(b',');
        }
        self.push_members(out, partition_key, row_key, entity)
    }

    /// Appends everything before the first entity of a list.
    pub fn push_list_start(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        if self.level != MetadataLevel::None {
            self.push_metadata(out, b"");
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":[");
    }

    /// Appends one entity of a list.
    pub fn push_item(
        &self,
        out: &mut Vec<u8>,
        first: bool,
        partition_key: &str,
        row_key: &str,
        entity: EntityRef<'_>,
    ) -> Result<(), MalformedEntity> {
        if !first {
            out.push(b',');
        }
        out.push(b'{');
        self.push_members(out, partition_key, row_key, entity)
    }

    /// Appends everything after the last entity of a list.
    pub fn push_list_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(Self::LIST_END);
    }

    fn push_metadata(&self, out: &mut Vec<u8>, suffix: &[u8]) {
        out.extend_from_slice(b"\"odata.metadata\":\"");
        out.extend_from_slice(&self.base);
        out.extend_from_slice(b"/$metadata#");
        out.extend_from_slice(self.table.as_bytes());
        out.extend_from_slice(suffix);
        if let Some(select) = &self.select_text {
            out.extend_from_slice(b"&$select=");
            push_escaped(out, select.as_bytes());
        }
        out.push(b'"');
    }

    /// The members of an entity and the closing brace. What was written of a malformed one is left behind.
    fn push_members(
        &self,
        out: &mut Vec<u8>,
        partition_key: &str,
        row_key: &str,
        entity: EntityRef<'_>,
    ) -> Result<(), MalformedEntity> {
        self.push_control(out, partition_key, row_key, entity.timestamp());
        match &self.select {
            None => {
                push_key(out, b"\"PartitionKey\":\"", partition_key);
                push_key(out, b"\"RowKey\":\"", row_key);
                self.push_timestamp(out, entity.timestamp());
                for property in entity.properties() {
                    self.push_property(out, &property?)?;
                }
            }
            Some(select) => self.push_selected(out, select, partition_key, row_key, entity)?,
        }
        // Each member ended with a comma.
        if out.last() == Some(&b',') {
            out.pop();
        }
        out.push(b'}');
        Ok(())
    }

    /// Only the named properties; those that the entity lacks are null.
    fn push_selected(
        &self,
        out: &mut Vec<u8>,
        select: &Select,
        partition_key: &str,
        row_key: &str,
        entity: EntityRef<'_>,
    ) -> Result<(), MalformedEntity> {
        let mut found = [false; SELECT_NAMES_MAX];
        let mut selected = |name: &[u8]| match select.position(name) {
            Some(position) => {
                found[position] = true;
                true
            }
            None => false,
        };
        if selected(b"PartitionKey") {
            push_key(out, b"\"PartitionKey\":\"", partition_key);
        }
        if selected(b"RowKey") {
            push_key(out, b"\"RowKey\":\"", row_key);
        }
        if selected(b"Timestamp") {
            self.push_timestamp(out, entity.timestamp());
        }
        for property in entity.properties() {
            let property = property?;
            if selected(property.name) {
                self.push_property(out, &property)?;
            }
        }
        for (name, found) in select.names().iter().zip(found) {
            if !found {
                push_string(out, name.as_bytes());
                out.extend_from_slice(b":null,");
            }
        }
        Ok(())
    }

    /// The `odata.*` members of an entity.
    fn push_control(&self, out: &mut Vec<u8>, pk: &str, rk: &str, timestamp: Ticks) {
        if self.level == MetadataLevel::None {
            return;
        }
        if self.level == MetadataLevel::Full {
            out.extend_from_slice(b"\"odata.type\":\"");
            push_escaped(out, self.account.as_bytes());
            out.push(b'.');
            out.extend_from_slice(self.table.as_bytes());
            out.extend_from_slice(b"\",\"odata.id\":\"");
            out.extend_from_slice(&self.base);
            out.push(b'/');
            write_entity_link(&self.table, pk, rk, out);
            out.extend_from_slice(b"\",");
        }
        out.extend_from_slice(b"\"odata.etag\":\"W/\\\"datetime'");
        timestamp.write_etag_time(out);
        out.extend_from_slice(b"'\\\"\",");
        if self.level == MetadataLevel::Full {
            out.extend_from_slice(b"\"odata.editLink\":\"");
            write_entity_link(&self.table, pk, rk, out);
            out.extend_from_slice(b"\",");
        }
    }

    fn push_timestamp(&self, out: &mut Vec<u8>, timestamp: Ticks) {
        if self.level == MetadataLevel::Full {
            push_annotation(out, b"Timestamp", EdmType::DateTime);
        }
        out.extend_from_slice(b"\"Timestamp\":\"");
        timestamp.write_iso(out);
        out.extend_from_slice(b"\",");
    }

    fn push_property(
        &self,
        out: &mut Vec<u8>,
        property: &Property<'_>,
    ) -> Result<(), MalformedEntity> {
        // A string is copied as it is; only the other types need their value.
        if property.edm_type == EdmType::String {
            push_name(out, property.name_and_behind(), property.name.len());
            push_string(out, property.payload);
            out.push(b',');
            return Ok(());
        }
        // An entity without a property that it has would be a wrong answer.
        let value = property.value().ok_or(MalformedEntity { at: property.at })?;
        if self.level != MetadataLevel::None && is_annotated(&value) {
            push_annotation(out, property.name, property.edm_type);
        }
        push_name(out, property.name_and_behind(), property.name.len());
        push_value(out, &value);
        out.push(b',');
        Ok(())
    }
}

/// Clients infer the other types; .NET fails on an annotation that it does not expect.
fn is_annotated(value: &Value<'_>) -> bool {
    match value {
        Value::String(_) | Value::Boolean(_) | Value::Int32(_) => false,
        Value::Double(value) => !value.is_finite(),
        Value::Int64(_) | Value::DateTime(_) | Value::Guid(_) | Value::Binary(_) => true,
    }
}

/// One of the keys; `start` is its name up to the quote of the value.
fn push_key(out: &mut Vec<u8>, start: &[u8], key: &str) {
    out.extend_from_slice(start);
    push_escaped(out, key.as_bytes());
    out.extend_from_slice(b"\",");
}

fn push_annotation(out: &mut Vec<u8>, name: &[u8], edm_type: EdmType) {
    out.push(b'"');
    push_escaped(out, name);
    out.extend_from_slice(b"@odata.type\":\"");
    out.extend_from_slice(edm_type.name().as_bytes());
    out.extend_from_slice(b"\",");
}

fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::String(text) => push_string(out, text.as_bytes()),
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Int32(number) => {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        Value::Int64(number) => push_quoted(out, |out| {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }),
        Value::Double(number) => push_double(out, *number),
        Value::DateTime(moment) => push_quoted(out, |out| moment.write_iso(out)),
        Value::Guid(guid) => push_quoted(out, |out| push_guid(out, guid)),
        Value::Binary(bytes) => push_quoted(out, |out| {
            let start = out.len();
            out.resize(start + bytes.len().div_ceil(3) * 4, 0);
            BASE64.encode_slice(bytes, &mut out[start..]).expect("four characters for three bytes");
        }),
    }
}

fn push_quoted(out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    push(out);
    out.push(b'"');
}

/// A double always has a point or an exponent, because clients take an integer for an Int32.
fn push_double(out: &mut Vec<u8>, number: f64) {
    if number.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if number.is_infinite() {
        out.extend_from_slice(if number > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else {
        out.extend_from_slice(zmij::Buffer::new().format_finite(number).as_bytes());
    }
}

/// Appends an error document. The text is followed by the request's id and the time, as clients expect.
pub fn push_error(out: &mut Vec<u8>, code: &str, message: &str, request_id: &str, time: Ticks) {
    out.extend_from_slice(b"{\"odata.error\":{\"code\":");
    push_string(out, code.as_bytes());
    out.extend_from_slice(b",\"message\":{\"lang\":\"en-US\",\"value\":\"");
    push_escaped(out, message.as_bytes());
    out.extend_from_slice(b"\\nRequestId:");
    push_escaped(out, request_id.as_bytes());
    out.extend_from_slice(b"\\nTime:");
    time.write_iso_padded(out);
    out.extend_from_slice(b"\"}}}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::json::read_entity;
    use crate::table::stored::{EntityWriter, parse_guid, set_timestamp};

    const BASE: &str = "https://acct.table.core.windows.net";

    fn format(level: MetadataLevel, select: Option<&str>) -> EntityFormat {
        EntityFormat::new(level, BASE, "acct", "t", select).unwrap()
    }

    fn entity(properties: &[(&str, Value<'_>)]) -> Vec<u8> {
        let mut writer = EntityWriter::new();
        for (name, value) in properties {
            writer.push(name, *value);
        }
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, Ticks::parse_iso("2017-11-10T02:44:47.6221962Z").unwrap());
        bytes
    }

    /// The entity of the recorded sample in wire reference 4.1.
    fn recorded() -> Vec<u8> {
        let guid = parse_guid("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap();
        entity(&[
            ("age", Value::Int64(39)),
            ("married", Value::Boolean(true)),
            ("ratio", Value::Double(3.1)),
            ("evenratio", Value::Double(3.0)),
            ("birthday", Value::DateTime(Ticks::parse_iso("1970-10-04").unwrap())),
            ("binary", Value::Binary(b"binary")),
            ("other", Value::Int32(20)),
            ("clsid", Value::Guid(guid)),
        ])
    }

    fn element(format: &EntityFormat, pk: &str, rk: &str, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        format.push_element(&mut out, pk, rk, EntityRef::parse(bytes).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn full_metadata_is_that_of_the_recording() {
        let expected = r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#t/@Element","odata.type":"acct.t","odata.id":"https://acct.table.core.windows.net/t(PartitionKey='p',RowKey='r')","odata.etag":"W/\"datetime'2017-11-10T02%3A44%3A47.6221962Z'\"","odata.editLink":"t(PartitionKey='p',RowKey='r')","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2017-11-10T02:44:47.6221962Z","age@odata.type":"Edm.Int64","age":"39","married":true,"ratio":3.1,"evenratio":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","other":20,"clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#;
        let format = format(MetadataLevel::Full, None);
        assert_eq!(element(&format, "p", "r", &recorded()), expected);
    }

    #[test]
    fn minimal_metadata_keeps_etag_and_annotations() {
        let expected = r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#t/@Element","odata.etag":"W/\"datetime'2017-11-10T02%3A44%3A47.6221962Z'\"","PartitionKey":"p","RowKey":"r","Timestamp":"2017-11-10T02:44:47.6221962Z","age@odata.type":"Edm.Int64","age":"39","married":true,"ratio":3.1,"evenratio":3.0,"birthday@odata.type":"Edm.DateTime","birthday":"1970-10-04T00:00:00Z","binary@odata.type":"Edm.Binary","binary":"YmluYXJ5","other":20,"clsid@odata.type":"Edm.Guid","clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#;
        let format = format(MetadataLevel::Minimal, None);
        assert_eq!(element(&format, "p", "r", &recorded()), expected);
    }

    #[test]
    fn no_metadata_keeps_the_encodings() {
        let expected = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2017-11-10T02:44:47.6221962Z","age":"39","married":true,"ratio":3.1,"evenratio":3.0,"birthday":"1970-10-04T00:00:00Z","binary":"YmluYXJ5","other":20,"clsid":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#;
        let format = format(MetadataLevel::None, None);
        assert_eq!(element(&format, "p", "r", &recorded()), expected);
    }

    #[test]
    fn special_doubles_are_annotated_strings_and_others_have_a_point_or_exponent() {
        let bytes = entity(&[
            ("a", Value::Double(f64::NAN)),
            ("b", Value::Double(f64::INFINITY)),
            ("c", Value::Double(f64::NEG_INFINITY)),
            ("d", Value::Double(1e20)),
            ("e", Value::Double(5e-324)),
            ("f", Value::Double(-7.0)),
        ]);
        let text = element(&format(MetadataLevel::Minimal, None), "p", "r", &bytes);
        let tail = text.split_once("6221962Z\",").unwrap().1;
        assert_eq!(
            tail,
            r#""a@odata.type":"Edm.Double","a":"NaN","b@odata.type":"Edm.Double","b":"Infinity","c@odata.type":"Edm.Double","c":"-Infinity","d":1e+20,"e":5e-324,"f":-7.0}"#
        );
    }

    #[test]
    fn select_names_what_is_returned_and_nulls_what_is_missing() {
        let minimal = format(MetadataLevel::Minimal, Some("other,xyz,RowKey,age"));
        assert_eq!(
            element(&minimal, "p", "r", &recorded()),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#t/@Element&$select=other,xyz,RowKey,age","odata.etag":"W/\"datetime'2017-11-10T02%3A44%3A47.6221962Z'\"","RowKey":"r","age@odata.type":"Edm.Int64","age":"39","other":20,"xyz":null}"#
        );
        let none = format(MetadataLevel::None, Some("nothing"));
        assert_eq!(element(&none, "p", "r", &recorded()), r#"{"nothing":null}"#);
        let all = element(&format(MetadataLevel::None, Some("*")), "p", "r", &recorded());
        assert!(all.starts_with(r#"{"PartitionKey":"p","RowKey":"r","#));
        let empty = element(&format(MetadataLevel::Minimal, Some("")), "p", "r", &recorded());
        assert!(empty.contains("/@Element&$select=\",") && empty.contains("\"age\":"), "{empty}");
    }

    #[test]
    fn keys_are_escaped_in_links_and_in_json() {
        let bytes = entity(&[]);
        let text = element(&format(MetadataLevel::Full, None), "A'aaa\"_b", "x y", &bytes);
        // Wire reference 2.2.
        assert!(
            text.contains(r#""odata.editLink":"t(PartitionKey='A''aaa%22_b',RowKey='x%20y')""#)
        );
        assert!(text.contains(r#""PartitionKey":"A'aaa\"_b","RowKey":"x y""#));
    }

    /// A stored date that is none: the entity is damaged, and what is left of it is not the entity.
    #[test]
    fn a_stored_value_that_is_none_is_an_error() {
        let mut bytes = entity(&[("A", Value::Int32(1)), ("D", Value::DateTime(Ticks::MAX))]);
        let at = bytes.len() - 1;
        bytes[at] = 0x7F;
        for select in [None, Some("D")] {
            let format = format(MetadataLevel::Minimal, select);
            let entity = EntityRef::parse(&bytes).unwrap();
            let written = format.push_element(&mut Vec::new(), "p", "r", entity);
            assert_eq!(written, Err(MalformedEntity { at: bytes.len() - 11 }));
        }
    }

    #[test]
    fn a_list_holds_its_entities() {
        let format = format(MetadataLevel::None, Some("other"));
        let bytes = recorded();
        let mut out = Vec::new();
        format.push_list_start(&mut out);
        for first in [true, false] {
            let entity = EntityRef::parse(&bytes).unwrap();
            format.push_item(&mut out, first, "p", "r", entity).unwrap();
        }
        format.push_list_end(&mut out);
        assert_eq!(out, br#"{"value":[{"other":20},{"other":20}]}"#);
    }

    #[test]
    fn an_error_has_the_shape_of_the_service() {
        let mut out = Vec::new();
        let time = Ticks::parse_iso("2017-11-10T02:44:39.9404831Z").unwrap();
        let id = "39ef292c-0002-0008-3dcd-59b809000000";
        let message = "The specified resource does not exist.";
        push_error(&mut out, "ResourceNotFound", message, id, time);
        // Wire reference 11.1.
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist.\nRequestId:39ef292c-0002-0008-3dcd-59b809000000\nTime:2017-11-10T02:44:39.9404831Z"}}}"#
        );
    }

    proptest! {
        /// What is written at minimal metadata reads back as the same entity.
        #[test]
        fn written_entities_read_back(
            texts in prop::collection::vec("\\PC{0,20}", 0..4),
            long in any::<i64>(),
            double in any::<f64>(),
            ticks in Ticks::MIN_STORED.0..=Ticks::MAX.0,
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let names = ["s0", "s1", "s2", "s3"];
            let double = if double == 0.0 || double.is_nan() { f64::NAN } else { double };
            let mut properties: Vec<_> =
                names.iter().zip(&texts).map(|(name, text)| (*name, Value::String(text))).collect();
            properties.push(("l", Value::Int64(long)));
            properties.push(("d", Value::Double(double)));
            properties.push(("t", Value::DateTime(Ticks(ticks))));
            properties.push(("b", Value::Binary(&bytes)));
            let stored = entity(&properties);
            let text = element(&format(MetadataLevel::Minimal, None), "p", "r", &stored);
            let mut read = read_entity(text.as_bytes()).unwrap().entity;
            set_timestamp(&mut read, EntityRef::parse(&stored).unwrap().timestamp());
            prop_assert_eq!(read, stored);
        }
    }
}
