//! Reading what can still be read of a damaged data folder, without opening its store.
//!
//! Tables and journals are read directly, block by block and batch by batch; whatever fails its checksum is left out and
//! noted. Of each row the newest version counts, by sequence number, and a deletion is a version like any other. Nothing
//! in the folder is changed, and nothing of fjall's own recovery runs: it removes what it believes to be left over.
//!
//! Which tables count is said by the manifest. If that is lost, all table files do, also those that a compaction had
//! replaced: rows that were deleted may then come back, and the report says so. Where a block is lost, an older version
//! of one of its rows may be found further down. Where the value of a row is lost, the row is, whatever older
//! versions there are: its owner must not get an old value for a new one.

mod journals;
mod merge;
mod table;
mod values;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::embedded::files::clean_mark;
use crate::embedded::files::manifest::{self, KEYSPACES, TABLES, Tree};
use crate::embedded::files::{folder, inventory};
use crate::embedded::options::OpenError;
use journals::Journals;
use merge::Merge;
use table::Table;
use values::Values;

/// What is said when a tree has no manifest.
const INSTEAD_OF_MANIFEST: &str = "all table files were read instead, and rows that were deleted, or older versions \
    of others, may be back";

/// A damaged data folder that nobody uses meanwhile.
#[derive(Debug)]
pub struct Salvage {
    trees: Vec<SalvagedTree>,
    journals: Journals,
    losses: Vec<Loss>,
    _lock: Option<File>,
}

/// Something that cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub file: PathBuf,
    pub detail: String,
    /// The first and the last key of the rows that are lost, if that is known: every such row is after the one and not
    /// after the other.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// How many versions of rows, deletions included, if that is known.
    pub versions: Option<u64>,
}

/// One tree with rows, as far as it can be found.
#[derive(Debug)]
struct SalvagedTree {
    tables: Vec<PathBuf>,
    values: PathBuf,
}

/// A version of a row.
#[derive(Clone, Debug)]
struct Version {
    key: Bytes,
    seqno: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Value(Bytes),
    Deleted,
    /// Where the value is: the folder of the values of its tree, and the place.
    Separate {
        folder: usize,
        place: Bytes,
    },
}

impl Salvage {
    /// Looks what there is in the data folder at `path`. Creates and changes nothing.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]: no folder, one of a newer format, or one in use. What is damaged inside is a loss.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let store = folder::store_folder(path);
        let lock = folder::hold_damaged(path)?;
        let mut losses = Vec::new();
        let inventory = inventory::take(path, &store);
        let mark = clean_mark::read(path).unwrap_or_default();
        let verified = clean_mark::verify(mark.as_ref(), &store).err();
        let told = inventory.err().into_iter().chain(verified);
        losses.extend(told.flat_map(Loss::of_error).filter(|loss| loss.is_about_rows(&store)));
        let folders = tree_folders(&store);
        let trees = folders.iter().map(|folder| SalvagedTree::find(folder, &mut losses)).collect();
        let ids = folders.iter().filter_map(|folder| number_of(folder)).collect();
        let journals = Journals::find(path, &store, ids, mark.as_ref());
        Ok(Self { trees, journals, losses: distinct(losses), _lock: lock })
    }

    /// Shows the newest version of every row that can be read to `visit`, in key order, and answers all that is
    /// lost. Reads everything each time.
    pub fn rows(&self, visit: &mut dyn FnMut(&[u8], &Bytes)) -> Vec<Loss> {
        let mut losses = self.losses.clone();
        let values: Vec<_> = self.trees.iter().map(|tree| Values::of(&tree.values)).collect();
        let tables = self.trees.iter().enumerate().flat_map(|(number, tree)| {
            tree.tables.iter().map(move |file| Table::open(file, number))
        });
        let mut merge = Merge::new(tables.collect());
        merge.add_journals(&self.journals, losses.is_empty(), &mut losses);
        while let Some(version) = merge.next(&mut losses) {
            match version.content {
                Content::Deleted => {}
                Content::Value(value) => visit(&version.key, &value),
                Content::Separate { folder, place } => {
                    match values[folder].read(&version.key, &place) {
                        Ok(value) => visit(&version.key, &value),
                        Err(loss) => losses.push(loss),
                    }
                }
            }
        }
        distinct(losses)
    }
}

impl SalvagedTree {
    /// The files of a tree: those that its manifest names, or all.
    fn find(folder: &Path, losses: &mut Vec<Loss>) -> Self {
        let values = folder.join(manifest::VALUES);
        let told = match Tree::read(folder) {
            Ok(Some(tree)) => {
                let tables = tree.tables.into_iter().map(|file| file.path).collect();
                return Self { tables, values };
            }
            Ok(None) => Vec::new(),
            Err(error) => Loss::of_error(error),
        };
        for loss in told {
            // It may have been missed already, without a word on what that means.
            losses.retain(|other| other.file != loss.file);
            let detail = format!("{}; {INSTEAD_OF_MANIFEST}", loss.detail);
            losses.push(Loss { detail, ..loss });
        }
        let entries = fs::read_dir(folder.join(TABLES)).into_iter().flatten().flatten();
        let mut tables: Vec<_> = entries.map(|entry| entry.path()).collect();
        tables.retain(|file| number_of(file).is_some());
        tables.sort_unstable();
        Self { tables, values }
    }
}

impl Loss {
    fn new(file: &Path, detail: impl Into<String>) -> Self {
        Self { file: file.into(), detail: detail.into(), keys: None, versions: None }
    }

    fn of_error(error: OpenError) -> Vec<Self> {
        match error {
            OpenError::Incomplete { missing } => {
                missing.iter().map(|file| Self::new(file, "it is missing")).collect()
            }
            OpenError::Corrupt { file, offset, detail } => {
                vec![Self::new(&file, format!("damaged at byte {offset}: {detail}"))]
            }
            OpenError::Io { path, source } => {
                vec![Self::new(&path, format!("it cannot be read: {source}"))]
            }
            other => vec![Self::new(Path::new(""), other.to_string())],
        }
    }

    /// Whether rows may be lost with the file. fjall's version and its list of trees are made anew.
    fn is_about_rows(&self, store: &Path) -> bool {
        let list = store.join(KEYSPACES).join("0");
        self.file != store.join("version") && !self.file.starts_with(list)
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.file.display(), self.detail)?;
        if let Some(versions) = self.versions {
            write!(formatter, "; {versions} versions of rows")?;
        }
        if let Some((first, last)) = &self.keys {
            formatter.write_str("; keys")?;
            if !first.is_empty() {
                write!(formatter, " after {}", first.escape_ascii())?;
            }
            write!(formatter, " up to {}", last.escape_ascii())?;
        }
        Ok(())
    }
}

/// The folders of trees with rows: all but fjall's own list.
fn tree_folders(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store.join(KEYSPACES)).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).collect();
    folders.retain(|folder| number_of(folder).is_some_and(|number| number > 0));
    folders.sort_unstable();
    folders
}

fn number_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

/// The same file may be missed in more than one place.
fn distinct(mut losses: Vec<Loss>) -> Vec<Loss> {
    let mut told = BTreeSet::new();
    losses.retain(|loss| told.insert((loss.file.clone(), loss.detail.clone(), loss.keys.clone())));
    losses
}
