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
//! do not get. Where merging has to wait and flushed memtables pile up, less is taken and finally nothing: each of them
//! makes what has to be merged larger, and fjall would stop the committer in the midst of a commit, for as long as it
//! takes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::embedded::locks::lock_if_free;
use crate::embedded::options::{EmbeddedOptions, OpenError};
use crate::embedded::stats::Stats;

/// How often to look when little is written.
const PERIOD: Duration = Duration::from_secs(1);

/// Of a small disk the reserve is at most a quarter.
const SHARE_MAX: u64 = 4;

/// The smallest disk on which all this holds. fjall gives a journal back after 64 MB, so there are 61 MiB and what two
/// memtables hold beside the tables and the reserve; on less, deleting everything would not make room.
const DISK_BYTES_MIN: u64 = 120 * 1024 * 1024;

/// On a small disk a memtable is at most this share: the reserve has room to flush two of them, and some more.
const MEMTABLE_SHARE: u64 = 16;

/// The share of the reserve that is the second line.
const LAST_SHARE: u64 = 4;

/// What the disk has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Admission {
    Everything,
    /// What gives back more than it takes.
    Deletions,
    Nothing,
}

impl Admission {
    fn stored(number: &AtomicU8) -> Self {
        [Self::Everything, Self::Deletions, Self::Nothing]
            [usize::from(number.load(Ordering::Relaxed))]
    }
}

/// How much room there is.
pub(crate) struct DiskSpace {
    folder: PathBuf,
    reserve_bytes: u64,
    /// What there was room for at the last look, a [`Admission`].
    taking: AtomicU8,
    /// What is taken at most because merging waits for room and has piled up, a [`Admission`].
    limit: AtomicU8,
    /// Bytes committed since the last look, and those after which to look again.
    committed: AtomicU64,
    look_after: AtomicU64,
    /// Bytes in memory that will be flushed to tables, as of the last commit or second.
    unflushed: AtomicU64,
    /// Bytes that may be committed until the merging is over that is under way, and those that have been.
    allowance: AtomicU64,
    committed_meanwhile: AtomicU64,
    turn: Mutex<()>,
    /// Those who wait for the turn.
    waiting: AtomicUsize,
    stats: Arc<Stats>,
    #[cfg(test)]
    pub(crate) pretended_free: Mutex<Option<u64>>,
}

/// The right to merge. One at a time has it, or else two would claim the same room.
pub(crate) struct Turn<'a> {
    space: &'a DiskSpace,
    _guard: MutexGuard<'a, ()>,
}

/// Bytes of the disk.
#[derive(Clone, Copy, Debug)]
struct Room {
    free: u64,
    total: u64,
}

impl DiskSpace {
    pub(crate) fn new(folder: PathBuf, reserve_bytes: u64, stats: Arc<Stats>) -> Self {
        let space = Self {
            folder,
            reserve_bytes,
            taking: AtomicU8::new(Admission::Everything as u8),
            limit: AtomicU8::new(Admission::Everything as u8),
            committed: AtomicU64::new(0),
            look_after: AtomicU64::new(0),
            unflushed: AtomicU64::new(0),
            allowance: AtomicU64::new(u64::MAX),
            committed_meanwhile: AtomicU64::new(0),
            turn: Mutex::new(()),
            waiting: AtomicUsize::new(0),
            stats,
            #[cfg(test)]
            pretended_free: Mutex::new(None),
        };
        space.look();
        space
    }

    pub(crate) fn taking(&self) -> Admission {
        self.last_look().max(Admission::stored(&self.limit))
    }

    /// Whether the disk is nearly full.
    pub(crate) fn is_low(&self) -> bool {
        self.last_look() != Admission::Everything
    }

    /// Merging waits for room and has so much before it that this is the most to be taken; or it does not.
    pub(crate) fn limit(&self, taking: Admission) {
        if self.limit.swap(taking as u8, Ordering::Relaxed) == taking as u8 {
            return;
        }
        match taking {
            Admission::Everything => tracing::info!("merging has caught up: taking writes"),
            Admission::Deletions => {
                tracing::error!("much waits to be merged: refusing writes, deletions excepted");
            }
            Admission::Nothing => {
                tracing::error!("too much waits to be merged: refusing all writes");
            }
        }
        self.look();
    }

    /// Whether so many bytes can be written and half of the reserve is left. Who reserves nothing does not ask.
    pub(crate) fn spares(&self, bytes: u64) -> bool {
        self.room().is_none_or(|room| room.free >= bytes.saturating_add(self.reserve(room) / 2))
    }

