//! Admission by disk space: writes are refused while the disk is nearly full, and admitted again when it is not.
//!
//! A commit or a flush that fails for lack of room is final: the process has to stop. So every second, and after every
//! few megabytes, this measures how much room there is, and keeps a reserve with two lines. Below the first, the whole
//! reserve, the committer refuses whatever does not say that it frees space: deletions go on, and dropping a table. They
//! take some room first, and give theirs back when they are compacted; so below the second line, a quarter of the
//! reserve, they are refused as well, and only reads go on. What is left then is for flushes of what was acknowledged.
//!
//! Compaction needs room for the new tables beside the old ones. One runs at a time, with a permit, and claims what it may
//! take beforehand: down to the second line, for it is compaction that gives back what was deleted. What it has claimed,
//! writes do not get. Where compaction has to wait and flushed memtables pile up, less is admitted and finally nothing: each
//! of them makes what has to be compacted larger, and fjall would stop the committer in the midst of a commit, for as long
//! as it takes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::embedded::commit::group::Admission;
use crate::embedded::locks::lock_if_free;
use crate::embedded::options::{EmbeddedOptions, OpenError};
use crate::embedded::stats::Stats;

/// How often to measure when little is written.
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

/// How much room there is.
pub(crate) struct DiskSpace {
    folder: PathBuf,
    reserve_bytes: u64,
    /// What there was room for when it was last measured, an [`Admission`].
    measured: AtomicU8,
    /// What is admitted at most because compaction waits for room and has piled up, an [`Admission`].
    limit: AtomicU8,
    /// Bytes committed since it was last measured, and those after which to measure again.
    committed: AtomicU64,
    measure_after: AtomicU64,
    /// Bytes in memory that will be flushed to tables, as of the last commit or second.
    unflushed: AtomicU64,
    /// Bytes that may be committed until the compaction under way is over, and those that have been.
    allowance: AtomicU64,
    committed_meanwhile: AtomicU64,
    compaction: Mutex<()>,
    /// Those who wait for a permit.
    waiting: AtomicUsize,
    stats: Arc<Stats>,
    #[cfg(test)]
    pub(crate) pretended_free: Mutex<Option<u64>>,
}

/// The right to compact. One at a time has it, or else two would claim the same room.
pub(crate) struct CompactionPermit<'a> {
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
            measured: AtomicU8::new(Admission::Everything as u8),
            limit: AtomicU8::new(Admission::Everything as u8),
            committed: AtomicU64::new(0),
            measure_after: AtomicU64::new(0),
            unflushed: AtomicU64::new(0),
            allowance: AtomicU64::new(u64::MAX),
            committed_meanwhile: AtomicU64::new(0),
            compaction: Mutex::new(()),
            waiting: AtomicUsize::new(0),
            stats,
            #[cfg(test)]
            pretended_free: Mutex::new(None),
        };
        space.measure();
        space
    }

    /// What may be written now.
    pub(crate) fn admission(&self) -> Admission {
        self.last_measured().max(stored(&self.limit))
    }

    /// Whether the disk is nearly full.
    pub(crate) fn is_low(&self) -> bool {
        self.last_measured() != Admission::Everything
    }

    /// Compaction waits for room and has so much before it that this is the most to be admitted; or it does not.
    pub(crate) fn limit(&self, admission: Admission) {
        if self.limit.swap(admission as u8, Ordering::Relaxed) == admission as u8 {
            return;
        }
        match admission {
            Admission::Everything => tracing::info!("compaction has caught up: taking writes"),
            Admission::Deletions => {
                tracing::error!("much waits to be compacted: refusing writes, deletions excepted");
            }
            Admission::Nothing => {
                tracing::error!("too much waits to be compacted: refusing all writes");
            }
        }
    }

    /// Whether that many bytes can be written and half of the reserve is left; true where nothing is
    /// known of the disk.
    pub(crate) fn spares(&self, bytes: u64) -> bool {
        self.room().is_none_or(|room| room.free >= bytes.saturating_add(self.reserve(room) / 2))
    }

    /// Waits for the permit to compact.
    pub(crate) fn compaction_permit(&self) -> CompactionPermit<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.compaction.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        CompactionPermit { space: self, _guard: guard }
    }

    /// The permit to compact, unless someone has it or waits for it.
    pub(crate) fn try_compaction_permit(&self) -> Option<CompactionPermit<'_>> {
        // A compactor that works step by step would have the next permit before those who wait for one are awake.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let guard = lock_if_free(&self.compaction)?;
        Some(CompactionPermit { space: self, _guard: guard })
    }

    /// Measures every second until `ended` is, and does what is to be done as often.
    pub(crate) fn monitor(&self, ended: &Receiver<()>, mut also: impl FnMut()) {
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            also();
            self.measure();
        }
    }

    /// Counts bytes that were committed. A fast disk fills within a second: measures at once when a good part of the reserve may have
    /// gone, since what is in the journal will be in tables as well.
    pub(crate) fn committed(&self, bytes: u64) {
        self.committed_meanwhile.fetch_add(bytes, Ordering::Relaxed);
        let committed = self.committed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if committed > self.measure_after.load(Ordering::Relaxed) {
            self.measure();
        }
    }

    /// That much is in memory and will take room when it is flushed, which must not fail.
    pub(crate) fn set_unflushed(&self, bytes: u64) {
        self.unflushed.store(bytes, Ordering::Relaxed);
    }

    fn measure(&self) {
        self.committed.store(0, Ordering::Relaxed);
        // Where free space cannot be asked for, writes are admitted.
        if let Some(room) = self.room() {
            self.update(room);
        }
    }

    fn update(&self, room: Room) {
        let reserve = self.reserve(room);
        let committed = self.committed_meanwhile.load(Ordering::Relaxed);
        let is_used_up = committed >= self.allowance.load(Ordering::Relaxed);
        self.measure_after.store(reserve / 16, Ordering::Relaxed);
        let flush = self.flush_bytes(reserve);
        let admission = if room.free < flush.max(reserve / LAST_SHARE) {
            Admission::Nothing
        } else if room.free < reserve.max(flush + reserve / LAST_SHARE) || is_used_up {
            Admission::Deletions
        } else {
            Admission::Everything
        };
        let before = self.last_measured();
        self.measured.store(admission as u8, Ordering::Relaxed);
        self.stats.disk_free_bytes.store(room.free, Ordering::Relaxed);
        if admission != before {
            self.log(admission, room);
        }
    }

    fn log(&self, admission: Admission, room: Room) {
        let (free_bytes, reserve, folder) = (room.free, self.reserve(room), self.folder.display());
        match admission {
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

    fn last_measured(&self) -> Admission {
        stored(&self.measured)
    }

    /// What flushing all that is in memory takes, with the indexes of its tables; who reserves nothing does not ask.
    fn flush_bytes(&self, reserve: u64) -> u64 {
        let unflushed = if reserve == 0 { 0 } else { self.unflushed.load(Ordering::Relaxed) };
        unflushed + unflushed / 8
    }

    fn reserve(&self, room: Room) -> u64 {
        self.reserve_bytes.min(room.total / SHARE_MAX)
    }

    /// What may be committed while compaction takes that many bytes; `None` if it may not take them.
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

impl CompactionPermit<'_> {
    /// Claims that many bytes until the permit is given back; false if the second line would not be left. Without a
    /// reserve everything is granted.
    pub(crate) fn claim(&self, bytes: u64) -> bool {
        let Some(room) = self.space.room() else { return true };
        let Some(allowance) = self.space.judge_claim(bytes, room) else { return false };
        self.space.committed_meanwhile.store(0, Ordering::Relaxed);
        self.set_allowance(allowance);
        true
    }

    fn set_allowance(&self, bytes: u64) {
        if self.space.allowance.swap(bytes, Ordering::Relaxed) != bytes {
            self.space.measure();
        }
    }
}

impl Drop for CompactionPermit<'_> {
    fn drop(&mut self) {
        self.set_allowance(u64::MAX);
    }
}

