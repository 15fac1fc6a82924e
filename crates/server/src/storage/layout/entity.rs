//! Entities: `E . table id . PartitionKey 00 RowKey`. Their values are `tavola_wire::table::stored`'s.

use bytes::{BufMut, Bytes};
use tavola_engine::KeyRange;
use tavola_wire::table::stored::key::{SEPARATOR, push_entity_key, read_entity_key};

use super::{Family, Key, KeyError, PREFIX_BYTES, TableId, prefix, range_of};

/// The keys of one table's entities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntityKeys {
    table: TableId,
}

impl EntityKeys {
    pub(crate) const fn of(table: TableId) -> Self {
        Self { table }
    }

    /// The key of one entity.
    pub(crate) fn key(self, partition_key: &str, row_key: &str) -> Bytes {
        let mut key = Vec::with_capacity(PREFIX_BYTES + partition_key.len() + 1 + row_key.len());
        key.push(Family::Entity as u8);
        key.extend_from_slice(&self.table.0.to_be_bytes());
        push_entity_key(&mut key, partition_key, row_key);
        key.into()
    }

    /// The key of the entity with these entity-key bytes.
    pub(crate) fn raw(self, entity_key: &[u8]) -> Bytes {
        let mut key = prefix(Family::Entity, self.table.0, entity_key.len());
        key.put_slice(entity_key);
        key.freeze()
    }

    /// The rows from `start` (included) to `end` (excluded; `None` is the end of the table).
    pub(crate) fn range(self, start: &[u8], end: Option<&[u8]>) -> KeyRange {
        let end = end.map_or_else(|| self.all().end, |end| self.raw(end));
        KeyRange { start: self.raw(start), end }
    }

    /// Every row of the table.
    pub(crate) fn all(self) -> KeyRange {
        range_of(Family::Entity, self.table.0)
    }
}

/// The entity-key bytes of a row's key.
pub(crate) fn entity_key_of(key: &[u8]) -> &[u8] {
    &key[PREFIX_BYTES..]
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'_>, KeyError> {
    match read_entity_key(rest) {
        Some((partition_key, row_key)) if !row_key.as_bytes().contains(&SEPARATOR) => {
            Ok(Key::Entity { table: TableId(id), partition_key, row_key })
        }
        _ => Err(KeyError("its key cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tavola_wire::table::stored::key::compare_text;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    /// Texts that share beginnings, with characters whose order in UTF-8 is not the service's.
    const TEXT: &str = "[ab\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}";

    proptest! {
        #[test]
        fn keys_are_read_back(table: u64, partition_key in TEXT, row_key in TEXT) {
            let key = Key::Entity {
                table: TableId(table),
                partition_key: partition_key.as_str().into(),
                row_key: row_key.as_str().into(),
            };
            assert_key_round_trips(&key);
            let keys = EntityKeys::of(TableId(table));
            prop_assert_eq!(keys.raw(entity_key_of(&key.encode())), key.encode());
        }

        #[test]
        fn keys_sort_as_the_service_does(
            a in (0..2u64, TEXT, TEXT),
            b in (0..2u64, TEXT, TEXT),
        ) {
            let key = |(table, partition_key, row_key): &(u64, String, String)| {
                EntityKeys::of(TableId(*table)).key(partition_key, row_key)
            };
            let expected = a.0.cmp(&b.0)
                .then_with(|| compare_text(&a.1, &b.1))
                .then_with(|| compare_text(&a.2, &b.2));
            prop_assert_eq!(key(&a).cmp(&key(&b)), expected);
        }

        #[test]
        fn keys_lie_in_the_range_of_their_table(
            table: u64,
            other: u64,
            partition_key in TEXT,
            row_key in TEXT,
        ) {
            let key = EntityKeys::of(TableId(table)).key(&partition_key, &row_key);
            for candidate in [table, other] {
                let all = EntityKeys::of(TableId(candidate)).all();
                prop_assert_eq!(all.start <= key && key < all.end, candidate == table);
            }
        }
    }

    #[test]
    fn what_is_no_pair_of_keys_is_told() {
        for rest in [&b"no separator"[..], b"a\0b\0c", b"\xff\0"] {
            assert_eq!(decode_key(1, rest), Err(KeyError("its key cannot be read")));
        }
    }
}