    /// Waits for the turn to merge.
    pub(crate) fn turn(&self) -> Turn<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Turn { space: self, _guard: guard }
    }

    /// The turn to merge, unless someone has it or waits for it.
    pub(crate) fn turn_now(&self) -> Option<Turn<'_>> {
        // Who merges step by step would have the next turn before those who wait for one are awake.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let guard = lock_if_free(&self.turn)?;
        Some(Turn { space: self, _guard: guard })
    }

    /// Looks every second until `ended` is, and does what is to be done as often.
    pub(crate) fn watch(&self, ended: &Receiver<()>, also: impl Fn()) {
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            also();
            self.look();
        }
    }

    /// So much was committed. A fast disk fills within a second: looks at once when a good part of the reserve may have
    /// gone, since what is in the journal will be in tables as well.
    pub(crate) fn committed(&self, bytes: u64) {
        self.committed_meanwhile.fetch_add(bytes, Ordering::Relaxed);
        let committed = self.committed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if committed > self.look_after.load(Ordering::Relaxed) {
            self.look();
        }
    }

    /// So much is in memory and will take room when it is flushed, which must not fail.
    pub(crate) fn set_unflushed(&self, bytes: u64) {
        self.unflushed.store(bytes, Ordering::Relaxed);
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
        let committed = self.committed_meanwhile.load(Ordering::Relaxed);
        let is_used_up = committed >= self.allowance.load(Ordering::Relaxed);
        self.look_after.store(reserve / 16, Ordering::Relaxed);
        let flush = self.flush_bytes(reserve);
        let taking = if room.free < flush.max(reserve / LAST_SHARE) {
            Admission::Nothing
        } else if room.free < reserve.max(flush + reserve / LAST_SHARE) || is_used_up {
            Admission::Deletions
        } else {
            Admission::Everything
        };
        let before = self.last_look();
        self.taking.store(taking as u8, Ordering::Relaxed);
        let is_full = self.taking() != Admission::Everything;
        self.stats.disk_free_bytes.store(room.free, Ordering::Relaxed);
        self.stats.disk_full.store(u64::from(is_full), Ordering::Relaxed);
        if taking != before {
            self.tell(taking, room);
        }
    }

    fn tell(&self, taking: Admission, room: Room) {
        let (free_bytes, reserve, folder) = (room.free, self.reserve(room), self.folder.display());
        match taking {
            Admission::Everything => {
                tracing::info!(%folder, free_bytes, "there is room on the disk again: taking writes");
            }
            Admission::Deletions => {
                tracing::error!(%folder, free_bytes, reserve, "the disk is nearly full: refusing writes, deletions excepted");
            }
            Admission::Nothing => {
                tracing::error!(%folder, free_bytes, reserve, "the disk is all but full: refusing all writes, deletions too");
            }
        }
    }

    fn last_look(&self) -> Admission {
        Admission::stored(&self.taking)
    }

    /// What flushing all that is in memory takes, with the indexes of its tables; who reserves nothing does not ask.
    fn flush_bytes(&self, reserve: u64) -> u64 {
        let unflushed = if reserve == 0 { 0 } else { self.unflushed.load(Ordering::Relaxed) };
        unflushed + unflushed / 8
    }

    fn reserve(&self, room: Room) -> u64 {
        self.reserve_bytes.min(room.total / SHARE_MAX)
    }

    /// What may be committed while merging takes so many bytes; `None` if it may not take them.
    fn judge_claim(&self, bytes: u64, room: Room) -> Option<u64> {
        let reserve = self.reserve(room);
        if reserve == 0 {
            return Some(u64::MAX);
        }
        let left = room.free.checked_sub(bytes).filter(|left| *left >= reserve / LAST_SHARE)?;
        // What is committed will be in the journal and in a table.
        Some(left.saturating_sub(reserve) / 2)
    }

    fn room(&self) -> Option<Room> {
        #[cfg(test)]
        if let Some(free) = *self.pretended_free.lock().unwrap() {
            return Some(Room { free, total: u64::MAX });
        }
        self.ask()
    }

    fn ask(&self) -> Option<Room> {
        ask(&self.folder)
    }
}

#[cfg(unix)]
fn ask(folder: &Path) -> Option<Room> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(Room { free: disk.f_bavail * disk.f_frsize, total: disk.f_blocks * disk.f_frsize })
}

#[cfg(not(unix))]
fn ask(_folder: &Path) -> Option<Room> {
    None
}

/// The options for a folder that is, or will be, at `path`, with memtables that fit its disk.
///
/// # Errors
///
/// [`OpenError::SmallDisk`] where the reserve could not be kept.
pub(crate) fn fit_to_disk(
    path: &Path,
    mut options: EmbeddedOptions,
) -> Result<EmbeddedOptions, OpenError> {
    let existing = std::path::absolute(path).ok();
    let room = existing.and_then(|path| path.ancestors().find_map(ask));
    let Some(room) = room.filter(|_| options.disk_reserve_bytes > 0) else { return Ok(options) };
    if room.total < DISK_BYTES_MIN {
        let (total_bytes, needed_bytes) = (room.total, DISK_BYTES_MIN);
        return Err(OpenError::SmallDisk { path: path.into(), total_bytes, needed_bytes });
    }
    options.memtable_bytes = options.memtable_bytes.min(room.total / MEMTABLE_SHARE);
    Ok(options)
}

