//! The bytes that an entity is stored as: written once, read in one forward pass without copying.
//!
//! `version u8 . flags u8 . timestamp i64 . count u16 . property*`, numbers little-endian. A property is
//! `type u8 . name length varint . name . payload`; strings and binaries carry a varint length. The keys are
//! not in here: they are the key. See `docs/format.md`.

use super::value::{EdmType, Value};
use crate::ticks::Ticks;

const VERSION: u8 = 1;
const FLAGS: u8 = 0;
const TIMESTAMP_AT: usize = 2;
const COUNT_AT: usize = 10;
const HEADER_BYTES: usize = 12;

/// Writes an entity property by property, in the order they are to be kept.
#[derive(Debug)]
pub struct EntityWriter {
    bytes: Vec<u8>,
    count: u16,
}

impl EntityWriter {
    /// An entity without properties whose timestamp is yet to be [set](set_timestamp).
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Like [`EntityWriter::new`], with room for this many bytes of properties.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(HEADER_BYTES + bytes);
        buffer.extend_from_slice(&[VERSION, FLAGS]);
        buffer.resize(HEADER_BYTES, 0);
        Self { bytes: buffer, count: 0 }
    }

    pub fn push(&mut self, name: &str, value: Value<'_>) {
        self.bytes.push(value.edm_type() as u8);
        push_sized(&mut self.bytes, name.as_bytes());
        match value {
            Value::String(text) => push_sized(&mut self.bytes, text.as_bytes()),
            Value::Boolean(value) => self.bytes.push(u8::from(value)),
            Value::Int32(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Int64(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Double(value) => self.bytes.extend_from_slice(&value.to_bits().to_le_bytes()),
            Value::DateTime(value) => self.bytes.extend_from_slice(&value.0.to_le_bytes()),
            Value::Guid(value) => self.bytes.extend_from_slice(&value),
            Value::Binary(bytes) => push_sized(&mut self.bytes, bytes),
        }
        self.count = self.count.checked_add(1).expect("the payload limit keeps counts small");
    }

    /// Copies a property of another entity as it is.
    pub(crate) fn push_property(&mut self, property: &Property<'_>) {
        self.bytes.extend_from_slice(&property.from_here[..property.encoded_len]);
        self.count = self.count.checked_add(1).expect("the payload limit keeps counts small");
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes[COUNT_AT..HEADER_BYTES].copy_from_slice(&self.count.to_le_bytes());
        self.bytes
    }
}

impl Default for EntityWriter {
    fn default() -> Self {
        Self::new()
    }
}

/// Sets the timestamp of an encoded entity in place.
pub fn set_timestamp(entity: &mut [u8], timestamp: Ticks) {
    entity[TIMESTAMP_AT..COUNT_AT].copy_from_slice(&timestamp.0.to_le_bytes());
}

/// The entity with further properties behind its own, instead of those that it has of the same names.
///
/// # Errors
/// When the entity is malformed.
pub fn with_properties(
    entity: EntityRef<'_>,
    further: &[(&str, Value<'_>)],
) -> Result<Vec<u8>, MalformedEntity> {
    let mut writer = EntityWriter::with_capacity(entity.as_bytes().len() + 64);
    for property in entity.properties() {
        let property = property?;
        if !further.iter().any(|(name, _)| name.as_bytes() == property.name) {
            writer.push_property(&property);
        }
    }
    for (name, value) in further {
        writer.push(name, *value);
    }
    let mut bytes = writer.finish();
    set_timestamp(&mut bytes, entity.timestamp());
    Ok(bytes)
}

/// Stored bytes that no [`EntityWriter`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored entity is malformed at byte {at}")]
pub struct MalformedEntity {
    pub at: usize,
}

/// An encoded entity, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct EntityRef<'a> {
    bytes: &'a [u8],
}

impl<'a> EntityRef<'a> {
    /// Checks the header; the properties are checked as they are read.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MalformedEntity> {
        if bytes.len() < HEADER_BYTES {
            return Err(MalformedEntity { at: bytes.len() });
        }
        if bytes[0] != VERSION || bytes[1] != FLAGS {
            return Err(MalformedEntity { at: 0 });
        }
        let entity = Self { bytes };
        if !(Ticks::MIN..=Ticks::MAX).contains(&entity.timestamp()) {
            return Err(MalformedEntity { at: TIMESTAMP_AT });
        }
        Ok(entity)
    }

    pub fn timestamp(&self) -> Ticks {
        let ticks = self.bytes[TIMESTAMP_AT..COUNT_AT].try_into().expect("eight bytes");
        Ticks(i64::from_le_bytes(ticks))
    }

    pub fn property_count(&self) -> usize {
        let count = self.bytes[COUNT_AT..HEADER_BYTES].try_into().expect("two bytes");
        usize::from(u16::from_le_bytes(count))
    }

    /// The properties in the order they were written.
    pub fn properties(&self) -> Properties<'a> {
        Properties { bytes: self.bytes, at: HEADER_BYTES, left: self.property_count() }
    }

    /// The bytes this was parsed from.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Iterates over the properties of an entity; ends after the first malformed one.
#[derive(Clone, Debug)]
pub struct Properties<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
}

