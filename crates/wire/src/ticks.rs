//! Moments as the service counts them: 100 ns ticks since 0001-01-01T00:00:00 UTC.
//!
//! Texts are exact in both directions, because an ETag is made from a `Timestamp` text and clients rebuild
//! it. There is no clock and no time zone here.

use crate::append::push_start;

/// A moment in 100 ns ticks since 0001-01-01T00:00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub i64);

const TICKS_PER_SECOND: i64 = 10_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const TICKS_PER_DAY: i64 = SECONDS_PER_DAY * TICKS_PER_SECOND;
/// Days from 0001-01-01 to 1970-01-01.
const UNIX_EPOCH_DAYS: i64 = 719_162;
/// `yyyy-MM-ddTHH:mm:ss.fffffff`
const TEXT_BYTES: usize = 27;
/// Fraction digits of a tick.
const FRACTION_DIGITS: usize = 7;

impl Ticks {
    /// 0001-01-01, the oldest moment that has a text.
    pub const MIN: Ticks = Ticks(0);
    /// 1601-01-01, the oldest moment that a property may hold.
    pub const MIN_STORED: Ticks = Ticks(584_388 * TICKS_PER_DAY);
    /// 9999-12-31T23:59:59.9999999, the newest moment there is.
    pub const MAX: Ticks = Ticks(3_652_059 * TICKS_PER_DAY - 1);

    pub const PER_SECOND: i64 = TICKS_PER_SECOND;
    pub const PER_MINUTE: i64 = 60 * TICKS_PER_SECOND;

    /// Whether it is a moment that has a text, as all are that were ever written down.
    pub fn has_text(self) -> bool {
        (Self::MIN..=Self::MAX).contains(&self)
    }

    /// The moment `nanoseconds` after 1970-01-01, rounded down to a tick.
    pub fn from_unix_nanos(nanoseconds: i128) -> Self {
        let ticks = nanoseconds.div_euclid(100) + i128::from(UNIX_EPOCH_DAYS * TICKS_PER_DAY);
        let newest = i128::from(Self::MAX.0);
        Self(i64::try_from(ticks.clamp(0, newest)).expect("clamped into the range of i64"))
    }

    /// Whole seconds after 1970-01-01, rounded down.
    pub fn unix_seconds(self) -> i64 {
        self.0.div_euclid(TICKS_PER_SECOND) - UNIX_EPOCH_DAYS * SECONDS_PER_DAY
    }

    /// The moment without its fraction of a second.
    pub fn whole_seconds(self) -> Self {
        Self(self.0 - self.0.rem_euclid(TICKS_PER_SECOND))
    }

