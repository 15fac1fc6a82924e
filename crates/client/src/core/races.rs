//! Conditional changes that others were faster with: how often one is tried again, and after which pause.

use std::time::Duration;

use super::error::{Result, refused};

/// Races that may be lost for one change. Each attempt starts with a fresh read and the pauses grow, so that that many
/// losses mean an entity that is too busy for changes of this kind.
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
