//! The wall clock, for the date that a request is signed with and the date of a report.

use std::time::SystemTime;

use tavola_wire::Ticks;

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that reads the wall clock"
)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Today, as `2026-11-15`.
pub fn today() -> String {
    let since = now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let nanoseconds = i128::try_from(since.as_nanos()).unwrap_or_default();
    let mut moment = Ticks::from_unix_nanos(nanoseconds).to_iso();
    moment.truncate("2026-11-15".len());
    moment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_ten_characters() {
        let today = today();
        assert_eq!(today.len(), 10, "{today}");
        assert_eq!(today.matches('-').count(), 2, "{today}");
    }
}
