//! The entries of an entity: in which indexes, under which keys, and what they hold.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ID_PROPERTY, InterPartitionIndex, PARTITION_PROPERTY};
use crate::error::refused;
use crate::patterns::Row;
use crate::patterns::index::{Elsewhere, Index};
use crate::{Entity, Result, Stored, TableClient};

/// An index and where it lies.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// Without its prefix, which is that of the partition here.
    pub(super) index: Index,
    /// Its prefix, by which it is known.
    pub(super) name: String,
    pub(super) table: TableClient,
    pub(super) is_whole: bool,
}

/// The place of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The prefix of the index.
    pub(super) index: String,
    pub(super) partition: String,
    pub(super) row: String,
}

/// What a message says: an entity was or will be changed, and these entries are concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notice {
    /// Account and table of the entity.
    pub(super) table: String,
    /// The prefix of all entities there.
    pub(super) prefix: String,
    /// The indexes that its writer knows, with account and table of each.
    pub(super) indexes: BTreeMap<String, String>,
    pub(super) partition: String,
    pub(super) id: String,
    pub(super) entries: BTreeSet<Entry>,
}

/// The entries that an entity is to have.
pub(super) type Entries = BTreeMap<Entry, Row>;

pub(super) fn are_same(one: &Entries, other: &Entries) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|((place, row), (other_place, other_row))| {
            place == other_place && row.is_same(other_row)
        })
}

/// Whether an entry belongs to the entity with these keys.
pub(super) fn is_of(copy: &Entity, partition_key: &str, id: &str) -> bool {
    owner(copy).is_ok_and(|(partition, row)| partition == partition_key && row == id)
}

/// The keys of the entity that an entry belongs to.
pub(super) fn owner(copy: &Entity) -> Result<(String, String)> {
    Ok((copy.get(PARTITION_PROPERTY)?, copy.get(ID_PROPERTY)?))
}

impl InterPartitionIndex {
    /// The entries that an entity is to have, by the keys that its owner knows.
    pub(super) fn entries(&self, entity: &Row) -> Result<Entries> {
        for property in [PARTITION_PROPERTY, ID_PROPERTY] {
            if entity.value(property).is_some() {
                return Err(refused(format!(
                    "the entries hold a key of the entity in this property: property={property}"
                )));
            }
        }
        let (partition_key, id) = (entity.partition_key(), entity.row_key());
        let mut entries = Entries::new();
        for Placed { index, name, is_whole, .. } in self.indexes.iter() {
            entity.check_plain(index.properties())?;
            let entry_id = Elsewhere::entry_id(*is_whole, partition_key, id);
            let partition = match is_whole {
                true => name.clone(),
                false => format!("{name}{partition_key}"),
            };
            for row in index.keys_of(entity, &entry_id)? {
                let copy = index.copy_of(entity).with(PARTITION_PROPERTY, partition_key);
                let mut copy = copy.with(ID_PROPERTY, id);
                copy.set_keys(partition.as_str(), row.as_str());
                let entry = Entry { index: name.clone(), partition: partition.clone(), row };
                entries.insert(entry, Row { entity: copy, encrypted: entity.encrypted });
            }
        }
        Ok(entries)
    }

    /// The entries of what is stored, or none.
    pub(super) fn entries_of(&self, stored: Option<&Stored<Entity>>) -> Result<Entries> {
        match stored {
            Some(stored) => self.entries(&Row { entity: stored.value.clone(), encrypted: &[] }),
            None => Ok(Entries::new()),
        }
    }

    /// The message about a change of an entity.
    pub(super) fn notice(&self, partition: &str, id: &str, entries: BTreeSet<Entry>) -> Notice {
        let named = |placed: &Placed| (placed.name.clone(), placed.table.qualified_name());
        Notice {
            table: self.table.qualified_name(),
            prefix: self.prefix.clone(),
            indexes: self.indexes.iter().map(named).collect(),
            partition: partition.to_owned(),
            id: id.to_owned(),
            entries,
        }
    }

    /// Whether a message is about entities that are kept here.
    pub(super) fn is_about_ours(&self, notice: &Notice) -> bool {
        notice.table == self.table.qualified_name() && notice.prefix == self.prefix
    }

    /// The first index that a message names and that is not kept here, or in another table.
    pub(super) fn unknown_index<'n>(&self, notice: &'n Notice) -> Option<(&'n str, &'n str)> {
        let is_known = |(name, table): &(&String, &String)| {
            let is_it =
                |placed: &Placed| placed.name == **name && placed.table.qualified_name() == **table;
            self.indexes.iter().any(is_it)
        };
        let mut unknown = notice.indexes.iter().filter(|index| !is_known(index));
        unknown.next().map(|(name, table)| (name.as_str(), table.as_str()))
    }

    /// The table of an index; `None` for one that is kept no more.
    pub(super) fn table_of(&self, entry: &Entry) -> Option<&TableClient> {
        let placed = self.indexes.iter().find(|placed| placed.name == entry.index);
        placed.map(|placed| &placed.table)
    }

    /// Where an entity lies.
    pub(super) fn partition(&self, partition_key: &str) -> String {
        format!("{}{partition_key}", self.prefix)
    }

    /// The entity as its owner knows it.
    pub(super) async fn stored(
        &self,
        partition_key: &str,
        id: &str,
    ) -> Result<Option<Stored<Entity>>> {
        let partition = self.partition(partition_key);
        let stored = self.table.get_entity_if_exists::<Entity>(&partition, id, None).await?;
        Ok(stored.map(|stored| {
            stored.map(|mut entity| {
                entity.set_keys(partition_key, id);
                entity
            })
        }))
    }
}
