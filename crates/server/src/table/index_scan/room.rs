//! What a query may hold of rows that are read before their turn, over all ranges that it reads side by side.
//!
//! Each range has to show its first entry, so that none can be refused altogether. Where there is no room, an entry stays
//! without its copy: then the entity is looked up when its turn comes.

use super::entry::{Entry, HELD_BYTES_MAX};
use crate::net::memory_budget::Reservation;

pub(super) struct Room {
    bytes: usize,
    memory: Reservation,
    /// Whether there was no room for the last one, and none has been taken out since.
    pub is_full: bool,
}

impl Room {
    pub(super) fn new(memory: Reservation) -> Self {
        Self { bytes: 0, memory, is_full: false }
    }

    /// Counts an entry, which loses its copy if there is no room for that. Whether there was room.
    pub(super) fn take_for(&mut self, entry: &mut Entry) -> bool {
        let sum = self.bytes + entry.bytes();
        let has_room = sum <= HELD_BYTES_MAX && self.memory.grow_ahead_to(sum).is_ok();
        if !has_room {
            entry.entity = None;
            self.is_full = true;
        }
        self.bytes += entry.bytes();
        has_room
    }

    /// An entry has been taken out.
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.is_full = false;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::net::memory_budget::MemoryBudget;

    const MIB: usize = 1024 * 1024;

    fn entry(bytes: usize) -> Entry {
        Entry { entity_key: vec![b'k'], entity: Some(vec![0; bytes]), index: 1 }
    }

    #[test]
    fn copies_stay_out_where_there_is_no_room() {
        let budget = Arc::new(MemoryBudget::new(64 * MIB));
        let mut room = Room::new(budget.reservation());
        let (mut first, mut second) = (entry(3 * MIB), entry(2 * MIB));
        assert!(room.take_for(&mut first) && first.entity.is_some());
        assert!(!room.take_for(&mut second) && second.entity.is_none() && room.is_full);
        assert!(budget.used() <= HELD_BYTES_MAX);
        room.give_back(first.bytes());
        assert!(!room.is_full && room.take_for(&mut entry(2 * MIB)));
        drop(room);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_memory_of_all_messages_counts() {
        let budget = Arc::new(MemoryBudget::new(8 * MIB));
        let mut others = budget.reservation();
        others.grow_to(6 * MIB).unwrap();
        let mut large = entry(MIB);
        assert!(!Room::new(budget.reservation()).take_for(&mut large));
        assert_eq!((large.entity, budget.used()), (None, 6 * MIB));
    }
}
