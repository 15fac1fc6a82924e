//! What is asked of queues.

use super::Sense::{AtLeast, AtMost};
use super::{Goal, Unit, goal};
use crate::commands::queues::QueuesResult;
use crate::queue::workload::QueueWorkload::{
    self, ClaimDelete, ClaimMany, Enqueue, Peek, PollEmpty,
};
use crate::table::number;

/// Everything that is asked, in the order it is asked.
pub fn of_queues(result: &QueuesResult) -> Vec<Goal> {
    let of_bare = |workload, must, aim| {
        let share = result.ratio(workload, "bare").map(|share| share * 100.0);
        let what = format!("{}, of the bare server", title(workload));
        goal(what, must, Some(aim), share, Unit::Percent, AtLeast)
    };
    let mut goals = vec![
        of_bare(Enqueue, 30.0, 45.0),
        of_bare(ClaimDelete, 20.0, 35.0),
        goal(
            "messages claimed by 32, of those enqueued",
            2.0,
            Some(3.0),
            result.claims_of_enqueues(),
            Unit::Times,
            AtLeast,
        ),
        of_bare(Peek, 50.0, 70.0),
        of_bare(PollEmpty, 50.0, 70.0),
    ];
    goals.extend(QueueWorkload::ALL.map(|workload| {
        let what = format!("{}, to Azurite", title(workload));
        goal(what, 20.0, None, result.ratio(workload, "azurite"), Unit::Times, AtLeast)
    }));
    let many = number(result.messages as f64);
    for (what, target) in result.long_targets() {
        goals.extend(QueueWorkload::ALL.map(|workload| {
            let slower = result.ratio(workload, &target);
            let what = format!("{many} {what}: {} slower by", title(workload));
            goal(what, 1.3, Some(1.1), slower, Unit::Factor, AtMost)
        }));
    }
    goals
}

fn title(workload: QueueWorkload) -> &'static str {
    match workload {
        Enqueue => "enqueue",
        ClaimDelete => "claim and delete",
        ClaimMany => "claim of 32",
        Peek => "peek",
        PollEmpty => "poll of an empty queue",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Row;

    fn row(workload: QueueWorkload, target: &str, messages_per_second: f64) -> Row {
        Row {
            workload: workload.name().to_owned(),
            target: target.to_owned(),
            operations_per_second: messages_per_second,
            entities_per_second: messages_per_second,
            ..Row::default()
        }
    }

    #[test]
    fn figures_are_taken_from_the_right_rows() {
        let result = QueuesResult {
            messages: 1_000_000,
            rows: vec![
                row(Enqueue, "tavola", 40.0),
                row(Enqueue, "tavola, 1,000,000 waiting", 20.0),
                row(Enqueue, "tavola, 1,000,000 deleted", 38.0),
                row(Enqueue, "azurite", 1.0),
                row(Enqueue, "bare", 100.0),
                row(ClaimMany, "tavola", 100.0),
            ],
            ..QueuesResult::default()
        };
        let goals = of_queues(&result);
        let verdict_of = |what: &str| {
            let goal = goals.iter().find(|goal| goal.what == what).unwrap();
            (goal.reached.map(|reached| (10.0 * reached).round() / 10.0), goal.verdict())
        };
        assert_eq!(verdict_of("enqueue, of the bare server"), (Some(40.0), "reached"));
        assert_eq!(verdict_of("enqueue, to Azurite"), (Some(40.0), "reached"));
        assert_eq!(verdict_of("messages claimed by 32, of those enqueued"), (Some(2.5), "reached"));
        assert_eq!(verdict_of("1,000,000 waiting: enqueue slower by"), (Some(2.0), "missed"));
        assert_eq!(verdict_of("1,000,000 deleted: enqueue slower by"), (Some(1.1), "aim reached"));
        assert_eq!(verdict_of("1,000,000 invisible: peek slower by"), (None, "not measured"));
    }
}
