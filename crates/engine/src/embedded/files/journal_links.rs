//! Which journals a crash must leave, and a second link to each of them.
//!
//! fjall begins a new journal when one is full, and removes the old one when all that it held is in tables. It tells
//! nobody, and takes the journals that it finds at a start for all there were: one that is lost takes its rows along
//! in silence. So the mark of a running process (`clean_mark`) names the journals that must be there.
//!
//! It has to be right whenever the process dies, so it cannot follow fjall's removals, nor may it go ahead of them. For
//! this, each journal has a second link below `journals/` from the moment that the mark names it. fjall removes
//! its own link when it likes; ours goes only after the mark no longer names the journal. A start that misses a journal
//! takes it back from there: to replay one that is in tables already changes nothing, since all later ones are
//! replayed as well. Only a journal without any link is lost.
//!
//! A new journal is noticed by the first commit after it was begun, before anyone is told that it is durable, and the
//! mark is written: a few syncs for every 64 MB. It is also written by the first commit that a journal gets from a process,
//! so that a journal that was emptied shows.
//!
//! Where the file system has no hard links, the mark names the newest journal alone. Then a lost older one is not
//! noticed, unless there is a gap in the numbers.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::embedded::files::archive::read_at;
use crate::embedded::files::clean_mark::{self, RunningJournal};
use crate::embedded::files::{folder, journal};
use crate::embedded::options::OpenError;

/// Keeps the mark and the links while a process runs.
pub(crate) struct JournalLinks {
    path: PathBuf,
    store: PathBuf,
    named: Mutex<Named>,
}

/// What the mark says.
#[derive(Default)]
struct Named {
    journals: Vec<RunningJournal>,
    /// Whether something was committed to the newest journal, as far as the mark says.
    is_begun: bool,
    /// The journal that will be there when the newest is full.
    next: PathBuf,
    /// Whether the last attempt to write the mark failed, and was told.
    has_failed: bool,
}

/// Where the second links are.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.join(folder::JOURNAL_LINKS)
}

/// The second link of a journal.
pub(crate) fn link_of(path: &Path, id: u64) -> PathBuf {
    folder_of(path).join(journal::name_of(id))
}

/// Gives back the journals that are missing in the store, and makes that durable.
pub(crate) fn restore(path: &Path, store: &Path, ids: &[u64]) -> Result<(), OpenError> {
    for &id in ids {
        let (link, target) = (link_of(path, id), store.join(journal::name_of(id)));
        tracing::warn!(file = %target.display(), link = %link.display(), "missing: taken back from its second link");
        fs::hard_link(&link, &target)
            .or_else(|_| copy_whole(&link, &target))
            .map_err(|source| OpenError::Io { path: target, source })?;
    }
    if ids.is_empty() {
        return Ok(());
    }
    folder::sync_folder(store).map_err(|source| OpenError::Io { path: store.into(), source })
}

/// Copies a file so that it is there whole or not at all: a part of a journal would pass for a damaged one.
fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    let unfinished = to.with_extension("tmp");
    fs::copy(from, &unfinished)?;
    File::open(&unfinished)?.sync_all()?;
    fs::rename(unfinished, to)
}

/// When the journals are named, and so what may be said of the newest one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Nobody writes yet: all that it holds is there to stay.
    Start,
    /// A batch is durable, and this process is the only one that writes.
    Commit,
    /// A batch may be on its way, and may yet fail.
    AnyTime,
}

impl JournalLinks {
    /// Names the journals that there are, before fjall opens them. Not those of a folder that is still being made: it may
    /// be made again as long as nothing says that it was complete.
    pub(crate) fn begin(path: &Path, store: &Path, is_used: bool) -> Result<Self, OpenError> {
        let failed =
            |source: io::Error| OpenError::Io { path: path.join(folder::JOURNAL_LINKS), source };
        // Of a run that ended long ago, perhaps with an older version in between.
        folder::remove_journal_links(path).map_err(failed)?;
        let links = Self { path: path.into(), store: store.into(), named: Mutex::default() };
        if is_used {
            links.named().name_all(&links, Moment::Start).map_err(failed)?;
        }
        Ok(links)
    }

    /// Something was committed, and nobody was told yet.
    pub(crate) fn committed(&self) {
        let mut named = self.named();
        if !named.is_begun || named.next.exists() {
            named.name_or_warn(self, Moment::Commit);
        }
    }

    /// The store is complete and says so; nothing was committed to it yet.
    pub(crate) fn opened(&self) {
        self.look_at(Moment::Start);
    }

