//! The data folder: whose it is, which format it has, and that only one process uses it.
//!
//! ```text
//! TAVOLA        one line: which format the folder has
//! TAVOLA.lock   locked while a process uses the folder
//! store/        fjall's files
//! ```
//!
//! A folder that holds anything else without the marker is refused rather than written into: a mistyped path
//! must not mix our files with somebody's.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::options::OpenError;

/// The newest format that this version reads and the one that it writes.
pub(super) const FORMAT_VERSION: u32 = 1;

pub(super) const MARKER: &str = "TAVOLA";
const MARKER_TEMPORARY: &str = "TAVOLA.tmp";
const LOCK: &str = "TAVOLA.lock";
const STORE: &str = "store";

/// What the marker says before the version.
const MARKER_TEXT: &str = "tavola data folder, format ";

/// Entries that do not make a folder foreign: a file system's own, and ours from a start that was interrupted
/// before the marker was there.
const IGNORED: [&str; 3] = ["lost+found", MARKER_TEMPORARY, LOCK];

/// Makes sure that `path` is a data folder that this version reads, creating it if need be, and locks it for as
/// long as the returned file is open.
pub(super) fn claim(path: &Path) -> Result<File, OpenError> {
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
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { path: path.into() }),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    // ORDER: read again under the lock; another process may have made the folder in between.
    if !read_marker(path)? {
        write_marker(path).map_err(failed)?;
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

/// Where fjall's files are. Removes what an interrupted first start has left there: fjall finishes the creation
/// of its folder with a version file and cannot resume before that.
pub(super) fn store_path(path: &Path) -> Result<PathBuf, OpenError> {
    let store = path.join(STORE);
    let failed = |source: io::Error| OpenError::Io { path: store.clone(), source };
    if !store.try_exists().map_err(failed)? {
        return Ok(store);
    }
    let version = store.join("version");
    if fs::metadata(&version).is_ok_and(|metadata| metadata.len() > 0) {
        return Ok(store);
    }
    let holds_rows =
        fs::read_dir(store.join("keyspaces")).is_ok_and(|mut entries| entries.next().is_some());
    if holds_rows {
        let detail = "it is missing or empty, but the store has rows".into();
        return Err(OpenError::Corrupt { file: version, offset: 0, detail });
    }
    tracing::warn!(path = %store.display(), "removing a store whose creation was interrupted");
    fs::remove_dir_all(&store).map_err(failed)?;
    Ok(store)
}

/// Whether the folder has a marker, with a version that is known.
fn read_marker(path: &Path) -> Result<bool, OpenError> {
    let failed = |source: io::Error| OpenError::Io { path: path.into(), source };
    let text = match fs::read_to_string(path.join(MARKER)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match foreign_entry(path).map_err(failed)? {
                Some(entry) => Err(OpenError::Foreign { path: path.into(), entry }),
                None => Ok(false),
            };
        }
        Err(source) => return Err(failed(source)),
    };
    let found = text.strip_prefix(MARKER_TEXT).and_then(|rest| rest.trim_end().parse().ok());
    match found {
        Some(found) if found > FORMAT_VERSION => {
            Err(OpenError::NewerVersion { path: path.into(), found, supported: FORMAT_VERSION })
        }
        Some(_) => Ok(true),
        None => Err(OpenError::Corrupt {
            file: path.join(MARKER),
            offset: 0,
            detail: "it does not name a format".into(),
        }),
    }
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

fn write_marker(path: &Path) -> io::Result<()> {
    let temporary = path.join(MARKER_TEMPORARY);
    let mut file = File::create(&temporary)?;
    writeln!(file, "{MARKER_TEXT}{FORMAT_VERSION}")?;
    file.sync_all()?;
    fs::rename(&temporary, path.join(MARKER))?;
    sync_folder(path)?;
    // The folder itself may be new as well.
    match path.canonicalize()?.parent() {
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Folders cannot be opened as files elsewhere; the rename is as durable as the system makes it.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
