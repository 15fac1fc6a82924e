//! The sequence: `N . 0`, the next unused id. One row, for ids of every kind.

use bytes::Bytes;

use super::{Family, Key, KeyError, prefix};

/// The id that is given out first.
pub(crate) const FIRST_ID: u64 = 1;

pub(super) fn encode_key() -> Bytes {
    prefix(Family::Sequence, 0, 0).freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    if id == 0 && rest.is_empty() {
        Ok(Key::Sequence)
    } else {
        Err(KeyError("there is one sequence only, and its id is 0"))
    }
}

/// The next unused id, little-endian.
pub(crate) fn encode(next: u64) -> Bytes {
    Bytes::copy_from_slice(&next.to_le_bytes())
}

pub(crate) fn decode(stored: &[u8]) -> Option<u64> {
    stored.try_into().ok().map(u64::from_le_bytes)
}

/// The id to give out, and what the sequence is then. `None` if what is stored is no sequence.
pub(crate) fn allocate(stored: Option<&[u8]>) -> Option<(u64, Bytes)> {
    let id = stored.map_or(Some(FIRST_ID), decode)?;
    Some((id, encode(id.checked_add(1)?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn the_next_id_is_read_back(next: u64) {
            prop_assert_eq!(decode(&encode(next)), Some(next));
        }
    }

    #[test]
    fn the_key_is_read_back() {
        assert_key_round_trips(&Key::Sequence);
        assert_eq!(&encode_key()[..], b"N\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn ids_begin_at_one_and_go_up() {
        let (first, stored) = allocate(None).unwrap();
        let (second, stored) = allocate(Some(&stored)).unwrap();
        assert_eq!((first, second, decode(&stored)), (1, 2, Some(3)));
    }

    #[test]
    fn what_is_no_sequence_gives_no_id() {
        assert_eq!(allocate(Some(b"short")), None);
        assert_eq!(allocate(Some(&encode(u64::MAX))), None);
    }
}