    /// Reads ISO 8601 as clients write it: `YYYY-MM-DD`, `...Thh:mm[:ss[.f{1,7}]]`, then nothing (UTC), `Z`
    /// or `+hh:mm`. Fraction digits beyond the seventh are dropped.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let mut scanner = Scanner { rest: text.as_bytes() };
        let year = scanner.digits(4)?;
        scanner.literal(b'-')?;
        let month = scanner.digits(2)?;
        scanner.literal(b'-')?;
        let day = scanner.digits(2)?;
        if year < 1
            || !(1..=12).contains(&month)
            || !(1..=days_in_month(year, month)).contains(&day)
        {
            return None;
        }
        let mut ticks = days_from_civil(year, month, day) * TICKS_PER_DAY;
        if scanner.literal(b'T').is_some() {
            ticks += scanner.time_of_day()?;
        }
        ticks -= scanner.offset()?;
        let ticks = Self(ticks);
        (scanner.rest.is_empty() && (Self::MIN..=Self::MAX).contains(&ticks)).then_some(ticks)
    }

    /// Appends `yyyy-MM-ddTHH:mm:ss[.f{1,7}]Z` with trailing zeros of the fraction trimmed.
    pub(crate) fn write_iso(self, out: &mut Vec<u8>) {
        let text = self.to_text();
        push_start(out, &text, Self::trimmed_len(&text));
        out.push(b'Z');
    }

    /// Appends the text with all seven fraction digits, as error bodies and access policies show it.
    pub(crate) fn write_iso_padded(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_text());
        out.push(b'Z');
    }

    /// Appends the ETag of an entity that was last written at this moment.
    pub(crate) fn write_etag(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"W/\"datetime'");
        self.write_etag_time(out);
        out.extend_from_slice(b"'\"");
    }

    /// Appends the part of an ETag between its quotes.
    pub(crate) fn write_etag_time(self, out: &mut Vec<u8>) {
        let text = self.to_text();
        let mut escaped = *b"0000-00-00T00%3A00%3A00.0000000";
        escaped[..13].copy_from_slice(&text[..13]);
        escaped[16..18].copy_from_slice(&text[14..16]);
        escaped[21..].copy_from_slice(&text[17..]);
        push_start(out, &escaped, Self::trimmed_len(&text) + 4);
        out.push(b'Z');
    }

    /// The ETag of an entity that was last written at this moment.
    pub fn to_etag(self) -> String {
        // As long as it is with a whole fraction, so that no byte is spare nearly always.
        let mut out = Vec::with_capacity(46);
        self.write_etag(&mut out);
        String::from_utf8(out).expect("an ETag is ASCII")
    }

    /// See [`Ticks::write_iso_padded`].
    pub fn to_iso_padded(self) -> String {
        let mut out = Vec::with_capacity(28);
        self.write_iso_padded(&mut out);
        String::from_utf8(out).expect("a date is ASCII")
    }

    /// See [`Ticks::write_iso`].
    pub fn to_iso(self) -> String {
        let mut out = Vec::with_capacity(28);
        self.write_iso(&mut out);
        String::from_utf8(out).expect("a date is ASCII")
    }

    /// Appends `ddd, dd MMM yyyy HH:mm:ss GMT` (RFC 1123); the fraction of a second is cut off.
    pub fn write_rfc1123(self, out: &mut Vec<u8>) {
        const DAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
        const MONTHS: [&[u8; 3]; 12] = [
            b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
            b"Dec",
        ];
        let text = self.to_text();
        let month = usize::from((text[5] - b'0') * 10 + text[6] - b'0');
        // 0001-01-01 was a Monday.
        let day = usize::try_from(self.0 / TICKS_PER_DAY % 7).expect("a day of the week");
        let mut date = *b"ddd, dd MMM yyyy HH:mm:ss GMT";
        date[..3].copy_from_slice(DAYS[day]);
        date[5..7].copy_from_slice(&text[8..10]);
        date[8..11].copy_from_slice(MONTHS[month - 1]);
        date[12..16].copy_from_slice(&text[..4]);
        date[17..25].copy_from_slice(&text[11..19]);
        out.extend_from_slice(&date);
    }

    /// See [`Ticks::write_rfc1123`].
    pub fn to_rfc1123(self) -> String {
        let mut out = Vec::with_capacity(29);
        self.write_rfc1123(&mut out);
        String::from_utf8(out).expect("a date is ASCII")
    }

    /// The length of the text with trailing zeros of its fraction trimmed, and of the point if nothing is left.
    fn trimmed_len(text: &[u8; TEXT_BYTES]) -> usize {
        let digits = text.iter().rposition(|digit| *digit != b'0').unwrap_or_default() + 1;
        if text[digits - 1] == b'.' { digits - 1 } else { digits }
    }

    /// `yyyy-MM-ddTHH:mm:ss.fffffff`, in one piece because it is written several times for each entity.
    fn to_text(self) -> [u8; TEXT_BYTES] {
        assert!((Self::MIN..=Self::MAX).contains(&self), "moment out of range: {}", self.0);
        let mut text = *b"0000-00-00T00:00:00.0000000";
        let (year, month, day) = civil_from_days(self.0 / TICKS_PER_DAY);
        let of_day = self.0 % TICKS_PER_DAY;
        let seconds = of_day / TICKS_PER_SECOND;
        let fraction = of_day % TICKS_PER_SECOND;
        put_two(&mut text, 0, year / 100);
        put_two(&mut text, 2, year % 100);
        put_two(&mut text, 5, month);
        put_two(&mut text, 8, day);
        put_two(&mut text, 11, seconds / 3600);
        put_two(&mut text, 14, seconds / 60 % 60);
        put_two(&mut text, 17, seconds % 60);
        put_two(&mut text, 20, fraction / 100_000);
        put_two(&mut text, 22, fraction / 1000 % 100);
        put_two(&mut text, 24, fraction / 10 % 100);
        text[26] = b'0' + (fraction % 10) as u8;
        text
    }
}

struct Scanner<'a> {
    rest: &'a [u8],
}

