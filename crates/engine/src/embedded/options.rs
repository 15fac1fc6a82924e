//! How an embedded engine is set up, and why it may refuse to open.

use std::path::{Path, PathBuf};

/// A block holds about ten entities that came as 600 B of JSON: enough for LZ4 to find repetition between neighbours,
/// little to decode for a read by key. fjall keeps what a store was made with, so that older folders keep their 8 KiB.
pub(crate) const BLOCK_BYTES: u32 = 4 * 1024;

/// Values from this size on live in files of their own kind and are not copied by every compaction.
pub(crate) const SEPARATE_VALUE_BYTES: u32 = 32 * 1024;

/// A file of separated values of which this share is stale is rewritten by the next compaction that touches it.
pub(crate) const STALE_SHARE: f32 = 0.25;

const MIB: u64 = 1024 * 1024;

/// Settings of an [`EmbeddedEngine`](super::EmbeddedEngine). The defaults fit a machine with two cores and a
/// gigabyte to spare.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedOptions {
    /// Memory for blocks of tables, uncompressed. 128 MiB keep about 200,000 entities of 600 B at hand and, with
    /// write buffers and indexes, the whole process below half a gigabyte.
    pub cache_bytes: u64,
    /// When a write buffer (memtable) is flushed to a table. Up to four more may wait to be flushed. 32 MiB: the
    /// journal to be read again after a crash stays below about 130 MB, well under a second. At most a sixteenth of the
    /// disk. Fixed when the folder is created.
    pub memtable_bytes: u64,
    /// Room on the disk below which writes are refused, until there is more; below a quarter of it deletions are as well.
    /// At most a quarter of the disk, which has 120 MiB at least unless this is 0. 128 MiB are two write buffers and a
    /// journal.
    pub disk_reserve_bytes: u64,
    /// Files of tables that are kept open.
    pub cached_files_max: usize,
    /// Requests that may wait for the committer before others are told that the engine is busy.
    pub queue_requests_max: usize,
    /// Scans that run at a time, beyond their first rows. More than the cores help only when the disk is waited for.
    pub scans_running_max: usize,
    /// Threads that help with a long scan while nobody else needs them. With more than a few, all wait for memory.
    pub scan_helpers_max: usize,
    /// Scans that may wait for their turn before others are told that the engine is busy.
    pub scans_waiting_max: usize,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cache_bytes: 128 * MIB,
            memtable_bytes: 32 * MIB,
            disk_reserve_bytes: 128 * MIB,
            cached_files_max: 900,
            queue_requests_max: 4096,
            scans_running_max: (2 * cores).max(4),
            scan_helpers_max: (cores - 1).min(7),
            scans_waiting_max: 1024,
        }
    }
}

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is no data folder: it is not there, or has no file TAVOLA", path.display())]
    Missing { path: PathBuf },
    #[error("another process is using the data folder {}; one folder serves one process", path.display())]
    Locked { path: PathBuf },
    #[error(
        "the data folder {} has format {found}, this version reads up to {supported}; \
         use the version that wrote it, or a newer one",
        path.display()
    )]
    NewerVersion { path: PathBuf, found: u32, supported: u32 },
    #[error(
        "{} is no data folder of this service but contains {entry:?}; give an empty or a new folder",
        path.display()
    )]
    Foreign { path: PathBuf, entry: String },
    #[error(
        "{} {} missing; the data folder was in use and is no longer whole. {ADVICE}",
        list(missing),
        are(missing)
    )]
    Incomplete { missing: Vec<PathBuf> },
    #[error("{} is damaged at byte {offset}: {detail}. {ADVICE}", file.display())]
    Corrupt { file: PathBuf, offset: u64, detail: String },
    #[error(
        "{} is on a disk of {} MB, and {} MB are needed: the journal alone takes 64 MB before it is given back. \
         Give it a larger disk, or reserve nothing on this one (--disk-reserve-mb 0), or keep everything in memory \
         (--in-memory)",
        path.display(), total_bytes >> 20, needed_bytes >> 20
    )]
    SmallDisk { path: PathBuf, total_bytes: u64, needed_bytes: u64 },
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("the store in {} cannot be opened: {source}. {ADVICE}", path.display())]
    Store { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

/// What to do about a folder that is not what was written to it.
const ADVICE: &str = "Nothing was removed. `tavola check DIR` lists all that is damaged, and \
    `tavola salvage DIR --to NEW_DIR` copies every row that can still be read; or restore a backup";

/// The files that are named in a message; more are only counted.
const NAMED_FILES_MAX: usize = 8;

fn list(files: &[PathBuf]) -> String {
    let named: Vec<_> =
        files.iter().take(NAMED_FILES_MAX).map(|file| file.display().to_string()).collect();
    match files.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn are(files: &[PathBuf]) -> &'static str {
    if files.len() == 1 { "is" } else { "are" }
}

impl OpenError {
    pub(crate) fn corrupt(file: &Path, offset: u64, detail: impl Into<String>) -> Self {
        Self::Corrupt { file: file.into(), offset, detail: detail.into() }
    }

    pub(crate) fn missing(file: &Path) -> Self {
        Self::Incomplete { missing: vec![file.into()] }
    }

    /// The files that this says are missing.
    pub(crate) fn missing_files(&self) -> &[PathBuf] {
        match self {
            Self::Incomplete { missing } => missing,
            _ => &[],
        }
    }
}
