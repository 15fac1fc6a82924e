//! Refusing writes while the disk is nearly full, and taking them again by itself when it is not.
//!
//! A commit or a flush that fails for lack of room is final: the process has to stop. So every second, and after every
//! few megabytes, this looks how much room there is, and keeps a reserve with two lines. Below the first, the whole
//! reserve, the committer refuses what takes more room than it gives back: deletions go on, and dropping a table. They
//! take some room first, and give theirs back when they are merged; so below the second line, a quarter of the
//! reserve, they are refused as well, and only reads go on. What is left then is for flushes of what was acknowledged.
//!
//! Merging needs room for the new tables beside the old ones. It is done in turns, and each claims what it may take
//! beforehand: down to the second line, for it is merging that gives back what was deleted. What it has claimed, writes
//! do not get. Where merging has to wait and flushed memtables pile up, nothing is taken either: fjall would stop the
//! committer in the midst of a commit, for as long as it takes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use super::stats::Stats;

/// How often to look when little is written.
const PERIOD: Duration = Duration::from_secs(1);

/// Of a small disk the reserve is at most a quarter.
const SHARE_MAX: u64 = 4;

/// The share of the reserve that is the second line.
const LAST_SHARE: u64 = 4;

/// What the disk has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Everything,
    /// What gives back more than it takes.
    Deletions,
    Nothing,
}

/// How much room there is.
pub(super) struct Space {
    folder: PathBuf,
    reserve_bytes: u64,
    /// What there was room for at the last look, a [`Taking`].
    taking: AtomicU8,
    /// Whether merging waits for room and there is too much to merge.
    has_piled_up: AtomicBool,
    /// Bytes committed since the last look.
    committed: AtomicU64,
    /// Bytes that merging may take of what the reserve is kept for.
    claimed: AtomicU64,
    turn: Mutex<()>,
    stats: Arc<Stats>,
    #[cfg(test)]
    pub(super) pretended_free: Mutex<Option<u64>>,
}

/// The right to merge. One at a time has it, or else two would claim the same room.
pub(super) struct Turn<'a> {
    space: &'a Space,
    _guard: MutexGuard<'a, ()>,
}

/// Bytes of the disk.
#[derive(Clone, Copy, Debug)]
struct Room {
    free: u64,
    total: u64,
}

impl Space {
    pub(super) fn new(folder: PathBuf, reserve_bytes: u64, stats: Arc<Stats>) -> Self {
        let space = Self {
            folder,
            reserve_bytes,
            taking: AtomicU8::new(Taking::Everything as u8),
            has_piled_up: AtomicBool::new(false),
            committed: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            turn: Mutex::new(()),
            stats,
            #[cfg(test)]
            pretended_free: Mutex::new(None),
        };
        space.look();
        space
    }

    pub(super) fn taking(&self) -> Taking {
        if self.has_piled_up.load(Ordering::Relaxed) { Taking::Nothing } else { self.last_look() }
    }

    /// Merging waits for room, and has too much before it to let it become more; or not any more.
    pub(super) fn set_piled_up(&self, has_piled_up: bool) {
        if self.has_piled_up.swap(has_piled_up, Ordering::Relaxed) == has_piled_up {
            return;
        }
        if has_piled_up {
            tracing::error!(
                "too much waits to be merged until there is room on the disk: refusing all writes"
            );
        } else {
            tracing::info!("merging has caught up: taking writes");
        }
        self.look();
    }

    /// Whether so many bytes can be written and half of the reserve is left. Who reserves nothing does not ask.
    pub(super) fn spares(&self, bytes: u64) -> bool {
        self.room().is_none_or(|room| room.free >= bytes.saturating_add(self.reserve(room) / 2))
    }

    /// Waits for the turn to merge.
    pub(super) fn turn(&self) -> Turn<'_> {
        let guard = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Turn { space: self, _guard: guard }
    }

    /// The turn to merge, unless someone has it.
    pub(super) fn turn_now(&self) -> Option<Turn<'_>> {
        let guard = match self.turn.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn { space: self, _guard: guard })
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
        let reserve = self.reserve(room);
        let taking = if room.free < reserve / LAST_SHARE {
            Taking::Nothing
        } else if room.free < reserve + self.claimed.load(Ordering::Relaxed) {
            Taking::Deletions
        } else {
            Taking::Everything
        };
        let before = self.last_look();
        self.taking.store(taking as u8, Ordering::Relaxed);
        let is_full = self.taking() != Taking::Everything;
        self.stats.disk_free_bytes.store(room.free, Ordering::Relaxed);
        self.stats.disk_full.store(u64::from(is_full), Ordering::Relaxed);
        if taking != before {
            self.tell(taking, room);
        }
    }

    fn tell(&self, taking: Taking, room: Room) {
        let (free_bytes, reserve, folder) = (room.free, self.reserve(room), self.folder.display());
        match taking {
            Taking::Everything => {
                tracing::info!(%folder, free_bytes, "there is room on the disk again: taking writes");
            }
            Taking::Deletions => {
                tracing::error!(%folder, free_bytes, reserve, "the disk is nearly full: refusing writes, deletions excepted");
            }
            Taking::Nothing => {
                tracing::error!(%folder, free_bytes, reserve, "the disk is all but full: refusing all writes, deletions too");
            }
        }
    }

    fn last_look(&self) -> Taking {
        let takings = [Taking::Everything, Taking::Deletions, Taking::Nothing];
        takings[usize::from(self.taking.load(Ordering::Relaxed))]
    }

    fn reserve(&self, room: Room) -> u64 {
        self.reserve_bytes.min(room.total / SHARE_MAX)
    }

    /// What merging keeps from writes if it is to take so many bytes; `None` if it may not.
    fn judge_claim(&self, bytes: u64, room: Room) -> Option<u64> {
        let reserve = self.reserve(room);
        if reserve == 0 {
            return Some(0);
        }
        let left = room.free.checked_sub(bytes).filter(|left| *left >= reserve / LAST_SHARE)?;
        Some(if left < reserve { bytes } else { 0 })
    }

    fn room(&self) -> Option<Room> {
        #[cfg(test)]
        if let Some(free) = *self.pretended_free.lock().unwrap() {
            return Some(Room { free, total: u64::MAX });
        }
        self.ask()
    }

    #[cfg(unix)]
    fn ask(&self) -> Option<Room> {
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        Some(Room { free: disk.f_bavail * disk.f_frsize, total: disk.f_blocks * disk.f_frsize })
    }

    #[cfg(not(unix))]
    fn ask(&self) -> Option<Room> {
        None
    }
}

