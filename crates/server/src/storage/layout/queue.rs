//! Queues: `Q . account id . name`, the catalogue's record of a queue.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Ticks;
use tavola_wire::queue::metadata::Metadata;

use super::{
    AccountId, Family, Key, KeyError, Kind, Record, ResourceId, StoreId, prefix, range_of,
};

const VERSION: u8 = 1;

/// The catalogue's record of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueRecord {
    /// Where its messages are. Clear Messages gives it another one.
    pub store: StoreId,
    pub created: Ticks,
    pub metadata: Metadata,
    /// The stored access policies as the XML document of Get Queue ACL; empty when there are none.
    pub policies: Bytes,
}

impl Record for QueueRecord {
    const KIND: Kind = Kind::Queue;

    fn key(account: AccountId, name: &str) -> Bytes {
        encode_key(account, name)
    }

    fn id(&self) -> ResourceId {
        self.store.into()
    }

    /// `version u8 . store id u64 . created i64 . number of metadata u16 . (name length u16 . name . value length u16 .
    /// value) ... . policies`, numbers little-endian.
    fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64 + self.policies.len());
        out.put_u8(VERSION);
        out.put_u64_le(self.store.0);
        out.put_i64_le(self.created.0);
        put_length(&mut out, self.metadata.iter().count());
        for (name, value) in self.metadata.iter() {
            for bytes in [name.as_bytes(), value] {
                put_length(&mut out, bytes.len());
                out.put_slice(bytes);
            }
        }
        out.put_slice(&self.policies);
        out.freeze()
    }

    fn decode(stored: &[u8]) -> Option<Self> {
        let (&VERSION, mut rest) = stored.split_first()? else { return None };
        let store = StoreId(rest.try_get_u64_le().ok()?);
        let created = Ticks(rest.try_get_i64_le().ok()?);
        let count = rest.try_get_u16_le().ok()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let name = std::str::from_utf8(take(&mut rest)?).ok()?;
            pairs.push((name.to_owned(), take(&mut rest)?.to_owned()));
        }
        let metadata = Metadata::from_pairs(pairs);
        Some(Self { store, created, metadata, policies: Bytes::copy_from_slice(rest) })
    }
}

/// Metadata has 8 KiB in all.
fn put_length(out: &mut BytesMut, length: usize) {
    out.put_u16_le(u16::try_from(length).expect("metadata is short"));
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = rest.try_get_u16_le().ok()?;
    let (bytes, more) = rest.split_at_checked(usize::from(length))?;
    *rest = more;
    Some(bytes)
}

pub(super) fn encode_key(account: AccountId, name: &str) -> Bytes {
    let mut key = prefix(Family::Queue, account.0, name.len());
    key.put_slice(name.as_bytes());
    key.freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'_>, KeyError> {
    let name = std::str::from_utf8(rest).map_err(|_| KeyError("its name is no text"))?;
    Ok(Key::Queue { account: AccountId(id), name })
}

/// The queues of an account whose names begin with `prefix` and are not before `from`.
pub(crate) fn queues_of(account: AccountId, from: &str, prefix: &str) -> KeyRange {
    let start = encode_key(account, from.max(prefix));
    let end = match prefix {
        "" => range_of(Family::Queue, account.0).end,
        // No name holds this byte.
        prefix => {
            let mut end = BytesMut::from(&encode_key(account, prefix)[..]);
            end.put_u8(0xFF);
            end.freeze()
        }
    };
    KeyRange { end: end.max(start.clone()), start }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn keys_are_read_back(account: u64, name: String) {
            assert_key_round_trips(&Key::Queue { account: AccountId(account), name: &name });
        }

        #[test]
        fn a_list_has_the_names_of_the_prefix_from_the_marker_on(
            account in 0..3u64,
            name in "[a-c]{1,4}",
            from in "[a-c]{0,4}",
            prefix in "[a-c]{0,2}",
        ) {
            let range = queues_of(AccountId(1), &from, &prefix);
            let key = encode_key(AccountId(account), &name);
            let is_listed = range.start <= key && key < range.end;
            prop_assert_eq!(is_listed, account == 1 && name >= from && name.starts_with(&prefix));
        }

        #[test]
        fn records_are_read_back(
            store: u64,
            created: i64,
            metadata in prop::collection::vec(("[a-z]{1,9}", prop::collection::vec(32..=255u8, 0..9)), 0..4),
            policies: Vec<u8>,
        ) {
            let metadata = Metadata::from_pairs(metadata);
            let (store, created, policies) = (StoreId(store), Ticks(created), policies.into());
            let record = QueueRecord { store, created, metadata, policies };
            prop_assert_eq!(QueueRecord::decode(&record.encode()), Some(record));
        }

        #[test]
        fn any_bytes_are_handled(bytes: Vec<u8>) {
            let _ = QueueRecord::decode(&bytes);
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let record = QueueRecord {
            store: StoreId(0x0102),
            created: Ticks(3),
            metadata: Metadata::from_pairs(vec![("Team".into(), "x".into())]),
            policies: Bytes::from_static(b"<SignedIdentifiers />"),
        };
        let bytes = record.encode();
        let start = b"\x01\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\0\x04\0Team\x01\0x";
        assert_eq!(&bytes[..start.len()], start);
        assert_eq!(&bytes[start.len()..], b"<SignedIdentifiers />");
        for length in 0..start.len() {
            assert_eq!(QueueRecord::decode(&bytes[..length]), None);
        }
        assert_eq!(QueueRecord::decode(&[2; 40]), None);
    }
}
