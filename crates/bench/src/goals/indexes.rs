//! What is asked of index tables.

use super::Sense::{AtLeast, AtMost};
use super::{Goal, Unit, goal};
use crate::commands::indexes::IndexesResult;
use crate::table::number;

/// Everything that is asked, in the order it is asked.
pub fn of_indexes(result: &IndexesResult) -> Vec<Goal> {
    let mut goals = queries(result);
    goals.extend(writes(result));
    let many = number(result.entities as f64);
    let beside_indexes = |what: &str, workload: &str| {
        let share = result.percent((workload, "with indexes"), (workload, "without indexes"));
        goal(what, 98.0, None, share, Unit::Percent, AtLeast)
    };
    goals.extend([
        beside_indexes("key ranges beside unused indexes, of none", "query-range"),
        beside_indexes(
            "key ranges and a property beside 8 unrelated indexes, of none",
            "key range and a property",
        ),
        of_scan(result, "a value of nine in ten", "a value of nine in ten, indexed"),
        of_scan(result, "nine in ten and none", "nine in ten and none, covered"),
        goal(
            format!("building an index of {many} entities"),
            30.0,
            Some(15.0),
            Some(result.build_seconds),
            Unit::Seconds,
            AtMost,
        ),
        goal(
            "get p99 beside a build, of that without",
            2.0,
            Some(1.5),
            Some(result.get_p99_factor_beside_build),
            Unit::Times,
            AtMost,
        ),
    ]);
    goals
}

/// A query that an index is no good for, beside the same by a scan.
fn of_scan(result: &IndexesResult, what: &str, workload: &str) -> Goal {
    let scanned = format!("{what}, scanned");
    let share = result.percent((workload, "tavola"), (&scanned, "tavola"));
    goal(format!("{what}, of the scan"), 95.0, None, share, Unit::Percent, AtLeast)
}

fn queries(result: &IndexesResult) -> Vec<Goal> {
    let of = |what: &str, workload: &str, base: &str, must, aim| {
        let share = result.percent((workload, "tavola"), (base, "tavola"));
        goal(what, must, Some(aim), share, Unit::Percent, AtLeast)
    };
    let by_value = result.rate("equality, unique value", "tavola");
    vec![
        of(
            "equality on a unique value, of the point query",
            "equality, unique value",
            "point-query",
            50.0,
            70.0,
        ),
        of(
            "100 matches looked up, of the key range of 100",
            "equality, 100 matches, looked up",
            "query-range",
            20.0,
            35.0,
        ),
        of(
            "100 matches covered, of the key range of 100",
            "equality, 100 matches, covered",
            "query-range",
            60.0,
            85.0,
        ),
        goal(
            "equality on a unique value, to the scan without an index",
            1000.0,
            Some(5000.0),
            by_value.map(|rate| rate * result.scan_seconds),
            Unit::Times,
            AtLeast,
        ),
    ]
}

fn writes(result: &IndexesResult) -> Vec<Goal> {
    let insert = |indexes: &str, must, aim| {
        let share = result.percent(("insert", indexes), ("insert", "0 indexes"));
        let what = format!("inserts with {}, of none", indexes.replace("1 indexes", "1 index"));
        goal(what, must, Some(aim), share, Unit::Percent, AtLeast)
    };
    let merge = "merge";
    vec![
        insert("1 indexes", 88.0, 93.0),
        insert("4 indexes", 65.0, 75.0),
        insert("8 indexes", 45.0, 55.0),
        goal(
            "updates of nothing indexed, of no index",
            97.0,
            None,
            result.percent((merge, "1 indexes"), (merge, "0 indexes")),
            Unit::Percent,
            AtLeast,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Row;

    #[test]
    fn figures_are_taken_from_the_right_rows() {
        let row = |workload: &str, target: &str, operations_per_second| Row {
            workload: workload.to_owned(),
            target: target.to_owned(),
            operations_per_second,
            ..Row::default()
        };
        let result = IndexesResult {
            entities: 1_000_000,
            rows: vec![
                row("point-query", "tavola", 100.0),
                row("equality, unique value", "tavola", 60.0),
                row("insert", "0 indexes", 100.0),
                row("insert", "8 indexes", 40.0),
                row("key range and a property", "without indexes", 100.0),
                row("key range and a property", "with indexes", 97.0),
            ],
            build_seconds: 12.0,
            scan_seconds: 100.0,
            get_p99_factor_beside_build: 1.7,
        };
        let goals = of_indexes(&result);
        let verdict_of = |what: &str| {
            let goal = goals.iter().find(|goal| goal.what == what).unwrap();
            (goal.reached.map(f64::round), goal.verdict())
        };
        let equality = "equality on a unique value, of the point query";
        assert_eq!(verdict_of(equality), (Some(60.0), "reached"));
        let scan = "equality on a unique value, to the scan without an index";
        assert_eq!(verdict_of(scan), (Some(6000.0), "aim reached"));
        let unrelated = "key ranges and a property beside 8 unrelated indexes, of none";
        assert_eq!(verdict_of(unrelated), (Some(97.0), "missed"));
        assert_eq!(verdict_of("inserts with 8 indexes, of none"), (Some(40.0), "missed"));
        assert_eq!(verdict_of("inserts with 1 index, of none"), (None, "not measured"));
        let build = "building an index of 1,000,000 entities";
        assert_eq!(verdict_of(build), (Some(12.0), "aim reached"));
        assert_eq!(verdict_of("get p99 beside a build, of that without").1, "reached");
    }
}
