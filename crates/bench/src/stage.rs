//! What commands that start servers have in common: the binary, a folder for data, results, and servers that rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::machine::Machine;
use crate::process;
use crate::record::{self, Record};
use crate::servers::{self, Server};

/// A server that still works after so long will not rest soon.
const RESTING_MAX: Duration = Duration::from_secs(120);

/// What the commands have in common that start the service themselves.
#[derive(Args, Clone, Debug)]
pub struct Setting {
    /// The service's binary [default: one that is built now]
    #[arg(long, value_name = "FILE")]
    pub tavola: Option<PathBuf>,
    /// Keep results in this folder, and the page of them all beside it, as DIR.md [default: docs/performance]
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

/// The repository, the binary, and a folder for data that goes away at the end.
pub struct Stage {
    pub root: PathBuf,
    pub binary: PathBuf,
    pub results: PathBuf,
    /// In `target`, because a temporary folder may be in memory.
    pub folder: TempDir,
    /// Looked at before anything runs on it.
    machine: Machine,
}

impl Setting {
    pub fn stage(&self) -> anyhow::Result<Stage> {
        let root = record::repository()?;
        let binary = servers::tavola_binary(self.tavola.as_deref(), &root)?;
        let target = root.join("target");
        fs::create_dir_all(&target)?;
        let folder = tempfile::Builder::new().prefix("bench-data-").tempdir_in(&target)?;
        let results = self.results.clone().unwrap_or_else(|| root.join("docs/performance"));
        let machine = Machine::look(folder.path())?;
        Ok(Stage { root, binary, results, folder, machine })
    }
}

impl Stage {
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("tavola")
    }

    pub fn start(&self) -> anyhow::Result<Server> {
        servers::tavola(&self.binary, &self.data())
    }

    /// Keeps a result, and gives the folder of them all.
    pub fn keep<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        arguments: &str,
        result: T,
    ) -> anyhow::Result<PathBuf> {
        Record::new(arguments, &self.root, self.machine.clone(), result)
            .save(&self.results, name)?;
        Ok(self.results.clone())
    }
}

/// One thread drives everything: a driver with more would take the cores from the server.
pub fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
}

/// Lets servers finish what they do in the background, and the system write what they have left to it, so that none of it
/// weighs on the next measurement.
pub fn let_rest(pids: &[u32]) {
    let_rest_at_most(pids, RESTING_MAX);
}

/// The same, for no longer than this.
pub fn let_rest_at_most(pids: &[u32], time_max: Duration) {
    if !process::wait_until_resting(pids, time_max) {
        println!("(still busy in the background after {} s)", time_max.as_secs());
    }
    process::write_back();
}

/// Whether a folder's files have stopped changing in size for a while, as they do once compaction is done.
pub fn wait_until_settled(folder: &Path, pid: u32) {
    loop {
        let before = process::folder_bytes(folder);
        let_rest(&[pid]);
        std::thread::sleep(Duration::from_secs(2));
        if process::folder_bytes(folder) == before {
            return;
        }
    }
}
