//! The mark that says which journals there are: `TAVOLA.clean`, in two forms.
//!
//! After a crash the end of the newest journal may be torn, and a damaged last batch looks the same. After an orderly
//! stop nothing may have changed, so a stop leaves the checksums of the journals behind, and the next start compares
//! them, and replaces the mark before anything is written: this form is only ever there for journals at rest.
//!
//! ```text
//! tavola stopped, journals:
//! <file name> <bytes up to the last that is not zero> <their xxh3_128, hexadecimal>
//! ...
//! <xxh3_64 of the lines above, hexadecimal>
//! ```
//!
//! While a process runs, the mark names the journals that a crash must leave, and how long they are at least; see
//! [`journal_links`](crate::embedded::files::journal_links), which keeps it.
//!
//! ```text
//! tavola running, journals:
//! <file name> <bytes at least> linked|single
//! ...
//! <xxh3_64 of the lines above, hexadecimal>
//! ```
//!
//! A mark that is itself damaged counts as none: then this start is as careful as after a crash, but does not know
//! which journals there were. An older version takes the second form for a damaged mark and removes it, and so
//! leaves none that is outdated.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_128;

use crate::embedded::files::{folder, journal, sealed_text};
use crate::embedded::options::OpenError;

const MARK: &str = "TAVOLA.clean";
const STOPPED: &str = "tavola stopped, journals:\n";
const RUNNING: &str = "tavola running, journals:\n";

/// What the mark of a folder says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// One line for each journal.
    Stopped(Vec<String>),
    Running(Vec<RunningJournal>),
}

/// A journal that a crash must leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningJournal {
    pub(crate) id: u64,
    /// Bytes that were surely written to it.
    pub(crate) bytes_min: u64,
    /// Whether it has a second link. One without may be gone as soon as there is a newer one: fjall removes it.
    pub(crate) is_linked: bool,
}

/// Writes the mark of an orderly stop when it is dropped, if it was told that all is well.
pub(crate) struct CleanMark {
    path: PathBuf,
    store: PathBuf,
    is_clean: AtomicBool,
}

impl CleanMark {
    /// For the data folder `path` with fjall's files in `store`.
    pub(crate) fn new(path: &Path, store: &Path) -> Self {
        Self { path: path.into(), store: store.into(), is_clean: AtomicBool::new(false) }
    }

    /// Everything that was accepted is in the journals and the tables, and nothing more will be.
    pub(crate) fn set_clean(&self) {
        self.is_clean.store(true, Ordering::Relaxed);
    }
}

impl Drop for CleanMark {
    fn drop(&mut self) {
        if !self.is_clean.load(Ordering::Relaxed) {
            return;
        }
        // ORDER: a journal that was deleted must not come back after the mark without it is there; and the second
        // links go when the mark no longer speaks of them.
        let written = folder::sync_folder(&self.store)
            .and_then(|()| lines_of(&self.store))
            .and_then(|lines| {
                folder::write_durably(&self.path, MARK, &sealed_text::seal(STOPPED, &lines))
            })
            .and_then(|()| folder::remove_journal_links(&self.path));
        if let Err(error) = written {
            // Nothing is lost: the next start does without.
            tracing::warn!(%error, "cannot mark the data folder as cleanly stopped");
        }
    }
}

/// Compares the journals with the mark of an orderly stop, if there is one that is sound.
///
/// # Errors
///
/// [`OpenError::Corrupt`] for a journal that is not as it was left, [`OpenError::Incomplete`] for those that are gone.
pub(crate) fn verify(mark: Option<&Mark>, store: &Path) -> Result<(), OpenError> {
    let Some(Mark::Stopped(lines)) = mark else { return Ok(()) };
    let name_of = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let file_of = |line: &String| store.join(name_of(line));
    let missing: Vec<_> = lines.iter().map(file_of).filter(|file| !file.exists()).collect();
    if !missing.is_empty() {
        return Err(OpenError::Incomplete { missing });
    }
    let failed = |source: io::Error| OpenError::Io { path: store.into(), source };
    let found = lines_of(store).map_err(failed)?;
    let gone = lines.iter().find(|line| !found.contains(line));
    let new = found.iter().find(|line| !lines.contains(line));
    let Some(line) = gone.or(new) else { return Ok(()) };
    let file = file_of(line);
    // The place, if the journal itself can tell.
    let offset = fs::read(&file).map_or(0, |bytes| journal::inspect(&bytes, None).bytes);
    let detail = "it is not as it was left by the last orderly stop";
    Err(OpenError::corrupt(&file, offset, detail))
}

/// Removes the mark of an orderly stop durably. The other form stays until it is replaced.
pub(crate) fn remove_stopped(path: &Path, mark: Option<&Mark>) -> Result<(), OpenError> {
    if !matches!(mark, Some(Mark::Stopped(_))) {
        return Ok(());
    }
    let file = path.join(MARK);
    fs::remove_file(&file)
        .and_then(|()| folder::sync_folder(path))
        .map_err(|source| OpenError::Io { path: file, source })
}

/// The mark; `None` if there is none that is sound.
pub(crate) fn read(path: &Path) -> Result<Option<Mark>, OpenError> {
    let file = path.join(MARK);
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: file, source }),
    };
    let stopped = sealed_text::open(&bytes, STOPPED).map(Mark::Stopped);
    let running = || sealed_text::open(&bytes, RUNNING).and_then(|lines| parse_running(&lines));
    let mark = stopped.or_else(|| running().map(Mark::Running));
    if mark.is_none() {
        tracing::warn!(file = %file.display(), "damaged, and not needed: treating the last stop as a crash");
    }
    Ok(mark)
}

/// Replaces the mark by that of a process that runs.
pub(crate) fn write_running(path: &Path, journals: &[RunningJournal]) -> io::Result<()> {
    let line = |journal: &RunningJournal| {
        let links = if journal.is_linked { "linked" } else { "single" };
        format!("{} {} {links}", journal::name_of(journal.id), journal.bytes_min)
    };
    let lines: Vec<_> = journals.iter().map(line).collect();
    folder::write_durably(path, MARK, &sealed_text::seal(RUNNING, &lines))
}

fn parse_running(lines: &[String]) -> Option<Vec<RunningJournal>> {
    let parse = |line: &String| {
        let mut parts = line.split(' ');
        let id = journal::id_of(Path::new(parts.next()?))?;
        let bytes_min = parts.next()?.parse().ok()?;
        let is_linked = parts.next()? == "linked";
        Some(RunningJournal { id, bytes_min, is_linked })
    };
    lines.iter().map(parse).collect()
}

/// One line for each journal.
fn lines_of(store: &Path) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for path in journal::list(store)? {
        let bytes = fs::read(&path)?;
        let content = journal::content(&bytes);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        lines.push(format!("{name} {} {:032x}", content.len(), xxh3_128(content)));
    }
    Ok(lines)
}
