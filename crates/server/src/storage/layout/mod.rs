//! Where everything lies in the engine, and how it is written: every codec, in both directions.
//!
//! A key is `family u8 . id u64 . components`; numbers in keys are big-endian, so that they sort. One file per family
//! has the key, the value, and tests that read back what was written. Byte by byte in `docs/format.md`.
//!
//! | Family | Key | Value |
//! |---|---|---|
//! | [`Family::Sequence`] | `N . 0` | [`sequence`]: the next unused id |
//! | [`Family::Account`] | `A . 0 . name` | [`account`]: the account's id |
//! | [`Family::Table`] | `T . account id . lower-case name` | a [`TableRecord`] |
//! | [`Family::Properties`] | `S . account id [. service]` | [`properties`]: the properties of a service |
//! | [`Family::Dropped`] | `D . id` | [`Dropped`]: when it was dropped, and its kind; its rows await the sweeper |
//! | [`Family::Queue`] | `Q . account id . name` | a [`QueueRecord`] |
//! | [`Family::Message`] | `M . store id . next visible . message id` | [`message`]: the header of a message |
//! | [`Family::MessageText`] | `X . store id . expiry . message id` | [`message`]: a text that is not short |
//! | [`Family::Mark`] | `K . 0`, `K . store id` | [`mark`]: how far the clock came, where a queue begins |
//! | [`Family::Store`] | `O . 0 . features` | [`features`]: what is in use that not every version knows |
//! | [`Family::Entity`] | `E . table id . PartitionKey 00 RowKey` | an encoded entity (`tavola_wire::table::stored`) |
//!
//! A new family is one file here and a line in [`Family`], [`Family::of`], [`Key`], [`Key::encode`] and
//! [`Key::decode`]. If its rows belong to something that can be dropped, [`ranges_of`] has to name them. These bytes
//! are spoken for and not to be taken for anything else:
//!
//! | Bytes | For |
//! |---|---|
//! | `I` `J` | index rows, index builds |
//! | `K` | also marks of tables and containers |
//! | `C` `B` `G` `V` `P` `L` `R` `Z` `U` `W` `Y` | containers, blobs, their contents and tags |
//! | `F` | change feeds |
//! | `O` | also leases |
//!
//! `H` is free.
//!
//! Ids come from one sequence, whatever they are for, and are never reused: a request that still has the id of a
//! dropped table writes where nobody reads.

pub(crate) mod account;
mod dropped;
mod entity;
pub(crate) mod features;
pub(crate) mod mark;
pub(crate) mod message;
pub(crate) mod properties;
mod queue;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod sequence;
mod table;

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Service;
use tavola_wire::queue::MessageId;

use self::message::{MessageKeys, Moment, Place};

pub(crate) use dropped::Dropped;
pub(crate) use entity::{EntityKeys, entity_key_of};
pub(crate) use queue::{QueueRecord, queues_of};
pub(crate) use table::{TableRecord, tables_of};

/// The first byte of a key. The bytes are stored: never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Family {
    Account = b'A',
    Dropped = b'D',
    Entity = b'E',
    Mark = b'K',
    Message = b'M',
    MessageText = b'X',
    Sequence = b'N',
    Queue = b'Q',
    Store = b'O',
    Properties = b'S',
    Table = b'T',
}

impl Family {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            b'A' => Self::Account,
            b'D' => Self::Dropped,
            b'E' => Self::Entity,
            b'K' => Self::Mark,
            b'M' => Self::Message,
            b'N' => Self::Sequence,
            b'O' => Self::Store,
            b'Q' => Self::Queue,
            b'S' => Self::Properties,
            b'T' => Self::Table,
            b'X' => Self::MessageText,
            _ => return None,
        })
    }

    /// Every key of the family.
    pub(crate) fn range(self) -> KeyRange {
        let start = Bytes::copy_from_slice(&[self as u8]);
        KeyRange { start, end: Bytes::copy_from_slice(&[self as u8 + 1]) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AccountId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableId(pub u64);

impl From<ResourceId> for TableId {
    fn from(id: ResourceId) -> Self {
        Self(id.0)
    }
}

impl From<TableId> for ResourceId {
    fn from(id: TableId) -> Self {
        Self(id.0)
    }
}

/// The id that the messages of a queue are under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StoreId(pub u64);

impl From<ResourceId> for StoreId {
    fn from(id: ResourceId) -> Self {
        Self(id.0)
    }
}

impl From<StoreId> for ResourceId {
    fn from(id: StoreId) -> Self {
        Self(id.0)
    }
}

/// The id of something that has a name in an account, where its [`Kind`] is known only at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ResourceId(pub u64);

/// The kinds of things that have a name in an account, and rows under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Table,
    Queue,
    #[cfg(test)]
    Sample,
}

/// The rows that something of this kind has under its id: what is to go when it has been dropped.
pub(crate) fn ranges_of(kind: Kind, id: ResourceId) -> Vec<KeyRange> {
    match kind {
        Kind::Table => vec![EntityKeys::of(id.into()).all()],
        Kind::Queue => MessageKeys(id.into()).all().into(),
        #[cfg(test)]
        Kind::Sample => vec![sample::rows_of(id)],
    }
}

/// The stored form of something that has a name.
pub(crate) trait Record: Sized + Send + 'static {
    const KIND: Kind;

    /// Where it is kept: `name` is as keys hold it.
    fn key(account: AccountId, name: &str) -> Bytes;

    /// The id that its rows are under.
    fn id(&self) -> ResourceId;

    fn encode(&self) -> Bytes;

    /// Reads back what [`Record::encode`] wrote; `None` if the bytes cannot have come from it.
    fn decode(stored: &[u8]) -> Option<Self>;
}

