//! The patterns of the Azure Storage Table Design Guide, as calls.
//!
//! Each file is one pattern, with what the guide says about it: when to use it, when not, what it costs, and what others can
//! see half-done. They stand on the public client and on nothing else, so that each can be copied and changed.
//!
//! | Pattern | For | Module |
//! |---|---|---|
//! | Intra-partition secondary index | finding by another value, always consistent | [`intra_partition_index`] |
//! | Index entities | finding many by a value that many share | [`index_entities`] |
//! | Compound key | keys that sort as their parts do | [`compound_key`] |
//! | Log tail | the newest first | [`log_tail`] |
//! | High volume delete | dropping the old without deleting it | [`high_volume_delete`] |
//! | Data series | many small values in one entity | [`data_series`] |
//! | Wide entities | more properties than an entity takes | [`wide_entity`] |
//! | Denormalization | reading at once what belongs together | [`denormalization`] |
//! | Spreading writes | against one hot partition at the end of the table | [`spread_writes`] |
//! | Join in the client | small tables beside a large one | [`client_join`] |
//! | Heterogeneous types, inheritance | several types in a partition | [`heterogeneous`] |
//!
//! The patterns that need queues or blobs (inter-partition index, eventually consistent transactions, large entities, log
//! data) come with the clients of those services.

pub mod client_join;
pub mod compound_key;
pub mod data_series;
pub mod denormalization;
pub mod heterogeneous;
pub mod high_volume_delete;
pub mod index_entities;
pub mod intra_partition_index;
pub mod log_tail;
pub mod spread_writes;
pub mod wide_entity;

use std::time::Duration;

use crate::error::{Result, refused};

/// Races that a pattern may lose for one change. Each attempt starts with a fresh read and the pauses grow, so that so many
/// losses mean an entity that is too busy for the pattern.
const LOST_RACES_MAX: u32 = 20;
const FIRST_PAUSE_MS: u64 = 4;
const PAUSE_MS_MAX: u64 = 500;

/// Counts the races that were lost for one change: somebody else changed the same entity between read and write.
#[derive(Debug, Default)]
pub(crate) struct Races {
    lost: u32,
}

impl Races {
    /// Waits a random while, longer after each loss, so that those who met once do not meet again.
    pub(crate) async fn lost(&mut self) -> Result<()> {
        self.lost += 1;
        if self.lost > LOST_RACES_MAX {
            return Err(refused("others changed the entity in every attempt"));
        }
        let longest_ms = (FIRST_PAUSE_MS << self.lost.min(10)).min(PAUSE_MS_MAX);
        let random = getrandom::u64().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(random % longest_ms)).await;
        Ok(())
    }
}
