//! Files that are nobody else's business: how they are made, and a word to those who left theirs open.

use std::fs::{File, OpenOptions};
use std::path::Path;

/// Opens a log for appending. A new one is its owner's alone: paths of requests have keys of entities in them.
pub(crate) fn append_to(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Warns of a file with keys that every user of the machine can read. A group may be meant to.
#[cfg(unix)]
pub(crate) fn warn_if_readable_by_others(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o004 != 0) {
        tracing::warn!(
            path = %path.display(),
            "a file with keys can be read by every user of this machine; chmod o-r"
        );
    }
}

#[cfg(not(unix))]
pub fn warn_if_readable_by_others(_path: &Path) {}
