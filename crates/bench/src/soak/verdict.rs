//! Whether a server stayed the same: the first third of what was watched after the warm-up, beside the last.

use serde::Serialize;

use crate::measure::median;
use crate::table::{Table, megabytes, micros, number};

/// The share of the intervals that caches, buffers and levels are given to fill.
const WARM_UP_SHARE: f64 = 0.2;
/// By how much the last third may exceed the first. Disk and latency move with each compaction; memory must not.
const MEMORY_GROWTH_MAX: f64 = 1.15;
const DISK_GROWTH_MAX: f64 = 1.3;
const P99_GROWTH_MAX: f64 = 1.5;

/// What was seen in one interval.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Interval {
    pub operations_per_second: f64,
    pub read_p99_micros: f64,
    pub write_p99_micros: f64,
    pub query_p99_micros: f64,
    pub resident_bytes: f64,
    pub disk_bytes: f64,
}

/// One comparison of the last third with the first.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub what: &'static str,
    pub first: f64,
    pub last: f64,
    pub growth_max: f64,
}

impl Check {
    pub(super) fn holds(&self) -> bool {
        self.last <= self.first * self.growth_max
    }

    fn figure(&self, value: f64) -> String {
        match self.what {
            "memory" | "disk" => megabytes(value as u64),
            _ => micros(value),
        }
    }
}

/// What must stay the same. None when there is too little to compare.
pub(super) fn checks(intervals: &[Interval]) -> Vec<Check> {
    let warm_up = (intervals.len() as f64 * WARM_UP_SHARE).ceil() as usize;
    let watched = &intervals[warm_up..];
    let third = watched.len() / 3;
    if third == 0 {
        return Vec::new();
    }
    let (first, last) = (&watched[..third], &watched[watched.len() - third..]);
    let check = |what, growth_max, of: fn(&Interval) -> f64| {
        let median_of = |intervals: &[Interval]| median(intervals.iter().map(of).collect());
        Check { what, first: median_of(first), last: median_of(last), growth_max }
    };
    vec![
        check("memory", MEMORY_GROWTH_MAX, |interval| interval.resident_bytes),
        check("disk", DISK_GROWTH_MAX, |interval| interval.disk_bytes),
        check("read p99", P99_GROWTH_MAX, |interval| interval.read_p99_micros),
        check("write p99", P99_GROWTH_MAX, |interval| interval.write_p99_micros),
        check("query p99", P99_GROWTH_MAX, |interval| interval.query_p99_micros),
    ]
}

pub(super) fn table(checks: &[Check]) -> String {
    let mut table =
        Table::new(["Median of a third", "first", "last", "last / first", "at most", ""]);
    for check in checks {
        table.row([
            check.what.to_owned(),
            check.figure(check.first),
            check.figure(check.last),
            number(check.last / check.first),
            number(check.growth_max),
            if check.holds() { "steady" } else { "NOT STEADY" }.to_owned(),
        ]);
    }
    table.to_markdown()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(count: usize, resident: impl Fn(usize) -> f64) -> Vec<Interval> {
        let interval = |index| Interval {
            operations_per_second: 1.0,
            read_p99_micros: 100.0,
            write_p99_micros: 100.0,
            query_p99_micros: 100.0,
            resident_bytes: resident(index),
            disk_bytes: 1e9,
        };
        (0..count).map(interval).collect()
    }

    fn unsteady(intervals: &[Interval]) -> Vec<&'static str> {
        checks(intervals).iter().filter(|check| !check.holds()).map(|check| check.what).collect()
    }

    #[test]
    fn a_leak_is_seen_and_a_warm_up_is_not_one() {
        assert_eq!(unsteady(&intervals(20, |_| 3e8)), [""; 0]);
        assert_eq!(unsteady(&intervals(20, |index| if index < 4 { 1e8 } else { 3e8 })), [""; 0]);
        // A single peak is no leak either: a median does not see it.
        assert_eq!(unsteady(&intervals(20, |index| if index == 18 { 9e8 } else { 3e8 })), [""; 0]);
        assert_eq!(unsteady(&intervals(20, |index| 2e8 + 1e7 * index as f64)), ["memory"]);
    }

    #[test]
    fn every_figure_is_watched() {
        let mut worse = intervals(20, |_| 3e8);
        for interval in &mut worse[14..] {
            interval.disk_bytes *= 1.4;
            interval.read_p99_micros *= 1.6;
            interval.write_p99_micros *= 1.6;
            interval.query_p99_micros *= 1.6;
        }
        assert_eq!(unsteady(&worse), ["disk", "read p99", "write p99", "query p99"]);
    }

    #[test]
    fn too_little_is_not_judged() {
        assert!(checks(&intervals(3, |_| 1.0)).is_empty());
        assert!(checks(&[]).is_empty());
    }
}
