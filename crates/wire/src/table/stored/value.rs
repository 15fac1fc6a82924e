//! The eight EDM types of a property, and a value of one of them.

use crate::ticks::Ticks;

/// The type of a property. The numbers are stored: never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EdmType {
    String = 1,
    Boolean = 2,
    Int32 = 3,
    Int64 = 4,
    Double = 5,
    DateTime = 6,
    Guid = 7,
    Binary = 8,
}

impl EdmType {
    pub const ALL: [EdmType; 8] = [
        Self::String,
        Self::Boolean,
        Self::Int32,
        Self::Int64,
        Self::Double,
        Self::DateTime,
        Self::Guid,
        Self::Binary,
    ];

    /// The type's name in annotations, such as `Edm.Int64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "Edm.String",
            Self::Boolean => "Edm.Boolean",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::Double => "Edm.Double",
            Self::DateTime => "Edm.DateTime",
            Self::Guid => "Edm.Guid",
            Self::Binary => "Edm.Binary",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|edm| edm.name() == name)
    }

    pub(super) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag).checked_sub(1)?).copied()
    }
}

/// The value of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    String(&'a str),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    DateTime(Ticks),
    /// In the order of the text, so that bytes compare as .NET compares.
    Guid([u8; 16]),
    Binary(&'a [u8]),
}

impl Value<'_> {
    pub fn edm_type(&self) -> EdmType {
        match self {
            Self::String(_) => EdmType::String,
            Self::Boolean(_) => EdmType::Boolean,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
            Self::Binary(_) => EdmType::Binary,
        }
    }
}

/// Where the dashes of a GUID's text stand.
const GUID_DASHES: [usize; 4] = [8, 13, 18, 23];

/// Reads `8-4-4-4-12` hex digits of any case.
pub(crate) fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != 36 || GUID_DASHES.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut digits = text.iter().enumerate().filter(|(at, _)| !GUID_DASHES.contains(at));
    let mut guid = [0; 16];
    for byte in &mut guid {
        let mut nibble = || char::from(*digits.next()?.1).to_digit(16);
        let pair = nibble()? << 4 | nibble()?;
        *byte = u8::try_from(pair).expect("two hex digits");
    }
    Some(guid)
}

/// Appends the lower-case text of a GUID.
pub fn push_guid(out: &mut Vec<u8>, guid: &[u8; 16]) {
    out.extend_from_slice(&guid_text(guid));
}

/// The lower-case text of a GUID.
pub fn guid_text(guid: &[u8; 16]) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    /// Where the digits of each byte stand.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut text = [b'-'; 36];
    for (byte, place) in guid.iter().zip(PLACES) {
        text[place] = HEX[usize::from(byte >> 4)];
        text[place + 1] = HEX[usize::from(byte & 15)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_and_tags_round_trip() {
        for edm in EdmType::ALL {
            assert_eq!(EdmType::from_name(edm.name()), Some(edm));
            assert_eq!(EdmType::from_tag(edm as u8), Some(edm));
        }
        assert_eq!(EdmType::from_tag(0), None);
        assert_eq!(EdmType::from_tag(9), None);
        assert_eq!(EdmType::from_name("Edm.Single"), None);
    }

    #[test]
    fn guids_are_read_in_any_case_and_written_in_lower_case() {
        let guid = parse_guid("C9DA6455-213d-42c9-9A79-3e9149a57833").unwrap();
        let mut out = Vec::new();
        push_guid(&mut out, &guid);
        assert_eq!(out, b"c9da6455-213d-42c9-9a79-3e9149a57833");
        for text in ["", "c9da6455213d42c99a793e9149a57833", "c9da6455-213d-42c9-9a79-3e9149a5783g"]
        {
            assert_eq!(parse_guid(text), None, "{text}");
        }
        assert_eq!(parse_guid("c9da6455-213d-42c9-9a79-3e9149a5783\u{e9}"), None);
    }
}
