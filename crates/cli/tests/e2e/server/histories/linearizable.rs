//! The checker: is there an order in which one client at a time would have got these answers?
//!
//! After Wing and Gong, and Lowe's just-in-time linearization: the search goes through the invocations and returns by
//! time and keeps every configuration that is still possible, a state with those of the open operations that have
//! taken effect. An operation is made to take effect no sooner than a return demands it, and configurations that are
//! equal are explored once; so the search is as wide as there are open operations, however long the history is.

use std::collections::HashSet;

use super::rows::{Call, Outcome, State, step};

/// A request and its answer.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub client: usize,
    /// Nanoseconds of one monotonic clock, just before it was sent.
    pub invoked: u64,
    /// Just after it was answered. For an unknown outcome the moment after which it can no longer take effect, if
    /// there is one.
    pub returned: Option<u64>,
    pub call: Call,
    pub outcome: Outcome,
}

/// Where no order is left. All of it is for whoever reads the failure.
#[derive(Debug)]
#[expect(dead_code, reason = "fields are read by way of Debug")]
pub(super) struct Violation {
    /// The operation whose answer cannot be right.
    pub operation: Operation,
    /// What the rows may have been when it was open; one of each configuration.
    states: Vec<State>,
    /// What was open together with it.
    open: Vec<Operation>,
    /// What had returned last before it.
    before: Vec<Operation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Configuration {
    state: State,
    /// The open operations that have taken effect, sorted.
    done: Vec<usize>,
}

/// How much of the past a violation shows.
const SHOWN_BEFORE: usize = 12;

/// Finds an order, or the first operation that has no place in any.
pub(super) fn check(initial: State, history: &[Operation]) -> Result<(), Box<Violation>> {
    let mut events = Vec::with_capacity(2 * history.len());
    for (index, operation) in history.iter().enumerate() {
        // At the same moment invocations come first: the two may have overlapped.
        events.push((operation.invoked, false, index));
        events.extend(operation.returned.map(|moment| (moment, true, index)));
    }
    events.sort_unstable();
    let mut open = Vec::new();
    let mut returned = Vec::new();
    let mut possible = HashSet::from([Configuration { state: initial, done: Vec::new() }]);
    for (_, is_return, index) in events {
        if !is_return {
            open.push(index);
            continue;
        }
        let next = take_effect(&possible, history, &open, index);
        open.retain(|other| *other != index);
        if next.is_empty() {
            let of = |indexes: &[usize]| indexes.iter().map(|i| history[*i].clone()).collect();
            let recent = returned.len().saturating_sub(SHOWN_BEFORE);
            return Err(Box::new(Violation {
                operation: history[index].clone(),
                states: possible.into_iter().map(|configuration| configuration.state).collect(),
                open: of(&open),
                before: of(&returned[recent..]),
            }));
        }
        returned.push(index);
        possible = next;
    }
    Ok(())
}

/// The configurations after the operation `index` has taken effect, with any of the open ones before it.
fn take_effect(
    possible: &HashSet<Configuration>,
    history: &[Operation],
    open: &[usize],
    index: usize,
) -> HashSet<Configuration> {
    let mut next = HashSet::new();
    let mut seen: HashSet<Configuration> = possible.clone();
    let mut left: Vec<Configuration> = possible.iter().cloned().collect();
    while let Some(mut configuration) = left.pop() {
        if let Ok(place) = configuration.done.binary_search(&index) {
            configuration.done.remove(place);
            next.insert(configuration);
            continue;
        }
        for candidate in open {
            let Err(place) = configuration.done.binary_search(candidate) else { continue };
            let Operation { call, outcome, .. } = &history[*candidate];
            for state in step(&configuration.state, call, outcome) {
                let mut done = configuration.done.clone();
                done.insert(place, *candidate);
                let further = Configuration { state, done };
                if seen.insert(further.clone()) {
                    left.push(further);
                }
            }
        }
    }
    next
}
