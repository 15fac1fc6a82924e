//! The queues that are in use, by the place of their messages.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tavola_wire::Ticks;

use super::Queues;
use super::live_queue::LiveQueue;
use crate::storage::layout::StoreId;

/// Queues that are remembered. One takes about a kilobyte, and some more while messages are got from it, so that this is
/// about 100 MiB. Of those beyond, the next request finds out anew what is known of them.
const LIVE_QUEUES_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct Registry {
    queues: RwLock<HashMap<StoreId, Arc<LiveQueue>>>,
}

impl Registry {
    pub(super) fn get(&self, store: StoreId) -> Option<Arc<LiveQueue>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).get(&store).cloned()
    }

    /// Adds a queue, unless another request was quicker: there is one for all of them.
    pub(super) fn add(&self, live: LiveQueue) -> Arc<LiveQueue> {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= LIVE_QUEUES_MAX && !queues.contains_key(&live.store) {
            make_room(&mut queues);
        }
        queues.entry(live.store).or_insert_with(|| Arc::new(live)).clone()
    }

    /// Adds a queue that has no messages. If a request has found it before, it has put none.
    pub(super) fn add_new(&self, store: StoreId) {
        self.add(LiveQueue::new_empty(store));
    }

    pub(super) fn remove(&self, store: StoreId) {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).remove(&store);
    }

    pub(super) fn all(&self) -> Vec<Arc<LiveQueue>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Forgets half of those that no request has in hand.
fn make_room(queues: &mut HashMap<StoreId, Arc<LiveQueue>>) {
    let mut keep = false;
    queues.retain(|_, live| {
        keep = !keep;
        keep || Arc::strong_count(live) > 1
    });
}

/// How full the queues are, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    pub messages: u64,
    /// Of the queue that has most.
    pub messages_max: u64,
    /// Since when the message that has waited longest could have been got.
    pub oldest: Option<Ticks>,
}

impl Queues {
    pub(crate) fn depth(&self) -> Depth {
        let mut depth = Depth::default();
        for live in self.registry.all() {
            let messages = live.count().unwrap_or(0);
            depth.messages += messages;
            depth.messages_max = depth.messages_max.max(messages);
            let oldest = live.oldest().filter(|_| messages > 0);
            depth.oldest = [depth.oldest, oldest].into_iter().flatten().min();
        }
        depth
    }
}
