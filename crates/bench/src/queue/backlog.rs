//! What the driver knows of the queue that it measures: how many messages wait, and which it has claimed.
//!
//! Claims take from what lies above a floor and come to an end there: a queue that is said to hold a million messages holds
//! them during the whole round, and no claim is measured that finds nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::operations::Claimed;

/// One queue.
#[derive(Debug)]
pub struct Backlog {
    pub queue: String,
    /// Messages that no claim touches.
    pub floor: u64,
    waiting: AtomicU64,
    /// Claimed and not deleted; `None` where they stay.
    claimed: Option<Mutex<Vec<Claimed>>>,
}

impl Backlog {
    pub fn new(queue: &str, floor: u64, remembers_claims: bool) -> Self {
        Self {
            queue: queue.to_owned(),
            floor,
            waiting: AtomicU64::new(0),
            claimed: remembers_claims.then(Mutex::default),
        }
    }

    /// A queue that never ends, as that of the bare server.
    pub fn endless(queue: &str) -> Self {
        let backlog = Self::new(queue, 0, false);
        backlog.waiting.store(u64::MAX / 2, Ordering::Relaxed);
        backlog
    }

    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub fn add(&self, messages: u64) {
        self.waiting.fetch_add(messages, Ordering::Relaxed);
    }

    pub fn cleared(&self) {
        self.waiting.store(0, Ordering::Relaxed);
        self.take_claimed();
    }

    /// Sets messages aside for a claim; false if there are not that many above the floor.
    pub fn reserve(&self, messages: u64) -> bool {
        let take =
            |waiting: u64| waiting.checked_sub(self.floor + messages).map(|_| waiting - messages);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    pub fn remembers_claims(&self) -> bool {
        self.claimed.is_some()
    }

    pub fn remember(&self, claimed: Vec<Claimed>) {
        if let Some(all) = &self.claimed {
            all.lock().unwrap_or_else(PoisonError::into_inner).extend(claimed);
        }
    }

    pub fn take_claimed(&self) -> Vec<Claimed> {
        let Some(all) = &self.claimed else { return Vec::new() };
        std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_end_at_the_floor() {
        let backlog = Backlog::new("q", 100, false);
        backlog.add(150);
        assert!(backlog.reserve(32));
        assert!(!backlog.reserve(32), "only 18 are above the floor");
        assert!(backlog.reserve(18) && !backlog.reserve(1));
        assert_eq!(backlog.waiting(), 100);
        backlog.add(1);
        assert!(backlog.reserve(1));
        assert!(Backlog::endless("q").reserve(1_000_000));
    }
}
