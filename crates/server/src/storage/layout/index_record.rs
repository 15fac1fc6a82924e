//! The definitions of indexes in the record of their table.
//!
//! As texts, in the words in which they were declared: what they mean is `tavola_wire::table::index`'s, which reads them
//! again when the record is read. Nothing that changes without the schema stands here (`docs/format.md`).

use bytes::{Buf, BufMut, BytesMut};
use tavola_wire::Ticks;

/// The indexes of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexList {
    /// The highest number that was ever given out: numbers begin at 1 and are never reused.
    pub last_number: u16,
    /// In the order of their numbers.
    pub indexes: Vec<IndexRecord>,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    pub number: u16,
    pub name: String,
    pub definition: DefinitionTexts,
    pub state: IndexState,
    /// The name under which it can be read as a table.
    pub browse_as: Option<String>,
    /// The number of the index that goes when this one is readable.
    pub replaces: Option<u16>,
    /// When its definition or its state was changed last.
    pub changed: Ticks,
    /// Why it has failed.
    pub error: String,
}

/// What is indexed, as it was declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DefinitionTexts {
    pub keys: String,
    pub include: String,
    pub filter: String,
    pub unique: bool,
    /// Bytes of a value that its part of a key keeps.
    pub part_bytes_max: u16,
}

/// What writers and readers do with an index. The numbers are stored: never change one.
///
/// While a change of the schema spreads, requests of two generations run side by side; each state differs from its
/// neighbours only in what is harmless then. Writers begin by removing rows only, and stop by no longer being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum IndexState {
    /// Writers remove the rows of what they change, and add none. So a writer that does not know the index yet
    /// leaves nothing behind that is wrong: there are no rows.
    DeleteOnly = 1,
    /// Writers keep it. What was written before is missing.
    WriteOnly = 2,
    /// The same, and what was written before is being added.
    Building = 3,
    /// It is complete, and queries use it.
    Readable = 4,
    /// It cannot be completed. Writers only remove; nobody reads it.
    Failed = 5,
    /// It is to go: writers keep it for queries that still read it, and new ones do not.
    Retiring = 6,
    /// Nobody reads it, and no new writer keeps it; its rows await the sweeping.
    Dropped = 7,
    /// It was readable and its rows turned out to be wrong. Writers keep it for queries that still read it, until it is
    /// [`Failed`](Self::Failed).
    Failing = 8,
}

impl IndexState {
    pub(crate) const ALL: [Self; 8] = [
        Self::DeleteOnly,
        Self::WriteOnly,
        Self::Building,
        Self::Readable,
        Self::Failed,
        Self::Retiring,
        Self::Dropped,
        Self::Failing,
    ];

    /// Whether writers remove the row of what was stored.
    pub(crate) fn is_deleted_from(self) -> bool {
        self != Self::Dropped
    }

    /// Whether writers add the row of what they store.
    pub(crate) fn is_written(self) -> bool {
        match self {
            Self::WriteOnly | Self::Building | Self::Readable | Self::Retiring | Self::Failing => {
                true
            }
            Self::DeleteOnly | Self::Failed | Self::Dropped => false,
        }
    }

    /// Whether queries may use it.
    pub(crate) fn is_read(self) -> bool {
        self == Self::Readable
    }

    /// Whether it cannot be used until it is declared again.
    pub(crate) fn has_failed(self) -> bool {
        matches!(self, Self::Failing | Self::Failed)
    }

    /// Whether it still has its name: what is to go has none any more.
    pub(crate) fn is_named(self) -> bool {
        !matches!(self, Self::Retiring | Self::Dropped)
    }

    fn decode(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == byte)
    }
}

const UNIQUE: u8 = 1;

impl IndexList {
    /// Whether there never was an index: then the record is that of format 1.
    pub(crate) fn is_untouched(&self) -> bool {
        self.last_number == 0 && self.indexes.is_empty()
    }

    /// Lets every index begin again, where the entities were copied and the rows of the indexes were not.
    pub(crate) fn build_again(&mut self) {
        for index in &mut self.indexes {
            index.state = match index.state {
                IndexState::Failed | IndexState::Failing => IndexState::Failed,
                IndexState::Retiring | IndexState::Dropped => IndexState::Dropped,
                _ => IndexState::DeleteOnly,
            };
        }
    }