/// Any key there is, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    Account { name: &'a str },
    Dropped { id: ResourceId },
    Entity { table: TableId, partition_key: Cow<'a, str>, row_key: Cow<'a, str> },
    Features,
    ClockMark,
    LowMark { store: StoreId },
    Message { store: StoreId, place: Place },
    MessageText { store: StoreId, expires: Moment, id: MessageId },
    Queue { account: AccountId, name: &'a str },
    Properties { account: AccountId, service: Service },
    Sequence,
    Table { account: AccountId, name: &'a str },
}

/// Why bytes are no key, as an operator reads it of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct KeyError(pub &'static str);

impl<'a> Key<'a> {
    pub(crate) fn encode(&self) -> Bytes {
        match self {
            Self::Account { name } => account::encode_key(name),
            Self::Dropped { id } => dropped::encode_key(*id),
            Self::Entity { table, partition_key, row_key } => {
                EntityKeys::of(*table).key(partition_key, row_key)
            }
            Self::Features => features::encode_key(),
            Self::ClockMark => mark::encode_key(StoreId(0)),
            Self::LowMark { store } => mark::encode_key(*store),
            Self::Message { store, place } => MessageKeys(*store).header(*place),
            Self::MessageText { store, expires, id } => MessageKeys(*store).text(*expires, *id),
            Self::Queue { account, name } => queue::encode_key(*account, name),
            Self::Properties { account, service } => properties::encode_key(*account, *service),
            Self::Sequence => sequence::encode_key(),
            Self::Table { account, name } => table::encode_key(*account, name),
        }
    }

    /// Reads back what [`Key::encode`] wrote. Whether names are legal and ids were given out, it does not ask.
    pub(crate) fn decode(key: &'a [u8]) -> Result<Self, KeyError> {
        let (prefix, rest) =
            key.split_first_chunk::<PREFIX_BYTES>().ok_or(KeyError("its key is too short"))?;
        let [family, id @ ..] = *prefix;
        let id = u64::from_be_bytes(id);
        match Family::of(family).ok_or(KeyError("no family of rows begins like this"))? {
            Family::Account => account::decode_key(id, rest),
            Family::Dropped => dropped::decode_key(id, rest),
            Family::Entity => entity::decode_key(id, rest),
            Family::Mark => mark::decode_key(id, rest),
            Family::Message => message::decode_header_key(id, rest),
            Family::MessageText => message::decode_text_key(id, rest),
            Family::Properties => properties::decode_key(id, rest),
            Family::Queue => queue::decode_key(id, rest),
            Family::Sequence => sequence::decode_key(id, rest),
            Family::Store => features::decode_key(id, rest),
            Family::Table => table::decode_key(id, rest),
        }
    }
}

/// Family and id.
const PREFIX_BYTES: usize = 9;

fn prefix(family: Family, id: u64, room: usize) -> BytesMut {
    let mut key = BytesMut::with_capacity(PREFIX_BYTES + room);
    key.put_u8(family as u8);
    key.put_u64(id);
    key
}

/// All keys of one family and id.
fn range_of(family: Family, id: u64) -> KeyRange {
    let end = match id.checked_add(1) {
        Some(next) => prefix(family, next, 0).freeze(),
        None => family.range().end,
    };
    KeyRange { start: prefix(family, id, 0).freeze(), end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// That the key is read back from its bytes.
    pub(super) fn assert_key_round_trips(key: &Key<'_>) {
        assert_eq!(Key::decode(&key.encode()).as_ref(), Ok(key));
    }

    proptest! {
        /// Bytes that are read as a key are the bytes of that key.
        #[test]
        fn no_two_byte_strings_are_one_key(
            family in prop::sample::select(b"ADEKMNOQSTXI".as_slice()),
            id in prop_oneof![Just(0), any::<u64>()],
            rest in prop_oneof![
                Just(Vec::new()),
                prop::collection::vec(any::<u8>(), 0..12),
                prop::collection::vec(any::<u8>(), 24),
                "[a-c\u{0}\u{e000}\u{ffff}]{0,4}".prop_map(String::into_bytes),
            ],
        ) {
            let mut bytes = vec![family];
            bytes.extend_from_slice(&id.to_be_bytes());
            bytes.extend_from_slice(&rest);
            if let Ok(key) = Key::decode(&bytes) {
                prop_assert_eq!(&key.encode()[..], &bytes[..]);
            }
        }

        #[test]
        fn a_range_holds_its_id_and_no_other(
            id in prop_oneof![Just(u64::MAX), Just(0), any::<u64>()],
            other: u64,
            rest in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let range = range_of(Family::Entity, id);
            for candidate in [id, other] {
                let mut key = prefix(Family::Entity, candidate, rest.len());
                key.put_slice(&rest);
                prop_assert_eq!(*range.start <= *key && *key < *range.end, candidate == id);
            }
        }
    }

    #[test]
    fn families_are_read_back_and_nothing_else_is() {
        for byte in 0..=u8::MAX {
            let is_known = b"ADEKMNOQSTX".contains(&byte);
            assert_eq!(Family::of(byte).map(|family| family as u8), is_known.then_some(byte));
        }
    }

    #[test]
    fn short_keys_and_reserved_families_are_told() {
        let too_short = KeyError("its key is too short");
        for length in 0..PREFIX_BYTES {
            assert_eq!(Key::decode(&b"D12345678"[..length]), Err(too_short));
        }
        for reserved in b"IJCBGVPLRZUWYFH" {
            let key = [&[*reserved][..], &[0; 8]].concat();
            assert_eq!(Key::decode(&key), Err(KeyError("no family of rows begins like this")));
        }
    }
}
