//! The parameters of the operations: what they mean, their defaults and their ranges.

use std::time::Duration;

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::uri::QueryString;
use crate::uri::query::TIMEOUT_SECONDS_MAX;
use crate::version::ServiceVersion;

/// The longest time that a message is hidden, and how long one lives if nothing is said: seven days.
pub const SEVEN_DAYS: i64 = 7 * 24 * 60 * 60;
/// Messages of one answer.
pub const MESSAGES_MAX: i64 = 32;
/// Queues of one page; more are not answered, however many are asked for.
pub const LIST_MAX: i64 = 5000;
/// How long a message is hidden when it is got, unless told otherwise.
const VISIBILITY_OF_GET: i64 = 30;

const NUMBER_OF_MESSAGES: &str = "numofmessages";
const VISIBILITY_TIMEOUT: &str = "visibilitytimeout";
const TIMEOUT: &str = "timeout";
const MESSAGE_TTL: &str = "messagettl";
const MAX_RESULTS: &str = "maxresults";
const POP_RECEIPT: &str = "popreceipt";

/// Of Put Message, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutParameters {
    pub visibility_timeout: i64,
    /// `None`: it never expires.
    pub time_to_live: Option<i64>,
}

impl PutParameters {
    /// # Errors
    /// 400 `OutOfRangeQueryParameterValue`, 400 `InvalidQueryParameterValue`.
    pub fn parse(query: &QueryString<'_>, version: Option<ServiceVersion>) -> Result<Self> {
        let visibility_timeout = ranged(query, VISIBILITY_TIMEOUT, 0, SEVEN_DAYS)?.unwrap_or(0);
        let time_to_live = time_to_live(query, version)?;
        if time_to_live.is_some_and(|seconds| visibility_timeout >= seconds) {
            let value = query.parameter(VISIBILITY_TIMEOUT).unwrap_or("0");
            let reason = "messagettl must be greater than visibilitytimeout";
            return Err(invalid(VISIBILITY_TIMEOUT, value, reason));
        }
        Ok(Self { visibility_timeout, time_to_live })
    }
}

/// Seconds to live; `None` is for ever.
fn time_to_live(query: &QueryString<'_>, version: Option<ServiceVersion>) -> Result<Option<i64>> {
    let Some(text) = query.parameter(MESSAGE_TTL) else { return Ok(Some(SEVEN_DAYS)) };
    let seconds = integer(MESSAGE_TTL, text)?;
    if version.is_some_and(|version| version < ServiceVersion::FIRST_WITH_ANY_TTL) {
        return in_range(MESSAGE_TTL, text, seconds, 1, SEVEN_DAYS).map(Some);
    }
    match seconds {
        -1 => Ok(None),
        1.. => in_range(MESSAGE_TTL, text, seconds, 1, i64::from(i32::MAX)).map(Some),
        _ => {
            let reason =
                "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.";
            Err(invalid(MESSAGE_TTL, text, reason))
        }
    }
}

/// Of Get Messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetParameters {
    pub messages: usize,
    /// Seconds.
    pub visibility_timeout: i64,
}

impl GetParameters {
    /// # Errors
    /// 400 `OutOfRangeQueryParameterValue`, 400 `InvalidQueryParameterValue`.
    pub fn parse(query: &QueryString<'_>) -> Result<Self> {
        let messages = messages(query)?;
        let visibility_timeout = ranged(query, VISIBILITY_TIMEOUT, 1, SEVEN_DAYS)?;
        Ok(Self { messages, visibility_timeout: visibility_timeout.unwrap_or(VISIBILITY_OF_GET) })
    }
}

/// How many messages Get or Peek asks for.
///
/// # Errors
/// 400 `OutOfRangeQueryParameterValue`, 400 `InvalidQueryParameterValue`.
pub fn messages(query: &QueryString<'_>) -> Result<usize> {
    let messages = ranged(query, NUMBER_OF_MESSAGES, 1, MESSAGES_MAX)?.unwrap_or(1);
    Ok(usize::try_from(messages).expect("within its range"))
}

