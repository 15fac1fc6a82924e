//! The rows that an entity has in the indexes of its table.
//!
//! The key of a row is its parts, and behind them the key of the entity; if the first part is the whole partition key,
//! the row key alone. The rows of a unique index have no entity key behind their parts, but in their value; if a part was
//! cut, a hash of what it was cut from stands there, so that only the same values have the same row. Values begin with a
//! byte that says what they hold.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::definition::{Include, IndexDefinition, Missing, Part};
use super::value_line;
use crate::name_list::NameList;
use crate::table::stored::key::SEPARATOR;
use crate::table::stored::{
    EdmType, EntityRef, EntityWriter, MalformedEntity, Program, Property, Scratch, Value,
    set_timestamp,
};

/// First byte of a value: nothing behind it.
const KEYS_ONLY: u8 = 1;
/// First byte of a value: an encoded entity behind it.
const COPY: u8 = 2;
/// First byte of the value of a unique index: the length of the entity key in two bytes, the entity key, and perhaps an
/// encoded entity.
const UNIQUE: u8 = 3;

/// Bytes of the hash behind the parts of a unique row of which one was cut: values that differ never meet in it.
const CUT_HASH_BYTES: usize = 16;

/// One row of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRow<'a> {
    /// The key behind the number of the index.
    pub parts_and_suffix: &'a [u8],
    pub value: &'a [u8],
}

/// Derives the rows of all indexes of a table from one entity, in one pass over its properties.
#[derive(Clone, Debug)]
pub struct RowMaker {
    /// The properties that parts need, apart from the system's.
    names: NameList<Box<[u8]>>,
    indexes: Vec<Maker>,
    /// Whether all rows are made of the keys and of properties in `names`, and of nothing else.
    is_of_names_alone: bool,
}

/// Properties that two states of an entity are compared in before their rows are made. Tables with more have them made.
const COMPARED_MAX: usize = 16;

type ComparedValues<'e> = [Option<(EdmType, &'e [u8])>; COMPARED_MAX];

#[derive(Clone, Debug)]
struct Maker {
    parts: Vec<(Source, Missing)>,
    /// Sources of the copied properties; `None` copies the whole entity.
    copied: Option<NameList<Box<[u8]>>>,
    has_copy: bool,
    filter: Option<Program>,
    unique: bool,
    is_local: bool,
    part_bytes_max: usize,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    PartitionKey,
    RowKey,
    Timestamp,
    Property(usize),
}

/// Buffers from row to row.
#[derive(Debug, Default)]
pub struct RowScratch {
    key: Vec<u8>,
    value: Vec<u8>,
    filter: Scratch,
}

impl RowMaker {
    pub fn new<'d>(definitions: impl IntoIterator<Item = &'d IndexDefinition>) -> Self {
        let mut names = NameList::default();
        let indexes: Vec<_> =
            definitions.into_iter().map(|definition| Maker::new(definition, &mut names)).collect();
        let is_of_names_alone =
            names.len() <= COMPARED_MAX && indexes.iter().all(Maker::is_of_names_alone);
        Self { names, indexes, is_of_names_alone }
    }

    /// Whether an entity surely has the same rows after these properties are merged into it. Most merges bring nothing that
    /// an index has, and this costs less than to look at all that the entity has.
    pub fn has_same_rows_with(&self, merged: EntityRef<'_>) -> bool {
        let is_of_no_row = |property: Result<Property<'_>, _>| {
            property.is_ok_and(|property| self.names.position(property.name).is_none())
        };
        self.is_of_names_alone && merged.properties().all(is_of_no_row)
    }

    /// Whether two states of an entity surely have the same rows. Most changes touch nothing that an index has, and this
    /// costs less than to make the rows of both.
    pub fn has_same_rows(&self, old: EntityRef<'_>, new: EntityRef<'_>) -> bool {
        let values = |entity| self.values(entity);
        let is_same = |(old, new): (ComparedValues<'_>, ComparedValues<'_>)| {
            old[..self.names.len()] == new[..self.names.len()]
        };
        self.is_of_names_alone && values(old).zip(values(new)).is_some_and(is_same)
    }

    /// What an entity has of the properties that parts need; `None` if it is not one that a writer wrote.
    fn values<'e>(&self, entity: EntityRef<'e>) -> Option<ComparedValues<'e>> {
        let mut values = [None; COMPARED_MAX];
        for property in entity.properties() {
            let property = property.ok()?;
            if let Some(place) = self.names.position(property.name) {
                *values.get_mut(place)? = Some((property.edm_type, property.payload));
            }
        }
        Some(values)
    }

    /// Calls `each` with the row that the entity has in each index that it is in, and the place of that index among the
    /// definitions.
    ///
    /// # Errors
    /// The entity is not one that a writer wrote.
    pub fn rows(
        &self,
        entity_key: &[u8],
        entity: EntityRef<'_>,
        scratch: &mut RowScratch,
        mut each: impl FnMut(usize, IndexRow<'_>),
    ) -> Result<(), MalformedEntity> {
        let mut found = vec![None; self.names.len()];
        for property in entity.properties() {
            let property = property?;
            if let Some(place) = self.names.position(property.name) {
                found[place] = Some(property);
            }
        }
        for (index, maker) in self.indexes.iter().enumerate() {
            if maker.make(entity_key, entity, &found, scratch)? {
                let row = IndexRow { parts_and_suffix: &scratch.key, value: &scratch.value };
                each(index, row);
            }
        }
        Ok(())
    }
}

