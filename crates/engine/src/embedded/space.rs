//! Refusing writes while the disk is nearly full, and taking them again by itself when it is not.
//!
//! A commit that fails for lack of room is final: the process has to stop. So every second, and after
//! every few megabytes, this looks how much room there is, and below a reserve the committer refuses what would take more. Reads go on, and so does what gives room
//! back: deletions, and dropping a table. The reserve is for what is written without being asked for: flushes of
//! what was acknowledged. Compactions wait as well: one that ends for lack of room leaves its unfinished files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::stats::Stats;

/// How often to look when little is written.
const PERIOD: Duration = Duration::from_secs(1);

/// Of a small disk the reserve is at most a quarter.
const SHARE_MAX: u64 = 4;

/// How much room there is.
pub(super) struct Space {
    folder: PathBuf,
    reserve_bytes: u64,
    is_low: AtomicBool,
    /// Bytes committed since the last look.
    committed: AtomicU64,
    stats: Arc<Stats>,
}

/// Bytes of the disk.
#[derive(Clone, Copy, Debug)]
struct Room {
    free: u64,
    total: u64,
}

impl Space {
    pub(super) fn new(folder: PathBuf, reserve_bytes: u64, stats: Arc<Stats>) -> Self {
        let is_low = AtomicBool::new(false);
        let space = Self { folder, reserve_bytes, is_low, committed: AtomicU64::new(0), stats };
        space.look();
        space
    }

    pub(super) fn is_low(&self) -> bool {
        self.is_low.load(Ordering::Relaxed)
    }

    /// Whether so many bytes can be written without touching the reserve. Who reserves nothing does not ask.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        let needed = bytes.saturating_add(self.reserve_bytes);
        self.reserve_bytes == 0 || self.room().is_none_or(|room| room.free >= needed)
    }

    /// Looks every second until `ended` is.
    pub(super) fn watch(&self, ended: &Receiver<()>) {
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            self.look();
        }
    }

    /// So much was committed. A fast disk fills within a second: looks at once when a good part of the reserve may have
    /// gone, since what is in the journal will be in tables as well.
    pub(super) fn committed(&self, bytes: u64) {
        let committed = self.committed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if committed > self.reserve_bytes / 16 {
            self.look();
        }
    }

    fn look(&self) {
        self.committed.store(0, Ordering::Relaxed);
        // Who cannot ask does not know, and goes on.
        if let Some(room) = self.room() {
            self.learn(room);
        }
    }

    fn learn(&self, room: Room) {
        let reserve = self.reserve_bytes.min(room.total / SHARE_MAX);
        let is_low = room.free < reserve;
        self.stats.disk_free_bytes.store(room.free, Ordering::Relaxed);
        self.stats.disk_full.store(u64::from(is_low), Ordering::Relaxed);
        if self.is_low.swap(is_low, Ordering::Relaxed) == is_low {
            return;
        }
        let (free_bytes, folder) = (room.free, self.folder.display());
        if is_low {
            tracing::error!(%folder, free_bytes, reserve, "the disk is nearly full: refusing writes, deletions excepted");
        } else {
            tracing::info!(%folder, free_bytes, "there is room on the disk again: taking writes");
        }
    }

    #[cfg(unix)]
    fn room(&self) -> Option<Room> {
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        Some(Room { free: disk.f_bavail * disk.f_frsize, total: disk.f_blocks * disk.f_frsize })
    }

    #[cfg(not(unix))]
    fn room(&self) -> Option<Room> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_kept_and_given_back() {
        let folder = std::env::temp_dir();
        let space = Space::new(folder, 100, Arc::default());
        assert!(!space.is_low());
        for (free, total, is_low) in [
            (100, 10_000, false),
            (99, 10_000, true),
            (0, 10_000, true),
            (100, 10_000, false),
            // Of a small disk a quarter is kept.
            (50, 200, false),
            (49, 200, true),
        ] {
            space.learn(Room { free, total });
            assert_eq!(space.is_low(), is_low, "{free} of {total}");
            assert_eq!(space.stats.disk_full.load(Ordering::Relaxed), u64::from(is_low));
            assert_eq!(space.stats.disk_free_bytes.load(Ordering::Relaxed), free);
        }
    }

    #[test]
    fn nothing_is_reserved_unless_asked_for() {
        let space = Space::new(std::env::temp_dir(), 0, Arc::default());
        space.learn(Room { free: 0, total: 1000 });
        assert!(!space.is_low());
    }

    #[test]
    #[cfg(unix)]
    fn what_does_not_fit_is_known_before() {
        let space = Space::new(std::env::temp_dir(), 1, Arc::default());
        assert!(space.has_room_for(1));
        assert!(!space.has_room_for(u64::MAX));
        assert!(Space::new(std::env::temp_dir(), 0, Arc::default()).has_room_for(u64::MAX));
    }

    #[test]
    #[cfg(unix)]
    fn a_disk_can_be_asked() {
        let space = Space::new(std::env::temp_dir(), 0, Arc::default());
        let room = space.room().expect("a disk");
        assert!(room.total > 0 && room.free <= room.total);
    }
}
