//! A second kind of thing beside tables, for tests alone: all that a kind needs to be created, found, dropped and swept.
//!
//! Its records and rows are both under the free family `H`. That is no contradiction: accounts and things never have the
//! same id.

use bytes::{BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;

use super::{AccountId, Kind, Record, ResourceId};

pub(crate) const FAMILY: u8 = b'H';

/// The catalogue's record of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampleRecord {
    pub id: ResourceId,
    pub note: u8,
}

impl Record for SampleRecord {
    const KIND: Kind = Kind::Sample;

    fn key(account: AccountId, name: &str) -> Bytes {
        key(account.0, name.as_bytes())
    }

    fn id(&self) -> ResourceId {
        self.id
    }

    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u64_le(self.id.0);
        out.put_u8(self.note);
        out.freeze()
    }

    fn decode(stored: &[u8]) -> Option<Self> {
        let (id, rest) = stored.split_first_chunk()?;
        let [note] = *rest else { return None };
        Some(Self { id: ResourceId(u64::from_le_bytes(*id)), note })
    }
}

/// A row of a sample.
pub(crate) fn row_key(id: ResourceId, row: &str) -> Bytes {
    key(id.0, row.as_bytes())
}

/// Every row of a sample.
pub(crate) fn rows_of(id: ResourceId) -> KeyRange {
    KeyRange { start: key(id.0, b""), end: key(id.0 + 1, b"") }
}

fn key(id: u64, rest: &[u8]) -> Bytes {
    let mut key = BytesMut::new();
    key.put_u8(FAMILY);
    key.put_u64(id);
    key.put_slice(rest);
    key.freeze()
}
