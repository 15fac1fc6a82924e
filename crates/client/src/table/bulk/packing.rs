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

/// Gathers operations. The caller pushes them one by one and takes the transactions that are full.
#[derive(Default)]
pub(super) struct Packer {
    pushed: usize,
    /// The operation that has to wait for one on the same entity.
    blocked: Option<(usize, Operation)>,
    open: HashMap<String, Open>,
    waiting: usize,
    waiting_bytes: usize,
    ready: VecDeque<Packed>,
    under_way: HashSet<(String, String)>,
}

impl Packer {
    /// Tells whether another operation can be pushed now: not while one waits for what is under way.
    pub(super) fn is_open(&self) -> bool {
        self.blocked.is_none() && self.ready.is_empty()
    }

    /// True if operations wait for company.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Takes the next operation.
    pub(super) fn push(&mut self, operation: Operation) {
        assert!(self.is_open(), "the caller asks first");
        let index = self.pushed;
        self.pushed += 1;
        self.place(index, operation);
    }

    /// The next transaction; `None` if there is none yet, or if what is left waits for what is under way.
    pub(super) fn next_ready(&mut self) -> Option<Packed> {
        if self.ready.is_empty()
            && let Some((index, operation)) = self.blocked.take()
        {
            self.place(index, operation);
        }
        let packed = self.ready.pop_front()?;
        self.under_way.extend(packed.keys());
        Some(packed)
    }

    /// Lets everything go that waits for company, because nothing comes any more.
    pub(super) fn flush(&mut self) {
        (self.waiting, self.waiting_bytes) = (0, 0);
        let open = self.open.drain();
        self.ready.extend(open.map(|(_, open)| Packed { operations: open.operations }));
    }

    /// Forgets the entities of a transaction that is over.
    pub(super) fn finish(&mut self, keys: &[(String, String)]) {
        for key in keys {
            self.under_way.remove(key);
        }
    }

    /// The places of the operations that were pushed and never became part of a transaction that was taken.
    pub(super) fn abandon(&mut self) -> Vec<usize> {
        self.flush();
        let packed = self.ready.drain(..).flat_map(|packed| packed.operations);
        packed.chain(self.blocked.take()).map(|(index, _)| index).collect()
    }

    /// Puts an operation where it belongs, or aside if it has to wait for one on the same entity.
    fn place(&mut self, index: usize, operation: Operation) {
        let partition = operation.partition_key().to_owned();
        let is_repeated = self
            .open
            .get(&partition)
            .is_some_and(|open| open.row_keys.contains(operation.row_key()));
        if is_repeated {
            self.close(&partition);
        }
        if is_repeated || self.under_way.contains(&key_of(&operation)) {
            self.blocked = Some((index, operation));
            return;
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
            self.flush();
        }
    }

    fn close(&mut self, partition: &str) {
        if let Some(open) = self.open.remove(partition) {
            self.waiting -= open.operations.len();
            self.waiting_bytes -= open.bytes;
            self.ready.push_back(Packed { operations: open.operations });
        }
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

    /// Feeds a packer from an iterator, as bulk work does from a stream.
    fn next(packer: &mut Packer, source: &mut impl Iterator<Item = Operation>) -> Option<Packed> {
        loop {
            if let Some(packed) = packer.next_ready() {
                return Some(packed);
            }
            if !packer.is_open() {
                return None;
            }
            match source.next() {
                Some(operation) => packer.push(operation),
                None if packer.has_waiting() => packer.flush(),
                None => return None,
            }
        }
    }

    fn sizes(operations: Vec<Operation>) -> Vec<usize> {
        let (mut packer, mut source) = (Packer::default(), operations.into_iter());
        let mut sizes = Vec::new();
        while let Some(packed) = next(&mut packer, &mut source) {
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
        let mut source =
            [upsert("p", "r", "1"), upsert("p", "r", "2"), upsert("q", "r", "3")].into_iter();
        let mut packer = Packer::default();
        let first = next(&mut packer, &mut source).unwrap();
        assert_eq!(first.operations[0].0, 0);
        assert!(next(&mut packer, &mut source).is_none(), "the second waits for the first");
        packer.finish(&first.keys());
        let mut rest = Vec::new();
        while let Some(packed) = next(&mut packer, &mut source) {
            rest.extend(packed.operations.into_iter().map(|(index, _)| index));
        }
        rest.sort_unstable();
        assert_eq!(rest, [1, 2]);
    }

    #[test]
    fn many_partitions_do_not_pile_up() {
        let taken = std::cell::Cell::new(0);
        let mut spread = (0..2 * WINDOW_OPERATIONS).map(|index| {
            taken.set(taken.get() + 1);
            upsert(&index.to_string(), "r", "")
        });
        next(&mut Packer::default(), &mut spread).unwrap();
        assert!(taken.get() <= WINDOW_OPERATIONS, "{}", taken.get());

        taken.set(0);
        let text = "x".repeat(32 * 1024);
        let mut large = (0..WINDOW_OPERATIONS).map(|index| {
            taken.set(taken.get() + 1);
            upsert(&index.to_string(), "r", &text)
        });
        next(&mut Packer::default(), &mut large).unwrap();
        assert!(taken.get() * text.len() <= WINDOW_BYTES, "{}", taken.get());
    }

    #[test]
    fn partitions_that_take_turns_fill_their_transactions() {
        let turns =
            (0..20_000).map(|index| upsert(&(index % 200).to_string(), &index.to_string(), ""));
        assert_eq!(sizes(turns.collect()), [100; 200]);
    }

    #[test]
    fn what_is_abandoned_is_told() {
        let mut packer = Packer::default();
        packer.push(upsert("p", "r", "1"));
        packer.push(upsert("p", "r", "2"));
        let first = packer.next_ready().unwrap();
        assert_eq!(first.operations[0].0, 0);
        assert_eq!(packer.abandon(), [1]);
    }
}
