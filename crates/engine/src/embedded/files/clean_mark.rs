//! The mark of an orderly stop: what the journals held when nobody wrote to them any more.
//!
//! After a crash the end of the newest journal may be torn, and a damaged last batch looks the same. After an orderly
//! stop nothing may have changed, so a stop leaves the checksums of the journals behind, and the next start compares
//! them. It then removes the mark before anything is written: a mark is only ever there for journals at rest.
//!
//! ```text
//! tavola stopped, journals:
//! <file name> <bytes up to the last that is not zero> <their xxh3_128, hexadecimal>
//! ...
//! <xxh3_64 of the lines above, hexadecimal>
//! ```
//!
//! A mark that is itself damaged counts as none: then this start is as careful as after a crash.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::embedded::files::folder;
use crate::embedded::files::journal;
use crate::embedded::options::OpenError;

const MARK: &str = "TAVOLA.clean";
const TITLE: &str = "tavola stopped, journals:\n";

/// Writes the mark when it is dropped, if it was told that all is well.
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
        // ORDER: a journal that was deleted must not come back after the mark without it is there.
        let written = folder::sync_folder(&self.store)
            .and_then(|()| describe(&self.store))
            .and_then(|text| folder::write_durably(&self.path, MARK, &text));
        if let Err(error) = written {
            // Nothing is lost: the next start does without.
            tracing::warn!(%error, "cannot mark the data folder as cleanly stopped");
        }
    }
}

/// Compares the journals with the mark, if there is a sound one; true if there is.
///
/// # Errors
///
/// [`OpenError::Corrupt`] for a journal that is not as it was left.
pub(crate) fn verify(path: &Path, store: &Path) -> Result<bool, OpenError> {
    let Some(lines) = read(path)? else { return Ok(false) };
    let failed = |source: io::Error| OpenError::Io { path: store.into(), source };
    let found = lines_of(store).map_err(failed)?;
    let gone = lines.iter().find(|line| !found.contains(line));
    let new = found.iter().find(|line| !lines.contains(line));
    let Some(line) = gone.or(new) else { return Ok(true) };
    let name = line.split(' ').next().unwrap_or_default();
    let file = store.join(name);
    // The place, if the journal itself can tell.
    let offset = fs::read(&file).map_or(0, |bytes| journal::inspect(&bytes, None).bytes);
    let detail = "it is not as it was left by the last orderly stop";
    Err(OpenError::corrupt(&file, offset, detail))
}

/// Removes the mark durably.
pub(crate) fn remove(path: &Path) -> Result<(), OpenError> {
    let mark = path.join(MARK);
    let removed = match fs::remove_file(&mark) {
        Ok(()) => folder::sync_folder(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|source| OpenError::Io { path: mark, source })
}

/// The lines of the mark; `None` if there is none that is sound.
fn read(path: &Path) -> Result<Option<Vec<String>>, OpenError> {
    let mark = path.join(MARK);
    let bytes = match fs::read(&mark) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: mark, source }),
    };
    let lines = parse(&bytes);
    if lines.is_none() {
        tracing::warn!(file = %mark.display(), "damaged, and not needed: treating the last stop as a crash");
    }
    Ok(lines)
}

fn parse(bytes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (_, checksum) = text.rsplit_once('\n')?;
    let body = &text[..text.len() - checksum.len()];
    if format!("{:016x}", xxh3_64(body.as_bytes())) != checksum {
        return None;
    }
    Some(body.strip_prefix(TITLE)?.lines().map(str::to_owned).collect())
}

fn describe(store: &Path) -> io::Result<String> {
    let mut text = TITLE.to_owned();
    for line in lines_of(store)? {
        text.push_str(&line);
        text.push('\n');
    }
    let checksum = xxh3_64(text.as_bytes());
    Ok(format!("{text}{checksum:016x}\n"))
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
