//! Verifying a data folder that nobody uses, without changing it.
//!
//! Files first: the chain from `current` to every table and value file, and each file as a whole against the
//! checksum in its manifest; journals batch by batch. Then rows: whoever asks for them reads them through the same code
//! that serves them, from a shadow of the folder. The shadow has links to the files that are never written again, and
//! copies of the journals and manifests, so that whatever fjall does at a start (cutting a torn tail, flushing,
//! removing what no manifest names) happens to the shadow.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tempfile::TempDir;
use xxhash_rust::xxh3::Xxh3;

use crate::embedded::files::archive::Archive;
use crate::embedded::files::blocks;
use crate::embedded::files::manifest::{self, Named, Tree};
use crate::embedded::files::store_record::StoreRecord;
use crate::embedded::files::{clean_mark, folder, inventory, journal, journal_links};
use crate::embedded::options::{EmbeddedOptions, OpenError};
use crate::embedded::scan::row_scan::RowScan;
use crate::embedded::store::Store;
use crate::scan_pool::Cancelled;
use crate::{KeyRange, Reader, Result, Visitor};

/// How much of a file is read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// A data folder that is being checked: nobody else uses it meanwhile.
#[derive(Debug)]
pub struct FolderCheck {
    path: PathBuf,
    store: PathBuf,
    _lock: Option<File>,
}

/// What the files of a folder are, and what is wrong with them.
#[derive(Debug, Default)]
pub struct FilesReport {
    pub journals: u64,
    /// Entries in the journals, those included that are in tables already.
    pub journal_entries: u64,
    pub tables: u64,
    pub value_files: u64,
    pub bytes: u64,
    /// Files that an interrupted flush or compaction has left; the next start removes them.
    pub leftovers: u64,
    /// Where a batch begins that was being written when the machine or the process stopped. Nobody was told that it
    /// is durable; the next start cuts it off.
    pub torn_tail: Option<FileProblem>,
    /// Second links to journals that are missing in the store; the next start takes them back.
    pub links_used: Vec<PathBuf>,
    pub problems: Vec<FileProblem>,
}

/// A file that is not what was written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    pub file: PathBuf,
    /// `None` if it cannot be told.
    pub offset: Option<u64>,
    pub detail: String,
}

impl FolderCheck {
    /// Takes hold of the data folder at `path`. Creates nothing.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]: no folder, one of a newer format, or one in use.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let lock = folder::hold(path)?;
        let store = folder::store_folder(path);
        Ok(Self { path: path.into(), store, _lock: lock })
    }

    /// Checks every byte of every file. `progress` is told how many bytes of how many are done.
    pub fn files(&self, progress: &mut dyn FnMut(u64, u64)) -> FilesReport {
        let mut report = FilesReport::default();
        match inventory::take(&self.path, &self.store) {
            Ok(inventory) => {
                let verified = clean_mark::verify(inventory.mark.as_ref(), &self.store);
                report.problems.extend(verified.err().into_iter().flat_map(FileProblem::all));
                let restored = |&id| journal_links::link_of(&self.path, id);
                report.links_used = inventory.to_restore.iter().map(restored).collect();
            }
            Err(error) => report.problems.extend(FileProblem::all(error)),
        }
        report.problems.extend(self.check_record());
        self.check_journals(&mut report);
        match manifest::trees(&self.store) {
            Ok(trees) => check_trees(&trees, &mut report, progress),
            Err(error) => report.problems.extend(FileProblem::all(error)),
        }
        // What is missing shows in more than one place.
        let mut told = HashSet::new();
        report.problems.retain(|problem| told.insert(problem.file.clone()));
        report
    }

    fn check_record(&self) -> Option<FileProblem> {
        let is_damaged = matches!(StoreRecord::read(&self.path), Ok(StoreRecord::Damaged));
        let detail = "it does not say what the store has; the next start writes it anew";
        is_damaged.then(|| FileProblem::new(&self.path.join(folder::STORE_RECORD), None, detail))
    }

    fn check_journals(&self, report: &mut FilesReport) {
        let journals = self.journals(&report.links_used);
        let mut seqno = None;
        for (index, path) in journals.iter().enumerate() {
            let bytes = match fs::read(path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    report.problems.push(FileProblem::unreadable(path, &error));
                    continue;
                }
            };
            let found = journal::inspect(&bytes, seqno);
            seqno = found.seqno;
            report.journals += 1;
            report.journal_entries += found.entries;
            report.bytes += found.bytes;
            let Some(damage) = found.damage else { continue };
            let problem = FileProblem::new(path, Some(found.bytes), damage.detail);
            if damage.is_torn_tail && index + 1 == journals.len() {
                let detail = "a batch that was never acknowledged is torn".into();
                report.torn_tail = Some(FileProblem { detail, ..problem });
            } else {
                report.problems.push(problem);
            }
        }
    }

    /// The journals in order, those included of which only a second link is left.
    fn journals(&self, links: &[PathBuf]) -> Vec<PathBuf> {
        let mut journals = journal::list(&self.store).unwrap_or_default();
        journals.extend_from_slice(links);
        journals.sort_by_key(|file| journal::id_of(file));
        journals
    }

    /// Opens a shadow of the folder to read its rows from.
    ///
    /// # Errors
    ///
    /// As for an engine that opens the folder.
    pub fn rows(&self) -> Result<CheckedRows, OpenError> {
        let shadow = Shadow::of(self)?;
        let store = Arc::new(Store::open(shadow.0.path(), &EmbeddedOptions::default())?);
        Ok(CheckedRows { store, _shadow: shadow })
    }
}

