//! Entities as clients read them, written from the stored bytes without decoding them first.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::escape::{push_escaped, push_string};
use crate::entity::{EdmType, EntityRef, MalformedEntity, Property, Value, push_guid};
use crate::error::Result;
use crate::negotiate::MetadataLevel;
use crate::select::{SELECT_NAMES_MAX, Select};
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
    /// # Errors
    /// 400 `InvalidInput` for a `$select` of too many names.
    pub fn new(
        level: MetadataLevel,
        base: &str,
        account: &str,
        table: &str,
        select: Option<&str>,
    ) -> Result<Self> {
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
        out.extend_from_slice(b"]}");
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
                self.push_key(out, "PartitionKey", partition_key);
                self.push_key(out, "RowKey", row_key);
                self.push_timestamp(out, entity.timestamp());
                for property in entity.properties() {
                    self.push_property(out, &property?);
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
            self.push_key(out, "PartitionKey", partition_key);
        }
        if selected(b"RowKey") {
            self.push_key(out, "RowKey", row_key);
        }
        if selected(b"Timestamp") {
            self.push_timestamp(out, entity.timestamp());
        }
        for property in entity.properties() {
            let property = property?;
            if selected(property.name) {
                self.push_property(out, &property);
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

    fn push_key(&self, out: &mut Vec<u8>, name: &str, key: &str) {
        push_name(out, name.as_bytes());
        push_string(out, key.as_bytes());
        out.push(b',');
    }

    fn push_timestamp(&self, out: &mut Vec<u8>, timestamp: Ticks) {
        if self.level == MetadataLevel::Full {
            push_annotation(out, b"Timestamp", EdmType::DateTime);
        }
        out.extend_from_slice(b"\"Timestamp\":\"");
        timestamp.write_iso(out);
        out.extend_from_slice(b"\",");
    }

    fn push_property(&self, out: &mut Vec<u8>, property: &Property<'_>) {
        // A string is copied as it is; only the other types need their value.
        if property.edm_type == EdmType::String {
            push_name(out, property.name);
            push_string(out, property.payload);
            out.push(b',');
            return;
        }
        let Some(value) = property.value() else { return };
        if self.level != MetadataLevel::None && is_annotated(&value) {
            push_annotation(out, property.name, property.edm_type);
        }
        push_name(out, property.name);
        push_value(out, &value);
        out.push(b',');
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

fn push_name(out: &mut Vec<u8>, name: &[u8]) {
    push_string(out, name);
    out.push(b':');
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
        write!(out, "{number:?}").expect("a vector takes every write");
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
