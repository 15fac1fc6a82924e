//! The queues that are in use, by the place of their messages.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::live_queue::LiveQueue;
use crate::storage::layout::StoreId;

/// Queues that are remembered. One takes about a kilobyte, and some more while messages are got from it, so that this is
/// about 100 MiB. Of those beyond, the next request finds out anew what is known of them.
const LIVE_QUEUES_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct Registry {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    queues: HashMap<StoreId, Arc<LiveQueue>>,
    /// How often queues were forgotten to make room.
    forgotten: u64,
}

impl Registry {
    pub(super) fn get(&self, store: StoreId) -> Option<Arc<LiveQueue>> {
        self.known().queues.get(&store).cloned()
    }

    /// Adds a queue, unless another request was quicker: there is one for all of them.
    pub(super) fn add(&self, live: LiveQueue) -> Arc<LiveQueue> {
        self.known_mut().add(live)
    }

    /// Adds a queue that had no messages when it was made, after queues had been forgotten so often. A request may have
    /// found it before, and put messages: then that one's is kept; and nothing is said of one that was forgotten meanwhile.
    pub(super) fn add_new(&self, store: StoreId, forgotten_before: u64) {
        let mut known = self.known_mut();
        if known.forgotten == forgotten_before {
            known.add(LiveQueue::new_empty(store));
        }
    }

    /// How often queues were forgotten so far, for [`Registry::add_new`].
    pub(super) fn forgotten(&self) -> u64 {
        self.known().forgotten
    }

    pub(super) fn remove(&self, store: StoreId) {
        self.known_mut().queues.remove(&store);
    }

    pub(super) fn all(&self) -> Vec<Arc<LiveQueue>> {
        self.known().queues.values().cloned().collect()
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn add(&mut self, live: LiveQueue) -> Arc<LiveQueue> {
        if self.queues.len() >= LIVE_QUEUES_MAX && !self.queues.contains_key(&live.store) {
            self.make_room();
        }
        self.queues.entry(live.store).or_insert_with(|| Arc::new(live)).clone()
    }

    /// Forgets half of those that no request has in hand.
    fn make_room(&mut self) {
        self.forgotten += 1;
        let mut keep = false;
        self.queues.retain(|_, live| {
            keep = !keep;
            keep || Arc::strong_count(live) > 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::layout::message::Place;

    #[test]
    fn a_new_queue_is_empty_unless_somebody_may_have_used_it() {
        let registry = Registry::default();
        let (first, second, third) = (StoreId(1), StoreId(2), StoreId(3));
        registry.add_new(first, registry.forgotten());
        assert_eq!(registry.get(first).unwrap().count(), Some(0));
        // Another request was quicker.
        let before = registry.forgotten();
        registry.add(LiveQueue::new(second, Place::MIN));
        registry.add_new(second, before);
        assert_eq!(registry.get(second).unwrap().count(), None);
        // It was, and what it knew was forgotten.
        registry.add(LiveQueue::new(third, Place::MIN));
        for store in (4..).map(StoreId).take(LIVE_QUEUES_MAX) {
            registry.add(LiveQueue::new(store, Place::MIN));
        }
        registry.remove(third);
        registry.add_new(third, before);
        assert!(registry.get(third).is_none());
        registry.add_new(third, registry.forgotten());
        assert_eq!(registry.get(third).unwrap().count(), Some(0));
    }
}