    /// To be called now and then: gives up the links to journals that fjall has removed.
    pub(crate) fn look(&self) {
        self.look_at(Moment::AnyTime);
    }

    fn look_at(&self, moment: Moment) {
        let mut named = self.named();
        let is_gone = |journal: &RunningJournal| !self.journal(journal.id).exists();
        let has_gone = named.journals.is_empty() || named.journals.iter().any(is_gone);
        if has_gone || named.next.exists() {
            named.name_or_warn(self, moment);
        }
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self, id: u64) -> PathBuf {
        self.store.join(journal::name_of(id))
    }

    /// Makes sure that a journal has its second link; false if the file system has none.
    fn link(&self, id: u64) -> io::Result<bool> {
        let link = link_of(&self.path, id);
        fs::create_dir_all(self.path.join(folder::JOURNAL_LINKS))?;
        match fs::hard_link(self.journal(id), link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            linked => Ok(linked.is_ok()),
        }
    }
}

impl Named {
    fn name_or_warn(&mut self, links: &JournalLinks, moment: Moment) {
        // Not a reason to stop: what was committed is durable, and the next commit tries again.
        if let Err(error) = self.name_all(links, moment)
            && !std::mem::replace(&mut self.has_failed, true)
        {
            tracing::warn!(%error, "cannot note which journals there are; a lost one might not be noticed");
        }
    }

    /// Writes the mark with the journals that there are now.
    fn name_all(&mut self, links: &JournalLinks, moment: Moment) -> io::Result<()> {
        let ids: Vec<u64> =
            journal::list(&links.store)?.iter().filter_map(|file| journal::id_of(file)).collect();
        let Some(&newest) = ids.last() else { return Ok(()) };
        if moment == Moment::Start {
            // ORDER: what the mark says is there must be on the disk; a killed process may have left it in memory.
            File::open(links.journal(newest))?.sync_all()?;
        }
        let mut journals = Vec::new();
        let mut is_begun = false;
        for id in ids {
            let file = links.journal(id);
            let named =
                self.name(&file, id, id == newest, moment).and_then(|(bytes_min, begun)| {
                    is_begun = begun;
                    Ok(RunningJournal { id, bytes_min, is_linked: links.link(id)? })
                });
            match named {
                Ok(journal) if journal.is_linked || id == newest => journals.push(journal),
                // Without links, those that may go at any time cannot be named; and none before them, or there would
                // be a gap in what is named.
                Ok(_) => journals.clear(),
                // fjall has just removed it, and all before it.
                Err(error) if error.kind() == io::ErrorKind::NotFound && id != newest => {
                    journals.clear();
                }
                Err(error) => return Err(error),
            }
        }
        if journals != self.journals {
            // ORDER: the links are durable before the mark names them, and go when it no longer does.
            folder::sync_folder(&links.path.join(folder::JOURNAL_LINKS))?;
            clean_mark::write_running(&links.path, &journals)?;
        }
        // Also those of an attempt that failed.
        for link in fs::read_dir(folder_of(&links.path))?.flatten().map(|entry| entry.path()) {
            let is_named = |id| journals.iter().any(|journal| journal.id == id);
            if !journal::id_of(&link).is_some_and(is_named) {
                fs::remove_file(link)?;
            }
        }
        self.journals = journals;
        self.is_begun = is_begun;
        self.next = links.journal(newest.saturating_add(1));
        self.has_failed = false;
        Ok(())
    }

    /// How long a journal is at least, and whether this process has written to it.
    fn name(
        &self,
        file: &Path,
        id: u64,
        is_newest: bool,
        moment: Moment,
    ) -> io::Result<(u64, bool)> {
        // What is not the newest is complete.
        if moment == Moment::Start || !is_newest {
            return Ok((content_bytes(file)?, false));
        }
        let known = self.journals.iter().find(|known| known.id == id);
        let bytes = known.map_or(0, |known| known.bytes_min);
        let is_begun = known.is_some() && self.is_begun;
        if is_begun || moment == Moment::AnyTime {
            return Ok((bytes, is_begun));
        }
        // A batch begins with a byte that is not zero.
        let mut file = File::open(file)?;
        file.seek(SeekFrom::Start(bytes))?;
        let mut next = [0];
        let has_batch = file.read(&mut next)? == 1 && next[0] != 0;
        Ok((bytes + u64::from(has_batch), has_batch))
    }
}

