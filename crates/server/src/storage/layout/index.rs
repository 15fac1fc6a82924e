//! Index rows: `I . table id . index number u16 . parts . entity key`, under the id of the table whose entities they point to.
//!
//! What stands behind the number, and the values, are `tavola_wire::table::index`'s. Numbers are never reused within a
//! table, so that what comes late is written where nobody reads.

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;

use super::{Family, Key, KeyError, PREFIX_BYTES, TableId, prefix, range_of};

/// Family, table and number.
const INDEX_PREFIX_BYTES: usize = PREFIX_BYTES + 2;

/// The keys of one index's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexKeys {
    table: TableId,
    number: u16,
}

impl IndexKeys {
    pub(crate) fn of(table: TableId, number: u16) -> Self {
        Self { table, number }
    }

    /// The key of the row with these bytes behind the number.
    pub(crate) fn key(self, parts_and_suffix: &[u8]) -> Bytes {
        let mut key = self.prefix(parts_and_suffix.len());
        key.put_slice(parts_and_suffix);
        key.freeze()
    }

    /// The rows from `start` (included) to `end` (excluded; `None` is the end of the index).
    pub(crate) fn range(self, start: &[u8], end: Option<&[u8]>) -> KeyRange {
        let end = end.map_or_else(|| self.all().end, |end| self.key(end));
        KeyRange { start: self.key(start), end }
    }

    /// Every row of the index.
    pub(crate) fn all(self) -> KeyRange {
        let end = match self.number.checked_add(1) {
            Some(next) => Self::of(self.table, next).prefix(0).freeze(),
            None => all_index_rows(self.table).end,
        };
        KeyRange { start: self.prefix(0).freeze(), end }
    }

    fn prefix(self, room: usize) -> BytesMut {
        let mut key = prefix(Family::Index, self.table.0, 2 + room);
        key.put_u16(self.number);
        key
    }
}

/// The rows of all indexes of a table.
pub(crate) fn all_index_rows(table: TableId) -> KeyRange {
    range_of(Family::Index, table.0)
}

/// The bytes behind the number in the key of an index row.
pub(crate) fn parts_and_suffix_of(key: &[u8]) -> &[u8] {
    &key[INDEX_PREFIX_BYTES..]
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'_>, KeyError> {
    let (number, parts_and_suffix) =
        rest.split_first_chunk().ok_or(KeyError("its key names no index"))?;
    let number = u16::from_be_bytes(*number);
    Ok(Key::Index { table: TableId(id), number, parts_and_suffix })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn keys_are_read_back(table: u64, number: u16, rest: Vec<u8>) {
            let key = Key::Index { table: TableId(table), number, parts_and_suffix: &rest };
            assert_key_round_trips(&key);
            let encoded = key.encode();
            prop_assert_eq!(parts_and_suffix_of(&encoded), &rest[..]);
        }

        #[test]
        fn keys_lie_in_the_ranges_of_their_index_and_table(
            table in 0..3u64,
            number in prop_oneof![0..3u16, Just(u16::MAX)],
            other in (0..3u64, prop_oneof![0..3u16, Just(u16::MAX)]),
            rest: Vec<u8>,
        ) {
            let key = IndexKeys::of(TableId(table), number).key(&rest);
            let is_in = |range: KeyRange| range.start <= key && key < range.end;
            let others = IndexKeys::of(TableId(other.0), other.1);
            prop_assert_eq!(is_in(others.all()), other == (table, number));
            prop_assert_eq!(is_in(others.range(&rest, None)), other == (table, number));
            prop_assert!(!is_in(others.range(b"", Some(&rest))));
            prop_assert_eq!(is_in(all_index_rows(TableId(other.0))), other.0 == table);
        }
    }

    #[test]
    fn the_bytes_are_as_documented() {
        let key = IndexKeys::of(TableId(7), 0x0102).key(b"x");
        assert_eq!(&key[..], b"I\0\0\0\0\0\0\0\x07\x01\x02x");
        assert_eq!(decode_key(7, b"\x01"), Err(KeyError("its key names no index")));
    }
}