impl<'a> Iterator for Properties<'a> {
    type Item = Result<Property<'a>, MalformedEntity>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            let whole = self.at == self.bytes.len();
            self.at = self.bytes.len();
            return (!whole).then_some(Err(MalformedEntity { at: self.bytes.len() }));
        }
        self.left -= 1;
        let at = self.at;
        match Property::read(self.bytes, at) {
            Some(property) => {
                self.at += property.encoded_len;
                Some(Ok(property))
            }
            None => {
                self.left = 0;
                self.at = self.bytes.len();
                Some(Err(MalformedEntity { at }))
            }
        }
    }
}

/// One property of an encoded entity, borrowed: nothing is decoded before it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Property<'a> {
    pub edm_type: EdmType,
    /// UTF-8; a text only when someone needs one.
    pub name: &'a [u8],
    /// The bytes of the value: numbers little-endian, strings in UTF-8.
    pub payload: &'a [u8],
    /// Where the property stands in its entity.
    pub at: usize,
    /// The property and everything behind it.
    from_here: &'a [u8],
    encoded_len: usize,
}

impl<'a> Property<'a> {
    #[inline(always)]
    fn read(entity: &'a [u8], at: usize) -> Option<Self> {
        let from_here = &entity[at..];
        let (tag, rest) = from_here.split_first()?;
        let edm_type = EdmType::from_tag(*tag)?;
        let (name, rest) = split_sized(rest)?;
        let (payload, rest) = match edm_type {
            EdmType::Boolean => rest.split_at_checked(1)?,
            EdmType::Int32 => rest.split_at_checked(4)?,
            EdmType::Int64 | EdmType::Double | EdmType::DateTime => rest.split_at_checked(8)?,
            EdmType::Guid => rest.split_at_checked(16)?,
            EdmType::String | EdmType::Binary => split_sized(rest)?,
        };
        let encoded_len = from_here.len() - rest.len();
        Some(Self { edm_type, name, payload, at, from_here, encoded_len })
    }

    /// The name, and behind it whatever the entity still holds.
    #[inline]
    pub(crate) fn name_and_behind(&self) -> &'a [u8] {
        // The tag, and a length of one byte, which short names always have.
        if self.name.len() < 0x80 { &self.from_here[2..] } else { self.name }
    }

    /// The name as text; `None` if it is not UTF-8, which no writer wrote.
    pub fn name_str(&self) -> Option<&'a str> {
        std::str::from_utf8(self.name).ok()
    }

    /// The typed value; `None` if the payload is not of the type, which no writer wrote.
    pub fn value(&self) -> Option<Value<'a>> {
        Some(match self.edm_type {
            EdmType::String => Value::String(std::str::from_utf8(self.payload).ok()?),
            EdmType::Boolean => Value::Boolean(self.payload[0] != 0),
            EdmType::Int32 => Value::Int32(i32::from_le_bytes(self.payload.try_into().ok()?)),
            EdmType::Int64 => Value::Int64(self.long()),
            EdmType::Double => Value::Double(f64::from_bits(self.long().cast_unsigned())),
            EdmType::DateTime => {
                let ticks = Ticks(self.long());
                Value::DateTime((Ticks::MIN..=Ticks::MAX).contains(&ticks).then_some(ticks)?)
            }
            EdmType::Guid => Value::Guid(self.payload.try_into().ok()?),
            EdmType::Binary => Value::Binary(self.payload),
        })
    }

    fn long(&self) -> i64 {
        i64::from_le_bytes(self.payload.try_into().expect("read as eight bytes"))
    }
}

fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7F) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

#[inline]
fn split_sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    // Most names and texts are short.
    if let Some((length @ ..0x80, rest)) = bytes.split_first() {
        return rest.split_at_checked(usize::from(*length));
    }
    split_long(bytes)
}

