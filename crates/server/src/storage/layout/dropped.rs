//! Things that were dropped and await the sweeper: `D . id`, the moment and the kind.
//!
//! The kind is the family of the record that had the name. Tables came first and have no such byte; `C` is kept for
//! containers.

use bytes::{BufMut, Bytes, BytesMut};
use tavola_wire::Ticks;

use super::{Family, Key, KeyError, Kind, ResourceId, prefix};

/// Something that has lost its name, and still has rows under its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub id: ResourceId,
    pub kind: Kind,
    pub at: Ticks,
}

impl Dropped {
    pub(crate) fn key(&self) -> Bytes {
        encode_key(self.id)
    }

    /// `at i64 [. kind u8]`, the number little-endian.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(9);
        out.put_i64_le(self.at.0);
        if let Some(kind) = kind_byte(self.kind) {
            out.put_u8(kind);
        }
        out.freeze()
    }

    /// Reads back what [`Dropped::encode`] wrote; `None` if the bytes cannot have come from it.
    pub(crate) fn decode(id: ResourceId, stored: &[u8]) -> Option<Self> {
        let (at, kind) = stored.split_first_chunk()?;
        let at = Ticks(i64::from_le_bytes(*at));
        Some(Self { id, kind: kind_of(kind)?, at })
    }
}

fn kind_byte(kind: Kind) -> Option<u8> {
    match kind {
        Kind::Table => None,
        Kind::Queue => Some(Family::Queue as u8),
        #[cfg(test)]
        Kind::Sample => Some(super::sample::FAMILY),
    }
}

fn kind_of(rest: &[u8]) -> Option<Kind> {
    match rest {
        [] => Some(Kind::Table),
        [byte] if *byte == Family::Queue as u8 => Some(Kind::Queue),
        #[cfg(test)]
        [super::sample::FAMILY] => Some(Kind::Sample),
        _ => None,
    }
}

pub(super) fn encode_key(id: ResourceId) -> Bytes {
    prefix(Family::Dropped, id.0, 0).freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    if rest.is_empty() {
        Ok(Key::Dropped { id: ResourceId(id) })
    } else {
        Err(KeyError("it is no mark of a dropped table"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn keys_and_values_are_read_back(id: u64, at: i64) {
            let id = ResourceId(id);
            assert_key_round_trips(&Key::Dropped { id });
            for kind in [Kind::Table, Kind::Queue, Kind::Sample] {
                let dropped = Dropped { id, kind, at: Ticks(at) };
                prop_assert_eq!(Dropped::decode(id, &dropped.encode()), Some(dropped));
            }
        }

        /// The oldest are swept first.
        #[test]
        fn keys_sort_by_id(a: u64, b: u64) {
            let key = |id| encode_key(ResourceId(id));
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
        }
    }

    #[test]
    fn a_dropped_table_is_a_moment_and_no_more() {
        let dropped = Dropped { id: ResourceId(1), kind: Kind::Table, at: Ticks(0x0102) };
        assert_eq!(dropped.encode()[..], [2, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_unknown_kind_is_not_read() {
        for kind in b"TC" {
            let stored = [&[0; 8][..], &[*kind]].concat();
            assert_eq!(Dropped::decode(ResourceId(1), &stored), None);
        }
        assert_eq!(Dropped::decode(ResourceId(1), &[0; 7]), None);
    }
}
