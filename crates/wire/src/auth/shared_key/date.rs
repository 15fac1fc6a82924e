//! The date of a signed request, and how far it may be from ours.

use std::time::{Duration, UNIX_EPOCH};

use super::refused;
use crate::error::Result;
use crate::refusal::RefusalReason;
use crate::ticks::Ticks;

/// How far a request's date may be from our clock, in both directions.
pub const DATE_WINDOW_TICKS: i64 = 15 * Ticks::PER_MINUTE;

/// The last second of the year 9999; HTTP has no later one.
const LAST_HTTP_SECOND: u64 = 253_402_300_799;

/// The date that counts for signature and clock: `x-ms-date` wins over `Date`.
///
/// # Errors
/// 403 `AuthenticationFailed` when there is neither.
pub fn signed_date<'a>(x_ms_date: Option<&'a str>, date: Option<&'a str>) -> Result<&'a str> {
    x_ms_date.into_iter().chain(date).find(|text| !text.is_empty()).ok_or_else(|| {
        refused(RefusalReason::MalformedCredentials, "the request has neither x-ms-date nor Date")
    })
}

/// Checks that a request's date is within 15 minutes of now.
///
/// # Errors
/// 403 `AuthenticationFailed`, also when the text is no HTTP date.
pub fn check_date(text: &str, now: Ticks) -> Result<()> {
    let malformed = || refused(RefusalReason::MalformedCredentials, "the date is no HTTP date");
    let date = http_date(text).ok_or_else(malformed)?;
    if date.0.abs_diff(now.0) <= DATE_WINDOW_TICKS.unsigned_abs() {
        return Ok(());
    }
    let age = if date < now { "old" } else { "new" };
    // As the live service puts it.
    let detail = format!("Request date header too {age}: '{}'", http_date_text(date));
    let now = http_date_text(now);
    let text =
        format!("{detail}. It is more than 15 minutes from the clock of the server, '{now}'");
    Err(refused(RefusalReason::ClockSkew, text).authentication_detail(detail))
}

/// A moment as HTTP writes it.
pub(in crate::auth) fn http_date_text(ticks: Ticks) -> String {
    let seconds = u64::try_from(ticks.unix_seconds()).unwrap_or_default();
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST_HTTP_SECOND)))
}

fn http_date(text: &str) -> Option<Ticks> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Ticks::from_unix_nanos(i128::try_from(since.as_nanos()).ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error_code::ErrorCode;

    const DATE: &str = "Thu, 03 Sep 2020 18:50:45 GMT";

    #[test]
    fn the_storage_date_wins() {
        assert_eq!(signed_date(Some("x"), Some("d")).unwrap(), "x");
        assert_eq!(signed_date(None, Some("d")).unwrap(), "d");
        assert_eq!(signed_date(Some(""), Some("d")).unwrap(), "d");
        let error = signed_date(None, None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::AuthenticationFailed);
    }

    #[test]
    fn the_window_is_fifteen_minutes_both_ways() {
        let date = Ticks::parse_iso("2020-09-03T18:50:45Z").unwrap();
        for offset in [0, DATE_WINDOW_TICKS, -DATE_WINDOW_TICKS] {
            check_date(DATE, Ticks(date.0 + offset)).unwrap();
        }
        for offset in [DATE_WINDOW_TICKS + 1, -DATE_WINDOW_TICKS - 1] {
            let error = check_date(DATE, Ticks(date.0 + offset)).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::AuthenticationFailed, 403));
            let age = if offset > 0 { "old" } else { "new" };
            let detail = format!("Request date header too {age}: '{DATE}'");
            let elements: Vec<_> = error.elements().collect();
            assert_eq!(elements, [("AuthenticationErrorDetail", &*detail)]);
        }
        for text in ["", "yesterday", "2020-09-03T18:50:45Z"] {
            assert!(check_date(text, date).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in any::<String>()) {
            let _ = check_date(&text, Ticks::MIN);
        }
    }
}
