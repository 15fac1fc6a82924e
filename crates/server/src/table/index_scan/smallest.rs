//! The entries with the smallest keys, of many that come in any order, in a bounded room.
//!
//! The room is bounded by entries, by bytes and by the memory that there is to reserve, so that it may be full at one moment and
//! not at the next. What had to go once therefore stays a bound: nothing behind it is kept any more, or those who go on behind
//! the last entry would never meet what went.

use std::collections::BinaryHeap;

use super::entry::{Entry, HELD_BYTES_MAX};
use crate::net::memory_budget::Reservation;

pub(super) struct Smallest {
    entries_max: usize,
    heap: BinaryHeap<Entry>,
    bytes: usize,
    memory: Reservation,
    /// The smallest key that had to go.
    bound: Option<Vec<u8>>,
    /// Whether none had to go.
    is_all: bool,
}

impl Smallest {
    pub(super) fn new(entries_max: usize, memory: Reservation) -> Self {
        Self { entries_max, heap: BinaryHeap::new(), bytes: 0, memory, bound: None, is_all: true }
    }

    /// Whether an entry with this key would be kept. What is refused counts as gone.
    pub(super) fn accepts(&mut self, key: &[u8]) -> bool {
        let is_beyond = self.bound.as_deref().is_some_and(|bound| bound <= key);
        let is_full = self.heap.len() >= self.entries_max;
        let is_refused =
            is_beyond || is_full && self.heap.peek().is_some_and(|last| *last.entity_key <= *key);
        self.is_all &= !is_refused;
        !is_refused
    }

    /// Keeps an entry that is accepted. At least one stays, however large, so that each pass gets on.
    pub(super) fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes();
        self.heap.push(entry);
        while self.heap.len() > 1 && !self.has_room() {
            let dropped = self.heap.pop().expect("there are two");
            self.bytes -= dropped.bytes();
            self.bound = Some(dropped.entity_key);
            self.is_all = false;
        }
    }

    fn has_room(&mut self) -> bool {
        let fits = self.heap.len() <= self.entries_max && self.bytes <= HELD_BYTES_MAX;
        fits && self.memory.grow_ahead_to(self.bytes).is_ok()
    }

    /// The entries in order, whether they are all that came, and what reserves their memory. Of several with the same key,
    /// which come from several indexes, one is left: the last of them, which has a copy if any has.
    pub(super) fn finish(self) -> (Vec<Entry>, bool, Reservation) {
        let mut entries = self.heap.into_sorted_vec();
        entries.dedup_by(|later, kept| {
            let is_same = later.entity_key == kept.entity_key;
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        (entries, self.is_all, self.memory)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::net::memory_budget::MemoryBudget;

    const MIB: usize = 1024 * 1024;

    fn entry(key: u8, bytes: usize) -> Entry {
        Entry { entity_key: vec![key], entity: Some(vec![0; bytes]), index: 1 }
    }

    fn offer(smallest: &mut Smallest, key: u8, bytes: usize) {
        if smallest.accepts(&[key]) {
            smallest.push(entry(key, bytes));
        }
    }

    fn kept(smallest: Smallest) -> (Vec<u8>, bool) {
        let (entries, is_all, _) = smallest.finish();
        (entries.iter().map(|entry| entry.entity_key[0]).collect(), is_all)
    }

    fn budget() -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::new(64 * MIB))
    }

    #[test]
    fn all_are_kept_where_there_is_room() {
        let mut smallest = Smallest::new(3, budget().reservation());
        [7, 1, 4].into_iter().for_each(|key| offer(&mut smallest, key, 1));
        assert_eq!(kept(smallest), (vec![1, 4, 7], true));
    }

    #[test]
    fn the_first_are_kept_where_there_are_too_many() {
        let mut smallest = Smallest::new(3, budget().reservation());
        [7, 1, 9, 4, 2].into_iter().for_each(|key| offer(&mut smallest, key, 1));
        assert_eq!(kept(smallest), (vec![1, 2, 4], false));
    }

    #[test]
    fn one_of_several_with_the_same_key_is_left() {
        let mut smallest = Smallest::new(9, budget().reservation());
        [7, 4, 7, 1, 7].into_iter().for_each(|key| offer(&mut smallest, key, 1));
        smallest.push(Entry { entity: None, ..entry(4, 0) });
        let (entries, is_all, _) = smallest.finish();
        let found: Vec<_> =
            entries.iter().map(|it| (it.entity_key[0], it.entity.is_some())).collect();
        assert_eq!((found, is_all), (vec![(1, true), (4, true), (7, true)], true));
    }

    /// 6 goes for its size. 8 is small and would fit, but whoever goes on behind 8 would not meet 6 again.
    #[test]
    fn what_is_small_is_not_kept_behind_what_was_too_large() {
        let mut smallest = Smallest::new(100, budget().reservation());
        for (key, bytes) in [(1, 2 * MIB), (2, MIB), (6, 2 * MIB), (8, 10), (5, 10), (6, 10)] {
            offer(&mut smallest, key, bytes);
        }
        assert_eq!(kept(smallest), (vec![1, 2, 5], false));
    }

    #[test]
    fn memory_that_was_refused_and_comes_back_leaves_no_hole() {
        let budget = budget();
        let mut smallest = Smallest::new(100, budget.reservation());
        [1, 3, 5].into_iter().for_each(|key| offer(&mut smallest, key, 100_000));
        let mut other = budget.reservation();
        other.grow_regardless_to(64 * MIB);
        offer(&mut smallest, 4, 100_000);
        drop(other);
        [9, 2].into_iter().for_each(|key| offer(&mut smallest, key, 100));
        let (keys, is_all) = kept(smallest);
        assert!(!is_all);
        // 5 went for want of memory, and 9 stands behind it.
        assert_eq!(keys, [1, 2, 3, 4]);
    }

    #[test]
    fn one_entry_is_kept_however_large() {
        let mut smallest = Smallest::new(100, budget().reservation());
        [(5, 5 * MIB), (3, 5 * MIB), (4, 1)]
            .into_iter()
            .for_each(|(k, b)| offer(&mut smallest, k, b));
        assert_eq!(kept(smallest), (vec![3], false));
    }
}
