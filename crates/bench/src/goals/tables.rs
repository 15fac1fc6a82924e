//! What is asked of tables.

use super::Sense::{AtLeast, AtMost};
use super::{Goal, Unit, goal};
use crate::commands::compare::CompareResult;
use crate::commands::footprint::FootprintResult;
use crate::commands::growth::GrowthResult;
use crate::commands::latency::LatencyResult;
use crate::commands::mixed::MixedResult;
use crate::table::number;
use crate::workload::Workload;

/// The sizes up to which a table may grow.
const GROWN_TO: [u64; 2] = [1_000_000, 5_000_000];

/// Everything that is asked, in the order it is asked; what was not measured is there without a figure.
pub fn of_tables(
    compare: Option<&CompareResult>,
    growth: Option<&GrowthResult>,
    latency: Option<&LatencyResult>,
    footprint: Option<&FootprintResult>,
    mixed: Option<&MixedResult>,
) -> Vec<Goal> {
    let mut goals = rates(compare);
    goals.extend(GROWN_TO.into_iter().flat_map(|size| growing(growth, size)));
    goals.push(goal(
        "durable insert at 1 connection, beyond one fdatasync",
        60.0,
        Some(30.0),
        latency.map(LatencyResult::beyond_fdatasync_micros),
        Unit::Micros,
        AtMost,
    ));
    let entities = footprint.map_or(1e6, |footprint| footprint.entities as f64);
    let with = |what: &str| format!("{what} {} entities", number(entities));
    let memory = footprint
        .map(|footprint| footprint.resident_loaded_bytes.max(footprint.resident_resting_bytes));
    goals.extend([
        goal(
            with("memory with"),
            600.0,
            Some(300.0),
            memory.map(|bytes| bytes as f64 / 1e6),
            Unit::Megabytes,
            AtMost,
        ),
        goal(
            with("start after kill -9 with"),
            2.0,
            Some(0.5),
            footprint.map(FootprintResult::slowest_start_seconds),
            Unit::Seconds,
            AtMost,
        ),
        goal(
            "disk after compaction, of the JSON",
            100.0,
            Some(50.0),
            footprint.map(|footprint| footprint.disk_share_of_json() * 100.0),
            Unit::Percent,
            AtMost,
        ),
        goal(
            "get p99 beside a table scan, of that without",
            3.0,
            None,
            mixed.map(MixedResult::p99_factor),
            Unit::Times,
            AtMost,
        ),
    ]);
    goals
}

fn growing(growth: Option<&GrowthResult>, size: u64) -> [Goal; 2] {
    let factors = growth.and_then(|growth| growth.worst_factors_up_to(size));
    let to = number(size as f64);
    let slower = |what, reached| {
        goal(
            format!("growth to {to} entities: {what}"),
            1.5,
            Some(1.2),
            reached,
            Unit::Factor,
            AtMost,
        )
    };
    [
        slower("inserts slower by", factors.map(|both| both.0)),
        slower("get p50 longer by", factors.map(|both| both.1)),
    ]
}

fn rates(compare: Option<&CompareResult>) -> Vec<Goal> {
    let of_bare = |what: &str, workload, bare, must, aim| {
        let share = ratio(compare, workload, bare, "bare").map(|share| share * 100.0);
        goal(format!("{what}, of the bare server"), must, Some(aim), share, Unit::Percent, AtLeast)
    };
    let mut goals = vec![
        of_bare("point get", Workload::Get, Workload::Get, 55.0, 75.0),
        to_azurite(compare, "point get", Workload::Get, 40.0, None),
    ];
    for (what, workload) in
        [("insert", Workload::Insert), ("upsert", Workload::Upsert), ("merge", Workload::Merge)]
    {
        goals.push(of_bare(what, workload, Workload::Insert, 30.0, 50.0));
        goals.push(to_azurite(compare, what, workload, 20.0, None));
    }
    let transactions = compare.and_then(|compare| {
        let rows = compare.row(Workload::Egt100, "tavola")?.entities_per_second;
        Some(rows / compare.bare_engine_rows_per_second? * 100.0)
    });
    goals.push(goal(
        "transactions of 100 inserts, of the bare engine",
        50.0,
        Some(80.0),
        transactions,
        Unit::Percent,
        AtLeast,
    ));
    goals.extend(query_rates(compare));
    goals
}