/// How many seconds Update hides a message; a client that does not say wants it visible.
///
/// # Errors
/// 400 `OutOfRangeQueryParameterValue`, 400 `InvalidQueryParameterValue`.
pub fn update_visibility(query: &QueryString<'_>) -> Result<i64> {
    Ok(ranged(query, VISIBILITY_TIMEOUT, 0, SEVEN_DAYS)?.unwrap_or(0))
}

/// The receipt that Update and Delete present.
///
/// # Errors
/// 400 `MissingRequiredQueryParameter`.
pub fn pop_receipt<'q>(query: &'q QueryString<'_>) -> Result<&'q str> {
    query.parameter(POP_RECEIPT).ok_or_else(|| {
        StorageError::new(ErrorCode::MissingRequiredQueryParameter)
            .element("QueryParameterName", POP_RECEIPT)
    })
}

/// How long the client lets an operation take, at most [`TIMEOUT_SECONDS_MAX`]; `None` if it does not say.
///
/// # Errors
/// 400 `OutOfRangeQueryParameterValue`, 400 `InvalidQueryParameterValue`.
pub fn timeout(query: &QueryString<'_>) -> Result<Option<Duration>> {
    if query.parameter(TIMEOUT).is_none_or(str::is_empty) {
        return Ok(None);
    }
    let seconds = ranged(query, TIMEOUT, 1, i64::from(i32::MAX))?;
    let capped = |seconds: i64| seconds.unsigned_abs().min(TIMEOUT_SECONDS_MAX);
    Ok(seconds.map(|seconds| Duration::from_secs(capped(seconds))))
}

/// Whether `peekonly` asks to leave everything as it is.
pub fn is_peek(query: &QueryString<'_>) -> bool {
    query.parameter("peekonly").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Of List Queues. What was not sent is not echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListParameters<'q> {
    pub prefix: Option<&'q str>,
    pub marker: Option<&'q str>,
    /// As it was sent.
    pub max_results: Option<i64>,
    pub with_metadata: bool,
}

impl<'q> ListParameters<'q> {
    /// # Errors
    /// 400 `OutOfRangeQueryParameterValue`, 400 `InvalidQueryParameterValue`.
    pub fn parse(query: &'q QueryString<'_>) -> Result<Self> {
        let include = query.parameter("include").unwrap_or_default();
        let mut with_metadata = false;
        for item in include.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            if !item.eq_ignore_ascii_case("metadata") {
                return Err(invalid("include", include, "Invalid query parameter value."));
            }
            with_metadata = true;
        }
        Ok(Self {
            prefix: query.parameter("prefix"),
            marker: query.parameter("marker"),
            max_results: ranged(query, MAX_RESULTS, 1, i64::from(i32::MAX))?,
            with_metadata,
        })
    }

    /// Queues of a page.
    pub fn page_size(&self) -> usize {
        let size = self.max_results.unwrap_or(LIST_MAX).min(LIST_MAX);
        usize::try_from(size).expect("within its range")
    }

    /// The name that the page begins with, which the marker of the page before names.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for a marker that is none of this account.
    pub fn first_name(&self, account: &str) -> Result<&'q str> {
        let Some(marker) = self.marker.filter(|marker| !marker.is_empty()) else { return Ok("") };
        let name = marker.strip_prefix('/').and_then(|rest| rest.strip_prefix(account));
        let name = name.and_then(|rest| rest.strip_prefix('/'));
        name.filter(|name| !name.is_empty()).ok_or_else(|| ErrorCode::OutOfRangeInput.into())
    }
}

/// An integer within a range; `None` if it was not sent.
fn ranged(query: &QueryString<'_>, name: &'static str, min: i64, max: i64) -> Result<Option<i64>> {
    let Some(text) = query.parameter(name) else { return Ok(None) };
    in_range(name, text, integer(name, text)?, min, max).map(Some)
}

