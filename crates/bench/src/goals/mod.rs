//! What the service is asked to reach, and how far results say it is.

mod indexes;
mod queues;
mod tables;

pub use indexes::of_indexes;
pub use queues::of_queues;
pub use tables::of_tables;

use crate::table::{Table, number};

/// One figure that is asked for.
#[derive(Clone, Debug)]
pub struct Goal {
    pub what: String,
    pub must: f64,
    pub aim: Option<f64>,
    pub reached: Option<f64>,
    unit: Unit,
    sense: Sense,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Percent,
    Times,
    Factor,
    PerSecond,
    Micros,
    Megabytes,
    Seconds,
}

#[derive(Clone, Copy, Debug)]
enum Sense {
    AtLeast,
    AtMost,
}

use Sense::{AtLeast, AtMost};

fn goal(
    what: impl Into<String>,
    must: f64,
    aim: Option<f64>,
    reached: Option<f64>,
    unit: Unit,
    sense: Sense,
) -> Goal {
    Goal { what: what.into(), must, aim, reached, unit, sense }
}

impl Goal {
    pub fn verdict(&self) -> &'static str {
        let holds = |bound: f64, reached: f64| match self.sense {
            AtLeast => reached >= bound,
            AtMost => reached <= bound,
        };
        match self.reached {
            None => "not measured",
            Some(reached) if !holds(self.must, reached) => "missed",
            Some(reached) if self.aim.is_some_and(|aim| holds(aim, reached)) => "aim reached",
            Some(_) => "reached",
        }
    }

    fn bound(&self, bound: f64) -> String {
        match self.sense {
            AtLeast => format!(">= {}", self.value(bound)),
            AtMost => format!("<= {}", self.value(bound)),
        }
    }

    fn value(&self, value: f64) -> String {
        let bare = number(value);
        match self.unit {
            Unit::Percent => format!("{value:.0} %"),
            Unit::Times => format!("{bare} x"),
            Unit::Factor => bare,
            Unit::PerSecond => format!("{bare}/s"),
            Unit::Micros => format!("{bare} us"),
            Unit::Megabytes => format!("{bare} MB"),
            Unit::Seconds => format!("{bare} s"),
        }
    }
}

pub fn table(goals: &[Goal]) -> String {
    let mut table = Table::new(["Asked", "must", "aim", "reached", ""]);
    for goal in goals {
        table.row([
            goal.what.clone(),
            goal.bound(goal.must),
            goal.aim.map_or_else(String::new, |aim| goal.bound(aim)),
            goal.reached.map_or_else(String::new, |reached| goal.value(reached)),
            goal.verdict().to_owned(),
        ]);
    }
    table.to_markdown()
}
