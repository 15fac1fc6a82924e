//! Tables: `T . account id . lower-case name`, the catalogue's record of a table.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tavola_engine::KeyRange;
use tavola_wire::Ticks;

use super::index_record::IndexList;
use super::{
    AccountId, Family, Key, KeyError, Kind, Record, ResourceId, TableId, prefix, range_of,
};

/// A table that has nothing but access policies: the record of format 1, so that an older version reads it.
const VERSION_1: u8 = 1;
/// A kind, and sections by tag.
const VERSION_2: u8 = 2;

const KIND_TABLE: u8 = 0;
const KIND_VIEW: u8 = 1;

// The tags of sections, in the order in which they are written. One that is not known is refused: it may ask for something
// of every writer.
const POLICIES: u8 = 1;
const INDEXES: u8 = 2;
const VIEW: u8 = 3;

/// The catalogue's record of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub id: TableId,
    pub created: Ticks,
    /// In the case it was created with.
    pub name: String,
    /// The stored access policies as the XML document of Get Table ACL; empty when there are none.
    pub policies: Bytes,
    pub indexes: IndexList,
    /// What it shows, if it is no table of its own.
    pub view: Option<ViewRecord>,
}

/// An index that can be read as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewRecord {
    pub table: TableId,
    /// The name of the table whose index it is, as keys hold it.
    pub table_key_name: String,
    pub index: String,
}

impl TableRecord {
    /// A new table.
    pub(crate) fn new(id: TableId, created: Ticks, name: String) -> Self {
        let indexes = IndexList::default();
        Self { id, created, name, policies: Bytes::new(), indexes, view: None }
    }

    fn encode_sections(&self, out: &mut BytesMut) {
        if !self.policies.is_empty() {
            push_section(out, POLICIES, |out| out.put_slice(&self.policies));
        }
        if !self.indexes.is_untouched() {
            push_section(out, INDEXES, |out| self.indexes.encode(out));
        }
        if let Some(view) = &self.view {
            push_section(out, VIEW, |out| {
                out.put_u64_le(view.table.0);
                for text in [&view.table_key_name, &view.index] {
                    out.put_u8(u8::try_from(text.len()).expect("names have 63 characters"));
                    out.put_slice(text.as_bytes());
                }
            });
        }
    }

    /// Reads sections; each at most once, in order, so that a record has one form only.
    fn decode_sections(&mut self, mut stored: &[u8]) -> Option<()> {
        let mut last_tag = 0;
        while !stored.is_empty() {
            let tag = stored.try_get_u8().ok()?;
            let length = usize::try_from(stored.try_get_u32_le().ok()?).ok()?;
            let (section, rest) = stored.split_at_checked(length)?;
            match tag {
                _ if tag <= last_tag => return None,
                POLICIES => self.policies = Bytes::copy_from_slice(section),
                INDEXES => self.indexes = IndexList::decode(section)?,
                VIEW => self.view = Some(ViewRecord::decode(section)?),
                _ => return None,
            }
            (last_tag, stored) = (tag, rest);
        }
        Some(())
    }
}

impl Record for TableRecord {
    const KIND: Kind = Kind::Table;

    fn key(account: AccountId, name: &str) -> Bytes {
        encode_key(account, name)
    }

    fn id(&self) -> ResourceId {
        self.id.into()
    }

    /// `version u8 . id u64 . created i64 . name length u8 . name`, numbers little-endian; then, in version 1, the policies;
    /// in version 2 `kind u8` and sections, each `tag u8 . length u32 . bytes`.
    fn encode(&self) -> Bytes {
        let is_plain = self.indexes.is_untouched() && self.view.is_none();
        let mut out = BytesMut::with_capacity(24 + self.name.len() + self.policies.len());
        out.put_u8(if is_plain { VERSION_1 } else { VERSION_2 });
        out.put_u64_le(self.id.0);
        out.put_i64_le(self.created.0);
        out.put_u8(u8::try_from(self.name.len()).expect("a table's name has 63 characters"));
        out.put_slice(self.name.as_bytes());
        if is_plain {
            out.put_slice(&self.policies);
        } else {
            out.put_u8(if self.view.is_some() { KIND_VIEW } else { KIND_TABLE });
            self.encode_sections(&mut out);
        }
        out.freeze()
    }