impl Scanner<'_> {
    fn literal(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        digits.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    }

    /// `hh:mm[:ss[.fffffff]]` in ticks.
    fn time_of_day(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.literal(b':')?;
        let minute = self.digits(2)?;
        let mut second = 0;
        let mut fraction = 0;
        if self.literal(b':').is_some() {
            second = self.digits(2)?;
            if self.literal(b'.').is_some() {
                fraction = self.fraction()?;
            }
        }
        (hour < 24 && minute < 60 && second < 60)
            .then(|| ((hour * 60 + minute) * 60 + second) * TICKS_PER_SECOND + fraction)
    }

    fn fraction(&mut self) -> Option<i64> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        let kept = digits.iter().chain(std::iter::repeat(&b'0')).take(FRACTION_DIGITS);
        Some(kept.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// `Z`, `+hh:mm`, `-hh:mm` or nothing, in ticks east of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.rest.first() {
            None => return Some(0),
            Some(b'Z' | b'z') => {
                self.rest = &self.rest[1..];
                return Some(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.rest = &self.rest[1..];
        let hour = self.digits(2)?;
        self.literal(b':')?;
        let minute = self.digits(2)?;
        (hour <= 14 && minute < 60).then(|| sign * (hour * 60 + minute) * 60 * TICKS_PER_SECOND)
    }
}

/// The texts of the numbers below 100.
const TWO_DIGITS: [[u8; 2]; 100] = {
    let mut texts = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        texts[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    texts
};

/// Writes a number below 100 as two digits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "two digits")]
fn put_two(text: &mut [u8; TEXT_BYTES], at: usize, number: i64) {
    text[at..at + 2].copy_from_slice(&TWO_DIGITS[number as usize]);
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 0001-01-01 to the given date. Years are counted from March, so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 306
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let from_march = days + 306;
    let era = from_march / 146_097;
    let day_of_era = from_march % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn iso(text: &str) -> String {
        Ticks::parse_iso(text).map_or_else(|| "none".to_owned(), Ticks::to_iso)
    }

    #[test]
    fn known_moments_have_the_ticks_of_dotnet() {
        // DateTime.Ticks of these moments, from the .NET documentation of the type.
        assert_eq!(Ticks::parse_iso("0001-01-01T00:00:00Z"), Some(Ticks(0)));
        assert_eq!(Ticks::parse_iso("1601-01-01"), Some(Ticks::MIN_STORED));
        assert_eq!(Ticks::parse_iso("1970-01-01T00:00:00Z"), Some(Ticks(621_355_968_000_000_000)));
        assert_eq!(Ticks::parse_iso("9999-12-31T23:59:59.9999999Z"), Some(Ticks::MAX));
        assert_eq!(Ticks::from_unix_nanos(0), Ticks(621_355_968_000_000_000));
        assert_eq!(Ticks::parse_iso("1970-01-02").unwrap().unix_seconds(), 86_400);
    }

    #[test]
    fn dates_of_http_cut_the_fraction_off() {
        for (moment, date) in [
            ("2022-10-27T22:04:45.9999999Z", "Thu, 27 Oct 2022 22:04:45 GMT"),
            ("9999-12-31T23:59:59.9999999Z", "Fri, 31 Dec 9999 23:59:59 GMT"),
            ("0001-01-01T00:00:00Z", "Mon, 01 Jan 0001 00:00:00 GMT"),
            ("2024-02-29T01:02:03Z", "Thu, 29 Feb 2024 01:02:03 GMT"),
        ] {
            assert_eq!(Ticks::parse_iso(moment).unwrap().to_rfc1123(), date);
        }
    }

    #[test]
    fn every_form_that_clients_write_is_read() {
        assert_eq!(iso("1970-10-04T00:00:00Z"), "1970-10-04T00:00:00Z");
        assert_eq!(iso("2021-01-01T00:00:00.200Z"), "2021-01-01T00:00:00.2Z");
        assert_eq!(iso("2021-01-01T00:00:00.0000000Z"), "2021-01-01T00:00:00Z");
        assert_eq!(iso("2021-01-01T10:20"), "2021-01-01T10:20:00Z");
        assert_eq!(iso("2021-01-01T10:20:30.123456789Z"), "2021-01-01T10:20:30.1234567Z");
        assert_eq!(iso("2021-01-01T00:30:00+01:00"), "2020-12-31T23:30:00Z");
        assert_eq!(iso("2021-01-01T00:30:00-01:00"), "2021-01-01T01:30:00Z");
        assert_eq!(iso("2024-02-29"), "2024-02-29T00:00:00Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2021",
            "2021-13-01",
            "2021-02-29",
            "2021-00-10",
            "2021-01-00",
            "0000-01-01",
            "2021-01-01T24:00:00Z",
            "2021-01-01T00:60:00Z",
            "2021-01-01T00:00:00.Z",
            "2021-01-01T00:00:00ZZ",
            "2021-01-01 00:00:00Z",
            "9999-12-31T23:59:59-01:00",
            "0001-01-01T00:00:00+01:00",
            "2021-1-1",
        ] {
            assert_eq!(iso(text), "none", "{text}");
        }
    }

    #[test]
    fn an_etag_has_the_digits_of_the_timestamp() {
        // wire-reference section 8, from recorded traffic.
        let moment = Ticks::parse_iso("2021-01-06T01:01:30.9296707Z").unwrap();
        assert_eq!(moment.to_etag(), "W/\"datetime'2021-01-06T01%3A01%3A30.9296707Z'\"");
        assert_eq!(moment.to_iso(), "2021-01-06T01:01:30.9296707Z");
        let round = Ticks::parse_iso("2021-01-06T01:01:30Z").unwrap();
        assert_eq!(round.to_iso_padded(), "2021-01-06T01:01:30.0000000Z");
    }

    proptest! {
        #[test]
        fn text_and_ticks_round_trip(ticks in 0..=Ticks::MAX.0) {
            prop_assert_eq!(Ticks::parse_iso(&Ticks(ticks).to_iso()), Some(Ticks(ticks)));
            prop_assert_eq!(Ticks::parse_iso(&Ticks(ticks).to_iso_padded()), Some(Ticks(ticks)));
        }

        #[test]
        fn texts_sort_like_moments(a in 0..=Ticks::MAX.0, b in 0..=Ticks::MAX.0) {
            prop_assert_eq!(Ticks(a).to_iso_padded().cmp(&Ticks(b).to_iso_padded()), a.cmp(&b));
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".{0,40}") {
            let _ = Ticks::parse_iso(&text);
        }
    }
}
