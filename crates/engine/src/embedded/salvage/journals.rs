//! The versions in the journals, batch by batch, without those that are damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::embedded::files::clean_mark::Mark;
use crate::embedded::files::journal::{self, Entry};
use crate::embedded::files::journal_links;
use crate::embedded::salvage::{Content, Loss, Version};

/// The journals of a folder.
#[derive(Debug)]
pub(super) struct Journals {
    /// Oldest first.
    files: Vec<PathBuf>,
    /// The trees with rows; none if that cannot be told.
    trees: Vec<u64>,
    /// Whether they were at rest: then nothing at their end can be torn.
    is_stopped: bool,
}

impl Journals {
    /// Those in the store, and those of which only the second link is left. Without a mark that speaks of links they may
    /// be of long ago: an older version leaves them lying.
    pub(super) fn find(path: &Path, store: &Path, trees: Vec<u64>, mark: Option<&Mark>) -> Self {
        let numbered = |folder: &Path| -> BTreeMap<u64, PathBuf> {
            let files = journal::list(folder).unwrap_or_default();
            files.into_iter().filter_map(|file| Some((journal::id_of(&file)?, file))).collect()
        };
        let mut files = numbered(store);
        let oldest = files.keys().next().copied().unwrap_or(0);
        let mut links = numbered(&journal_links::folder_of(path));
        links.retain(|id, _| *id >= oldest || matches!(mark, Some(Mark::Running(_))));
        let bytes = |file: &Path| journal_links::content_bytes(file).unwrap_or(0);
        for (id, link) in links {
            if files.get(&id).is_none_or(|file| bytes(file) < bytes(&link)) {
                files.insert(id, link);
            }
        }
        let is_stopped = matches!(mark, Some(Mark::Stopped(_)));
        Self { files: files.into_values().collect(), trees, is_stopped }
    }

    /// All versions, in order of keys, newer ones first. Those up to `flushed` are in tables.
    pub(super) fn versions(&self, flushed: Option<u64>, losses: &mut Vec<Loss>) -> Vec<Version> {
        let mut versions = Vec::new();
        let mut seqno = None;
        for (index, file) in self.files.iter().enumerate() {
            let bytes = match fs::read(file) {
                Ok(bytes) => bytes,
                Err(error) => {
                    losses.push(Loss::new(file, format!("it cannot be read: {error}")));
                    continue;
                }
            };
            let may_be_torn = !self.is_stopped && index + 1 == self.files.len();
            for part in journal::parts(&bytes, &mut seqno) {
                match part {
                    journal::Part::Batch { seqno, entries } => {
                        if flushed.is_none_or(|flushed| seqno > flushed) {
                            versions.extend(
                                entries.iter().filter_map(|entry| self.version(entry, seqno)),
                            );
                        }
                    }
                    journal::Part::Damage { offset, next } => {
                        let is_flushed =
                            next.zip(flushed).is_some_and(|(next, flushed)| next <= flushed);
                        let is_torn = may_be_torn && next.is_none();
                        if !is_flushed && !is_torn {
                            let detail = format!("batches from byte {offset} on are damaged");
                            losses.push(Loss::new(file, detail));
                        }
                    }
                }
            }
        }
        versions.sort_by(|a, b| a.key.cmp(&b.key).then(b.seqno.cmp(&a.seqno)));
        versions
    }

    fn version(&self, entry: &Entry<'_>, seqno: u64) -> Option<Version> {
        let is_ours = self.trees.is_empty() || self.trees.contains(&entry.keyspace);
        let content = if entry.is_deletion {
            Content::Deleted
        } else {
            Content::Value(Bytes::copy_from_slice(entry.value))
        };
        is_ours.then(|| Version { key: Bytes::copy_from_slice(entry.key), seqno, content })
    }
}
