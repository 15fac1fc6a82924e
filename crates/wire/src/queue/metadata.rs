//! The metadata of a queue: names and values that a client keeps with it, sent and answered as headers.
//!
//! Values are bytes, because headers are: they come back as they came, whatever a client means by them.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::Result;
use crate::error_code::ErrorCode;
use crate::header_text::header_text;

/// What header names of metadata begin with. `x-ms-meta` alone is none: a client sends it by mistake.
pub const HEADER_PREFIX: &str = "x-ms-meta-";
/// Names and values together.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Names and values in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pairs: Vec<(String, Vec<u8>)>,
}

impl Metadata {
    /// Takes the metadata out of the headers of a request. A name that comes twice has its values joined with a comma.
    ///
    /// # Errors
    /// 400 `EmptyMetadataKey`, `InvalidMetadata`, `MetadataTooLarge`.
    pub fn from_headers<'a, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Self> {
        let mut metadata = Self::default();
        // There may be thousands of them.
        let mut places = HashMap::new();
        for (header, value) in headers {
            let Some((prefix, name)) = header.split_at_checked(HEADER_PREFIX.len()) else {
                continue;
            };
            if prefix.eq_ignore_ascii_case(HEADER_PREFIX) {
                metadata.add(name, trim(value.as_ref()), &mut places)?;
            }
        }
        if metadata.bytes() > METADATA_BYTES_MAX {
            return Err(ErrorCode::MetadataTooLarge.into());
        }
        Ok(metadata)
    }

    /// What was stored; the caller has checked it before.
    pub fn from_pairs(pairs: Vec<(String, Vec<u8>)>) -> Self {
        Self { pairs }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Whether both say the same: the case and the order of names mean nothing.
    pub fn is_same(&self, other: &Self) -> bool {
        let sorted = |metadata: &Self| {
            let mut pairs: Vec<_> = metadata.pairs.clone();
            pairs.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
            pairs.sort();
            pairs
        };
        self.pairs.len() == other.pairs.len() && sorted(self) == sorted(other)
    }

    /// Names and texts in the order of List Queues: by name, whatever the case.
    pub fn sorted(&self) -> Vec<(&str, Cow<'_, str>)> {
        let mut pairs: Vec<_> =
            self.iter().map(|(name, value)| (name, header_text(value))).collect();
        pairs.sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
        pairs
    }

    fn bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// `places`: where each name stands, in lower case.
    fn add(&mut self, name: &str, value: &[u8], places: &mut HashMap<String, usize>) -> Result<()> {
        if name.is_empty() {
            return Err(ErrorCode::EmptyMetadataKey.into());
        }
        if !is_name(name) {
            return Err(ErrorCode::InvalidMetadata.into());
        }
        let place = *places.entry(name.to_ascii_lowercase()).or_insert(self.pairs.len());
        match self.pairs.get_mut(place) {
            Some((_, values)) => {
                values.push(b',');
                values.extend_from_slice(value);
            }
            None => self.pairs.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }
}

/// Without the blanks around it.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Whether a name can be one: an identifier of C#, as far as header names can be one, which are ASCII.
pub fn is_name(name: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_start)
        && name.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&str, &str)]) -> Result<Metadata> {
        Metadata::from_headers(headers.iter().copied())
    }

    #[test]
    fn headers_of_metadata_are_taken_and_no_others() {
        let metadata = read(&[
            ("x-ms-meta", "{'Foo': 'Bar'}"),
            ("X-MS-Meta-Foo", " bar "),
            ("x-ms-date", "today"),
            ("x-ms-meta-UPPER", "va@lue"),
            ("x-ms-meta-foo", "again"),
        ])
        .unwrap();
        let pairs: Vec<_> = metadata.iter().collect();
        assert_eq!(pairs, [("Foo", &b"bar,again"[..]), ("UPPER", b"va@lue")]);
    }

    /// Section 5.3.
    #[test]
    fn values_are_kept_byte_for_byte() {
        let values = [("x-ms-meta-utf", "\u{e9}".as_bytes()), ("x-ms-meta-latin", b"caf\xe9")];
        let metadata = Metadata::from_headers(values).unwrap();
        assert_eq!(
            metadata.iter().map(|(_, value)| value).collect::<Vec<_>>(),
            [&b"\xc3\xa9"[..], b"caf\xe9"]
        );
        let texts: Vec<_> = metadata.sorted().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["caf\u{e9}", "\u{e9}"]);
        // The same letter in other bytes is another value.
        let other = Metadata::from_headers([("x-ms-meta-utf", b"\xe9"), ("x-ms-meta-latin", b"x")]);
        assert!(!metadata.is_same(&other.unwrap()));
    }

    #[test]
    fn names_are_identifiers() {
        let code = |name: &str| read(&[(name, "1")]).err().map(|error| error.code());
        for name in ["x-ms-meta-invalid-meta", "x-ms-meta-12345", "x-ms-meta-metadata!"] {
            assert_eq!(code(name), Some(ErrorCode::InvalidMetadata), "{name}");
        }
        assert_eq!(code("x-ms-meta-"), Some(ErrorCode::EmptyMetadataKey));
        assert_eq!(code("x-ms-meta-_a1"), None);
        let large = "v".repeat(METADATA_BYTES_MAX);
        let error = read(&[("x-ms-meta-a", &large)]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MetadataTooLarge);
        read(&[("x-ms-meta-a", &large[1..])]).unwrap();
    }

    #[test]
    fn lists_are_sorted_by_name_whatever_the_case() {
        let metadata = read(&[
            ("x-ms-meta-foo", "bar"),
            ("x-ms-meta-meta", "data"),
            ("x-ms-meta-Capital", "letter"),
            ("x-ms-meta-UPPER", "case"),
        ])
        .unwrap();
        let names: Vec<_> = metadata.sorted().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Capital", "foo", "meta", "UPPER"]);
    }

    #[test]
    fn order_and_case_of_names_do_not_make_a_difference() {
        let one = read(&[("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")]).unwrap();
        assert!(one.is_same(&read(&[("x-ms-meta-B", "2"), ("x-ms-meta-A", "1")]).unwrap()));
        for other in [
            &[("x-ms-meta-a", "1")][..],
            &[],
            &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "3")],
            &[("x-ms-meta-a", "1"), ("x-ms-meta-c", "2")],
        ] {
            assert!(!one.is_same(&read(other).unwrap()));
        }
    }
}
