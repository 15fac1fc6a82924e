//! Results as they are kept: figures never without the command, the commit and the machine that they belong to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::machine::Machine;

/// The result of one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record<T> {
    pub command: String,
    pub date: String,
    pub commit: String,
    pub machine: Machine,
    pub result: T,
}

impl<T: Serialize + DeserializeOwned> Record<T> {
    /// `arguments` are what the command line says apart from paths, which mean nothing elsewhere.
    pub fn new(arguments: &str, root: &Path, machine: Machine, result: T) -> Self {
        Self {
            command: format!("cargo run --release -p tavola-bench -- {arguments}"),
            date: clock::today(),
            commit: commit(root),
            machine,
            result,
        }
    }

    pub fn save(&self, folder: &Path, name: &str) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        let path = file(folder, name);
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        fs::write(&path, json).with_context(|| format!("writing {}", path.display()))
    }

    /// The kept result of this name, if there is one.
    pub fn load(folder: &Path, name: &str) -> anyhow::Result<Option<Self>> {
        let path = file(folder, name);
        if !path.exists() {
            return Ok(None);
        }
        let json = fs::read_to_string(&path)?;
        Ok(Some(
            serde_json::from_str(&json).with_context(|| format!("reading {}", path.display()))?,
        ))
    }
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(name).with_extension("json")
}

/// The commit that is checked out, marked when the sources are not exactly it.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else {
        return "unknown".to_owned();
    };
    match git(&["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}, changed"),
    }
}

/// The folder of this repository that the current folder lies in.
pub fn repository() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let root = here.ancestors().find(|folder| folder.join("crates/bench/Cargo.toml").exists());
    Ok(root.context("run this inside the repository")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_kept_with_what_it_belongs_to() {
        let folder = tempfile::tempdir().unwrap();
        let record =
            Record::new("latency --seconds 1", folder.path(), Machine::default(), vec![1.5, 2.5]);
        record.save(folder.path(), "latency").unwrap();
        let loaded: Record<Vec<f64>> = Record::load(folder.path(), "latency").unwrap().unwrap();
        assert_eq!(loaded.command, "cargo run --release -p tavola-bench -- latency --seconds 1");
        assert_eq!((loaded.machine, loaded.result), (record.machine, record.result));
        assert!(Record::<Vec<f64>>::load(folder.path(), "growth").unwrap().is_none());
    }
}