/// More digits than a number holds are out of every range.
fn integer(name: &'static str, text: &str) -> Result<i64> {
    let trimmed = text.trim_ascii();
    let (is_negative, digits) = match trimmed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, trimmed),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(name, text, "Failed to parse query parameter as integer"));
    }
    let saturated = if is_negative { i64::MIN } else { i64::MAX };
    Ok(trimmed.parse().unwrap_or(saturated))
}

fn in_range(name: &'static str, text: &str, value: i64, min: i64, max: i64) -> Result<i64> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(StorageError::new(ErrorCode::OutOfRangeQueryParameterValue)
        .element("QueryParameterName", name)
        .element("QueryParameterValue", text.to_owned())
        .element("MinimumAllowed", min.to_string())
        .element("MaximumAllowed", max.to_string()))
}

/// 400 `InvalidQueryParameterValue`, with what it says of the parameter.
pub fn invalid(name: &'static str, value: &str, reason: &'static str) -> StorageError {
    StorageError::new(ErrorCode::InvalidQueryParameterValue)
        .element("QueryParameterName", name)
        .element("QueryParameterValue", value.to_owned())
        .element("Reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> QueryString<'_> {
        QueryString::parse(raw).unwrap()
    }

    fn put(raw: &str) -> Result<(i64, Option<i64>)> {
        put_at(raw, "2025-01-05")
    }

    fn put_at(raw: &str, version: &str) -> Result<(i64, Option<i64>)> {
        let version = ServiceVersion::parse(version).unwrap();
        let PutParameters { visibility_timeout, time_to_live } =
            PutParameters::parse(&query(raw), Some(version))?;
        Ok((visibility_timeout, time_to_live))
    }

    fn told<T: std::fmt::Debug>(result: Result<T>) -> String {
        let error = result.unwrap_err();
        let elements: Vec<_> = error.elements().map(|(_, text)| text).collect();
        format!("{} {}", error.code().as_str(), elements.join(" "))
    }

    #[test]
    fn put_has_its_defaults_and_its_ranges() {
        assert_eq!(put("").unwrap(), (0, Some(604_800)));
        assert_eq!(put("visibilitytimeout=604799").unwrap(), (604_799, Some(604_800)));
        assert_eq!(put("messageTtl=-1&visibilityTimeout=604800").unwrap(), (604_800, None));
        assert_eq!(put("messagettl=2147483647").unwrap(), (0, Some(2_147_483_647)));
        for (raw, expected) in [
            ("visibilitytimeout=-1", "OutOfRangeQueryParameterValue visibilitytimeout -1 0 604800"),
            (
                "visibilitytimeout=604801&messagettl=-1",
                "OutOfRangeQueryParameterValue visibilitytimeout 604801 0 604800",
            ),
            (
                "visibilitytimeout=30&messagettl=30",
                "InvalidQueryParameterValue visibilitytimeout 30 messagettl must be greater than visibilitytimeout",
            ),
            (
                "visibilitytimeout=604800",
                "InvalidQueryParameterValue visibilitytimeout 604800 messagettl must be greater than visibilitytimeout",
            ),
            (
                "messagettl=0",
                "InvalidQueryParameterValue messagettl 0 Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.",
            ),
            (
                "messagettl=2147483648",
                "OutOfRangeQueryParameterValue messagettl 2147483648 1 2147483647",
            ),
            (
                "messagettl=-2147483648",
                "InvalidQueryParameterValue messagettl -2147483648 Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.",
            ),
        ] {
            assert_eq!(told(put(raw)), expected, "{raw}");
        }
    }

    /// Versions before 2017-07-29.
    #[test]
    fn old_versions_live_for_seven_days_at_most() {
        assert_eq!(put_at("messagettl=604800", "2017-04-17").unwrap(), (0, Some(604_800)));
        for ttl in ["-1", "0", "604801"] {
            let expected = format!("OutOfRangeQueryParameterValue messagettl {ttl} 1 604800");
            assert_eq!(told(put_at(&format!("messagettl={ttl}"), "2014-02-14")), expected);
        }
        assert_eq!(put_at("messagettl=604801", "2017-07-29").unwrap(), (0, Some(604_801)));
    }

    #[test]
    fn get_has_its_defaults_and_its_ranges() {
        let get =
            |raw| GetParameters::parse(&query(raw)).map(|p| (p.messages, p.visibility_timeout));
        assert_eq!(get("").unwrap(), (1, 30));
        assert_eq!(get("NumOfMessages=32&visibilitytimeout=604800").unwrap(), (32, 604_800));
        for (raw, expected) in [
            ("numofmessages=33", "OutOfRangeQueryParameterValue numofmessages 33 1 32"),
            ("numofmessages=0", "OutOfRangeQueryParameterValue numofmessages 0 1 32"),
            ("visibilitytimeout=0", "OutOfRangeQueryParameterValue visibilitytimeout 0 1 604800"),
            (
                "numofmessages=99999999999999999999",
                "OutOfRangeQueryParameterValue numofmessages 99999999999999999999 1 32",
            ),
        ] {
            assert_eq!(told(get(raw)), expected, "{raw}");
        }
        for raw in ["numofmessages=", "numofmessages=x", "numofmessages=1.5", "numofmessages=%2B1"]
        {
            assert!(told(get(raw)).starts_with("InvalidQueryParameterValue"), "{raw}");
        }
    }

    #[test]
    fn a_timeout_is_some_seconds_and_no_more_than_thirty() {
        let seconds = |raw| timeout(&query(raw)).map(|time| time.map(|time| time.as_secs()));
        assert_eq!(seconds("").unwrap(), None);
        assert_eq!(seconds("timeout=").unwrap(), None);
        assert_eq!(seconds("Timeout=1").unwrap(), Some(1));
        assert_eq!(seconds("timeout=30").unwrap(), Some(30));
        assert_eq!(seconds("timeout=2147483647").unwrap(), Some(30));
        for (raw, expected) in [
            ("timeout=0", "OutOfRangeQueryParameterValue timeout 0 1 2147483647"),
            ("timeout=-5", "OutOfRangeQueryParameterValue timeout -5 1 2147483647"),
            (
                "timeout=soon",
                "InvalidQueryParameterValue timeout soon Failed to parse query parameter as integer",
            ),
        ] {
            assert_eq!(told(seconds(raw)), expected, "{raw}");
        }
    }

    #[test]
    fn a_marker_names_account_and_queue() {
        let first = |marker: &str| {
            let raw = format!("marker={marker}");
            let query = query(&raw);
            let list = ListParameters::parse(&query).unwrap();
            list.first_name("acct").map(str::to_owned).map_err(|error| error.code())
        };
        assert_eq!(first("/acct/orders"), Ok("orders".into()));
        assert_eq!(first(""), Ok(String::new()));
        for marker in ["garbage", "/other/orders", "/acct", "/acct/", "orders"] {
            assert_eq!(first(marker), Err(ErrorCode::OutOfRangeInput), "{marker}");
        }
    }

    #[test]
    fn pages_are_limited() {
        let size = |raw: &str| {
            ListParameters::parse(&query(raw)).map(|list| list.page_size()).map_err(|e| e.code())
        };
        assert_eq!(size(""), Ok(5000));
        assert_eq!(size("maxresults=7"), Ok(7));
        assert_eq!(size("maxresults=6000"), Ok(5000));
        assert_eq!(size("maxresults=0"), Err(ErrorCode::OutOfRangeQueryParameterValue));
        assert_eq!(size("include=metadata"), Ok(5000));
        assert_eq!(size("include=deleted"), Err(ErrorCode::InvalidQueryParameterValue));
    }
}
