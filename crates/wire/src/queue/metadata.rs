//! The metadata of a queue: names and values that a client keeps with it, sent and answered as headers.

use crate::error::Result;
use crate::error_code::ErrorCode;

/// What header names of metadata begin with. `x-ms-meta` alone is none: a client sends it by mistake.
pub const HEADER_PREFIX: &str = "x-ms-meta-";
/// Names and values together.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Names and values in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pairs: Vec<(String, String)>,
}

impl Metadata {
    /// Takes the metadata out of the headers of a request. A name that comes twice has its values joined with a comma.
    ///
    /// # Errors
    /// 400 `EmptyMetadataKey`, `InvalidMetadata`, `MetadataTooLarge`.
    pub fn from_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut metadata = Self::default();
        for (header, value) in headers {
            let Some((prefix, name)) = header.split_at_checked(HEADER_PREFIX.len()) else {
                continue;
            };
            if prefix.eq_ignore_ascii_case(HEADER_PREFIX) {
                metadata.add(name, value.trim_matches([' ', '\t']))?;
            }
        }
        if metadata.bytes() > METADATA_BYTES_MAX {
            return Err(ErrorCode::MetadataTooLarge.into());
        }
        Ok(metadata)
    }

    /// What was stored; the caller has checked it before.
    pub fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self { pairs }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Whether both say the same: the case and the order of names mean nothing.
    pub fn is_same(&self, other: &Self) -> bool {
        let has = |metadata: &Self, name: &str, value: &str| {
            metadata.iter().any(|(n, v)| n.eq_ignore_ascii_case(name) && v == value)
        };
        self.pairs.len() == other.pairs.len()
            && self.iter().all(|(name, value)| has(other, name, value))
    }

    /// In the order of List Queues: by name, whatever the case.
    pub fn sorted(&self) -> Vec<(&str, &str)> {
        let mut pairs: Vec<_> = self.iter().collect();
        pairs.sort_by_key(|(name, _)| name.to_ascii_lowercase());
        pairs
    }

    fn bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    fn add(&mut self, name: &str, value: &str) -> Result<()> {
        if name.is_empty() {
            return Err(ErrorCode::EmptyMetadataKey.into());
        }
        if !is_identifier(name) {
            return Err(ErrorCode::InvalidMetadata.into());
        }
        let known = self.pairs.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name));
        match known {
            Some((_, values)) => values.extend([",", value]),
            None => self.pairs.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }
}

/// An identifier of C#, as far as header names can be one: they are ASCII.
fn is_identifier(name: &str) -> bool {
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
        assert_eq!(pairs, [("Foo", "bar,again"), ("UPPER", "va@lue")]);
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
