//! Messages: `M . store id . next visible u64 . message id`, the header; `X . store id . expiry u64 . message id`, the text.
//!
//! The key of a header holds what a receipt says, so that a message is found by receipt and id alone, and one that
//! was moved since is not there any more. Headers are written once and deleted once. A message that is got or updated has
//! its header put elsewhere; its text stays where it is, unless it is short and part of the header.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Ticks;
use tavola_wire::queue::MessageId;

use super::{Family, Key, KeyError, StoreId, prefix, range_of};

/// Texts up to this length are part of the header: a second row would take more.
pub(crate) const INLINE_BYTES_MAX: usize = 256;

const VERSION: u8 = 1;
/// The text is part of the header.
const FLAG_INLINE: u8 = 1;
/// The last to move the message was Update.
const FLAG_UPDATED: u8 = 2;

const HEADER_BYTES: usize = 26;

/// A moment of a message: when it is visible, or when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Moment(pub u64);

impl Moment {
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// As it is shown: what never comes is the last moment there is.
    pub(crate) fn ticks(self) -> Ticks {
        Ticks(i64::try_from(self.0).unwrap_or(i64::MAX)).min(Ticks::MAX)
    }
}

impl From<Ticks> for Moment {
    fn from(ticks: Ticks) -> Self {
        Self(ticks.0.max(0).unsigned_abs())
    }
}

/// Where the header of a message is in its queue: messages are got in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub visible: Moment,
    pub id: MessageId,
}

impl Place {
    pub(crate) const MIN: Self = Self { visible: Moment(0), id: MessageId::MIN };
    /// Behind every message.
    pub(crate) const END: Self = Self { visible: Moment::NEVER, id: MessageId([0xFF; 16]) };

    /// Before every message that is visible from this instant on.
    pub(crate) fn first_at(visible: Moment) -> Self {
        Self { visible, id: MessageId::MIN }
    }
}

/// What the header of a message says, beside its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub inserted: Ticks,
    pub expires: Moment,
    pub dequeue_count: u32,
    /// Whether Update was the last to move it.
    pub is_updated: bool,
    pub text: HeaderText,
}

/// The text, as far as the header has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderText {
    Inline(Bytes),
    /// In a row of its own, with this many bytes.
    Row(u32),
}

impl Header {
    /// `version u8 . flags u8 . inserted i64 . expires u64 . dequeue count u32 . text length u32 [. text]`, numbers
    /// little-endian.
    pub(crate) fn encode(&self) -> Bytes {
        let (inline, length) = match &self.text {
            HeaderText::Inline(text) => {
                (Some(text), u32::try_from(text.len()).expect("a short text"))
            }
            HeaderText::Row(length) => (None, *length),
        };
        let mut out = BytesMut::with_capacity(HEADER_BYTES + inline.map_or(0, Bytes::len));
        out.put_u8(VERSION);
        let updated = if self.is_updated { FLAG_UPDATED } else { 0 };
        out.put_u8(updated | if inline.is_some() { FLAG_INLINE } else { 0 });
        out.put_i64_le(self.inserted.0);
        out.put_u64_le(self.expires.0);
        out.put_u32_le(self.dequeue_count);
        out.put_u32_le(length);
        out.extend_from_slice(inline.map_or(&[], |text| text));
        out.freeze()
    }

    /// Reads back what [`Header::encode`] wrote; `None` if the bytes cannot have come from it.
    pub(crate) fn decode(stored: &[u8]) -> Option<Self> {
        let (&VERSION, mut rest) = stored.split_first()? else { return None };
        let flags = rest.try_get_u8().ok()?;
        let inserted = Ticks(rest.try_get_i64_le().ok()?);
        let expires = Moment(rest.try_get_u64_le().ok()?);
        let dequeue_count = rest.try_get_u32_le().ok()?;
        let length = rest.try_get_u32_le().ok()?;
        let text = match flags & FLAG_INLINE {
            0 if rest.is_empty() => HeaderText::Row(length),
            0 => return None,
            _ if rest.len() as u64 != u64::from(length) => return None,
            _ => HeaderText::Inline(Bytes::copy_from_slice(rest)),
        };
        let is_updated = flags & FLAG_UPDATED != 0;
        (flags <= FLAG_INLINE | FLAG_UPDATED).then_some(Self {
            inserted,
            expires,
            dequeue_count,
            is_updated,
            text,
        })
    }

    /// The expiry alone, for those that pass many; `None` where [`Header::decode`] has none.
    pub(crate) fn expiry_of(stored: &[u8]) -> Option<Moment> {
        let (head, text) = stored.split_at_checked(HEADER_BYTES)?;
        let (version, flags) = (head[0], head[1]);
        let length = u32::from_le_bytes(head[22..].try_into().ok()?);
        let is_inline = flags & FLAG_INLINE != 0;
        let inline = if is_inline { u64::from(length) } else { 0 };
        let is_whole = text.len() as u64 == inline;
        let is_sound = version == VERSION && flags <= FLAG_INLINE | FLAG_UPDATED && is_whole;
        let expires = head[10..18].try_into().ok()?;
        is_sound.then_some(Moment(u64::from_le_bytes(expires)))
    }

    /// How long the text is.
    pub(crate) fn text_bytes(&self) -> usize {
        match &self.text {
            HeaderText::Inline(text) => text.len(),
            HeaderText::Row(length) => usize::try_from(*length).unwrap_or(usize::MAX),
        }
    }
}

/// A text in a row of its own: `version u8 . text`.
pub(crate) fn encode_text(text: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(1 + text.len());
    out.put_u8(VERSION);
    out.put_slice(text);
    out.freeze()
}

