//! The patterns of the Azure Storage Table Design Guide, as calls.
//!
//! Each module is one pattern, with what the guide says about it: when to use it, when not, what it costs, and what others
//! can see half-done. They take typed entities and dynamic ones alike, store the keys that the guide prints, and stand on the
//! public client and on nothing else, so that each can be copied and changed. `docs/design.md` helps to choose.
//!
//! | Pattern | For | Module |
//! |---|---|---|
//! | Intra-partition secondary index | finding by another value, always consistent | [`intra_partition_index`] |
//! | Inter-partition secondary index | finding by another value without the partition key, consistent in the end | [`inter_partition_index`] |
//! | Eventually consistent transactions | changes over partitions, tables and services | [`eventually_consistent`] |
//! | Queue worker | work that is done later, at least once | [`queue_worker`] |
//! | Index entities | finding many by a value that many share | [`index_entities`] |
//! | Compound key | keys of several parts | [`compound_key`] |
//! | Log tail | the newest first | [`log_tail`] |
//! | High volume delete | dropping the old without deleting it | [`high_volume_delete`] |
//! | Data series | many small values in one entity | [`data_series`] |
//! | Wide entities | more properties than an entity takes | [`wide_entity`] |
//! | Denormalization | reading at once what belongs together | [`denormalization`] |
//! | Spreading writes | against one hot partition at the end of the table | [`spread_writes`] |
//! | Join in the client | small tables beside a large one | [`client_join`] |
//! | Heterogeneous types, inheritance | several types in a partition | [`heterogeneous`] |
//!
//! Full copy, partial copy, reference and composite key are the same choices in every index: [`index`].
//!
//! The patterns that need blobs (large entities, log data) come with the client of that service.

pub mod client_join;
pub mod compound_key;
pub mod data_series;
pub mod denormalization;
pub mod eventually_consistent;
pub mod heterogeneous;
pub mod high_volume_delete;
pub mod index;
pub mod index_entities;
pub mod inter_partition_index;
pub mod intra_partition_index;
pub mod log_tail;
pub mod queue_worker;
pub mod spread_writes;
pub mod wide_entity;

use std::ops::Deref;

pub(crate) use crate::core::races::Races;
use crate::error::refused;
use crate::{Entity, ErrorCode, ErrorExt, Result, TableEntity};

/// Whether a conditional change failed because somebody else was faster: changed, made or deleted the entity since it was
/// read.
pub(crate) fn is_conflict(error: &azure_core::Error) -> bool {
    error.is_precondition_failed()
        || error.is_already_there()
        || error.code() == Some(ErrorCode::ResourceNotFound)
}

/// An entity on its way into a table under the keys of a pattern, with what its type wants encrypted.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) entity: Entity,
    pub(crate) encrypted: &'static [&'static str],
}

impl Row {
    pub(crate) fn of<T: TableEntity>(value: &T) -> Result<Self> {
        Ok(Self { entity: value.to_entity()?, encrypted: value.encrypted_properties() })
    }

    /// Keys are never encrypted, so that a property that is must not become one.
    pub(crate) fn check_plain<'p>(
        &self,
        mut properties: impl Iterator<Item = &'p str>,
    ) -> Result<()> {
        match properties.find(|property| self.encrypted.contains(property)) {
            None => Ok(()),
            Some(property) => {
                Err(refused(format!("a key would show what is encrypted: property={property}")))
            }
        }
    }

    /// Whether the other has the same properties, in whatever order.
    pub(crate) fn is_same(&self, other: &Entity) -> bool {
        self.properties().len() == other.properties().len()
            && self.properties().all(|(name, value)| other.value(name) == Some(value))
    }
}

impl Deref for Row {
    type Target = Entity;

    fn deref(&self) -> &Entity {
        &self.entity
    }
}

impl TableEntity for Row {
    fn to_entity(&self) -> Result<Entity> {
        Ok(self.entity.clone())
    }

    fn from_entity(entity: Entity) -> Result<Self> {
        Ok(Self { entity, encrypted: &[] })
    }

    fn encrypted_properties(&self) -> &'static [&'static str] {
        self.encrypted
    }
}