    /// `last number u16`, then of each index `number u16 . state u8 . flags u8 . part bytes u16 . replaces u16 (0: none) .
    /// changed i64`, then name, keys, include, filter, browse-as and error, each `length u16 . text`.
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u16_le(self.last_number);
        for index in &self.indexes {
            let DefinitionTexts { keys, include, filter, unique, part_bytes_max } =
                &index.definition;
            out.put_u16_le(index.number);
            out.put_u8(index.state as u8);
            out.put_u8(if *unique { UNIQUE } else { 0 });
            out.put_u16_le(*part_bytes_max);
            out.put_u16_le(index.replaces.unwrap_or(0));
            out.put_i64_le(index.changed.0);
            let browse_as = index.browse_as.as_deref().unwrap_or_default();
            for text in [&index.name, keys, include, filter, browse_as, &index.error] {
                let length = u16::try_from(text.len()).expect("texts are limited when declared");
                out.put_u16_le(length);
                out.put_slice(text.as_bytes());
            }
        }
    }

    pub(super) fn decode(mut stored: &[u8]) -> Option<Self> {
        let last_number = stored.try_get_u16_le().ok()?;
        let mut indexes = Vec::new();
        while !stored.is_empty() {
            indexes.push(IndexRecord::decode(&mut stored)?);
        }
        Some(Self { last_number, indexes })
    }
}

impl IndexRecord {
    fn decode(stored: &mut &[u8]) -> Option<Self> {
        let number = stored.try_get_u16_le().ok()?;
        let state = IndexState::decode(stored.try_get_u8().ok()?)?;
        let unique = match stored.try_get_u8().ok()? {
            0 => false,
            UNIQUE => true,
            _ => return None,
        };
        let part_bytes_max = stored.try_get_u16_le().ok()?;
        let replaces = Some(stored.try_get_u16_le().ok()?).filter(|number| *number != 0);
        let changed = Ticks(stored.try_get_i64_le().ok()?);
        let mut text = || {
            let length = usize::from(stored.try_get_u16_le().ok()?);
            let (text, rest) = stored.split_at_checked(length)?;
            *stored = rest;
            Some(std::str::from_utf8(text).ok()?.to_owned())
        };
        let (name, keys, include, filter) = (text()?, text()?, text()?, text()?);
        let (browse_as, error) = (Some(text()?).filter(|name| !name.is_empty()), text()?);
        let definition = DefinitionTexts { keys, include, filter, unique, part_bytes_max };
        Some(Self { number, name, definition, state, browse_as, replaces, changed, error })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn any_index_list() -> impl Strategy<Value = IndexList> {
        let text = || "\\PC{0,8}";
        let definition = (text(), text(), text(), any::<bool>(), any::<u16>()).prop_map(
            |(keys, include, filter, unique, part_bytes_max)| DefinitionTexts {
                keys,
                include,
                filter,
                unique,
                part_bytes_max,
            },
        );
        let state = prop::sample::select(IndexState::ALL.to_vec());
        let browse_as = prop::option::of("[a-z]{3,8}");
        let replaces = prop::option::of(1..9u16);
        let index =
            (any::<u16>(), text(), definition, state, browse_as, replaces, any::<i64>(), text());
        let index = index.prop_map(
            |(number, name, definition, state, browse_as, replaces, changed, error)| IndexRecord {
                number,
                name,
                definition,
                state,
                browse_as,
                replaces,
                changed: Ticks(changed),
                error,
            },
        );
        let list = (any::<u16>(), prop::collection::vec(index, 0..4));
        list.prop_map(|(last_number, indexes)| IndexList { last_number, indexes })
    }

    /// Two neighbours in the life of an index run side by side while a change spreads.
    #[test]
    fn neighbouring_states_do_each_other_no_harm() {
        use IndexState::*;
        // Whoever adds rows must not meet one who does not remove them, unless nobody ever reads them.
        for (before, after) in [
            (DeleteOnly, WriteOnly),
            (WriteOnly, Building),
            (Building, Readable),
            (Readable, Retiring),
            (Readable, Failing),
            (Failing, Failed),
            (Failing, Retiring),
        ] {
            let adds = before.is_written() || after.is_written();
            assert!(!adds || (before.is_deleted_from() && after.is_deleted_from()), "{before:?}");
            // Whoever reads must not meet one who does not add.
            let reads = before.is_read() || after.is_read();
            assert!(!reads || (before.is_written() && after.is_written()), "{before:?}");
        }
        assert!(!DeleteOnly.is_written() && !Failed.is_written());
    }
}
