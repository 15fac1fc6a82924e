//! Which files make up lsm-tree's trees, and that their heads are sound before lsm-tree trusts them.
//!
//! A tree is a folder: `current` names the newest manifest `v<number>` with its checksum, the manifest names every
//! table and value file with theirs. lsm-tree follows that chain without looking at the checksums: a damaged
//! `current` may lead it to an older manifest, and rows vanish; a tree that it believes to be unfinished it
//! deletes. So every start checks the chain, and of each file what costs one or two small reads: its table of
//! contents, its own description, and its list of value files. The rest of a file is checked block by block as it is
//! read, and as a whole by `tavola check`.
//!
//! ```text
//! current    := number:u64 xxh3_128(manifest):u128 00
//! manifest   := archive with, among others, the sections
//!   tables     := levels:u8 { runs:u8 { count:u32 { id:u64 00 xxh3_128:u128 first_seqno:u64 }{count} }{runs} }{levels}
//!   blob_files := count:u32 { id:u64 00 xxh3_128:u128 }{count}
//! ```

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::embedded::files::archive::Archive;
use crate::embedded::files::blocks;
use crate::embedded::files::cursor::Cursor;
use crate::embedded::options::OpenError;

pub(crate) const KEYSPACES: &str = "keyspaces";
pub(crate) const CURRENT: &str = "current";
pub(crate) const TABLES: &str = "tables";
pub(crate) const VALUES: &str = "blobs";

/// The files of one tree.
pub(crate) struct Tree {
    pub(crate) folder: PathBuf,
    pub(crate) current: PathBuf,
    pub(crate) manifest: PathBuf,
    pub(crate) tables: Vec<Named>,
    pub(crate) values: Vec<Named>,
}

/// A file that a manifest names.
pub(crate) struct Named {
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    pub(crate) checksum: u128,
}

/// Checks the heads of all files in fjall's folder `store`; does nothing if there is none yet.
///
/// # Errors
///
/// All files that are missing, or the first that is damaged, with a word on the others.
pub(crate) fn check(store: &Path) -> Result<(), OpenError> {
    let trees = trees(store)?;
    let mut errors = Vec::new();
    for tree in &trees {
        let values: HashSet<u64> = tree.values.iter().map(|file| file.id).collect();
        let check_values = |file: &Named| blocks::check_value_file_head(&file.open()?);
        errors.extend(tree.values.iter().filter_map(|file| check_values(file).err()));
        errors.extend(tree.tables.iter().filter_map(|file| tree.check_table(file, &values).err()));
    }
    let files: usize = trees.iter().map(|tree| tree.tables.len() + tree.values.len()).sum();
    let sound = files - errors.len();
    let missing: Vec<PathBuf> = errors.iter().flat_map(OpenError::missing_files).cloned().collect();
    if !missing.is_empty() {
        return Err(OpenError::Incomplete { missing });
    }
    match errors.into_iter().next() {
        Some(OpenError::Corrupt { file, offset, detail }) => {
            let detail = format!("{detail}. Of {files} files with rows {sound} look sound");
            Err(OpenError::Corrupt { file, offset, detail })
        }
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The trees in fjall's folder: its own list of keyspaces, and the one with our rows.
pub(crate) fn trees(store: &Path) -> Result<Vec<Tree>, OpenError> {
    let keyspaces = store.join(KEYSPACES);
    let mut folders: Vec<PathBuf> = match fs::read_dir(&keyspaces) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(|source| OpenError::Io { path: keyspaces.clone(), source })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(OpenError::Io { path: keyspaces, source }),
    };
    folders.sort_unstable();
    let mut trees = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        trees.extend(Tree::read(&folder)?);
    }
    Ok(trees)
}

