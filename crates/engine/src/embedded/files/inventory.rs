//! Whether a data folder has all that it must have, before anyone opens it.
//!
//! fjall takes what is missing for what was never made, begins anew and removes what then seems to belong to nothing. So
//! this comes first, at a start and at a check, and changes nothing. What must be there is said by the record of the
//! store, by the mark of the journals, and by the files themselves: fjall makes them in a fixed order,
//!
//! ```text
//! keyspaces/  0.jnl  version  keyspaces/0/current  keyspaces/1/current  keyspaces/0/tables/0
//! ```
//!
//! and a journal that is full is followed by the one with the next number. A folder that has neither record nor mark nor
//! rows has never acknowledged anything: its making was interrupted, and is taken up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::embedded::files::clean_mark::{self, Mark, RunningJournal};
use crate::embedded::files::journal_links::{self, content_bytes};
use crate::embedded::files::manifest::{KEYSPACES, TABLES, VALUES};
use crate::embedded::files::store_record::{self, StoreRecord};
use crate::embedded::files::{folder, journal};
use crate::embedded::options::OpenError;

/// What a complete data folder has.
#[derive(Debug)]
pub(crate) struct Inventory {
    /// Whether something may have been acknowledged here.
    pub(crate) is_used: bool,
    pub(crate) mark: Option<Mark>,
    /// Numbers of journals that are missing in the store and have their second link.
    pub(crate) to_restore: Vec<u64>,
}

/// Looks at the data folder `path` with fjall's files in `store`.
///
/// # Errors
///
/// [`OpenError::Incomplete`] with all that is missing, [`OpenError::Corrupt`] for what was emptied or cut.
pub(crate) fn take(path: &Path, store: &Path) -> Result<Inventory, OpenError> {
    let record = StoreRecord::read(path)?;
    let mark = clean_mark::read(path)?;
    let failed = |source: io::Error| OpenError::Io { path: store.into(), source };
    let journals = journal::list(store).map_err(failed)?;
    let is_recorded = record != StoreRecord::Absent || mark.is_some();
    if !is_recorded && !holds_rows(store, &journals)? {
        return Ok(Inventory { is_used: false, mark: None, to_restore: Vec::new() });
    }
    let mut missing = Missing { store, files: Vec::new() };
    missing.look_for(&store.join("version"));
    for pointer in store_record::pointers(&record, store) {
        missing.look_for(&pointer);
    }
    let to_restore = match &mark {
        Some(Mark::Running(named)) => missing.journals(path, named, &journals)?,
        _ => Vec::new(),
    };
    // Those that an orderly stop has left are compared one by one.
    if !matches!(mark, Some(Mark::Stopped(_))) {
        missing.gaps(&journals, &to_restore);
    }
    if !missing.files.is_empty() {
        return Err(OpenError::Incomplete { missing: missing.files });
    }
    if !folder::check_store_version(store)? {
        return Err(OpenError::corrupt(&store.join("version"), 0, "it is empty"));
    }
    Ok(Inventory { is_used: true, mark, to_restore })
}

/// Whether a store without a record must have been complete at some time.
fn holds_rows(store: &Path, journals: &[PathBuf]) -> Result<bool, OpenError> {
    // The version file comes after these.
    let is_made = folder::check_store_version(store)?;
    if is_made && (journals.is_empty() || !store.join(KEYSPACES).exists()) {
        return Ok(true);
    }
    let trees = fs::read_dir(store.join(KEYSPACES)).into_iter().flatten().flatten();
    let has_files =
        |folder: &Path| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    if trees
        .map(|tree| tree.path())
        .any(|tree| has_files(&tree.join(TABLES)) || has_files(&tree.join(VALUES)))
    {
        return Ok(true);
    }
    for file in journals {
        let bytes =
            content_bytes(file).map_err(|source| OpenError::Io { path: file.clone(), source })?;
        if bytes > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Journals of one gap that are told: a stray file with a large number must not make a long list.
const GAPS_MAX: usize = 10;

/// What is missing of a store.
struct Missing<'a> {
    store: &'a Path,
    files: Vec<PathBuf>,
}

impl Missing<'_> {
    /// Notes a file that is not there, or the outermost folder that it should be in.
    fn look_for(&mut self, file: &Path) {
        if file.exists() {
            return;
        }
        let is_gone = |path: &&Path| path.starts_with(self.store) && !path.exists();
        let outermost = file.ancestors().take_while(is_gone).last().unwrap_or(file).to_path_buf();
        if !self.files.contains(&outermost) {
            self.files.push(outermost);
        }
    }

    /// Notes the journals that a mark names and that are in neither place; answers those that can be restored.
    fn journals(
        &mut self,
        path: &Path,
        named: &[RunningJournal],
        found: &[PathBuf],
    ) -> Result<Vec<u64>, OpenError> {
        let newest_found = found.last().and_then(|file| journal::id_of(file));
        let newest_named = named.last().map_or(0, |journal| journal.id);
        // Whoever wrote the mark has noted every journal but the one that was just begun.
        if newest_found > Some(newest_named.saturating_add(1)) {
            return Ok(Vec::new());
        }
        let mut to_restore = Vec::new();
        for journal in named {
            let file = self.store.join(journal::name_of(journal.id));
            let link = journal_links::link_of(path, journal.id);
            let (place, is_link) = if file.exists() { (&file, false) } else { (&link, true) };
            if is_link && !link.exists() {
                if journal.is_linked || newest_found <= Some(journal.id) {
                    self.look_for(&file);
                }
                continue;
            }
            let failed = |source: io::Error| OpenError::Io { path: place.clone(), source };
            let bytes = content_bytes(place).map_err(failed)?;
            if bytes < journal.bytes_min {
                let detail = format!("it ends here, and held {} bytes at least", journal.bytes_min);
                return Err(OpenError::corrupt(place, bytes, detail));
            }
            if is_link {
                to_restore.push(journal.id);
            }
        }
        Ok(to_restore)
    }

    /// Notes journals that must have been between others, and that there is one at all.
    fn gaps(&mut self, found: &[PathBuf], to_restore: &[u64]) {
        let found = found.iter().filter_map(|file| journal::id_of(file));
        let mut ids: Vec<u64> = found.chain(to_restore.iter().copied()).collect();
        ids.sort_unstable();
        for pair in ids.windows(2) {
            for id in (pair[0] + 1..pair[1]).take(GAPS_MAX) {
                self.look_for(&self.store.join(journal::name_of(id)));
            }
        }
        let is_named =
            self.files.iter().any(|file| journal::id_of(file).is_some() || *file == self.store);
        if ids.is_empty() && !is_named {
            // Its number is not known.
            self.files.push(self.store.join("*.jnl"));
        }
    }
}
