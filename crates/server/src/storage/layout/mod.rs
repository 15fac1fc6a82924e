//! Where everything lies in the engine: every key begins with a family and an id.
//!
//! | Family | Key | Value |
//! |---|---|---|
//! | [`Family::Sequence`] | `N . 0` | the next unused id |
//! | [`Family::Account`] | `A . 0 . name` | the account's id |
//! | [`Family::Table`] | `T . account id . lower-case name` | a [`TableRecord`] |
//! | [`Family::Properties`] | `S . account id` | the account's service properties |
//! | [`Family::Dropped`] | `D . table id` | when the table was dropped; its entities await the sweeper |
//! | [`Family::Entity`] | `E . table id . PartitionKey 00 RowKey` | an encoded entity |
//!
//! Ids are never reused: whoever still holds the id of a dropped table writes where nobody reads.
//! Byte by byte in `docs/format.md`.

mod entity;
mod table;

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Ticks;

pub(crate) use entity::{EntityKeys, entity_key_of};
pub(crate) use table::{TableRecord, table_key, tables_of};

/// What a key is about. The bytes are stored: never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Family {
    Account = b'A',
    Dropped = b'D',
    Entity = b'E',
    Sequence = b'N',
    Properties = b'S',
    Table = b'T',
}

/// Family and id.
pub(crate) const PREFIX_BYTES: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AccountId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableId(pub u64);

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
        None => Bytes::copy_from_slice(&[family as u8 + 1]),
    };
    KeyRange { start: prefix(family, id, 0).freeze(), end }
}

pub(crate) fn sequence_key() -> Bytes {
    prefix(Family::Sequence, 0, 0).freeze()
}

pub(crate) fn account_key(name: &str) -> Bytes {
    let mut key = prefix(Family::Account, 0, name.len());
    key.put_slice(name.as_bytes());
    key.freeze()
}

pub(crate) fn properties_key(account: AccountId) -> Bytes {
    prefix(Family::Properties, account.0, 0).freeze()
}

pub(crate) fn dropped_key(table: TableId) -> Bytes {
    prefix(Family::Dropped, table.0, 0).freeze()
}

/// Every table that awaits the sweeper.
pub(crate) fn all_dropped() -> KeyRange {
    let start = Bytes::copy_from_slice(&[Family::Dropped as u8]);
    KeyRange { start, end: Bytes::copy_from_slice(&[Family::Dropped as u8 + 1]) }
}

/// The id in a key of the form `family . id . ...`.
pub(crate) fn id_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..PREFIX_BYTES)?.try_into().ok()?))
}

/// An id, as the sequence and account rows hold it.
pub(crate) fn encode_id(id: u64) -> Bytes {
    Bytes::copy_from_slice(&id.to_le_bytes())
}

pub(crate) fn decode_id(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(value.try_into().ok()?))
}

pub(crate) fn encode_moment(moment: Ticks) -> Bytes {
    Bytes::copy_from_slice(&moment.0.to_le_bytes())
}

pub(crate) fn decode_moment(value: &[u8]) -> Option<Ticks> {
    Some(Ticks(i64::from_le_bytes(value.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_id_and_no_other() {
        let range = range_of(Family::Entity, 7);
        assert!(range.start <= prefix(Family::Entity, 7, 0).freeze());
        assert!(prefix(Family::Entity, 8, 0).freeze() >= range.end);
        let last = range_of(Family::Entity, u64::MAX);
        assert!(prefix(Family::Entity, u64::MAX, 0).freeze() < last.end);
    }

    #[test]
    fn ids_are_read_back_from_keys() {
        assert_eq!(id_of(&dropped_key(TableId(0x0102))), Some(0x0102));
        assert_eq!(id_of(b"D"), None);
    }
}
