//! Names that were found before, up to a number. Hits take a read lock and no more; when it is full, the one that was
//! read longest ago goes.
//!
//! Everything that changes the catalogue passes through this process, so that what is here stays right until it is
//! forgotten. With an engine that several processes share, it would not: then [`Entry`] is where the moment of the
//! read belongs, and [`Cache::get`] the place to find it too old. That something does not exist
//! is never remembered.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::storage::layout::AccountId;

#[derive(Debug)]
pub(super) struct Cache<R> {
    /// Accounts are few: comparing them takes less than hashing one.
    entries: BTreeMap<AccountId, HashMap<Arc<str>, Entry<R>>>,
    /// Accounts and names in the order in which they were read.
    by_age: BTreeMap<u64, (AccountId, Arc<str>)>,
    entries_max: usize,
    /// Counts what was read, for `by_age`.
    reads: u64,
    /// Counts the changes, so that what was read before one is not kept after it.
    changes: u64,
}

#[derive(Debug)]
struct Entry<R> {
    found: Arc<R>,
    /// The place in `by_age`.
    age: u64,
}

impl<R> Cache<R> {
    pub(super) fn new(entries_max: usize) -> Self {
        let (entries, by_age) = (BTreeMap::new(), BTreeMap::new());
        Self { entries, by_age, entries_max, reads: 0, changes: 0 }
    }

    pub(super) fn get(&self, account: AccountId, name: &str) -> Option<&Arc<R>> {
        Some(&self.entries.get(&account)?.get(name)?.found)
    }

    /// To be asked before a read whose result may be remembered.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Keeps what was read when there had been `changes` changes. A drop since then must not be undone by
    /// remembering what was there before it.
    pub(super) fn remember(&mut self, changes: u64, account: AccountId, name: &str, found: Arc<R>) {
        if self.changes != changes {
            return;
        }
        // Another request may have read the same.
        self.remove(account, name);
        while self.by_age.len() >= self.entries_max {
            let Some((_, (account, name))) = self.by_age.pop_first() else { return };
            self.remove(account, &name);
        }
        let (name, age): (Arc<str>, _) = (name.into(), self.reads);
        self.reads += 1;
        self.by_age.insert(age, (account, name.clone()));
        self.entries.entry(account).or_default().insert(name, Entry { found, age });
    }

    /// The thing of this name was changed.
    pub(super) fn forget(&mut self, account: AccountId, name: &str) {
        self.changes += 1;
        self.remove(account, name);
    }

    fn remove(&mut self, account: AccountId, name: &str) {
        let entry = self.entries.get_mut(&account).and_then(|names| names.remove(name));
        if let Some(entry) = entry {
            self.by_age.remove(&entry.age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: AccountId = AccountId(1);

    fn remember(cache: &mut Cache<u32>, account: AccountId, number: u32) {
        let changes = cache.changes();
        cache.remember(changes, account, &number.to_string(), Arc::new(number));
    }

    fn found(cache: &Cache<u32>, account: AccountId, number: u32) -> Option<u32> {
        cache.get(account, &number.to_string()).map(|found| **found)
    }

    fn len(cache: &Cache<u32>) -> usize {
        let len = cache.entries.values().map(HashMap::len).sum();
        assert_eq!(cache.by_age.len(), len);
        len
    }

    #[test]
    fn the_oldest_goes_when_it_is_full() {
        let mut cache = Cache::new(3);
        for number in 0..5 {
            remember(&mut cache, AccountId(u64::from(number) % 2), number);
        }
        assert_eq!(len(&cache), 3);
        let is_there = |number| found(&cache, AccountId(u64::from(number) % 2), number).is_some();
        assert_eq!((0..5).filter(|number| is_there(*number)).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn forgetting_and_reading_again_leave_nothing_behind() {
        let mut cache = Cache::new(3);
        for _ in 0..100 {
            remember(&mut cache, ACCOUNT, 7);
            remember(&mut cache, ACCOUNT, 7);
            assert_eq!((len(&cache), found(&cache, ACCOUNT, 7)), (1, Some(7)));
            cache.forget(ACCOUNT, "7");
            assert_eq!((len(&cache), found(&cache, ACCOUNT, 7)), (0, None));
        }
    }

    #[test]
    fn what_was_read_before_a_change_is_not_remembered_after_it() {
        let mut cache = Cache::new(3);
        let changes = cache.changes();
        cache.forget(ACCOUNT, "7");
        cache.remember(changes, ACCOUNT, "7", Arc::new(7));
        assert_eq!((len(&cache), found(&cache, ACCOUNT, 7)), (0, None));
    }
}