/// The rows of a folder that is being checked.
pub struct CheckedRows {
    // ORDER: closed before its folder is removed.
    store: Arc<Store>,
    _shadow: Shadow,
}

impl CheckedRows {
    /// Shows the rows of `range` to `visitor` in key order until it breaks.
    pub fn scan<V: Visitor>(&self, range: &KeyRange, visitor: V) -> Result<V> {
        RowScan::new(self.store.snapshot(), range.clone(), visitor).finish(&Cancelled::default())
    }
}

/// The same as an engine reads, for what is written for both.
impl Reader for CheckedRows {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.store.snapshot().get(key)
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        Self::scan(self, &range, visitor)
    }
}

/// A folder that looks like another one, and can be written to.
struct Shadow(TempDir);

impl Shadow {
    fn of(check: &FolderCheck) -> Result<Self, OpenError> {
        let failed = |source: io::Error| OpenError::Io { path: check.path.clone(), source };
        let inventory = inventory::take(&check.path, &check.store)?;
        let restored = |&id| journal_links::link_of(&check.path, id);
        let links: Vec<_> = inventory.to_restore.iter().map(restored).collect();
        let trees = manifest::trees(&check.store)?;
        let shadow = tempfile::Builder::new().prefix("tavola-check-").tempdir().map_err(failed)?;
        Self::fill(check, &trees, &links, shadow.path()).map_err(failed)?;
        Ok(Self(shadow))
    }

