//! Time texts of signatures and access policies, as .NET ticks (100 ns since 0001-01-01T00:00:00Z).
//!
//! Only the ISO 8601 forms that the service documents for these fields are read: a date, or a date
//! with minutes, seconds or up to seven fraction digits, in UTC unless an offset says otherwise.

pub(crate) const TICKS_PER_SECOND: i64 = 10_000_000;
pub(crate) const TICKS_PER_MINUTE: i64 = 60 * TICKS_PER_SECOND;
const SECONDS_PER_DAY: i64 = 86_400;
/// Ticks at 1970-01-01T00:00:00Z.
pub(crate) const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;
/// The last tick of the year 9999.
pub(crate) const TICKS_MAX: i64 = 3_155_378_975_999_999_999;
const FRACTION_DIGITS_MAX: usize = 7;
/// Days from 0000-03-01, where the calendar below starts, to 0001-01-01.
const DAYS_TO_YEAR_ONE: i64 = 306;

/// Reads a time; `None` when the text has another form or names no moment of the years 1 to 9999.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let days = parse_date(date)?;
    let (time_ticks, offset_minutes) = time.map_or(Some((0, 0)), parse_time)?;
    let ticks =
        days * SECONDS_PER_DAY * TICKS_PER_SECOND + time_ticks - offset_minutes * TICKS_PER_MINUTE;
    (0..=TICKS_MAX).contains(&ticks).then_some(ticks)
}

/// Prints all seven fraction digits: `2011-10-11T00:00:00.0000000Z`.
pub(crate) fn format_seven_digits(ticks: i64) -> String {
    let fraction = ticks % TICKS_PER_SECOND;
    format!("{}.{fraction:07}Z", format_to_seconds(ticks))
}

/// Prints whole seconds, the form that SDKs put in signatures: `2011-10-11T00:00:00Z`.
pub(crate) fn format_whole_seconds(ticks: i64) -> String {
    format!("{}Z", format_to_seconds(ticks))
}

fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    if parts.next().is_some() || year == 0 || !(1..=12).contains(&month) {
        return None;
    }
    let days = days_since_year_one(year, month, day);
    // A day that the month lacks comes back as a day of the next month.
    (day >= 1 && civil_date(days) == (year, month, day)).then_some(days)
}

fn parse_time(text: &str) -> Option<(i64, i64)> {
    let (clock, offset_minutes) = split_zone(text)?;
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let (second, fraction_ticks) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (digits(seconds, 2)?, 0),
            Some((whole, fraction)) => (digits(whole, 2)?, parse_fraction(fraction)?),
        },
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(((hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction_ticks, offset_minutes))
}

fn split_zone(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let Some(at) = text.find(['+', '-']) else {
        return Some((text, 0));
    };
    let (clock, zone) = text.split_at(at);
    let (sign, zone) = zone.split_at(1);
    let (hours, minutes) = zone.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    let offset = hours * 60 + minutes;
    Some((clock, if sign == "-" { -offset } else { offset }))
}

fn parse_fraction(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let value = digits(text, text.len())?;
    Some(value * 10_i64.pow((FRACTION_DIGITS_MAX - text.len()) as u32))
}

/// Exactly `count` ASCII digits; signs and spaces, which `str::parse` may take, are refused.
fn digits(text: &str, count: usize) -> Option<i64> {
    if text.len() != count || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn format_to_seconds(ticks: i64) -> String {
    debug_assert!((0..=TICKS_MAX).contains(&ticks));
    let seconds = ticks / TICKS_PER_SECOND;
    let (year, month, day) = civil_date(seconds / SECONDS_PER_DAY);
    let second = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

// Both directions count in a calendar whose year starts in March, so that the leap day is the last
// of its year.

fn days_since_year_one(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_TO_YEAR_ONE
}

fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_YEAR_ONE;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        assert_eq!(parse("0001-01-01"), Some(0));
        assert_eq!(parse("1970-01-01"), Some(UNIX_EPOCH_TICKS));
        assert_eq!(parse("1970-01-01T00:00Z"), Some(UNIX_EPOCH_TICKS));
        assert_eq!(parse("1970-01-01T00:01:02Z"), Some(UNIX_EPOCH_TICKS + 62 * TICKS_PER_SECOND));
        assert_eq!(parse("1970-01-01T00:00:00.0000001Z"), Some(UNIX_EPOCH_TICKS + 1));
        assert_eq!(parse("1970-01-01T00:00:00.5Z"), Some(UNIX_EPOCH_TICKS + 5_000_000));
        assert_eq!(parse("1970-01-01T02:00:00+02:00"), Some(UNIX_EPOCH_TICKS));
        assert_eq!(parse("1969-12-31T18:30:00-05:30"), Some(UNIX_EPOCH_TICKS));
        assert_eq!(parse("1970-01-01T00:00:00"), Some(UNIX_EPOCH_TICKS));
        assert_eq!(parse("9999-12-31T23:59:59.9999999Z"), Some(TICKS_MAX));
        // Computed with Python: (datetime(2024,2,29) - datetime(1,1,1)).days * 864_000_000_000.
        assert_eq!(parse("2024-02-29"), Some(638_447_616_000_000_000));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "2020",
            "2020-1-1",
            "2020-13-01",
            "2020-00-01",
            "2023-02-29",
            "2023-04-31",
            "2020-01-00",
            "0000-01-01",
            "+020-01-01",
            "2020-01-01T",
            "2020-01-01TZ",
            "2020-01-01T24:00Z",
            "2020-01-01T00:60Z",
            "2020-01-01T00:00:60Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00.12345678Z",
            "2020-01-01T00:00:00z",
            "2020-01-01T00:00:00+1:00",
            "2020-01-01T00:00:00+0100",
            "2020-01-01 00:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "2020-01-01T00:00:00:00Z",
            "2020-01-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn seven_digits_are_not_trimmed() {
        assert_eq!(
            format_seven_digits(parse("2011-10-11").unwrap()),
            "2011-10-11T00:00:00.0000000Z"
        );
        assert_eq!(format_whole_seconds(parse("2011-10-11").unwrap()), "2011-10-11T00:00:00Z");
    }

    proptest! {
        #[test]
        fn round_trip(ticks in 0..=TICKS_MAX) {
            prop_assert_eq!(parse(&format_seven_digits(ticks)), Some(ticks));
            let whole = ticks - ticks % TICKS_PER_SECOND;
            prop_assert_eq!(parse(&format_whole_seconds(ticks)), Some(whole));
        }

        #[test]
        fn any_text_is_handled(text in "[0-9TZ:.+-]{0,30}") {
            let _ = parse(&text);
        }
    }
}
