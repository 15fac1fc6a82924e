//! A file or folder that is lost or emptied is told, or does no harm: never an empty store, never fewer rows, and
//! nothing is removed by a start that does not succeed. The check agrees.
//!
//! Used folders in several states; each file, each subfolder and some pairs are removed, and each file is emptied, one
//! at a time, and the folder is started and checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::flip_tests::{Rows, all, files, kind, sound_folder, written};
use super::tests::{reopen, without_compaction};
use super::*;
use crate::Write;
use crate::conformance::{commit, random};
use crate::embedded::files::journal;
use crate::embedded::files::journal_links::JournalLinks;

/// What is done to a copy of a folder.
#[derive(Clone, Debug)]
enum Loss {
    Removed(Vec<PathBuf>),
    Emptied(PathBuf),
}

impl Loss {
    fn apply(&self, folder: &Path) {
        match self {
            Self::Removed(paths) => {
                for path in paths.iter().map(|path| folder.join(path)) {
                    if path.is_dir() {
                        fs::remove_dir_all(path).unwrap();
                    } else {
                        fs::remove_file(path).unwrap();
                    }
                }
            }
            Self::Emptied(path) => {
                // Not truncated: it may be a link to the original.
                fs::remove_file(folder.join(path)).unwrap();
                fs::write(folder.join(path), b"").unwrap();
            }
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Removed(paths) => paths.iter().map(|path| path.display().to_string()).collect(),
            Self::Emptied(path) => vec![path.display().to_string()],
        }
    }
}

/// A folder that was used, and its rows.
struct Used {
    folder: tempfile::TempDir,
    rows: Rows,
}

