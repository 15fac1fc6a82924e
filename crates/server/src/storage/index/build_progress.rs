//! How far builds have come: what operators look at while they wait. It lives in memory; a start begins to count again
//! where the build goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::storage::layout::TableId;

/// The builds that are under way.
#[derive(Debug, Default)]
pub(crate) struct Builds {
    running: Mutex<BTreeMap<(TableId, u16), Entities>>,
}

/// The entities of one build, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entities {
    pub done: u64,
    /// Those that the table had when the build began, or more if more were found since.
    pub expected: u64,
}

/// A build that is under way as long as this lives.
#[derive(Debug)]
pub(crate) struct BuildProgress {
    builds: Arc<Builds>,
    key: (TableId, u16),
}

impl Builds {
    pub(crate) fn begin(
        self: &Arc<Self>,
        table: TableId,
        number: u16,
        entities: Entities,
    ) -> BuildProgress {
        let progress = BuildProgress { builds: Arc::clone(self), key: (table, number) };
        self.running().insert(progress.key, entities);
        progress
    }

    /// How many builds are under way, and their entities together.
    pub(crate) fn total(&self) -> (usize, Entities) {
        let running = self.running();
        let add = |sum: Entities, one: &Entities| Entities {
            done: sum.done + one.done,
            expected: sum.expected + one.expected,
        };
        (running.len(), running.values().fold(Entities::default(), add))
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<(TableId, u16), Entities>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BuildProgress {
    pub(crate) fn is_of(&self, table: TableId, number: u16) -> bool {
        self.key == (table, number)
    }

    pub(crate) fn set_done(&self, done: u64) {
        if let Some(entities) = self.builds.running().get_mut(&self.key) {
            entities.done = done;
            entities.expected = entities.expected.max(done);
        }
    }
}

impl Drop for BuildProgress {
    fn drop(&mut self) {
        self.builds.running().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_added_up_while_they_live() {
        let builds = Arc::<Builds>::default();
        let begin =
            |number, done, expected| builds.begin(TableId(1), number, Entities { done, expected });
        let (one, other) = (begin(1, 0, 10), begin(2, 5, 20));
        assert_eq!(builds.total(), (2, Entities { done: 5, expected: 30 }));
        one.set_done(12);
        assert_eq!(builds.total(), (2, Entities { done: 17, expected: 32 }));
        assert!(one.is_of(TableId(1), 1) && !one.is_of(TableId(1), 2));
        drop(other);
        assert_eq!(builds.total(), (1, Entities { done: 12, expected: 12 }));
        drop(one);
        assert_eq!(builds.total(), (0, Entities::default()));
    }
}
