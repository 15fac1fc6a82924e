//! Tables: `T . account id . lower-case name`, the catalogue's record of a table.

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Ticks;

use super::{
    AccountId, Family, Key, KeyError, Kind, Record, ResourceId, TableId, prefix, range_of,
};

const VERSION: u8 = 1;

/// The catalogue's record of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub id: TableId,
    pub created: Ticks,
    /// In the case it was created with.
    pub name: String,
    /// The stored access policies as the XML document of Get Table ACL; empty when there are none.
    pub policies: Bytes,
}

impl Record for TableRecord {
    const KIND: Kind = Kind::Table;

    fn key(account: AccountId, name: &str) -> Bytes {
        encode_key(account, name)
    }

    fn id(&self) -> ResourceId {
        self.id.into()
    }

    /// `version u8 . id u64 . created i64 . name length u8 . name . policies`, numbers little-endian.
    fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(18 + self.name.len() + self.policies.len());
        out.put_u8(VERSION);
        out.put_u64_le(self.id.0);
        out.put_i64_le(self.created.0);
        out.put_u8(u8::try_from(self.name.len()).expect("a table's name has 63 characters"));
        out.put_slice(self.name.as_bytes());
        out.put_slice(&self.policies);
        out.freeze()
    }

    fn decode(stored: &[u8]) -> Option<Self> {
        let (&VERSION, rest) = stored.split_first()? else { return None };
        let (id, rest) = rest.split_first_chunk()?;
        let (created, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (name, policies) = rest.split_at_checked(usize::from(*length))?;
        Some(Self {
            id: TableId(u64::from_le_bytes(*id)),
            created: Ticks(i64::from_le_bytes(*created)),
            name: std::str::from_utf8(name).ok()?.to_owned(),
            policies: Bytes::copy_from_slice(policies),
        })
    }
}

pub(super) fn encode_key(account: AccountId, lower_name: &str) -> Bytes {
    let mut key = prefix(Family::Table, account.0, lower_name.len());
    key.put_slice(lower_name.as_bytes());
    key.freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'_>, KeyError> {
    let name = std::str::from_utf8(rest).map_err(|_| KeyError("its name is no text"))?;
    Ok(Key::Table { account: AccountId(id), name })
}

/// The tables of an account whose lower-case name is not before `from`.
pub(crate) fn tables_of(account: AccountId, from: &str) -> KeyRange {
    KeyRange { start: encode_key(account, from), end: range_of(Family::Table, account.0).end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn keys_are_read_back(account: u64, name: String) {
            assert_key_round_trips(&Key::Table { account: AccountId(account), name: &name });
        }

        /// Query Tables lists them by account and then by name.
        #[test]
        fn keys_sort_by_account_and_name(
            a in (0..3u64, "[a-c]{0,3}"),
            b in (0..3u64, "[a-c]{0,3}"),
        ) {
            let key = |(account, name): &(u64, String)| encode_key(AccountId(*account), name);
            prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
            let listed = tables_of(AccountId(a.0), &a.1);
            let is_listed = listed.start <= key(&b) && key(&b) < listed.end;
            prop_assert_eq!(is_listed, b.0 == a.0 && b.1 >= a.1);
        }

        #[test]
        fn records_are_read_back(
            id: u64,
            created: i64,
            name in "\\PC{0,63}",
            policies: Vec<u8>,
        ) {
            let (id, created, policies) = (TableId(id), Ticks(created), policies.into());
            let record = TableRecord { id, created, name, policies };
            prop_assert_eq!(TableRecord::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn the_bytes_are_those_of_format_1() {
        let record = TableRecord {
            id: TableId(0x0102_0304_0506_0708),
            created: Ticks(9),
            name: "Employees".into(),
            policies: Bytes::from_static(b"<SignedIdentifiers />"),
        };
        let bytes = record.encode();
        assert_eq!(bytes[..10], [1, 8, 7, 6, 5, 4, 3, 2, 1, 9]);
        assert_eq!(&bytes[17..], b"\x09Employees<SignedIdentifiers />");
        for length in 0..18 {
            assert_eq!(TableRecord::decode(&bytes[..length]), None);
        }
    }

    #[test]
    fn a_record_of_another_version_is_not_read() {
        assert_eq!(TableRecord::decode(&[2; 40]), None);
    }
}
