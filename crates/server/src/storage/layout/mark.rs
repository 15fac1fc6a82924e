//! Marks of queues: `K . 0`, which instants may have been given out; `K . store id`, where the messages of a queue begin.
//!
//! Neither is on the path of a message: the first is written once in a while ahead of the clock, the second seldom.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tavola_wire::Ticks;
use tavola_wire::queue::MessageId;

use super::message::{Moment, Place};
use super::{Family, Key, KeyError, StoreId, prefix};

const VERSION: u8 = 1;

pub(super) fn encode_key(store: StoreId) -> Bytes {
    prefix(Family::Mark, store.0, 0).freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    match (id, rest) {
        (0, []) => Ok(Key::ClockMark),
        (id, []) => Ok(Key::LowMark { store: StoreId(id) }),
        _ => Err(KeyError("it is no mark")),
    }
}

/// No instant after this one was given out: `version u8 . ticks i64`, little-endian.
pub(crate) fn encode_clock(highest: Ticks) -> Bytes {
    let mut out = BytesMut::with_capacity(9);
    out.put_u8(VERSION);
    out.put_i64_le(highest.0);
    out.freeze()
}

/// Reads back what [`encode_clock`] wrote; `None` if the bytes cannot have come from it.
pub(crate) fn decode_clock(stored: &[u8]) -> Option<Ticks> {
    let (&VERSION, rest) = stored.split_first()? else { return None };
    rest.try_into().ok().map(i64::from_le_bytes).map(Ticks)
}

/// Nothing that can be got lies before this place: `version u8 . next visible u64 . message id`, little-endian.
pub(crate) fn encode_low(low: Place) -> Bytes {
    let mut out = BytesMut::with_capacity(25);
    out.put_u8(VERSION);
    out.put_u64_le(low.visible.0);
    out.put_slice(&low.id.0);
    out.freeze()
}

/// Reads back what [`encode_low`] wrote; `None` if the bytes cannot have come from it.
pub(crate) fn decode_low(stored: &[u8]) -> Option<Place> {
    let (&VERSION, mut rest) = stored.split_first()? else { return None };
    let visible = Moment(rest.try_get_u64_le().ok()?);
    Some(Place { visible, id: MessageId(rest.try_into().ok()?) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn marks_are_read_back(ticks: i64, visible: u64, id: [u8; 16], store in 1..u64::MAX) {
            assert_key_round_trips(&Key::LowMark { store: StoreId(store) });
            prop_assert_eq!(decode_clock(&encode_clock(Ticks(ticks))), Some(Ticks(ticks)));
            let low = Place { visible: Moment(visible), id: MessageId(id) };
            prop_assert_eq!(decode_low(&encode_low(low)), Some(low));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        assert_key_round_trips(&Key::ClockMark);
        assert_eq!(&encode_clock(Ticks(0x0102))[..], b"\x01\x02\x01\0\0\0\0\0\0");
        assert_eq!(decode_clock(b"\x01\x02"), None);
        assert_eq!(decode_clock(b"\x02\x02\x01\0\0\0\0\0\0"), None);
        assert_eq!(decode_low(&encode_low(Place::MIN)[..24]), None);
        assert!(decode_key(3, b"x").is_err());
    }
}
