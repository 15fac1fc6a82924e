//! Generations of a table's schema: who still works with an older one.
//!
//! While a change of the schema spreads, requests that found the table before it go on with what they found. Every table
//! that is read from its record holds a [`Generation`], and so does everything that holds its schema: a request, a change
//! that waits to be committed, though its request may be gone. A [`fence`](Generations::fence) begins a new generation, and
//! waits until those before it are gone: then everybody works with the record as it was when the fence was asked for, or
//! a later one. That takes what a page or a commit takes. After a start there is nobody, and nothing to wait for.
//!
//! An engine that several processes share needs more: there, the fence also has to wait for what others have begun.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

use crate::storage::layout::AccountId;

/// Names that are kept in mind before those of whom nobody holds anything are forgotten.
const NAMES_BEFORE_FIRST_CLEANUP: usize = 1024;

/// Held by all who work with a table that was found between two fences.
#[derive(Debug)]
pub(crate) struct Generation {
    ended: Arc<Notify>,
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.ended.notify_waiters();
    }
}

/// The generations of all tables.
#[derive(Debug, Default)]
pub(crate) struct Generations {
    names: Mutex<Names>,
    ended: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Names {
    by_name: HashMap<(AccountId, Box<str>), Entry>,
    clean_at: usize,
}

#[derive(Debug, Default)]
struct Entry {
    current: Weak<Generation>,
    /// Those that a fence has ended, and some may still hold.
    older: Vec<Weak<Generation>>,
}

impl Generations {
    /// The generation of what is about to be read. It has to be entered before the record is read: so a fence that was
    /// begun later waits for it, and one that was begun earlier was asked for a record that is read now.
    pub(crate) fn enter(&self, account: AccountId, name: &str) -> Arc<Generation> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.clean_up();
        let entry = names.by_name.entry((account, name.into())).or_default();
        entry.current.upgrade().unwrap_or_else(|| {
            let generation = Arc::new(Generation { ended: self.ended.clone() });
            entry.current = Arc::downgrade(&generation);
            generation
        })
    }

    /// Ends the current generation of a name: whoever enters from now on is in the next.
    pub(crate) fn fence(&self, account: AccountId, name: &str) -> Fence {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = names.by_name.entry((account, name.into())).or_default();
        entry.older.push(std::mem::take(&mut entry.current));
        entry.older.retain(|generation| generation.strong_count() > 0);
        Fence { older: entry.older.clone(), ended: self.ended.clone() }
    }
}

impl Names {
    fn clean_up(&mut self) {
        if self.by_name.len() < self.clean_at.max(NAMES_BEFORE_FIRST_CLEANUP) {
            return;
        }
        self.by_name.retain(|_, entry| {
            let mut all = entry.older.iter().chain([&entry.current]);
            all.any(|generation| generation.strong_count() > 0)
        });
        self.clean_at = 2 * self.by_name.len();
    }
}

/// Waits for those who were there before it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Fence {
    older: Vec<Weak<Generation>>,
    ended: Arc<Notify>,
}

impl Fence {
    pub(crate) async fn passed(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // ORDER: registered before it is looked, so that no end is missed.
            ended.as_mut().enable();
            if self.is_passed() {
                return;
            }
            ended.await;
        }
    }

    pub(crate) fn is_passed(&self) -> bool {
        self.older.iter().all(|generation| generation.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ACCOUNT: AccountId = AccountId(1);

    #[tokio::test]
    async fn a_fence_waits_for_all_before_it_and_for_nobody_else() {
        let generations = Generations::default();
        let (first, again) = (generations.enter(ACCOUNT, "a"), generations.enter(ACCOUNT, "a"));
        let other_name = generations.enter(ACCOUNT, "b");
        let other_account = generations.enter(AccountId(2), "a");
        let fence = generations.fence(ACCOUNT, "a");
        let later = generations.enter(ACCOUNT, "a");
        assert!(!fence.is_passed());
        drop(first);
        assert!(!fence.is_passed());
        let waiting = tokio::spawn(async move { fence.passed().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(again);
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
        drop((later, other_name, other_account));
    }

    /// A second fence also waits for those before the first, whether or not anyone waited for the first.
    #[test]
    fn a_fence_waits_for_every_generation_before_it() {
        let generations = Generations::default();
        let oldest = generations.enter(ACCOUNT, "a");
        let _ = generations.fence(ACCOUNT, "a");
        let older = generations.enter(ACCOUNT, "a");
        let fence = generations.fence(ACCOUNT, "a");
        drop(older);
        assert!(!fence.is_passed());
        drop(oldest);
        assert!(fence.is_passed());
        assert!(generations.fence(ACCOUNT, "never seen").is_passed());
    }

    #[test]
    fn names_that_nobody_holds_are_forgotten() {
        let generations = Generations::default();
        let held = generations.enter(ACCOUNT, "held");
        for number in 0..10 * NAMES_BEFORE_FIRST_CLEANUP {
            drop(generations.enter(ACCOUNT, &number.to_string()));
        }
        assert!(generations.names.lock().unwrap().by_name.len() <= NAMES_BEFORE_FIRST_CLEANUP + 1);
        let fence = generations.fence(ACCOUNT, "held");
        assert!(!fence.is_passed());
        drop(held);
        assert!(fence.is_passed());
    }
}