impl Used {
    /// Used, and killed before the first flush.
    async fn fresh() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = EmbeddedEngine::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let rows = Self::write(&engine, 5, 100).await;
        Self::killed(&engine, &folder, rows)
    }

    /// With tables, separated values and a journal, stopped in order.
    async fn stopped() -> Self {
        let (folder, rows) = sound_folder().await;
        Self { folder, rows }
    }

    /// The same, started again, used and killed.
    async fn flushed_and_killed() -> Self {
        let (folder, mut rows) = sound_folder().await;
        let engine = reopen(folder.path(), EmbeddedOptions::default()).unwrap();
        rows.extend(Self::write(&engine, 5, 100).await);
        Self::killed(&engine, &folder, rows)
    }

    /// Killed with a journal that is full beside the newest: what fjall does after 64 MB, done by hand.
    async fn with_two_journals() -> Self {
        let used = Self::flushed_and_killed().await;
        let (path, store) = (used.folder.path(), used.folder.path().join("store"));
        let bytes = fs::read(store.join("0.jnl")).unwrap();
        let batches = journal::batches(&bytes);
        let end = batches[batches.len() - 3].0;
        fs::write(store.join("0.jnl"), &bytes[..end]).unwrap();
        fs::write(store.join("1.jnl"), &bytes[end..]).unwrap();
        drop(JournalLinks::begin(path, &store, true).unwrap());
        for name in ["store/0.jnl", "store/1.jnl", "journals/0.jnl", "journals/1.jnl"] {
            assert!(path.join(name).exists(), "{name}");
        }
        used
    }

    async fn write(engine: &EmbeddedEngine, batches: usize, bytes: usize) -> Rows {
        let mut state = 29 + bytes as u64;
        let mut rows = Rows::new();
        for batch in 0..batches {
            let key = Bytes::from(format!("written {bytes} {batch}"));
            let value = Bytes::from(random(&mut state).to_le_bytes().repeat(bytes / 8));
            rows.insert(key.clone(), value.clone());
            commit(engine, vec![Write::Put(key, value)]).await;
        }
        rows
    }

    /// What a kill at this moment leaves: a copy while the process goes on.
    fn killed(engine: &EmbeddedEngine, folder: &tempfile::TempDir, rows: Rows) -> Self {
        let _permit = without_compaction(engine, folder.path());
        let used = Self { folder: copy(folder.path()), rows };
        assert!(!used.is_stopped());
        used
    }

    fn is_stopped(&self) -> bool {
        let mark = fs::read_to_string(self.folder.path().join("TAVOLA.clean")).unwrap();
        mark.starts_with("tavola stopped")
    }

    /// Every file and folder alone, every file emptied, and what may go together.
    fn losses(&self) -> Vec<Loss> {
        let files = files(self.folder.path());
        let folders: BTreeSet<PathBuf> = files
            .iter()
            .flat_map(|file| file.ancestors().skip(1).map(Path::to_path_buf))
            .filter(|folder| !folder.as_os_str().is_empty())
            .collect();
        let of_kind = |is_of: fn(&Path) -> bool| -> Vec<PathBuf> {
            files.iter().filter(|file| is_of(file)).cloned().collect()
        };
        let is_journal = |file: &Path| file.extension().is_some_and(|ending| ending == "jnl");
        let mut pairs = vec![
            of_kind(|file| file.extension().is_some_and(|ending| ending == "jnl")),
            of_kind(|file| file.ends_with("current")),
            ["store", "journals"].map(PathBuf::from).to_vec(),
            ["store", "TAVOLA.clean"].map(PathBuf::from).to_vec(),
            ["store", "TAVOLA.store"].map(PathBuf::from).to_vec(),
            ["store/keyspaces", "TAVOLA.store"].map(PathBuf::from).to_vec(),
            ["store/keyspaces/0", "TAVOLA.store"].map(PathBuf::from).to_vec(),
            ["store/keyspaces/1", "TAVOLA.store"].map(PathBuf::from).to_vec(),
            ["store/keyspaces/1/current", "TAVOLA.store"].map(PathBuf::from).to_vec(),
            ["store/version", "store/keyspaces"].map(PathBuf::from).to_vec(),
        ];
        for file in files.iter().filter(|file| is_journal(file) && file.starts_with("store")) {
            pairs.push(vec![file.clone(), Path::new("journals").join(file.file_name().unwrap())]);
        }
        // A folder that was stopped has no second links.
        let exists = |path: &PathBuf| self.folder.path().join(path).exists();
        pairs.iter_mut().for_each(|pair| pair.retain(exists));
        let single = files.iter().chain(&folders).map(|path| Loss::Removed(vec![path.clone()]));
        let emptied = files.iter().map(|path| Loss::Emptied(path.clone()));
        single.chain(emptied).chain(pairs.into_iter().map(Loss::Removed)).collect()
    }

    /// Starts with all rows, or does not and says why.
    async fn try_loss(&self, loss: &Loss) {
        let told = format!("{loss:?}, stopped: {}", self.is_stopped());
        let copy = copy(self.folder.path());
        loss.apply(copy.path());
        let before = files(copy.path());
        let problems = problems(copy.path());
        assert_eq!(files(copy.path()), before, "the check changed something: {told}");
        match reopen(copy.path(), EmbeddedOptions::default()) {
            Ok(engine) => match all(&engine).await {
                Ok(found) => {
                    assert!(
                        found == self.rows,
                        "{} rows, not {}: {told}",
                        found.len(),
                        self.rows.len()
                    );
                }
                Err(error) => panic!("{error}: {told}"),
            },
            Err(error) => {
                let error = error.to_string();
                let is_named = loss.names().iter().any(|name| error.contains(name));
                assert!(is_named, "{error}: {told}");
                assert!(error.contains("tavola salvage"), "{error}: {told}");
                let left = files(copy.path());
                let gone: Vec<_> = before.iter().filter(|file| !left.contains(file)).collect();
                assert!(gone.is_empty(), "{gone:?} was removed: {told}");
                let problems = problems.join("\n");
                let is_named = loss.names().iter().any(|name| problems.contains(name));
                assert!(is_named, "the check does not say so: {problems}: {told}");
            }
        }
    }

    async fn try_all_losses(&self) {
        for loss in self.losses() {
            self.try_loss(&loss).await;
        }
    }
}

fn problems(folder: &Path) -> Vec<String> {
    match FolderCheck::open(folder) {
        Ok(check) => {
            let report = check.files(&mut |_, _| {});
            let mut problems: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
            problems.extend(check.rows().err().map(|error| error.to_string()));
            problems
        }
        Err(error) => vec![error.to_string()],
    }
}