fn stored(number: &AtomicU8) -> Admission {
    [Admission::Everything, Admission::Deletions, Admission::Nothing]
        [usize::from(number.load(Ordering::Relaxed))]
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
        assert_eq!(space.admission(), Admission::Everything);
        for (free, total, admission) in [
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
            space.update(Room { free, total });
            assert_eq!(space.admission(), admission, "{free} of {total}");
            assert_eq!(space.stats.disk_free_bytes.load(Ordering::Relaxed), free);
        }
    }

    #[test]
    fn what_is_in_memory_can_always_be_flushed() {
        let space = space(100);
        space.set_unflushed(80);
        for (free, admission) in [
            (115, Admission::Everything),
            (114, Admission::Deletions),
            (90, Admission::Deletions),
            (89, Admission::Nothing),
        ] {
            space.update(Room { free, total: 10_000 });
            assert_eq!(space.admission(), admission, "{free}");
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
        space.update(Room { free: 0, total: 1000 });
        assert_eq!(space.admission(), Admission::Everything);
        assert!(space.compaction_permit().claim(u64::MAX));
    }

    #[test]
    fn compaction_leaves_the_second_line() {
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
    fn writes_do_not_get_what_compaction_has_claimed() {
        let space = space(100);
        *space.pretended_free.lock().unwrap() = Some(1000);
        let permit = space.compaction_permit();
        assert!(permit.claim(900));
        assert_eq!(space.admission(), Admission::Deletions);
        assert!(space.try_compaction_permit().is_none());
        drop(permit);
        assert_eq!(space.admission(), Admission::Everything);

        let permit = space.try_compaction_permit().expect("nobody has it");
        assert!(permit.claim(500));
        space.committed(199);
        assert_eq!(space.admission(), Admission::Everything);
        space.committed(1);
        space.measure();
        assert_eq!(space.admission(), Admission::Deletions);
        drop(permit);
        assert_eq!(space.admission(), Admission::Everything);
    }

    #[test]
    fn a_permit_goes_to_those_who_wait_before_those_who_try() {
        let space = space(100);
        let permit = space.compaction_permit();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(space.compaction_permit()));
            while space.waiting.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            drop(permit);
            while !waiting.is_finished() {
                let tried = space.try_compaction_permit();
                assert!(tried.is_none() || space.waiting.load(Ordering::Relaxed) == 0);
            }
        });
        assert!(space.try_compaction_permit().is_some());
    }

    #[test]
    fn less_is_admitted_while_much_waits_to_be_compacted() {
        let space = space(100);
        *space.pretended_free.lock().unwrap() = Some(1000);
        for admission in [Admission::Deletions, Admission::Nothing, Admission::Everything] {
            space.limit(admission);
            assert_eq!(space.admission(), admission);
            assert!(!space.is_low());
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_disk_can_be_asked() {
        let room = space(0).room().expect("a disk");
        assert!(room.total > 0 && room.free <= room.total);
        assert!(!space(1).compaction_permit().claim(u64::MAX));
        assert!(space(1).compaction_permit().claim(1));
    }
}