impl Turn<'_> {
    /// Claims so many bytes until the turn is over; false if the second line would not be left. Who reserves nothing
    /// gets everything.
    pub(crate) fn claim(&self, bytes: u64) -> bool {
        let Some(room) = self.space.room() else { return true };
        let Some(allowance) = self.space.judge_claim(bytes, room) else { return false };
        self.space.committed_meanwhile.store(0, Ordering::Relaxed);
        self.set_allowance(allowance);
        true
    }

    fn set_allowance(&self, bytes: u64) {
        if self.space.allowance.swap(bytes, Ordering::Relaxed) != bytes {
            self.space.look();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.set_allowance(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(reserve_bytes: u64) -> DiskSpace {
        DiskSpace::new(std::env::temp_dir(), reserve_bytes, Arc::default())
    }

    #[test]
    fn the_reserve_is_kept_and_given_back() {
        let space = space(100);
        assert_eq!(space.taking(), Admission::Everything);
        for (free, total, taking) in [
            (100, 10_000, Admission::Everything),
            (99, 10_000, Admission::Deletions),
            (25, 10_000, Admission::Deletions),
            (24, 10_000, Admission::Nothing),
            (0, 10_000, Admission::Nothing),
            (25, 10_000, Admission::Deletions),
            (100, 10_000, Admission::Everything),
            // Of a small disk a quarter is kept.
            (50, 200, Admission::Everything),
            (49, 200, Admission::Deletions),
            (11, 200, Admission::Nothing),
        ] {
            space.learn(Room { free, total });
            assert_eq!(space.taking(), taking, "{free} of {total}");
            let is_full = taking != Admission::Everything;
            assert_eq!(space.stats.disk_full.load(Ordering::Relaxed), u64::from(is_full));
            assert_eq!(space.stats.disk_free_bytes.load(Ordering::Relaxed), free);
        }
    }

    #[test]
    fn what_is_in_memory_can_always_be_flushed() {
        let space = space(100);
        space.set_unflushed(80);
        for (free, taking) in [
            (115, Admission::Everything),
            (114, Admission::Deletions),
            (90, Admission::Deletions),
            (89, Admission::Nothing),
        ] {
            space.learn(Room { free, total: 10_000 });
            assert_eq!(space.taking(), taking, "{free}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_folder_that_is_not_there_yet_has_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::default();
        let fitted = fit_to_disk(&folder.path().join("not/there"), options).unwrap();
        assert!(fitted.memtable_bytes <= options.memtable_bytes && fitted.memtable_bytes > 0);
    }

    #[test]
    fn nothing_is_reserved_unless_asked_for() {
        let space = space(0);
        space.learn(Room { free: 0, total: 1000 });
        assert_eq!(space.taking(), Admission::Everything);
        assert!(space.turn().claim(u64::MAX));
    }

    #[test]
    fn merging_leaves_the_second_line() {
        let space = space(100);
        let allowance = |free, bytes| space.judge_claim(bytes, Room { free, total: 10_000 });
        // Writes may take what is left beside the reserve, each byte twice.
        assert_eq!(allowance(1000, 500), Some(200));
        assert_eq!(allowance(1000, 900), Some(0));
        assert_eq!(allowance(1000, 975), Some(0));
        assert_eq!(allowance(1000, 976), None);
        assert_eq!(allowance(1000, 1001), None);
        // Also while the disk is nearly full.
        assert_eq!(allowance(99, 74), Some(0));
        assert_eq!(allowance(99, 75), None);
    }

    #[test]
    fn writes_do_not_get_what_merging_has_claimed() {
        let space = space(100);
        *space.pretended_free.lock().unwrap() = Some(1000);
        let turn = space.turn();
        assert!(turn.claim(900));
        assert_eq!(space.taking(), Admission::Deletions);
        assert!(space.turn_now().is_none());
        drop(turn);
        assert_eq!(space.taking(), Admission::Everything);

        let turn = space.turn_now().expect("nobody has it");
        assert!(turn.claim(500));
        space.committed(199);
        assert_eq!(space.taking(), Admission::Everything);
        space.committed(1);
        space.look();
        assert_eq!(space.taking(), Admission::Deletions);
        drop(turn);
        assert_eq!(space.taking(), Admission::Everything);
    }

    #[test]
    fn who_waits_for_the_turn_gets_it_before_who_only_tries() {
        let space = space(100);
        let turn = space.turn();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(space.turn()));
            while space.waiting.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            drop(turn);
            while !waiting.is_finished() {
                let tried = space.turn_now();
                assert!(tried.is_none() || space.waiting.load(Ordering::Relaxed) == 0);
            }
        });
        assert!(space.turn_now().is_some());
    }

    #[test]
    fn less_is_taken_while_much_waits_to_be_merged() {
        let space = space(100);
        *space.pretended_free.lock().unwrap() = Some(1000);
        for taking in [Admission::Deletions, Admission::Nothing, Admission::Everything] {
            space.limit(taking);
            assert_eq!(space.taking(), taking);
            let is_full = taking != Admission::Everything;
            assert_eq!(space.stats.disk_full.load(Ordering::Relaxed), u64::from(is_full));
            assert!(!space.is_low());
        }
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
