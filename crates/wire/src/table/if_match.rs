//! `If-Match` and the text of an ETag: `W/"datetime'2021-01-06T01%3A01%3A30.9296707Z'"`.
//!
//! An ETag is the timestamp of its entity in quotes with `:` percent-encoded, nothing more. What
//! stands inside is handed on as text; turning it into ticks is the business of the time type.

use std::borrow::Cow;

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// The longest date text inside an ETag: 28 characters from here, some more from clients that add
/// an offset.
const DATE_LEN_MAX: usize = 40;

/// The condition that a write puts on the entity it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IfMatch<'a> {
    /// No condition: an update becomes an upsert.
    Absent,
    /// `*`: the entity must exist.
    Any,
    /// The entity must be of the version with this timestamp, `2021-01-06T01:01:30.9296707Z`.
    Version(Cow<'a, str>),
    /// A well-formed ETag that no entity can have, `W/"wrong"`: nothing matches.
    Unknown,
}

impl<'a> IfMatch<'a> {
    /// Reads the header's value. Clients that decode `%3A` are understood, and those that lose the
    /// last quote.
    ///
    /// # Errors
    /// 400 `InvalidInput`, naming the value; also for strong ETags (without `W/`), since all are weak.
    pub fn parse(value: Option<&'a str>) -> Result<Self> {
        match value.map(str::trim_ascii) {
            None => Ok(Self::Absent),
            Some("*") => Ok(Self::Any),
            Some(etag) => match date_text(etag) {
                Some(date) => Ok(Self::Version(date)),
                None if is_weak(etag) => Ok(Self::Unknown),
                None => Err(malformed(etag)),
            },
        }
    }
}

/// The error for an ETag that is none, or for more than one.
pub fn malformed(etag: &str) -> StorageError {
    StorageError::with_detail(
        ErrorCode::InvalidInput,
        format!(
            "The etag value '{etag}' specified in one of the request headers is not valid. Please \
             make sure only one etag value is specified and is valid."
        ),
    )
}

/// Whether this is one weak ETag as HTTP has them: `W/"..."`, with neither quotes nor spaces inside.
fn is_weak(etag: &str) -> bool {
    let inner = etag.strip_prefix("W/\"").and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte > b' ' && byte != b'"' && byte != 0x7f))
}

/// The date inside an ETag, with its colons decoded.
fn date_text(etag: &str) -> Option<Cow<'_, str>> {
    let quoted = etag.strip_prefix("W/\"")?;
    let quoted = quoted.strip_suffix('"').unwrap_or(quoted);
    let date = quoted.strip_prefix("datetime'")?.strip_suffix('\'')?;
    if date.len() > 3 * DATE_LEN_MAX {
        return None;
    }
    let date = match date.contains('%') {
        true => Cow::Owned(date.replace("%3A", ":").replace("%3a", ":")),
        false => Cow::Borrowed(date),
    };
    let is_date_like = (1..=DATE_LEN_MAX).contains(&date.len())
        && date.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":.-+".contains(&byte));
    is_date_like.then_some(date)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ticks::Ticks;

    const DATE: &str = "2021-01-06T01:01:30.9296707Z";

    /// An ETag around any text, also one that no moment has.
    fn etag(timestamp: &str) -> String {
        format!("W/\"datetime'{}'\"", timestamp.replace(':', "%3A"))
    }

    #[test]
    fn an_etag_is_its_timestamp() {
        // Wire reference 8.
        let written = Ticks::parse_iso(DATE).unwrap().to_etag();
        assert_eq!(written, r#"W/"datetime'2021-01-06T01%3A01%3A30.9296707Z'""#);
        assert_eq!(IfMatch::parse(Some(&written)).unwrap(), IfMatch::Version(DATE.into()));
        assert_eq!(IfMatch::parse(Some(&etag(DATE))).unwrap(), IfMatch::Version(DATE.into()));
    }

    #[test]
    fn forms_that_clients_send() {
        for value in [
            r#"W/"datetime'2021-01-06T01%3a01%3A30.9296707Z'""#,
            // A client that decoded the header.
            r#"W/"datetime'2021-01-06T01:01:30.9296707Z'""#,
            // Java takes the last quote off.
            r#"W/"datetime'2021-01-06T01%3A01%3A30.9296707Z'"#,
            r#" W/"datetime'2021-01-06T01%3A01%3A30.9296707Z'" "#,
        ] {
            let version = IfMatch::Version(DATE.into());
            assert_eq!(IfMatch::parse(Some(value)).unwrap(), version, "{value}");
        }
        assert_eq!(IfMatch::parse(Some("*")).unwrap(), IfMatch::Any);
        assert_eq!(IfMatch::parse(None).unwrap(), IfMatch::Absent);
    }

    #[test]
    fn what_is_no_etag_is_named() {
        let error = IfMatch::parse(Some("abc")).unwrap_err();
        assert_eq!((error.code(), error.status()), (ErrorCode::InvalidInput, 400));
        assert_eq!(
            error.message(),
            "The etag value 'abc' specified in one of the request headers is not valid. Please \
             make sure only one etag value is specified and is valid."
        );
        let two = format!("{}, {}", etag(DATE), etag(DATE));
        let joined = two.replace(", ", ",");
        let strong = etag(DATE).replace("W/", "");
        let lower = etag(DATE).replace("W/", "w/");
        for value in [
            "",
            "W/",
            "W/\"wrong",
            "W/\"datetime'a b'\"",
            "\"0x8D\"",
            &two,
            &joined,
            &strong,
            &lower,
        ] {
            assert!(IfMatch::parse(Some(value)).is_err(), "{value}");
        }
    }

    /// Recorded: `W/"wrong"` is a condition that fails, not a request that cannot be read.
    #[test]
    fn a_weak_etag_without_a_date_matches_nothing() {
        let long = etag(&"1".repeat(500));
        for value in ["W/\"wrong\"", "W/\"\"", "W/\"datetime''\"", "W/\"0x8D\"", &long] {
            assert_eq!(IfMatch::parse(Some(value)).unwrap(), IfMatch::Unknown, "{value}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(value in any::<String>()) {
            let _ = IfMatch::parse(Some(&value));
        }

        #[test]
        fn dates_come_back(
            date in "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,7})?Z"
        ) {
            let etag = etag(&date);
            prop_assert_eq!(IfMatch::parse(Some(&etag)).unwrap(), IfMatch::Version(date.into()));
        }
    }
}
