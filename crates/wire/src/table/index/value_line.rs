//! The value line: bytes that sort values of one type as the service does, and values of different types by their tags.
//!
//! Every encoding says itself where it ends, and none is the beginning of another, so that they can stand one behind the
//! other in a key. A text or binary ends with two zero bytes, which sort before an escaped zero byte (`00 FF`) and before
//! every other byte: one would not do, because what follows may begin with FF. A long one is cut and ends with `00 FE`,
//! after everything that is not cut there.

use crate::table::filter::Literal;
use crate::table::stored::key::{push_ordered, read_ordered};
use crate::table::stored::{EdmType, Property, Value};
use crate::ticks::Ticks;

/// The first byte of an encoded value. Stored: never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Tag {
    Missing = 0x05,
    Binary = 0x10,
    Boolean = 0x18,
    DateTime = 0x20,
    Double = 0x28,
    /// Apart from the other doubles: no interval of numbers holds it.
    NotANumber = 0x29,
    Guid = 0x30,
    Int32 = 0x38,
    Int64 = 0x40,
    String = 0x48,
}

impl Tag {
    pub const ALL: [Tag; 10] = [
        Self::Missing,
        Self::Binary,
        Self::Boolean,
        Self::DateTime,
        Self::Double,
        Self::NotANumber,
        Self::Guid,
        Self::Int32,
        Self::Int64,
        Self::String,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| *tag as u8 == byte)
    }

    /// Where the values of the next tag begin: intervals of whole types touch, since nothing lies between.
    pub(super) fn next(self) -> u8 {
        let next = Self::ALL.into_iter().find(|tag| *tag > self);
        next.map_or(self as u8 + 1, |tag| tag as u8)
    }

    /// The type of the values that have it; `None` for a missing one.
    pub(super) fn edm_type(self) -> Option<EdmType> {
        Some(match self {
            Self::Missing => return None,
            Self::Binary => EdmType::Binary,
            Self::Boolean => EdmType::Boolean,
            Self::DateTime => EdmType::DateTime,
            Self::Double | Self::NotANumber => EdmType::Double,
            Self::Guid => EdmType::Guid,
            Self::Int32 => EdmType::Int32,
            Self::Int64 => EdmType::Int64,
            Self::String => EdmType::String,
        })
    }
}

const ZERO: u8 = 0;
/// Behind a zero byte: the zero belongs to the value.
const ESCAPED: u8 = 0xFF;
/// Behind a zero byte: the value ends.
const END: u8 = 0;
/// Behind a zero byte: the value went on, but was cut.
const CUT: u8 = 0xFE;

/// Appends the place of a property that an entity lacks.
pub fn push_missing(out: &mut Vec<u8>) {
    out.push(Tag::Missing as u8);
}

/// Appends the place of a value, of which at most `bytes_max` bytes of content are kept: whether all were.
pub fn push_value(out: &mut Vec<u8>, value: Value<'_>, bytes_max: usize) -> bool {
    match value {
        Value::Binary(bytes) => {
            out.push(Tag::Binary as u8);
            return push_content(out, bytes, bytes_max);
        }
        Value::String(text) => {
            out.push(Tag::String as u8);
            let mut ordered = Vec::with_capacity(text.len().min(bytes_max + 4));
            push_ordered(&mut ordered, beginning(text, bytes_max));
            return push_content(out, &ordered, bytes_max);
        }
        Value::Boolean(value) => out.extend_from_slice(&[Tag::Boolean as u8, u8::from(value)]),
        Value::DateTime(moment) => push_long(out, Tag::DateTime, moment.0),
        Value::Int64(value) => push_long(out, Tag::Int64, value),
        Value::Int32(value) => {
            out.push(Tag::Int32 as u8);
            out.extend_from_slice(&(value ^ i32::MIN).to_be_bytes());
        }
        Value::Double(value) if value.is_nan() => out.push(Tag::NotANumber as u8),
        Value::Double(value) => {
            out.push(Tag::Double as u8);
            out.extend_from_slice(&ordered_bits(value).to_be_bytes());
        }
        Value::Guid(guid) => {
            out.push(Tag::Guid as u8);
            out.extend_from_slice(&guid);
        }
    }
    true
}

/// Appends the place of an ordered text, as entity keys hold it.
pub(super) fn push_ordered_text(out: &mut Vec<u8>, ordered: &[u8], bytes_max: usize) -> bool {
    out.push(Tag::String as u8);
    push_content(out, ordered, bytes_max)
}

/// Appends the place of a stored property; `None` if its payload is not of its type.
pub(super) fn push_property(
    out: &mut Vec<u8>,
    property: &Property<'_>,
    bytes_max: usize,
) -> Option<bool> {
    property.value().map(|value| push_value(out, value, bytes_max))
}