    fn decode(stored: &[u8]) -> Option<Self> {
        let (version, rest) = stored.split_first()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (created, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let id = TableId(u64::from_le_bytes(*id));
        let created = Ticks(i64::from_le_bytes(*created));
        let mut record = Self::new(id, created, std::str::from_utf8(name).ok()?.to_owned());
        match (*version, rest) {
            (VERSION_1, policies) => record.policies = Bytes::copy_from_slice(policies),
            (VERSION_2, [kind @ (KIND_TABLE | KIND_VIEW), sections @ ..]) => {
                record.decode_sections(sections)?;
                if record.view.is_some() != (*kind == KIND_VIEW) {
                    return None;
                }
            }
            _ => return None,
        }
        Some(record)
    }
}

impl ViewRecord {
    fn decode(stored: &[u8]) -> Option<Self> {
        let (table, mut rest) = stored.split_first_chunk()?;
        let mut text = || {
            let (length, behind) = rest.split_first()?;
            let (text, behind) = behind.split_at_checked(usize::from(*length))?;
            rest = behind;
            Some(std::str::from_utf8(text).ok()?.to_owned())
        };
        let (table_key_name, index) = (text()?, text()?);
        let table = TableId(u64::from_le_bytes(*table));
        rest.is_empty().then_some(Self { table, table_key_name, index })
    }
}

fn push_section(out: &mut BytesMut, tag: u8, section: impl FnOnce(&mut BytesMut)) {
    let mut bytes = BytesMut::new();
    section(&mut bytes);
    out.put_u8(tag);
    out.put_u32_le(u32::try_from(bytes.len()).expect("a record is small"));
    out.put_slice(&bytes);
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
    use crate::storage::layout::index_record::tests::any_index_list;
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
            indexes in any_index_list(),
            view in prop::option::of((any::<u64>(), "[a-z]{3,8}", "[a-z]{3,8}")),
        ) {
            let mut record = TableRecord::new(TableId(id), Ticks(created), name);
            record.policies = policies.into();
            prop_assert_eq!(record.encode()[0], 1);
            prop_assert_eq!(TableRecord::decode(&record.encode()), Some(record.clone()));
            record.indexes = indexes;
            record.view = view.map(|(table, table_key_name, index)| {
                ViewRecord { table: TableId(table), table_key_name, index }
            });
            prop_assert_eq!(TableRecord::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn the_bytes_are_those_of_format_1() {
        let mut record =
            TableRecord::new(TableId(0x0102_0304_0506_0708), Ticks(9), "Employees".into());
        record.policies = Bytes::from_static(b"<SignedIdentifiers />");
        let bytes = record.encode();
        assert_eq!(bytes[..10], [1, 8, 7, 6, 5, 4, 3, 2, 1, 9]);
        assert_eq!(&bytes[17..], b"\x09Employees<SignedIdentifiers />");
        for length in 0..18 {
            assert_eq!(TableRecord::decode(&bytes[..length]), None);
        }
    }

    #[test]
    fn a_record_of_another_version_is_not_read() {
        assert_eq!(TableRecord::decode(&[3; 40]), None);
    }

    #[test]
    fn sections_that_are_not_known_are_refused() {
        let mut record = TableRecord::new(TableId(1), Ticks(9), "Employees".into());
        record.indexes.last_number = 3;
        let bytes = record.encode();
        assert_eq!(&bytes[17..], b"\x09Employees\x00\x02\x02\x00\x00\x00\x03\x00");
        let later = [&bytes[..], b"\x09\x00\x00\x00\x00"].concat();
        assert_eq!(TableRecord::decode(&later), None);
        let twice = [&bytes[..], &bytes[28..]].concat();
        assert_eq!(TableRecord::decode(&twice), None);
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(TableRecord::decode(cut), None);
    }
}
