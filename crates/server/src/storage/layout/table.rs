//! Catalogue rows: `T . account id . lower-case name`.

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Ticks;

use super::{AccountId, Family, TableId, prefix, range_of};

const VERSION: u8 = 1;

/// What the catalogue keeps of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub id: TableId,
    pub created: Ticks,
    /// In the case it was created with.
    pub name: String,
    /// The stored access policies as the XML document of Get Table ACL; empty when there are none.
    pub policies: Bytes,
}

impl TableRecord {
    /// `version u8 . id u64 . created i64 . name length u8 . name . policies`, numbers little-endian.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(18 + self.name.len() + self.policies.len());
        out.put_u8(VERSION);
        out.put_u64_le(self.id.0);
        out.put_i64_le(self.created.0);
        out.put_u8(u8::try_from(self.name.len()).expect("a table's name has 63 characters"));
        out.put_slice(self.name.as_bytes());
        out.put_slice(&self.policies);
        out.freeze()
    }

    /// Reads back what [`TableRecord::encode`] wrote; `None` if the bytes cannot have come from it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
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

/// The key of one table.
pub(crate) fn table_key(account: AccountId, lower_name: &str) -> Bytes {
    let mut key = prefix(Family::Table, account.0, lower_name.len());
    key.put_slice(lower_name.as_bytes());
    key.freeze()
}

/// The tables of an account whose lower-case name is not before `from`.
pub(crate) fn tables_of(account: AccountId, from: &str) -> KeyRange {
    KeyRange { start: table_key(account, from), end: range_of(Family::Table, account.0).end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let record = TableRecord {
            id: TableId(0x0102_0304_0506_0708),
            created: Ticks(9),
            name: "Employees".into(),
            policies: Bytes::from_static(b"<SignedIdentifiers />"),
        };
        let bytes = record.encode();
        assert_eq!(TableRecord::decode(&bytes), Some(record));
        assert_eq!(bytes[..10], [1, 8, 7, 6, 5, 4, 3, 2, 1, 9]);
        for length in 0..18 {
            assert_eq!(TableRecord::decode(&bytes[..length]), None);
        }
    }

    #[test]
    fn a_record_of_another_version_is_not_read() {
        assert_eq!(TableRecord::decode(&[2; 40]), None);
    }
}
