//! How far the build of an index has come, and what is known of the index: `J . table id . index number u16`.
//!
//! Beside it, `J . table id . index number . 53`, the sketches of the build under way. Nothing of this is in the table's
//! record, because it changes without the definition.

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Ticks;

use super::{Family, Key, KeyError, TableId, prefix, range_of};

const VERSION: u8 = 1;
const SKETCH: u8 = b'S';

/// What a build has come to, and what is known of its index since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildRecord {
    /// Whether all entities were seen.
    pub is_done: bool,
    /// Entities seen; afterwards an estimate of those that there are.
    pub rows: u64,
    /// Rows of the index, likewise.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Values of another type than the declared one.
    pub off_type: u64,
    /// Different values of the first part, an estimate.
    pub distinct: u64,
    /// Entries with the most frequent value of the first part, an estimate.
    pub largest: u64,
    /// Queries that used it.
    pub uses: u64,
    pub last_used: Option<Ticks>,
    /// The entity key that was seen last; empty before the first.
    pub position: Bytes,
}

impl BuildRecord {
    /// `version u8 . done u8 . rows . entries . bytes . off-type . distinct . largest . uses . last used . position`,
    /// numbers of eight bytes, little-endian; last used is 0 for never.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(66 + self.position.len());
        out.put_u8(VERSION);
        out.put_u8(u8::from(self.is_done));
        let Self { rows, entries, bytes, off_type, distinct, largest, uses, .. } = *self;
        for number in [rows, entries, bytes, off_type, distinct, largest, uses] {
            out.put_u64_le(number);
        }
        out.put_i64_le(self.last_used.map_or(0, |moment| moment.0));
        out.put_slice(&self.position);
        out.freeze()
    }

    /// Reads back what [`BuildRecord::encode`] wrote; `None` if the bytes cannot have come from it.
    pub(crate) fn decode(stored: &[u8]) -> Option<Self> {
        let [VERSION, done @ (0 | 1), rest @ ..] = stored else { return None };
        let (numbers, rest) = rest.split_first_chunk::<56>()?;
        let (last_used, position) = rest.split_first_chunk()?;
        let number = |index: usize| {
            u64::from_le_bytes(numbers[index * 8..][..8].try_into().expect("eight bytes"))
        };
        let last_used = i64::from_le_bytes(*last_used);
        Some(Self {
            is_done: *done == 1,
            rows: number(0),
            entries: number(1),
            bytes: number(2),
            off_type: number(3),
            distinct: number(4),
            largest: number(5),
            uses: number(6),
            last_used: (last_used != 0).then_some(Ticks(last_used)),
            position: Bytes::copy_from_slice(position),
        })
    }
}

/// Every row about builds of a table's indexes.
pub(crate) fn all_builds(table: TableId) -> KeyRange {
    range_of(Family::IndexBuild, table.0)
}

pub(super) fn encode_key(table: TableId, number: u16) -> Bytes {
    let mut key = prefix(Family::IndexBuild, table.0, 2);
    key.put_u16(number);
    key.freeze()
}

pub(super) fn encode_sketch_key(table: TableId, number: u16) -> Bytes {
    let mut key = prefix(Family::IndexBuild, table.0, 3);
    key.put_u16(number);
    key.put_u8(SKETCH);
    key.freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    let table = TableId(id);
    let (number, rest) = rest.split_first_chunk().ok_or(KeyError("its key names no index"))?;
    let number = u16::from_be_bytes(*number);
    match rest {
        [] => Ok(Key::IndexBuild { table, number }),
        [SKETCH] => Ok(Key::IndexSketch { table, number }),
        _ => Err(KeyError("its key goes on after the number of the index")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn keys_and_values_are_read_back(
            table: u64,
            number: u16,
            is_done: bool,
            numbers: [u64; 7],
            last_used in prop::option::of(1..i64::MAX),
            position: Vec<u8>,
        ) {
            assert_key_round_trips(&Key::IndexBuild { table: TableId(table), number });
            assert_key_round_trips(&Key::IndexSketch { table: TableId(table), number });
            let [rows, entries, bytes, off_type, distinct, largest, uses] = numbers;
            let (last_used, position) = (last_used.map(Ticks), position.into());
            let build = BuildRecord {
                is_done, rows, entries, bytes, off_type, distinct, largest, uses, last_used, position,
            };
            prop_assert_eq!(BuildRecord::decode(&build.encode()), Some(build));
        }
    }

    #[test]
    fn what_nobody_wrote_is_not_read() {
        let stored = BuildRecord::default().encode();
        assert_eq!(stored.len(), 66);
        for length in 0..66 {
            assert_eq!(BuildRecord::decode(&stored[..length]), None);
        }
        assert_eq!(BuildRecord::decode(&[2; 70]), None);
        assert!(decode_key(1, b"\0").is_err());
        assert!(decode_key(1, b"\0\x01x").is_err());
    }
}