impl Turn<'_> {
    /// Claims so many bytes until the turn is over; false if the second line would not be left. Who reserves nothing
    /// gets everything.
    pub(super) fn claim(&self, bytes: u64) -> bool {
        let Some(room) = self.space.room() else { return true };
        let Some(claimed) = self.space.judge_claim(bytes, room) else { return false };
        self.set_claimed(claimed);
        true
    }

    fn set_claimed(&self, bytes: u64) {
        if self.space.claimed.swap(bytes, Ordering::Relaxed) != bytes {
            self.space.look();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.set_claimed(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(reserve_bytes: u64) -> Space {
        Space::new(std::env::temp_dir(), reserve_bytes, Arc::default())
    }

    #[test]
    fn the_reserve_is_kept_and_given_back() {
        let space = space(100);
        assert_eq!(space.taking(), Taking::Everything);
        for (free, total, taking) in [
            (100, 10_000, Taking::Everything),
            (99, 10_000, Taking::Deletions),
            (25, 10_000, Taking::Deletions),
            (24, 10_000, Taking::Nothing),
            (0, 10_000, Taking::Nothing),
            (25, 10_000, Taking::Deletions),
            (100, 10_000, Taking::Everything),
            // Of a small disk a quarter is kept.
            (50, 200, Taking::Everything),
            (49, 200, Taking::Deletions),
            (11, 200, Taking::Nothing),
        ] {
            space.learn(Room { free, total });
            assert_eq!(space.taking(), taking, "{free} of {total}");
            let is_full = taking != Taking::Everything;
            assert_eq!(space.stats.disk_full.load(Ordering::Relaxed), u64::from(is_full));
            assert_eq!(space.stats.disk_free_bytes.load(Ordering::Relaxed), free);
        }
    }

    #[test]
    fn nothing_is_reserved_unless_asked_for() {
        let space = space(0);
        space.learn(Room { free: 0, total: 1000 });
        assert_eq!(space.taking(), Taking::Everything);
        assert!(space.turn().claim(u64::MAX));
    }

    #[test]
    fn merging_leaves_the_second_line() {
        let space = space(100);
        let claimed = |free, bytes| space.judge_claim(bytes, Room { free, total: 10_000 });
        // The reserve stays whole, so writes go on.
        assert_eq!(claimed(1000, 900), Some(0));
        // It does not, so they wait.
        assert_eq!(claimed(1000, 901), Some(901));
        assert_eq!(claimed(1000, 975), Some(975));
        assert_eq!(claimed(1000, 976), None);
        assert_eq!(claimed(1000, 1001), None);
        // Also while the disk is nearly full.
        assert_eq!(claimed(99, 74), Some(74));
        assert_eq!(claimed(99, 75), None);
    }

    #[test]
    fn writes_do_not_get_what_merging_has_claimed() {
        let space = space(100);
        *space.pretended_free.lock().unwrap() = Some(1000);
        let turn = space.turn();
        assert!(turn.claim(900));
        assert_eq!(space.taking(), Taking::Everything);
        assert!(turn.claim(901));
        assert_eq!(space.taking(), Taking::Deletions);
        assert!(space.turn_now().is_none());
        drop(turn);
        assert_eq!(space.taking(), Taking::Everything);
        assert!(space.turn_now().is_some());
    }

    #[test]
    fn nothing_is_taken_while_too_much_waits_to_be_merged() {
        let space = space(100);
        *space.pretended_free.lock().unwrap() = Some(1000);
        space.set_piled_up(true);
        assert_eq!(space.taking(), Taking::Nothing);
        assert_eq!(space.stats.disk_full.load(Ordering::Relaxed), 1);
        space.set_piled_up(false);
        assert_eq!(space.taking(), Taking::Everything);
        assert_eq!(space.stats.disk_full.load(Ordering::Relaxed), 0);
    }

    #[test]
    #[cfg(unix)]
    fn a_disk_can_be_asked() {
        let room = space(0).room().expect("a disk");
        assert!(room.total > 0 && room.free <= room.total);
        assert!(!space(1).turn().claim(u64::MAX));
        assert!(space(1).turn().claim(1));
    }
}