impl Maker {
    fn new(definition: &IndexDefinition, names: &mut NameList<Box<[u8]>>) -> Self {
        let mut source = |part: &Part| match part.property.as_str() {
            "PartitionKey" => Source::PartitionKey,
            "RowKey" => Source::RowKey,
            "Timestamp" => Source::Timestamp,
            name => Source::Property(names.insert(name.as_bytes().into()).0),
        };
        let parts = definition.keys.iter().map(|part| (source(part), part.missing)).collect();
        let copied = match &definition.include {
            Include::All | Include::Nothing => None,
            Include::Names(included) => {
                let mut copied = NameList::default();
                // The parts too: their places on the line do not say everything about a value.
                let parts = definition.keys.iter().map(|part| &part.property);
                for name in included.iter().chain(parts) {
                    copied.insert(name.as_bytes().into());
                }
                Some(copied)
            }
        };
        Self {
            parts,
            copied,
            has_copy: definition.include != Include::Nothing,
            filter: definition.filter.as_ref().map(Program::new),
            unique: definition.unique,
            is_local: definition.is_local(),
            part_bytes_max: usize::from(definition.part_bytes_max),
        }
    }

    fn is_of_names_alone(&self) -> bool {
        let is_name = |(source, _): &(Source, Missing)| !matches!(source, Source::Timestamp);
        !self.has_copy && self.filter.is_none() && self.parts.iter().all(is_name)
    }

