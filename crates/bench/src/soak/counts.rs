//! What came of every operation: how long it took, and what the service said.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Histogram;
use crate::request::Failure;
use crate::table::{Table, count};

/// What the protocol may answer when others change the same rows and tables, and when there is too much to do.
const EXPECTED: [(u16, &str); 8] = [
    (404, "ResourceNotFound"),
    (404, "EntityNotFound"),
    (404, "TableNotFound"),
    (409, "EntityAlreadyExists"),
    (409, "TableAlreadyExists"),
    (409, "TableBeingDeleted"),
    (412, "UpdateConditionNotSatisfied"),
    (503, "ServerBusy"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Query,
}

/// Counted by all workers.
#[derive(Default)]
pub(super) struct Counts {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    latencies: Latencies,
    outcomes: Outcomes,
}

/// Latencies since they were last taken.
#[derive(Default)]
pub(super) struct Latencies {
    pub reads: Histogram,
    pub writes: Histogram,
    pub queries: Histogram,
}

/// How often each operation came to what, since the start.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Outcomes {
    counts: BTreeMap<String, BTreeMap<String, u64>>,
    unexpected: BTreeMap<String, u64>,
}

impl Counts {
    pub(super) fn note(
        &self,
        operation: &str,
        kind: Kind,
        took: Duration,
        outcome: &Result<(), Failure>,
    ) {
        let mut inner = self.lock();
        let latencies = &mut inner.latencies;
        match kind {
            Kind::Read => latencies.reads.record(took),
            Kind::Write => latencies.writes.record(took),
            Kind::Query => latencies.queries.record(took),
        }
        inner.outcomes.note(operation, outcome);
    }

    /// Notes an answer that no correct service gives.
    pub(super) fn accuse(&self, operation: &str, what: String) {
        self.lock().outcomes.note(operation, &Err(Failure::Wrong(what)));
    }

    pub(super) fn take_latencies(&self) -> Latencies {
        std::mem::take(&mut self.lock().latencies)
    }

    pub(super) fn outcomes(&self) -> Outcomes {
        self.lock().outcomes.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latencies {
    pub(super) fn count(&self) -> u64 {
        self.reads.count() + self.writes.count() + self.queries.count()
    }
}

impl Outcomes {
    fn note(&mut self, operation: &str, outcome: &Result<(), Failure>) {
        let text = match outcome {
            Ok(()) => "done".to_owned(),
            Err(failure) => failure.to_string(),
        };
        if let Err(failure) = outcome
            && !is_expected(failure)
        {
            *self.unexpected.entry(format!("{operation}: {text}")).or_default() += 1;
        }
        // The entry is nearly always there: a map by text is asked before one is made.
        if let Some(count) =
            self.counts.get_mut(operation).and_then(|by_text| by_text.get_mut(&text))
        {
            *count += 1;
            return;
        }
        *self.counts.entry(operation.to_owned()).or_default().entry(text).or_default() += 1;
    }

    /// What no correct service answers, with how often it did.
    pub(super) fn unexpected(&self) -> impl Iterator<Item = String> {
        self.unexpected.iter().map(|(what, count)| format!("{what} ({count} times)"))
    }

    pub(super) fn table(&self) -> String {
        let mut table = Table::new(["Operation", "outcome", "count"]);
        for (operation, outcomes) in &self.counts {
            for (outcome, times) in outcomes {
                table.row([operation.clone(), outcome.clone(), count(*times)]);
            }
        }
        table.to_markdown()
    }
}

pub(super) fn is_expected(failure: &Failure) -> bool {
    match failure {
        Failure::Refused { status, code } => EXPECTED.contains(&(*status, code.as_str())),
        Failure::Lost(_) | Failure::Wrong(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> Result<(), Failure> {
        Err(Failure::Refused { status, code: code.to_owned() })
    }

    #[test]
    fn only_what_the_protocol_does_not_say_is_unexpected() {
        let counts = Counts::default();
        let outcomes = [
            Ok(()),
            refused(404, "ResourceNotFound"),
            refused(503, "ServerBusy"),
            refused(500, "InternalError"),
            refused(404, "InvalidInput"),
            Err(Failure::Lost("reset".to_owned())),
        ];
        for outcome in &outcomes {
            counts.note("get", Kind::Read, Duration::from_micros(5), outcome);
        }
        counts.accuse("get", "a lost row".to_owned());
        let unexpected: Vec<_> = counts.outcomes().unexpected().collect();
        assert_eq!(
            unexpected,
            [
                "get: 404 InvalidInput (1 times)",
                "get: 500 InternalError (1 times)",
                "get: a lost row (1 times)",
                "get: no answer: reset (1 times)",
            ]
        );
    }

    #[test]
    fn latencies_are_those_since_they_were_taken() {
        let counts = Counts::default();
        counts.note("get", Kind::Read, Duration::from_millis(5), &Ok(()));
        counts.note("put", Kind::Write, Duration::from_millis(7), &Ok(()));
        let first = counts.take_latencies();
        assert_eq!((first.count(), first.reads.count(), first.queries.count()), (2, 1, 0));
        assert_eq!(counts.take_latencies().count(), 0);
        assert_eq!(counts.outcomes().counts["get"]["done"], 1);
    }
}
