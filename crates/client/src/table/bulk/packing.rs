//! Which operations go together: by partition, within the limits, and never twice the same entity at a time.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::table::transaction::{Operation, TRANSACTION_BYTES_MAX, TRANSACTION_OPERATIONS_MAX};

/// Operations that wait for company. Many small partitions need a large window to fill their transactions: this one fills
/// those of 400 partitions that take turns.
const WINDOW_OPERATIONS: usize = 400 * TRANSACTION_OPERATIONS_MAX;
/// Bytes of what waits, whatever the number: entities may have a mebibyte each.
const WINDOW_BYTES: usize = 16 * TRANSACTION_BYTES_MAX;
/// Room for the boundaries of a body.
const MARGIN_BYTES: usize = 4096;

/// Operations of one transaction, with their places.
pub(super) struct Packed {
    pub operations: Vec<(usize, Operation)>,
}

impl Packed {
    pub(super) fn keys(&self) -> Vec<(String, String)> {
        self.operations.iter().map(|(_, operation)| key_of(operation)).collect()
    }
}

#[derive(Default)]
struct Open {
    operations: Vec<(usize, Operation)>,
    row_keys: HashSet<String>,
    bytes: usize,
}

pub(super) struct Packer<I> {
    source: std::iter::Enumerate<I>,
    /// The operation that has to wait for one on the same entity.
    held: Option<(usize, Operation)>,
    open: HashMap<String, Open>,
    waiting: usize,
    waiting_bytes: usize,
    ready: VecDeque<Packed>,
    under_way: HashSet<(String, String)>,
}

impl<I: Iterator<Item = Operation>> Packer<I> {
    pub(super) fn new(source: I) -> Self {
        Self {
            source: source.enumerate(),
            held: None,
            open: HashMap::new(),
            waiting: 0,
            waiting_bytes: 0,
            ready: VecDeque::new(),
            under_way: HashSet::new(),
        }
    }

