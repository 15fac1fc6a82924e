//! The data folder: whose it is, which format it has, and that only one process uses it.
//!
//! ```text
//! TAVOLA        one line: which format the folder has
//! TAVOLA.lock   locked while a process uses the folder
//! TAVOLA.store  that a store was made here, and which trees it has; see `store_record`
//! TAVOLA.clean  which journals there are, and what they held at the end of an orderly stop; see `clean_mark`
//! journals/     second links to the journals while a process runs; see `journal_links`
//! store/        fjall's files
//! ```
//!
//! A folder that holds anything else without the marker is refused rather than written into: a mistyped path
//! must not mix our files with somebody's.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::embedded::options::OpenError;

/// The folder of the second links, in the data folder.
pub(crate) const JOURNAL_LINKS: &str = "journals";

/// The format of a new folder.
const FORMAT_FIRST: u32 = 1;
/// The newest format that this version reads. A folder gets it when it is [asked for](raise_format).
const FORMAT_NEWEST: u32 = 2;

pub(crate) const MARKER: &str = "TAVOLA";
/// Also of the other files that are written as a whole.
const MARKER_TEMPORARY: &str = "TAVOLA.tmp";
const LOCK: &str = "TAVOLA.lock";
pub(crate) const STORE_RECORD: &str = "TAVOLA.store";
const STORE: &str = "store";

/// What the marker says before the version.
const MARKER_TEXT: &str = "tavola data folder, format ";

/// What fjall writes to its version file.
const STORE_VERSION: &[u8] = b"FJL\x03";

/// Entries that do not make a folder foreign: a file system's own, and ours from a start that was interrupted
/// before the marker was there.
const IGNORED: [&str; 3] = ["lost+found", MARKER_TEMPORARY, LOCK];

/// Makes sure that `path` is a data folder that this version reads, creating it if need be, and locks it for as
/// long as the returned file is open.
pub(crate) fn claim(path: &Path) -> Result<File, OpenError> {
    let failed = |source: io::Error| OpenError::Io { path: path.into(), source };
    create(path).map_err(failed)?;
    // Looked at before the lock file is made: nothing is to be left in a folder that is not ours.
    read_marker(path)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
        .map_err(failed)?;
    try_lock(path, &lock)?;
    // ORDER: read again under the lock; another process may have made the folder in between.
    if read_marker(path)?.is_none() {
        write_marker(path, FORMAT_FIRST).map_err(failed)?;
    }
    Ok(lock)
}

/// Makes the folder, for its owner alone. One that exists keeps its permissions: someone has chosen them.
fn create(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path)?.permissions()) & 0o005 != 0 {
        tracing::warn!(
            path = %path.display(),
            "the data folder is open to every user of this machine; chmod o-rx"
        );
    }
    Ok(())
}

/// Takes hold of the data folder at `path` without writing anything. A folder without a lock file, a copy perhaps, is
/// used by nobody.
pub(crate) fn hold(path: &Path) -> Result<Option<File>, OpenError> {
    if !path.is_dir() || (!path.join(MARKER).exists() && !is_ours(path)) {
        return Err(OpenError::Missing { path: path.into() });
    }
    read_marker(path)?;
    hold_lock(path)
}

/// The same for a folder that may have lost its marker.
pub(crate) fn hold_damaged(path: &Path) -> Result<Option<File>, OpenError> {
    let has_rows = store_folder(path).is_dir() || path.join("journals").is_dir();
    if !has_rows {
        return Err(OpenError::Missing { path: path.into() });
    }
    if let Err(error @ OpenError::NewerVersion { .. }) = read_marker(path) {
        return Err(error);
    }
    hold_lock(path)
}

fn hold_lock(path: &Path) -> Result<Option<File>, OpenError> {
    let lock = match File::open(path.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(OpenError::Io { path: path.join(LOCK), source }),
    };
    try_lock(path, &lock)?;
    Ok(Some(lock))
}

fn try_lock(path: &Path, lock: &File) -> Result<(), OpenError> {
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => OpenError::Locked { path: path.into() },
        TryLockError::Error(source) => OpenError::Io { path: path.into(), source },
    })
}

