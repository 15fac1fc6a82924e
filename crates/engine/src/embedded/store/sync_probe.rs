//! How long the disk takes for a sync alone: tried once a second, on a file of its own, while there are commits.
//!
//! The syncs of commits themselves cannot be timed. fjall writes, syncs and applies a batch in one call, and it must stay
//! one: if the journal were sealed between a call that writes and one that syncs, and the sync of the sealing failed, then the
//! next one would succeed, because the kernel tells an error once, and what is lost would be acknowledged.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::embedded::stats::Stats;

/// What is written before each sync: the page that even a small commit writes.
const PAGE: [u8; 4096] = [0; 4096];

/// How long the file gets before it starts anew. Like the journal it grows: room that is given to a file has to be synced too.
const FILE_BYTES_MAX: u64 = 256 * 1024;

pub(crate) struct SyncProbe {
    folder: PathBuf,
    /// Without a name, so that nothing of it stays in the folder, however the process ends.
    file: Option<File>,
    commits_before: u64,
    stats: Arc<Stats>,
}

impl SyncProbe {
    pub(crate) fn new(folder: PathBuf, stats: Arc<Stats>) -> Self {
        Self { folder, file: None, commits_before: 0, stats }
    }

    /// Tries a sync if anything was committed since the last time: the disk of an idle server is left alone.
    pub(crate) fn sync_if_committed(&mut self) {
        let commits = self.stats.commit_nanos.count();
        if std::mem::replace(&mut self.commits_before, commits) == commits {
            return;
        }
        if let Err(error) = self.sync() {
            // Only a figure is missing. Whether the disk fails is for commits to find out, which have something to lose.
            tracing::debug!(%error, "cannot try how long a sync takes");
            self.file = None;
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.folder)?),
        };
        if file.stream_position()? >= FILE_BYTES_MAX {
            file.rewind()?;
            file.set_len(0)?;
        }
        file.write_all(&PAGE)?;
        let start = Instant::now();
        file.sync_data()?;
        self.stats.sync_nanos.record_duration(start.elapsed());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_commits_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let stats = Arc::new(Stats::default());
        let mut probe = SyncProbe::new(folder.path().into(), Arc::clone(&stats));
        let syncs = |probe: &mut SyncProbe| {
            probe.sync_if_committed();
            stats.sync_nanos.count()
        };
        assert_eq!(syncs(&mut probe), 0);
        stats.commit_nanos.record(1);
        assert_eq!((syncs(&mut probe), syncs(&mut probe)), (1, 1));
        assert!(stats.sync_nanos.sum() > 0);
        // The file is nowhere to be seen.
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let mut probe = SyncProbe::new(folder.path().into(), Arc::default());
        let pages_max = FILE_BYTES_MAX / PAGE.len() as u64;
        for _ in 0..=pages_max {
            probe.sync().unwrap();
        }
        assert_eq!(probe.file.unwrap().metadata().unwrap().len(), PAGE.len() as u64);
    }

    #[test]
    fn a_folder_that_is_gone_costs_a_figure_only() {
        let folder = tempfile::tempdir().unwrap();
        let stats = Arc::new(Stats::default());
        let mut probe = SyncProbe::new(folder.path().join("gone"), Arc::clone(&stats));
        stats.commit_nanos.record(1);
        probe.sync_if_committed();
        assert_eq!(stats.sync_nanos.count(), 0);
    }
}