/// Reads back what [`encode_text`] wrote; `None` if the bytes cannot have come from it.
pub(crate) fn decode_text(stored: &Bytes) -> Option<Bytes> {
    matches!(stored.split_first(), Some((&VERSION, _))).then(|| stored.slice(1..))
}

/// The keys of the messages of one store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageKeys(pub StoreId);

impl MessageKeys {
    pub(crate) fn header(self, place: Place) -> Bytes {
        key(Family::Message, self.0, place.visible, place.id)
    }

    pub(crate) fn text(self, expires: Moment, id: MessageId) -> Bytes {
        key(Family::MessageText, self.0, expires, id)
    }

    /// The headers from a place on.
    pub(crate) fn headers_from(self, place: Place) -> KeyRange {
        let all = range_of(Family::Message, self.0.0);
        KeyRange { start: self.header(place), end: all.end }
    }

    /// Every row of the store.
    pub(crate) fn all(self) -> [KeyRange; 3] {
        let range = |family| range_of(family, self.0.0);
        [range(Family::Message), range(Family::MessageText), range(Family::Mark)]
    }
}

fn key(family: Family, store: StoreId, instant: Moment, id: MessageId) -> Bytes {
    let mut key = prefix(family, store.0, 24);
    key.put_u64(instant.0);
    key.put_slice(&id.0);
    key.freeze()
}

/// The place that the key of a header names.
pub(crate) fn place_of(key: &[u8]) -> Option<Place> {
    match Key::decode(key) {
        Ok(Key::Message { place, .. }) => Some(place),
        _ => None,
    }
}

pub(super) fn decode_header_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    let (visible, id_of_message) = split(rest)?;
    let place = Place { visible, id: id_of_message };
    Ok(Key::Message { store: StoreId(id), place })
}

pub(super) fn decode_text_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    let (expires, id_of_message) = split(rest)?;
    Ok(Key::MessageText { store: StoreId(id), expires, id: id_of_message })
}

fn split(rest: &[u8]) -> Result<(Moment, MessageId), KeyError> {
    let (instant, id) = rest.split_first_chunk().ok_or(KeyError("its key is too short"))?;
    let id = id.try_into().map_err(|_| KeyError("its key is not that of a message"))?;
    Ok((Moment(u64::from_be_bytes(*instant)), MessageId(id)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn keys_are_read_back(store: u64, instant: u64, id: [u8; 16]) {
            let (store, instant, id) = (StoreId(store), Moment(instant), MessageId(id));
            let place = Place { visible: instant, id };
            assert_key_round_trips(&Key::Message { store, place });
            assert_key_round_trips(&Key::MessageText { store, expires: instant, id });
            prop_assert_eq!(place_of(&MessageKeys(store).header(place)), Some(place));
        }

        #[test]
        fn headers_sort_by_place(a: (u64, [u8; 16]), b: (u64, [u8; 16])) {
            let place = |(visible, id)| Place { visible: Moment(visible), id: MessageId(id) };
            let key = |place| MessageKeys(StoreId(7)).header(place);
            let (a, b) = (place(a), place(b));
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
            prop_assert!(Place::MIN <= a && a <= Place::END);
            let range = MessageKeys(StoreId(7)).headers_from(a);
            prop_assert_eq!(range.start <= key(b) && key(b) < range.end, a <= b);
        }

        #[test]
        fn headers_are_read_back(
            inserted: i64,
            expires: u64,
            dequeue_count: u32,
            is_updated: bool,
            text in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..INLINE_BYTES_MAX)
                    .prop_map(|text| HeaderText::Inline(text.into())),
                any::<u32>().prop_map(HeaderText::Row),
            ],
        ) {
            let (inserted, expires) = (Ticks(inserted), Moment(expires));
            let header = Header { inserted, expires, dequeue_count, is_updated, text };
            let stored = header.encode();
            prop_assert_eq!(Header::expiry_of(&stored), Some(expires));
            prop_assert_eq!(Header::decode(&stored), Some(header));
        }

        #[test]
        fn texts_are_read_back(text: Vec<u8>) {
            let stored = encode_text(&text);
            prop_assert_eq!(decode_text(&stored).unwrap(), text);
        }

        #[test]
        fn any_bytes_are_handled(bytes: Vec<u8>) {
            prop_assert_eq!(Header::expiry_of(&bytes), Header::decode(&bytes).map(|it| it.expires));
            let _ = decode_text(&bytes.into());
        }

        #[test]
        fn the_expiry_is_that_of_a_header_that_can_be_read(
            version in 0..3u8,
            flags in 0..5u8,
            middle: [u8; 20],
            length in 0..4u32,
            text in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let bytes = [&[version, flags], &middle[..], &length.to_le_bytes(), &text].concat();
            prop_assert_eq!(Header::expiry_of(&bytes), Header::decode(&bytes).map(|it| it.expires));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let header = Header {
            inserted: Ticks(0x0102),
            expires: Moment::NEVER,
            dequeue_count: 3,
            is_updated: true,
            text: HeaderText::Inline(Bytes::from_static(b"hi")),
        };
        let bytes = header.encode();
        let expected =
            b"\x01\x03\x02\x01\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x03\0\0\0\x02\0\0\0hi";
        assert_eq!(&bytes[..], expected);
        for length in 0..bytes.len() {
            assert_eq!(Header::decode(&bytes[..length]), None);
        }
        assert_eq!(Header::decode(&[2; 40]), None);
        assert_eq!(&encode_text(b"hi")[..], b"\x01hi");
        assert_eq!(decode_text(&Bytes::from_static(b"\x02hi")), None);
        assert_eq!(Moment::NEVER.ticks(), Ticks::MAX);
    }
}