    fn fill(
        check: &FolderCheck,
        trees: &[Tree],
        links: &[PathBuf],
        shadow: &Path,
    ) -> io::Result<()> {
        let origin = check.path.canonicalize()?;
        let beside = |path: &Path| -> io::Result<PathBuf> {
            let inner = path.strip_prefix(&check.path).map_err(io::Error::other)?;
            let target = shadow.join(inner);
            fs::create_dir_all(target.parent().unwrap_or(shadow))?;
            Ok(target)
        };
        let copied = [check.path.join(folder::MARKER), check.store.join("version")];
        let manifests = trees.iter().flat_map(|tree| [tree.current.clone(), tree.manifest.clone()]);
        // The folder of an interrupted first start has not all of them.
        for path in copied.into_iter().chain(manifests).filter(|path| path.exists()) {
            fs::copy(&path, beside(&path)?)?;
        }
        fs::write(beside(&check.store.join("lock"))?, b"")?;
        for path in check.journals(links) {
            let name = path.file_name().unwrap_or_default();
            let target = beside(&check.store.join(name))?;
            fs::write(target, journal::content(&fs::read(&path)?))?;
        }
        for tree in trees {
            for folder in ["tables", "blobs"] {
                fs::create_dir_all(beside(&tree.folder.join(folder))?)?;
            }
            for file in tree.tables.iter().chain(&tree.values) {
                let inner = file.path.strip_prefix(&check.path).map_err(io::Error::other)?;
                link(&origin.join(inner), &beside(&file.path)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn link(original: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(original, link)
}

#[cfg(not(unix))]
fn link(original: &Path, link: &Path) -> io::Result<()> {
    fs::copy(original, link).map(drop)
}

fn check_trees(trees: &[Tree], report: &mut FilesReport, progress: &mut dyn FnMut(u64, u64)) {
    let files = || trees.iter().flat_map(|tree| tree.tables.iter().chain(&tree.values));
    let total = files().map(|file| fs::metadata(&file.path).map_or(0, |meta| meta.len())).sum();
    let mut done = 0;
    for tree in trees {
        report.leftovers += tree.leftovers();
        report.tables += tree.tables.len() as u64;
        report.value_files += tree.values.len() as u64;
        let values = tree.values.iter().map(|file| file.id).collect();
        for file in &tree.tables {
            let places = |archive: &Archive| {
                blocks::check_table(archive)?;
                blocks::check_table_head(archive, &values)
            };
            let problems = check_file(file, places, &mut |bytes| {
                done += bytes;
                progress(done, total);
            });
            report.problems.extend(problems);
        }
        for file in &tree.values {
            let places = |archive: &Archive| {
                blocks::check_values(archive)?;
                blocks::check_value_file_head(archive)
            };
            let problems = check_file(file, places, &mut |bytes| {
                done += bytes;
                progress(done, total);
            });
            report.problems.extend(problems);
        }
    }
    report.bytes += done;
}

/// Compares a file with the checksum in its manifest, and looks for the place if they differ.
fn check_file(
    file: &Named,
    place: impl Fn(&Archive) -> Result<(), OpenError>,
    read: &mut dyn FnMut(u64),
) -> Vec<FileProblem> {
    match checksum(&file.path, read) {
        Ok(checksum) if checksum == file.checksum => Vec::new(),
        Ok(_) => {
            let found = file.open().and_then(|archive| place(&archive)).err();
            let unknown = "it has another checksum than its manifest says";
            let at_unknown_place = || vec![FileProblem::new(&file.path, None, unknown)];
            found.map_or_else(at_unknown_place, FileProblem::all)
        }
        Err(error) => vec![FileProblem::unreadable(&file.path, &error)],
    }
}

fn checksum(path: &Path, read: &mut dyn FnMut(u64)) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let bytes = file.read(&mut chunk)?;
        if bytes == 0 {
            return Ok(hasher.digest128());
        }
        hasher.update(&chunk[..bytes]);
        read(bytes as u64);
    }
}

impl FileProblem {
    fn new(file: &Path, offset: Option<u64>, detail: &str) -> Self {
        Self { file: file.into(), offset, detail: detail.into() }
    }

    fn unreadable(file: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::missing(file),
            _ => Self::new(file, None, &format!("it cannot be read: {error}")),
        }
    }

    fn missing(file: &Path) -> Self {
        Self::new(file, None, "it is missing")
    }

    fn all(error: OpenError) -> Vec<Self> {
        match error {
            OpenError::Incomplete { missing } => {
                missing.iter().map(|file| Self::missing(file)).collect()
            }
            OpenError::Corrupt { file, offset, detail } => {
                vec![Self { file, offset: Some(offset), detail }]
            }
            OpenError::Io { path, source } => vec![Self::unreadable(&path, &source)],
            other => vec![Self::new(Path::new(""), None, &other.to_string())],
        }
    }
}

impl std::fmt::Display for FileProblem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.file.display())?;
        if let Some(offset) = self.offset {
            write!(formatter, ", byte {offset}")?;
        }
        write!(formatter, ": {}", self.detail)
    }
}

impl std::fmt::Debug for CheckedRows {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CheckedRows").finish_non_exhaustive()
    }
}