/// The bytes of the value that `bytes` begin with; `None` if they begin with none.
pub fn split_value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let tag = Tag::from_byte(*bytes.first()?)?;
    let length = match tag {
        Tag::Missing | Tag::NotANumber => 0,
        Tag::Boolean => 1,
        Tag::Int32 => 4,
        Tag::DateTime | Tag::Double | Tag::Int64 => 8,
        Tag::Guid => 16,
        Tag::Binary | Tag::String => content_length(&bytes[1..])?,
    };
    bytes.split_at_checked(1 + length)
}

/// A value that was read back from its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    Missing,
    /// Of doubles, zero is always positive, and a NaN is the usual one.
    Value(Literal),
    /// The beginning of a text or binary that was cut.
    Cut(EdmType, Vec<u8>),
}

/// Reads one encoded value, without anything behind it.
pub fn decode(bytes: &[u8]) -> Option<Decoded> {
    let (tag, payload) = bytes.split_first()?;
    let tag = Tag::from_byte(*tag)?;
    let long = || Some(i64::from_be_bytes(payload.try_into().ok()?) ^ i64::MIN);
    let value = match tag {
        Tag::Missing if payload.is_empty() => return Some(Decoded::Missing),
        Tag::NotANumber if payload.is_empty() => Literal::Double(f64::NAN),
        Tag::Missing | Tag::NotANumber => return None,
        Tag::Boolean => match payload {
            [value @ (0 | 1)] => Literal::Boolean(*value == 1),
            _ => return None,
        },
        Tag::Int32 => Literal::Int32(i32::from_be_bytes(payload.try_into().ok()?) ^ i32::MIN),
        Tag::Int64 => Literal::Int64(long()?),
        Tag::DateTime => Literal::DateTime(Ticks(long()?)),
        Tag::Double => {
            Literal::Double(from_ordered_bits(u64::from_be_bytes(payload.try_into().ok()?)))
        }
        Tag::Guid => Literal::Guid(payload.try_into().ok()?),
        Tag::Binary | Tag::String => return decode_content(tag, payload),
    };
    Some(Decoded::Value(value))
}

fn decode_content(tag: Tag, payload: &[u8]) -> Option<Decoded> {
    let (content, is_cut) = read_content(payload)?;
    Some(match tag {
        Tag::String if is_cut => Decoded::Cut(EdmType::String, content),
        Tag::String => Decoded::Value(Literal::String(read_ordered(&content)?.into_owned())),
        _ if is_cut => Decoded::Cut(EdmType::Binary, content),
        _ => Decoded::Value(Literal::Binary(content)),
    })
}

/// Whether this is the place of a value of which only the beginning was kept.
pub(super) fn is_cut(bytes: &[u8]) -> bool {
    let tag = bytes.first().and_then(|tag| Tag::from_byte(*tag));
    matches!(tag, Some(Tag::Binary | Tag::String)) && bytes.ends_with(&[ZERO, CUT])
}

/// The ordered bytes of an encoded text that was not cut.
pub(super) fn whole_ordered_text(bytes: &[u8]) -> Option<Vec<u8>> {
    let payload = bytes.strip_prefix(&[Tag::String as u8])?;
    read_content(payload).and_then(|(content, is_cut)| (!is_cut).then_some(content))
}

/// The least byte string that is greater than everything that begins with `prefix`.
pub fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX);
    let mut after = prefix[..last.map_or(0, |last| last + 1)].to_vec();
    if let Some(byte) = after.last_mut() {
        *byte += 1;
    }
    after
}

/// So much of a text that cutting its ordered bytes cuts the same: whole characters, a little more than is kept.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max + 1);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[..end]
}

fn push_content(out: &mut Vec<u8>, content: &[u8], bytes_max: usize) -> bool {
    let kept = &content[..content.len().min(bytes_max)];
    let mut rest = kept;
    while let Some(at) = memchr::memchr(ZERO, rest) {
        out.extend_from_slice(&rest[..=at]);
        out.push(ESCAPED);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    let is_whole = kept.len() == content.len();
    out.extend_from_slice(&[ZERO, if is_whole { END } else { CUT }]);
    is_whole
}

/// Where the content that `bytes` begin with ends, its end included.
fn content_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(ZERO, &bytes[at..])? + 2;
        match *bytes.get(at - 1)? {
            ESCAPED => {}
            END | CUT => return Some(at),
            _ => return None,
        }
    }
}

/// The content of a payload, and whether it was cut.
fn read_content(payload: &[u8]) -> Option<(Vec<u8>, bool)> {
    if content_length(payload)? != payload.len() {
        return None;
    }
    let (escaped, end) = payload.split_at(payload.len() - 2);
    let mut content = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = memchr::memchr(ZERO, rest) {
        content.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    content.extend_from_slice(rest);
    Some((content, end[1] == CUT))
}

fn push_long(out: &mut Vec<u8>, tag: Tag, value: i64) {
    out.push(tag as u8);
    out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
}

/// Bits that sort as the numbers do. Both zeros have the bits of the positive one.
fn ordered_bits(value: f64) -> u64 {
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn from_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

#[cfg(test)]
#[path = "value_line_tests.rs"]
mod tests;
