//! The version of the protocol that a request names. Every well-formed one is served.

use std::fmt;

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// A version of the service, `YYYY-MM-DD`. Every date is served; versions compare by date.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceVersion([u8; 10]);

impl ServiceVersion {
    /// The first version that answers a bad bearer token with 401 and a challenge.
    pub const FIRST_WITH_CHALLENGE: Self = Self(*b"2020-12-06");

    /// The first version in which Put Message answers with the message.
    pub const FIRST_WITH_PUT_ANSWER: Self = Self(*b"2016-05-31");
    /// The first version in which messages may live for any time.
    pub const FIRST_WITH_ANY_TTL: Self = Self(*b"2017-07-29");

    /// Reads the value of `x-ms-version`, `api-version` or `sv`.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` when it is not a date.
    pub fn parse(text: &str) -> Result<Self> {
        Self::from_text(text.trim_ascii()).ok_or_else(|| {
            StorageError::new(ErrorCode::InvalidHeaderValue)
                .element("HeaderName", "x-ms-version")
                .element("HeaderValue", text.to_owned())
        })
    }

    fn from_text(text: &str) -> Option<Self> {
        let bytes: [u8; 10] = text.as_bytes().try_into().ok()?;
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().try_fold(0_u32, |number, byte| {
                byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0'))
            })
        };
        let is_date = bytes[4] == b'-'
            && bytes[7] == b'-'
            && number(0..4).is_some()
            && number(5..7).is_some_and(|month| (1..=12).contains(&month))
            && number(8..10).is_some_and(|day| (1..=31).contains(&day));
        is_date.then_some(Self(bytes))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a version holds digits and dashes only")
    }
}

impl fmt::Debug for ServiceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ServiceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_dates() {
        let version = ServiceVersion::parse("2019-02-02").unwrap();
        assert_eq!(version.as_str(), "2019-02-02");
        assert!(version < ServiceVersion::parse("2020-12-06").unwrap());
        assert!(ServiceVersion::parse("2099-12-31").is_ok());
        for text in ["", "2019-2-2", "2019-13-01", "2019-00-01", "2019-01-32", "20190202ab", "x"] {
            let error = ServiceVersion::parse(text).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::InvalidHeaderValue, 400));
        }
    }

    proptest! {
        #[test]
        fn versions_never_panic(text in any::<String>()) {
            let _ = ServiceVersion::parse(&text);
        }
    }
}
