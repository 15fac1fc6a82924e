//! The record that a store was made in this folder: which trees it has.
//!
//! fjall and lsm-tree take what is missing for what was never made: without a pointer to a manifest they begin an empty
//! tree, and delete the files that it does not name. So the folder says for itself, outside the store, what must be
//! there. The record is written once, after the store was made and before anything is acknowledged, and never changed:
//! without it a folder that holds no rows may be made again, with it nothing of the store may be missing.
//!
//! ```text
//! tavola store:
//! keyspaces/<number>
//! ...
//! <xxh3_64 of the lines above, hexadecimal>
//! ```
//!
//! Folders of older versions have none; they get it at their first start. An older version does not look at it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::embedded::files::folder::{self, STORE_RECORD};
use crate::embedded::files::manifest::{CURRENT, KEYSPACES};
use crate::embedded::files::sealed_text;
use crate::embedded::options::OpenError;

const TITLE: &str = "tavola store:\n";

/// What a folder says about its store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreRecord {
    /// The folder of an older version, or one whose store is not made yet.
    Absent,
    /// There is a store, but it cannot be read which trees it has.
    Damaged,
    /// The folders of the trees, below the store.
    Trees(Vec<String>),
}

impl StoreRecord {
    pub(crate) fn read(path: &Path) -> Result<Self, OpenError> {
        let file = path.join(STORE_RECORD);
        match fs::read(&file) {
            Ok(bytes) => Ok(sealed_text::open(&bytes, TITLE).map_or(Self::Damaged, Self::Trees)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Absent),
            Err(source) => Err(OpenError::Io { path: file, source }),
        }
    }
}

/// Writes the record of a store that is open and complete, unless it is there.
pub(crate) fn write_if_absent(path: &Path, store: &Path) -> Result<(), OpenError> {
    if matches!(StoreRecord::read(path)?, StoreRecord::Trees(_)) {
        return Ok(());
    }
    let failed = |source: io::Error| OpenError::Io { path: path.join(STORE_RECORD), source };
    let trees = trees(store).map_err(failed)?;
    // ORDER: what the record promises is durable before it is. fjall leaves some of that to the next sync of a folder.
    let keyspaces = store.join(KEYSPACES);
    let synced = folder::sync_folder(&keyspaces).and_then(|()| folder::sync_folder(store));
    synced.map_err(failed)?;
    folder::write_durably(path, STORE_RECORD, &sealed_text::seal(TITLE, &trees)).map_err(failed)
}

/// The folders of the trees that a store has, below it, in order.
fn trees(store: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(store.join(KEYSPACES))? {
        let entry = entry?;
        if entry.path().join(CURRENT).exists() {
            names.push(format!("{KEYSPACES}/{}", entry.file_name().to_string_lossy()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The pointers to manifests that must be there, with what has to be looked for in place of a record.
pub(crate) fn pointers(record: &StoreRecord, store: &Path) -> Vec<PathBuf> {
    match record {
        StoreRecord::Trees(trees) => {
            trees.iter().map(|tree| store.join(tree).join(CURRENT)).collect()
        }
        // fjall's own list of trees, and the one with our rows: its number is 1, unless its making was interrupted.
        StoreRecord::Absent | StoreRecord::Damaged => {
            let keyspaces = store.join(KEYSPACES);
            let has_rows = |name: &String| name != "keyspaces/0";
            let rows = trees(store).ok().and_then(|trees| trees.into_iter().find(has_rows));
            let rows = rows.map_or_else(|| keyspaces.join("1"), |tree| store.join(tree));
            vec![keyspaces.join("0").join(CURRENT), rows.join(CURRENT)]
        }
    }
}