/// Where fjall's files are.
pub(crate) fn store_folder(path: &Path) -> PathBuf {
    path.join(STORE)
}

/// Whether the store's own version file is what it must be; false if it is missing or empty.
pub(crate) fn check_store_version(store: &Path) -> Result<bool, OpenError> {
    let version = store.join("version");
    let found = fs::read(&version).unwrap_or_default();
    if found.is_empty() || found == STORE_VERSION {
        return Ok(!found.is_empty());
    }
    Err(OpenError::corrupt(&version, 0, "it does not name the version of the store"))
}

/// Removes what an interrupted first start has left of a store that was never used: fjall finishes the creation of its
/// folder with a version file and cannot resume before that.
pub(crate) fn remove_unfinished(store: &Path) -> Result<(), OpenError> {
    let failed = |source: io::Error| OpenError::Io { path: store.into(), source };
    if !store.try_exists().map_err(failed)? || check_store_version(store)? {
        return Ok(());
    }
    tracing::warn!(path = %store.display(), "removing a store whose creation was interrupted");
    fs::remove_dir_all(store).map_err(failed)
}

/// Makes fjall's own lock file if it is gone: fjall wants one, and holds nothing in it. Nobody else uses the folder.
pub(crate) fn ensure_store_lock(store: &Path) -> Result<(), OpenError> {
    let lock = store.join("lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
    opened.map(drop).map_err(|source| OpenError::Io { path: lock, source })
}

/// Gives the folder a format that versions which do not know it refuse. It never goes back to an older one.
pub(crate) fn raise_format(path: &Path, format: u32) -> io::Result<()> {
    assert!(format <= FORMAT_NEWEST, "format {format} is not known");
    match read_marker(path).map_err(io::Error::other)? {
        Some(found) if found >= format => Ok(()),
        _ => write_marker(path, format),
    }
}

/// The format that the marker of the folder names, which is one that is known; `None` if there is no marker.
fn read_marker(path: &Path) -> Result<Option<u32>, OpenError> {
    let failed = |source: io::Error| OpenError::Io { path: path.into(), source };
    let text = match fs::read(path.join(MARKER)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match foreign_entry(path).map_err(failed)? {
                Some(_) if is_ours(path) => Err(OpenError::missing(&path.join(MARKER))),
                Some(entry) => Err(OpenError::Foreign { path: path.into(), entry }),
                None => Ok(None),
            };
        }
        Err(source) => return Err(failed(source)),
    };
    let number = text.strip_prefix(MARKER_TEXT).and_then(|rest| rest.strip_suffix('\n'));
    match number.and_then(|number| number.parse().ok()) {
        Some(known @ FORMAT_FIRST..=FORMAT_NEWEST) => Ok(Some(known)),
        Some(found) if found > FORMAT_NEWEST => {
            Err(OpenError::NewerVersion { path: path.into(), found, supported: FORMAT_NEWEST })
        }
        _ => Err(OpenError::corrupt(&path.join(MARKER), 0, "it does not name a format")),
    }
}

/// Whether a folder without a marker must have had one.
fn is_ours(path: &Path) -> bool {
    path.join(STORE_RECORD).exists() || path.join(STORE).join("version").exists()
}

fn foreign_entry(path: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !IGNORED.contains(&name.as_str()) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn write_marker(path: &Path, format: u32) -> io::Result<()> {
    write_durably(path, MARKER, &format!("{MARKER_TEXT}{format}\n"))?;
    // The folder itself may be new as well.
    match path.canonicalize()?.parent() {
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

/// Writes a file of the folder so that it is there as a whole or not at all.
pub(crate) fn write_durably(path: &Path, name: &str, text: &str) -> io::Result<()> {
    /// All files have one temporary name, and several threads write them.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let temporary = path.join(MARKER_TEMPORARY);
    let mut file = File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path.join(name))?;
    sync_folder(path)
}

#[cfg(unix)]
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Folders cannot be opened as files elsewhere; the rename is as durable as the system makes it.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Removes the second links of journals; nobody needs them any more.
pub(crate) fn remove_journal_links(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path.join(JOURNAL_LINKS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
