//! The metadata of a queue as headers.

use std::collections::BTreeSet;

use azure_core::http::headers::Headers;
use tavola_wire::queue::metadata::{HEADER_PREFIX, is_name};

use super::Metadata;
use crate::core::error::{Result, conversion};

/// The headers that carry metadata.
///
/// # Errors
/// A name or a value that no header can have, and names that are one name for the service.
pub(super) fn headers_of(metadata: &Metadata) -> Result<Vec<(String, &str)>> {
    let refuse = |why: &str, name: &str| Err(conversion(format!("{why}: metadata={name}")));
    let (mut headers, mut names) = (Vec::new(), BTreeSet::new());
    for (name, value) in metadata {
        if !is_name(name) {
            return refuse(
                "a name is letters of ASCII, digits and _, and begins with no digit",
                name,
            );
        }
        if !names.insert(name.to_ascii_lowercase()) {
            return refuse("two names are the same but for the case", name);
        }
        if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return refuse("a value is ASCII without control characters", name);
        }
        if value.starts_with(' ') || value.ends_with(' ') {
            return refuse("a value neither begins nor ends with a space", name);
        }
        headers.push((format!("{HEADER_PREFIX}{name}"), value.as_str()));
    }
    Ok(headers)
}

/// The metadata that an answer carries.
pub(super) fn metadata_of(headers: &Headers) -> Metadata {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(HEADER_PREFIX)?;
        Some((name.to_owned(), value.as_str().to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(pairs: &[(&str, &str)]) -> Result<Vec<String>> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let metadata: Metadata = pairs.collect();
        Ok(headers_of(&metadata)?.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn names_are_identifiers_and_differ_in_more_than_the_case() {
        let names = sent(&[("_team1", ""), ("Purpose", "a & b <c>")]).unwrap();
        assert_eq!(names, ["x-ms-meta-Purpose", "x-ms-meta-_team1"]);
        // Letters without a case among them, of which no header name can be made.
        for name in ["\u{540d}", "\u{5e9}\u{5dd}", "\u{627}\u{633}\u{645}", "gr\u{f6}\u{df}e"] {
            assert!(sent(&[(name, "x")]).is_err(), "{name}");
        }
        for name in ["", "a-b", "a b", "1a"] {
            assert!(sent(&[(name, "x")]).is_err(), "{name}");
        }
        let error = sent(&[("Team", "a"), ("team", "b")]).unwrap_err();
        assert!(error.to_string().contains("case: metadata=team"), "{error}");
    }

    #[test]
    fn values_are_ascii_and_what_a_header_keeps() {
        for value in ["gr\u{f6}\u{df}er", "a\r\nb", "a\tb", "\u{7f}", " a", "a ", " "] {
            let error = sent(&[("team", value)]).unwrap_err();
            assert!(error.to_string().contains("metadata=team"), "{error}");
        }
    }
}