/// The bytes of a journal up to the last that is not zero. Reads from the end: there may be 64 MiB of zeros.
pub(crate) fn content_bytes(file: &Path) -> io::Result<u64> {
    const CHUNK_BYTES: u64 = 1 << 20;
    let mut file = File::open(file)?;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        let chunk = read_at(&mut file, start, end - start)?;
        let bytes = journal::content(&chunk).len() as u64;
        if bytes > 0 {
            return Ok(start + bytes);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::files::clean_mark::Mark;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            fs::create_dir(folder.store()).unwrap();
            folder
        }

        fn store(&self) -> PathBuf {
            self.0.path().join("store")
        }

        fn write(&self, id: u64, bytes: &[u8]) {
            let mut zeros = vec![0; 3 << 20];
            zeros[..bytes.len()].copy_from_slice(bytes);
            fs::write(self.store().join(journal::name_of(id)), zeros).unwrap();
        }

        fn begin(&self) -> JournalLinks {
            JournalLinks::begin(self.0.path(), &self.store(), true).unwrap()
        }

        /// Numbers and lengths that the mark names.
        fn named(&self) -> Vec<(u64, u64)> {
            match clean_mark::read(self.0.path()).unwrap() {
                Some(Mark::Running(journals)) => {
                    journals.iter().map(|journal| (journal.id, journal.bytes_min)).collect()
                }
                other => panic!("{other:?}"),
            }
        }

        fn has_link(&self, id: u64) -> bool {
            link_of(self.0.path(), id).exists()
        }
    }

    #[test]
    fn the_mark_follows_the_journals() {
        let folder = Folder::new();
        folder.write(0, b"");
        let links = folder.begin();
        assert_eq!(folder.named(), [(0, 0)]);
        folder.write(0, b"\x01 batch");
        links.committed();
        assert_eq!(folder.named(), [(0, 1)]);
        // fjall goes on to the next, and then removes the first.
        folder.write(1, b"\x01 batch");
        links.committed();
        assert_eq!(folder.named(), [(0, 7), (1, 1)]);
        fs::remove_file(folder.store().join("0.jnl")).unwrap();
        links.committed();
        assert_eq!(folder.named(), [(0, 7), (1, 1)]);
        assert!(folder.has_link(0));
        links.look();
        assert_eq!(folder.named(), [(1, 1)]);
        assert!(!folder.has_link(0) && folder.has_link(1));
    }

    /// Or a folder whose making was interrupted twice would be held to what it never had.
    #[test]
    fn a_folder_in_the_making_has_no_mark() {
        let folder = Folder::new();
        folder.write(0, b"");
        let links = JournalLinks::begin(folder.0.path(), &folder.store(), false).unwrap();
        assert!(clean_mark::read(folder.0.path()).unwrap().is_none());
        links.opened();
        assert_eq!(folder.named(), [(0, 0)]);
    }

    /// A batch on its way may never be durable: the mark must not hold the next start to it.
    #[test]
    fn a_look_in_between_claims_no_batch() {
        let folder = Folder::new();
        folder.write(0, b"\x01 batch");
        let links = folder.begin();
        folder.write(1, b"\x01 batch");
        links.look();
        assert_eq!(folder.named(), [(0, 7), (1, 0)]);
        links.committed();
        assert_eq!(folder.named(), [(0, 7), (1, 1)]);
    }

    /// What is named has no gap, whatever vanishes while it is listed; and no link is left behind.
    #[test]
    fn links_that_nothing_names_go() {
        let folder = Folder::new();
        folder.write(2, b"\x01 batch");
        let links = folder.begin();
        fs::write(link_of(folder.0.path(), 1), b"of an attempt that failed").unwrap();
        folder.write(3, b"\x01 batch");
        links.committed();
        assert_eq!(folder.named(), [(2, 7), (3, 1)]);
        assert!(!folder.has_link(1) && folder.has_link(2));
    }

    #[test]
    fn what_is_copied_is_there_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("4.jnl"));
        fs::write(&from, b"a journal").unwrap();
        fs::write(folder.path().join("4.tmp"), b"of an attempt that was killed").unwrap();
        copy_whole(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"a journal");
        assert!(!folder.path().join("4.tmp").exists());
    }

    #[test]
    fn a_removal_that_nobody_has_noticed_can_be_taken_back() {
        let folder = Folder::new();
        folder.write(4, b"\x01 batch");
        let links = folder.begin();
        assert_eq!(folder.named(), [(4, 7)]);
        folder.write(5, b"");
        fs::remove_file(folder.store().join("4.jnl")).unwrap();
        drop(links);
        restore(folder.0.path(), &folder.store(), &[4]).unwrap();
        assert_eq!(content_bytes(&folder.store().join("4.jnl")).unwrap(), 7);
        assert_eq!(folder.begin().named().journals.len(), 2);
        assert_eq!(folder.named(), [(4, 7), (5, 0)]);
    }
}