fn query_rates(compare: Option<&CompareResult>) -> [Goal; 6] {
    // Per core, because that is what an operator pays for: entities per second of CPU time.
    let scanned = compare.and_then(|compare| {
        let scan = compare.row(Workload::ScanFilter, "tavola")?;
        Some(scan.loaded as f64 / (scan.server_cpu_micros_per_operation? / 1e6))
    });
    let scan = compare.and_then(|compare| compare.row(Workload::ScanFilterOne, "tavola"));
    let scan_entities = number(scan.map_or(100_000, |row| row.loaded) as f64);
    let scan_ratio = ratio(compare, Workload::ScanFilterOne, Workload::ScanFilterOne, "azurite");
    let point_query = ratio(compare, Workload::PointQuery, Workload::Get, "tavola");
    let azurite = |what: &str, workload, must, aim| to_azurite(compare, what, workload, must, aim);
    [
        azurite("range query of 100", Workload::QueryRange, 100.0, Some(200.0)),
        azurite("page of 1,000, no metadata", Workload::QueryPage, 20.0, Some(40.0)),
        azurite("page of 1,000, minimal metadata", Workload::QueryPageMin, 20.0, Some(40.0)),
        goal(
            "table scan, entities examined per core",
            500_000.0,
            Some(1_000_000.0),
            scanned,
            Unit::PerSecond,
            AtLeast,
        ),
        goal(
            format!("scan of {scan_entities} entities by one client, of Azurite's time"),
            1.0,
            None,
            scan_ratio.map(f64::recip),
            Unit::Times,
            AtMost,
        ),
        goal(
            "point query, of the point get",
            80.0,
            Some(95.0),
            point_query.map(|share| share * 100.0),
            Unit::Percent,
            AtLeast,
        ),
    ]
}

fn to_azurite(
    compare: Option<&CompareResult>,
    what: &str,
    workload: Workload,
    must: f64,
    aim: Option<f64>,
) -> Goal {
    let ratio = ratio(compare, workload, workload, "azurite");
    goal(format!("{what}, to Azurite"), must, aim, ratio, Unit::Times, AtLeast)
}

fn ratio(compare: Option<&CompareResult>, of: Workload, to: Workload, other: &str) -> Option<f64> {
    compare.and_then(|compare| compare.ratio(of, to, other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Row;

    fn row(workload: Workload, target: &str, rate: f64) -> Row {
        Row {
            workload: workload.name(),
            target: target.to_owned(),
            loaded: 1000,
            operations_per_second: rate,
            entities_per_second: rate * 100.0,
            server_cpu_micros_per_operation: Some(2000.0),
            ..Row::default()
        }
    }

    fn verdict_of(goals: &[Goal], what: &str) -> (Option<f64>, &'static str) {
        let goal = goals.iter().find(|goal| goal.what == what).unwrap_or_else(|| panic!("{what}"));
        (goal.reached.map(|reached| reached.round()), goal.verdict())
    }

    #[test]
    fn figures_are_taken_from_the_right_rows() {
        let compare = CompareResult {
            rows: vec![
                row(Workload::Get, "tavola", 60.0),
                row(Workload::Get, "azurite", 2.0),
                row(Workload::Get, "bare", 100.0),
                row(Workload::PointQuery, "tavola", 30.0),
                row(Workload::Insert, "bare", 80.0),
                row(Workload::Upsert, "tavola", 40.0),
                row(Workload::Egt100, "tavola", 9.0),
                row(Workload::ScanFilter, "tavola", 1.0),
                row(Workload::ScanFilterOne, "tavola", 5.0),
                row(Workload::ScanFilterOne, "azurite", 10.0),
            ],
            bare_engine_rows_per_second: Some(1000.0),
            ..CompareResult::default()
        };
        let goals = of_tables(Some(&compare), None, None, None, None);
        assert_eq!(verdict_of(&goals, "point get, of the bare server"), (Some(60.0), "reached"));
        assert_eq!(verdict_of(&goals, "point get, to Azurite"), (Some(30.0), "missed"));
        assert_eq!(verdict_of(&goals, "upsert, of the bare server"), (Some(50.0), "aim reached"));
        assert_eq!(verdict_of(&goals, "insert, of the bare server"), (None, "not measured"));
        assert_eq!(
            verdict_of(&goals, "transactions of 100 inserts, of the bare engine"),
            (Some(90.0), "aim reached")
        );
        assert_eq!(
            verdict_of(&goals, "table scan, entities examined per core"),
            (Some(500_000.0), "reached")
        );
        assert_eq!(
            verdict_of(&goals, "scan of 1,000 entities by one client, of Azurite's time"),
            (Some(2.0), "missed")
        );
        assert_eq!(verdict_of(&goals, "point query, of the point get"), (Some(50.0), "missed"));
    }

    #[test]
    fn less_is_better_where_it_is() {
        let latency = LatencyResult {
            insert_p50_micros: 120.0,
            fdatasync_p50_micros: 75.0,
            ..LatencyResult::default()
        };
        let footprint = FootprintResult {
            entities: 1_000_000,
            json_bytes: 600,
            disk_bytes: 240,
            resident_loaded_bytes: 700_000_000,
            start_seconds: vec![0.2, 0.4],
            ..FootprintResult::default()
        };
        let goals = of_tables(None, None, Some(&latency), Some(&footprint), None);
        assert_eq!(
            verdict_of(&goals, "durable insert at 1 connection, beyond one fdatasync"),
            (Some(45.0), "reached")
        );
        assert_eq!(verdict_of(&goals, "memory with 1,000,000 entities"), (Some(700.0), "missed"));
        assert_eq!(
            verdict_of(&goals, "start after kill -9 with 1,000,000 entities").1,
            "aim reached"
        );
        assert_eq!(
            verdict_of(&goals, "disk after compaction, of the JSON"),
            (Some(40.0), "aim reached")
        );
    }
}