fn split_long(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0;
    // Five groups of seven bits hold more than any length there is.
    for (index, byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            // Shorter ones have a shorter form, and no other.
            return if *byte == 0 { None } else { bytes[index + 1..].split_at_checked(length) };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Owned {
        String(String),
        Boolean(bool),
        Int32(i32),
        Int64(i64),
        Double(f64),
        DateTime(i64),
        Guid([u8; 16]),
        Binary(Vec<u8>),
    }

    impl Owned {
        fn borrow(&self) -> Value<'_> {
            match self {
                Self::String(text) => Value::String(text),
                Self::Boolean(value) => Value::Boolean(*value),
                Self::Int32(value) => Value::Int32(*value),
                Self::Int64(value) => Value::Int64(*value),
                Self::Double(value) => Value::Double(*value),
                Self::DateTime(value) => Value::DateTime(Ticks(*value)),
                Self::Guid(value) => Value::Guid(*value),
                Self::Binary(bytes) => Value::Binary(bytes),
            }
        }
    }

    fn value() -> impl Strategy<Value = Owned> {
        prop_oneof![
            ".{0,300}".prop_map(Owned::String),
            any::<bool>().prop_map(Owned::Boolean),
            any::<i32>().prop_map(Owned::Int32),
            any::<i64>().prop_map(Owned::Int64),
            prop::num::f64::NORMAL.prop_map(Owned::Double),
            (0..=Ticks::MAX.0).prop_map(Owned::DateTime),
            any::<[u8; 16]>().prop_map(Owned::Guid),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Owned::Binary),
        ]
    }

    fn encode(properties: &[(String, Owned)]) -> Vec<u8> {
        let mut writer = EntityWriter::new();
        for (name, value) in properties {
            writer.push(name, value.borrow());
        }
        writer.finish()
    }

    proptest! {
        #[test]
        fn entities_round_trip(
            properties in prop::collection::vec(("\\PC{1,200}", value()), 0..20),
            ticks in 0..=Ticks::MAX.0,
        ) {
            let mut bytes = encode(&properties);
            set_timestamp(&mut bytes, Ticks(ticks));
            let entity = EntityRef::parse(&bytes).unwrap();
            prop_assert_eq!(entity.timestamp(), Ticks(ticks));
            prop_assert_eq!(entity.property_count(), properties.len());
            let read: Vec<_> = entity.properties().map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), properties.len());
            for (read, (name, value)) in read.iter().zip(&properties) {
                prop_assert_eq!(read.name_str(), Some(name.as_str()));
                prop_assert_eq!(read.value(), Some(value.borrow()));
            }
        }

        #[test]
        fn a_cut_entity_is_malformed(
            properties in prop::collection::vec(("[a-z]{1,9}", value()), 1..5), cut in any::<prop::sample::Index>(),
        ) {
            let bytes = encode(&properties);
            let cut = &bytes[..cut.index(bytes.len())];
            let whole = EntityRef::parse(cut)
                .is_ok_and(|entity| entity.properties().all(|property| property.is_ok()));
            prop_assert!(!whole);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            for version in [None, Some(VERSION)] {
                if let (Some(version), Some(first)) = (version, bytes.first_mut()) {
                    *first = version;
                }
                if let Ok(entity) = EntityRef::parse(&bytes) {
                    for property in entity.properties().flatten() {
                        let _ = (property.name_str(), property.value());
                    }
                }
            }
        }
    }

    /// One form for each length: what reads a name by its place relies on it.
    #[test]
    fn a_length_longer_than_needed_is_malformed() {
        let mut writer = EntityWriter::new();
        writer.push("Name", Value::Int32(7));
        let bytes = writer.finish();
        let (start, rest) = bytes.split_at(HEADER_BYTES + 1);
        let long = [start, &[0x84, 0x00], &rest[1..]].concat();
        let read =
            |bytes: &[u8]| EntityRef::parse(bytes).unwrap().properties().next().unwrap().is_ok();
        assert!(read(&bytes) && !read(&long));
    }

    #[test]
    fn the_bytes_are_those_of_the_format_document() {
        let mut writer = EntityWriter::new();
        writer.push("A", Value::Int32(7));
        writer.push("B", Value::String("hi"));
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, Ticks(0x0102_0304_0506_0708));
        assert_eq!(
            bytes,
            [
                &[1, 0, 8, 7, 6, 5, 4, 3, 2, 1, 2, 0][..],
                &[3, 1, b'A', 7, 0, 0, 0],
                &[1, 1, b'B', 2, b'h', b'i'],
            ]
            .concat()
        );
    }
}