/// A copy of a folder; files that are never written again are only linked.
fn copy(folder: &Path) -> tempfile::TempDir {
    fn fill(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let from = entry.unwrap().path();
            let to = to.join(from.file_name().unwrap());
            if from.is_dir() {
                fs::create_dir(&to).unwrap();
                fill(&from, &to);
            } else if ["tables", "blobs"].contains(&kind(&from).as_str()) {
                fs::hard_link(from, to).unwrap();
            } else {
                fs::write(to, written(&from)).unwrap();
            }
        }
    }
    let copy = tempfile::tempdir().unwrap();
    fill(folder, copy.path());
    copy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_folder_misses_what_it_lost() {
    Used::fresh().await.try_all_losses().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_folder_misses_what_it_lost() {
    Used::stopped().await.try_all_losses().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_folder_misses_what_it_lost() {
    Used::flushed_and_killed().await.try_all_losses().await;
}

/// A journal that is full and not yet in tables is missed as well, and one with a link left is taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_is_missed_that_is_not_the_newest() {
    let used = Used::with_two_journals().await;
    let removed = |names: &[&str]| Loss::Removed(names.iter().map(PathBuf::from).collect());
    for loss in [
        removed(&["store/0.jnl"]),
        removed(&["store/1.jnl"]),
        removed(&["store/0.jnl", "store/1.jnl"]),
        removed(&["journals"]),
        removed(&["store/0.jnl", "journals/0.jnl"]),
        removed(&["store/1.jnl", "journals/1.jnl"]),
        removed(&["store/0.jnl", "store/1.jnl", "journals"]),
        Loss::Emptied("store/0.jnl".into()),
        Loss::Emptied("store/1.jnl".into()),
    ] {
        used.try_loss(&loss).await;
    }
}

/// A folder of an older version has no record, and its mark says nothing while it runs: what the files themselves tell
/// is noticed, and it gets its record when it is complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_folder_of_an_older_version_gets_its_record() {
    for used in [Used::fresh().await, Used::flushed_and_killed().await] {
        let older = ["TAVOLA.store", "TAVOLA.clean", "journals"].map(PathBuf::from).to_vec();
        let folder = copy(used.folder.path());
        Loss::Removed(older).apply(folder.path());
        let older = Used { folder, rows: used.rows };
        for name in
            ["store/keyspaces", "store/keyspaces/0", "store/keyspaces/1/current", "store/version"]
        {
            let copy = copy(older.folder.path());
            Loss::Removed(vec![name.into()]).apply(copy.path());
            let error = reopen(copy.path(), EmbeddedOptions::default()).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let engine = reopen(older.folder.path(), EmbeddedOptions::default()).unwrap();
        assert_eq!(all(&engine).await.unwrap(), older.rows);
        drop(engine);
        let record = fs::read_to_string(older.folder.path().join("TAVOLA.store")).unwrap();
        assert!(record.starts_with("tavola store:\nkeyspaces/0\nkeyspaces/1\n"), "{record}");
    }
}

/// Whatever of a first start was done, the next takes it up: nobody was told anything yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_first_start_is_taken_up_wherever_it_was() {
    let made = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(made.path(), EmbeddedOptions::default()).unwrap();
    let complete = copy(made.path());
    drop(engine);
    // In the order in which they are made; each step is there or not.
    let steps = [
        "TAVOLA.store",
        "store/keyspaces/0/tables/0",
        "store/keyspaces/1",
        "store/keyspaces/0",
        "store/version",
        "store/0.jnl",
        "store/keyspaces",
        "store",
    ];
    let _ = fs::remove_dir_all(complete.path().join("journals"));
    fs::remove_file(complete.path().join("TAVOLA.clean")).unwrap();
    for undone in steps {
        let path = complete.path().join(undone);
        if undone.ends_with("tables/0") {
            // Before the trees are in fjall's list, the list is at its first manifest.
            empty_list(&complete.path().join("store/keyspaces/0"));
        } else if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        let copy = copy(complete.path());
        let engine = reopen(copy.path(), EmbeddedOptions::default())
            .unwrap_or_else(|error| panic!("without {undone}: {error}"));
        commit(&engine, vec![Write::Put("a".into(), "1".into())]).await;
        drop(engine);
        assert!(copy.path().join("TAVOLA.store").exists());
    }
}

/// Makes fjall's list of trees what it is before the first is in it.
fn empty_list(tree: &Path) {
    let fresh = tempfile::tempdir().unwrap();
    drop(fjall::Database::builder(fresh.path()).open().unwrap());
    fs::remove_dir_all(tree).unwrap();
    let from = fresh.path().join("keyspaces/0");
    for file in files(&from) {
        let to = tree.join(&file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from.join(&file), to).unwrap();
    }
    fs::create_dir_all(tree.join("tables")).unwrap();
}