impl Tree {
    /// Reads what `current` leads to; `None` if the making of this tree was interrupted.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, OpenError> {
        let current = folder.join(CURRENT);
        let bytes = match fs::read(&current) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return if holds_files(folder) {
                    Err(OpenError::missing(&current))
                } else {
                    Ok(None)
                };
            }
            Err(source) => return Err(OpenError::Io { path: current, source }),
        };
        let (number, checksum) = parse_current(&bytes)
            .ok_or_else(|| OpenError::corrupt(&current, 0, "it does not name a manifest"))?;
        let manifest = folder.join(format!("v{number}"));
        let bytes = fs::read(&manifest).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => OpenError::missing(&manifest),
            _ => OpenError::Io { path: manifest.clone(), source },
        })?;
        if xxh3_128(&bytes) != checksum {
            let detail = format!("it has another checksum than {} says", current.display());
            return Err(OpenError::corrupt(&manifest, 0, detail));
        }
        let archive = Archive::open(&manifest)?;
        let (tables, values) = (archive.read("tables")?, archive.read("blob_files")?);
        let senseless = || OpenError::corrupt(&manifest, 0, "its list of files makes no sense");
        let tables = parse_tables(&tables).ok_or_else(senseless)?;
        let values = parse_values(&values).ok_or_else(senseless)?;
        let named = |kind: &str, files: Vec<(u64, u128)>| {
            let folder = folder.join(kind);
            let file = |(id, checksum)| Named { id, path: folder.join(format!("{id}")), checksum };
            files.into_iter().map(file).collect()
        };
        let (tables, values) = (named(TABLES, tables), named(VALUES, values));
        Ok(Some(Self { folder: folder.into(), current, manifest, tables, values }))
    }

    fn check_table(&self, file: &Named, value_files: &HashSet<u64>) -> Result<(), OpenError> {
        let table = file.open()?;
        blocks::check_table_head(&table, value_files)?;
        // fjall's list of trees is small, is read at once, and without it fjall cannot open.
        if self.folder.ends_with("0") { blocks::check_table(&table) } else { Ok(()) }
    }

    /// How many files there are that the manifest does not name.
    pub(crate) fn leftovers(&self) -> u64 {
        let count = |kind: &str| fs::read_dir(self.folder.join(kind)).map_or(0, Iterator::count);
        let named = self.tables.len() + self.values.len();
        (count(TABLES) + count(VALUES)).saturating_sub(named) as u64
    }
}

impl Named {
    pub(crate) fn open(&self) -> Result<Archive, OpenError> {
        match Archive::open(&self.path) {
            Err(OpenError::Io { path, source }) if source.kind() == io::ErrorKind::NotFound => {
                Err(OpenError::missing(&path))
            }
            opened => opened,
        }
    }
}

fn holds_files(folder: &Path) -> bool {
    let has_entries =
        |path: PathBuf| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    has_entries(folder.join(TABLES)) || has_entries(folder.join(VALUES))
}

/// The number of the manifest that `current` names in the folder of a tree.
pub(crate) fn current_number(folder: &Path) -> Option<u64> {
    let bytes = fs::read(folder.join(CURRENT)).ok()?;
    parse_current(&bytes).map(|(number, _)| number)
}

fn parse_current(bytes: &[u8]) -> Option<(u64, u128)> {
    let mut cursor = Cursor::new(bytes);
    let (number, checksum, kind) = (cursor.u64()?, cursor.u128()?, cursor.u8()?);
    (kind == 0 && cursor.is_at_end()).then_some((number, checksum))
}

fn parse_tables(bytes: &[u8]) -> Option<Vec<(u64, u128)>> {
    let mut cursor = Cursor::new(bytes);
    let mut files = Vec::new();
    for _ in 0..cursor.u8()? {
        for _ in 0..cursor.u8()? {
            for _ in 0..cursor.u32()? {
                files.push(parse_file(&mut cursor)?);
                let _first_seqno = cursor.u64()?;
            }
        }
    }
    cursor.is_at_end().then_some(files)
}

fn parse_values(bytes: &[u8]) -> Option<Vec<(u64, u128)>> {
    let mut cursor = Cursor::new(bytes);
    let mut files = Vec::new();
    for _ in 0..cursor.u32()? {
        files.push(parse_file(&mut cursor)?);
    }
    cursor.is_at_end().then_some(files)
}

fn parse_file(cursor: &mut Cursor<'_>) -> Option<(u64, u128)> {
    let (id, kind, checksum) = (cursor.u64()?, cursor.u8()?, cursor.u128()?);
    (kind == 0).then_some((id, checksum))
}