    /// The next transaction; `None` if there is none now, because all is done or what is left waits for what is under way.
    pub(super) fn next(&mut self) -> Option<Packed> {
        loop {
            if let Some(packed) = self.ready.pop_front() {
                self.under_way.extend(packed.keys());
                return Some(packed);
            }
            match self.held.take().or_else(|| self.source.next()) {
                Some((index, operation)) => {
                    if !self.take(index, operation) && self.ready.is_empty() {
                        return None;
                    }
                }
                None => {
                    self.close_all();
                    if self.ready.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    /// Forgets the entities of a transaction that is over.
    pub(super) fn finish(&mut self, keys: &[(String, String)]) {
        for key in keys {
            self.under_way.remove(key);
        }
    }

    /// Puts an operation where it belongs; false if it has to wait for one on the same entity.
    fn take(&mut self, index: usize, operation: Operation) -> bool {
        let partition = operation.partition_key().to_owned();
        let is_repeated = self
            .open
            .get(&partition)
            .is_some_and(|open| open.row_keys.contains(operation.row_key()));
        if is_repeated {
            self.close(&partition);
        }
        if is_repeated || self.under_way.contains(&key_of(&operation)) {
            self.held = Some((index, operation));
            return false;
        }
        let bytes = operation.body_bytes_max();
        let limit = TRANSACTION_BYTES_MAX - MARGIN_BYTES;
        if self.open.get(&partition).is_some_and(|open| open.bytes + bytes > limit) {
            self.close(&partition);
        }
        let open = self.open.entry(partition.clone()).or_default();
        open.row_keys.insert(operation.row_key().to_owned());
        open.bytes += bytes;
        open.operations.push((index, operation));
        self.waiting += 1;
        self.waiting_bytes += bytes;
        if open.operations.len() == TRANSACTION_OPERATIONS_MAX {
            self.close(&partition);
        }
        if self.waiting >= WINDOW_OPERATIONS || self.waiting_bytes >= WINDOW_BYTES {
            self.close_all();
        }
        true
    }

    fn close(&mut self, partition: &str) {
        if let Some(open) = self.open.remove(partition) {
            self.waiting -= open.operations.len();
            self.waiting_bytes -= open.bytes;
            self.ready.push_back(Packed { operations: open.operations });
        }
    }

    fn close_all(&mut self) {
        (self.waiting, self.waiting_bytes) = (0, 0);
        let open = self.open.drain();
        self.ready.extend(open.map(|(_, open)| Packed { operations: open.operations }));
    }
}

fn key_of(operation: &Operation) -> (String, String) {
    (operation.partition_key().to_owned(), operation.row_key().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::UpdateMode;
    use crate::table::entity::Entity;

    fn upsert(partition: &str, row: &str, text: &str) -> Operation {
        let entity = Entity::new(partition, row).with("Text", text);
        Operation::upsert(&entity, UpdateMode::Replace).unwrap()
    }

    fn sizes(operations: Vec<Operation>) -> Vec<usize> {
        let mut packer = Packer::new(operations.into_iter());
        let mut sizes = Vec::new();
        while let Some(packed) = packer.next() {
            let first = packed.operations[0].1.partition_key();
            assert!(packed.operations.iter().all(|(_, next)| next.partition_key() == first));
            sizes.push(packed.operations.len());
        }
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn partitions_are_kept_apart_and_a_hundred_is_enough() {
        let mixed = (0..250)
            .map(|index| upsert(if index % 5 == 0 { "a" } else { "b" }, &index.to_string(), ""));
        assert_eq!(sizes(mixed.collect()), [50, 100, 100]);
    }

    #[test]
    fn large_entities_fill_a_transaction_by_bytes() {
        let text = "x".repeat(32 * 1024);
        let large = (0..200).map(|index| upsert("p", &index.to_string(), &text));
        let sizes = sizes(large.collect());
        assert!(sizes.len() > 1 && sizes.iter().sum::<usize>() == 200, "{sizes:?}");
        assert!(sizes.iter().all(|size| size * text.len() <= TRANSACTION_BYTES_MAX), "{sizes:?}");
    }

    #[test]
    fn the_same_entity_waits_until_it_is_free() {
        let operations = vec![upsert("p", "r", "1"), upsert("p", "r", "2"), upsert("q", "r", "3")];
        let mut packer = Packer::new(operations.into_iter());
        let first = packer.next().unwrap();
        assert_eq!(first.operations[0].0, 0);
        assert!(packer.next().is_none(), "the second waits for the first");
        packer.finish(&first.keys());
        let mut rest = Vec::new();
        while let Some(packed) = packer.next() {
            rest.extend(packed.operations.into_iter().map(|(index, _)| index));
        }
        rest.sort_unstable();
        assert_eq!(rest, [1, 2]);
    }

    #[test]
    fn many_partitions_do_not_pile_up() {
        let taken = std::cell::Cell::new(0);
        let spread = (0..2 * WINDOW_OPERATIONS).map(|index| {
            taken.set(taken.get() + 1);
            upsert(&index.to_string(), "r", "")
        });
        Packer::new(spread).next().unwrap();
        assert!(taken.get() <= WINDOW_OPERATIONS, "{}", taken.get());

        taken.set(0);
        let text = "x".repeat(32 * 1024);
        let large = (0..WINDOW_OPERATIONS).map(|index| {
            taken.set(taken.get() + 1);
            upsert(&index.to_string(), "r", &text)
        });
        Packer::new(large).next().unwrap();
        assert!(taken.get() * text.len() <= WINDOW_BYTES, "{}", taken.get());
    }

    #[test]
    fn partitions_that_take_turns_fill_their_transactions() {
        let turns =
            (0..20_000).map(|index| upsert(&(index % 200).to_string(), &index.to_string(), ""));
        assert_eq!(sizes(turns.collect()), [100; 200]);
    }
}
