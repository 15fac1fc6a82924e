//! Times of tokens: seconds since 1970 and the three forms in which a token may write them.

const DAY: i64 = 24 * 60 * 60;

/// The seconds of `YYYY-MM-DD`, `YYYY-MM-DDThh:mmZ` or `YYYY-MM-DDThh:mm:ssZ`; nothing for any other text.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (date, clock) = match text.split_once('T') {
        None => (text, "00:00:00"),
        Some((date, clock)) => (date, clock.strip_suffix('Z')?),
    };
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let clock = numbers(clock, ':')?;
    let (hour, minute, second) = match clock[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let is_date = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    let is_clock = hour < 24 && minute < 60 && second < 60;
    let days = day_number(year, month, day);
    (is_date && is_clock).then_some(days * DAY + hour * 3600 + minute * 60 + second)
}

/// `YYYY-MM-DDThh:mm:ssZ`.
pub(crate) fn write(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let mut year = 1970;
    while day_number(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && day_number(year, month + 1, 1) <= days {
        month += 1;
    }
    let day = days - day_number(year, month, 1) + 1;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn numbers(text: &str, separator: char) -> Option<Vec<i64>> {
    text.split(separator).map(|part| part.parse().ok()).collect()
}

/// Days since 1970, counted year by year and month by month.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let years: i64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: i64 = (1..month).map(|month| days_of_month(year, month)).sum();
    years + months + day - 1
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[test]
fn known_times() {
    for (text, seconds) in [
        ("1970-01-01", 0),
        ("2000-03-01T00:00Z", 951_868_800),
        ("2026-11-15T16:46:46Z", 1_794_761_206),
    ] {
        assert_eq!(parse(text), Some(seconds), "{text}");
        assert_eq!(parse(&write(seconds)), Some(seconds), "{text}");
    }
    assert_eq!(write(1_794_761_206), "2026-11-15T16:46:46Z");
    for text in ["", "soon", "2026-02-29", "2026-01-01T24:00Z", "2026-01-01T00:00"] {
        assert_eq!(parse(text), None, "{text}");
    }
}