    /// Makes the row in the scratch: whether there is one.
    fn make(
        &self,
        entity_key: &[u8],
        entity: EntityRef<'_>,
        found: &[Option<Property<'_>>],
        scratch: &mut RowScratch,
    ) -> Result<bool, MalformedEntity> {
        if let Some(filter) = &self.filter
            && !filter.matches(entity_key, entity, &mut scratch.filter)?
        {
            return Ok(false);
        }
        scratch.key.clear();
        let separator = memchr::memchr(SEPARATOR, entity_key).ok_or(MalformedEntity { at: 0 })?;
        let (partition_key, row_key) = (&entity_key[..separator], &entity_key[separator + 1..]);
        let (key, max) = (&mut scratch.key, self.part_bytes_max);
        let mut is_partition_key_whole = false;
        let mut cut = CutHash::default();
        for (source, missing) in &self.parts {
            let (is_whole, content) = match *source {
                Source::PartitionKey => {
                    is_partition_key_whole = value_line::push_ordered_text(key, partition_key, max);
                    (is_partition_key_whole, partition_key)
                }
                Source::RowKey => (value_line::push_ordered_text(key, row_key, max), row_key),
                Source::Timestamp => {
                    (value_line::push_value(key, Value::DateTime(entity.timestamp()), max), &[][..])
                }
                Source::Property(place) => match (&found[place], missing) {
                    (Some(property), _) => {
                        let is_whole = value_line::push_property(key, property, max)
                            .ok_or(MalformedEntity { at: property.at })?;
                        (is_whole, property.payload)
                    }
                    (None, Missing::Keep) => {
                        value_line::push_missing(key);
                        (true, &[][..])
                    }
                    (None, Missing::Skip) => return Ok(false),
                },
            };
            if self.unique && !is_whole {
                cut.add(content);
            }
        }
        if self.unique {
            key.extend_from_slice(cut.finish().as_ref().map_or(&[], |hash| &hash[..]));
        } else {
            let is_short = self.is_local && is_partition_key_whole;
            key.extend_from_slice(if is_short { row_key } else { entity_key });
        }
        self.push_row_value(entity_key, entity, &mut scratch.value)?;
        Ok(true)
    }

    fn push_row_value(
        &self,
        entity_key: &[u8],
        entity: EntityRef<'_>,
        value: &mut Vec<u8>,
    ) -> Result<(), MalformedEntity> {
        value.clear();
        if self.unique {
            value.push(UNIQUE);
            let length = u16::try_from(entity_key.len()).expect("keys are below 64 KiB");
            value.extend_from_slice(&length.to_be_bytes());
            value.extend_from_slice(entity_key);
        } else {
            value.push(if self.has_copy { COPY } else { KEYS_ONLY });
        }
        match &self.copied {
            _ if !self.has_copy => {}
            None => value.extend_from_slice(entity.as_bytes()),
            Some(copied) => {
                let mut writer = EntityWriter::new();
                for property in entity.properties() {
                    let property = property?;
                    if copied.position(property.name).is_some() {
                        writer.push_property(&property);
                    }
                }
                let mut copy = writer.finish();
                set_timestamp(&mut copy, entity.timestamp());
                value.extend_from_slice(&copy);
            }
        }
        Ok(())
    }
}

/// A hash of all values of a row that were cut.
#[derive(Default)]
struct CutHash(Option<Sha256>);

impl CutHash {
    fn add(&mut self, whole: &[u8]) {
        let hash = self.0.get_or_insert_default();
        hash.update((whole.len() as u64).to_be_bytes());
        hash.update(whole);
    }

    /// `None` if nothing was cut.
    fn finish(self) -> Option<[u8; CUT_HASH_BYTES]> {
        let hash = self.0?.finalize();
        Some(std::array::from_fn(|at| hash[at]))
    }
}

/// A stored row, taken apart.
#[derive(Clone, Debug)]
pub struct RowRef<'a> {
    /// The place of each part on the value line.
    pub parts: [&'a [u8]; super::PARTS_MAX],
    pub entity_key: Cow<'a, [u8]>,
    /// What the row has a copy of.
    pub copy: Option<&'a [u8]>,
}

impl<'a> RowRef<'a> {
    /// Takes a row of an index with this definition apart; `None` if no such row was ever written.
    pub fn read(
        definition: &IndexDefinition,
        parts_and_suffix: &'a [u8],
        value: &'a [u8],
    ) -> Option<Self> {
        let mut parts = [&[][..]; super::PARTS_MAX];
        let mut rest = parts_and_suffix;
        for part in parts.iter_mut().take(definition.keys.len()) {
            (*part, rest) = value_line::split_value(rest)?;
        }
        let (kind, value) = value.split_first()?;
        if definition.unique {
            let (length, value) = value.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (entity_key, copy) = value.split_at_checked(length)?;
            let copy = (!copy.is_empty()).then_some(copy);
            let is_cut = parts.iter().any(|part| value_line::is_cut(part));
            let is_row = *kind == UNIQUE && rest.len() == if is_cut { CUT_HASH_BYTES } else { 0 };
            return is_row.then_some(Self { parts, entity_key: Cow::Borrowed(entity_key), copy });
        }
        let copy = match *kind {
            KEYS_ONLY if value.is_empty() => None,
            COPY => Some(value),
            _ => return None,
        };
        let partition_key =
            if definition.is_local() { value_line::whole_ordered_text(parts[0]) } else { None };
        let entity_key = match partition_key {
            None => Cow::Borrowed(rest),
            Some(mut entity_key) => {
                entity_key.push(SEPARATOR);
                entity_key.extend_from_slice(rest);
                Cow::Owned(entity_key)
            }
        };
        Some(Self { parts, entity_key, copy })
    }
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
