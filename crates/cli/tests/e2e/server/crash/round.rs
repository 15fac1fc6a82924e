//! One round: what everyone in it shares, and the moment at which the server is killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Random, Server};

const MIB: usize = 1024 * 1024;
/// More than a memtable holds, so that one is flushed and its journal goes.
const VOLUME_BYTES_MIN: usize = 36 * MIB;
/// The moment is chosen by progress, and a little chance on top.
const CHANCE: Duration = Duration::from_millis(3);
/// Sweeping takes longer: tombstones, a flush, a rewrite of the tables.
const SWEEP_CHANCE: Duration = Duration::from_millis(400);
/// How often the progress is looked at.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// What a round aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Killed amid small writes.
    Writes,
    /// Killed while the rows of a large dropped table are swept.
    Sweep,
    /// Killed when the sweeping of a large dropped table has just made a table file appear.
    Flush,
    /// Killed amid small writes, and again while starting.
    Recovery,
    /// Killed after so much that memtables have been flushed, or when a flush or compaction makes a file appear.
    Volume,
}

impl Kind {
    /// The first five rounds are quick in a debug build, too.
    pub(super) fn of(round: usize) -> Self {
        match round % 10 {
            1 | 6 => Self::Sweep,
            2 | 8 => Self::Recovery,
            5 => Self::Flush,
            7 | 9 => Self::Volume,
            _ => Self::Writes,
        }
    }

    pub(super) fn has_large_values(self) -> bool {
        self == Self::Volume
    }

    pub(super) fn drops_a_large_table(self) -> bool {
        matches!(self, Self::Sweep | Self::Flush)
    }
}

/// The state of a round.
pub(super) struct Round {
    pub kind: Kind,
    server: Arc<Server>,
    files_before: BTreeSet<PathBuf>,
    acknowledged: AtomicUsize,
    refused: AtomicUsize,
    bytes: AtomicUsize,
    /// A large table has been dropped.
    is_sweeping: AtomicBool,
    is_killed: AtomicBool,
    has_failed: AtomicBool,
}

impl Round {
    pub(super) fn new(kind: Kind, server: &Arc<Server>) -> Self {
        Self {
            kind,
            server: Arc::clone(server),
            files_before: table_files(&server.data_folder()),
            acknowledged: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            is_sweeping: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Works step by step until the server is gone, which it must not be before it is killed.
    pub(super) fn work(&self, mut step: impl FnMut() -> std::io::Result<()>) {
        let _guard = FailureGuard(self);
        let gone = loop {
            if let Err(error) = step() {
                break error;
            }
        };
        assert!(self.is_killed.load(Ordering::SeqCst), "{gone}\n{}", self.server.log());
    }

    pub(super) fn count_acknowledged(&self, bytes: usize) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn large_table_dropped(&self) {
        self.is_sweeping.store(true, Ordering::Relaxed);
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn wait_for_the_moment(&self, random: &mut Random) {
        let writes = 50 + random.below(600);
        let bytes = VOLUME_BYTES_MIN + random.below(VOLUME_BYTES_MIN);
        let waits_for_file = self.kind == Kind::Flush || random.one_in(2);
        let is_reached = || match self.kind {
            Kind::Writes | Kind::Recovery => self.acknowledged() >= writes,
            Kind::Sweep => self.is_sweeping.load(Ordering::Relaxed),
            Kind::Flush => self.is_sweeping.load(Ordering::Relaxed) && self.has_new_table_file(),
            Kind::Volume => self.bytes() >= bytes || waits_for_file && self.has_new_table_file(),
        };
        while !is_reached() && !self.has_failed.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK_AGAIN);
        }
        let chance = if self.kind == Kind::Sweep { SWEEP_CHANCE } else { CHANCE };
        let micros = u64::try_from(chance.as_micros()).expect("a short time");
        std::thread::sleep(Duration::from_micros(random.next() % micros));
    }

    pub(super) fn kill(&self) {
        // ORDER: told before it is done, so that nobody takes the kill for a failure.
        self.is_killed.store(true, Ordering::SeqCst);
        self.server.kill();
    }

    fn has_new_table_file(&self) -> bool {
        !table_files(&self.server.data_folder()).is_subset(&self.files_before)
    }
}

/// Ends the round when someone in it has panicked: nobody else may ever reach the moment.
struct FailureGuard<'a>(&'a Round);

impl Drop for FailureGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_failed.store(true, Ordering::SeqCst);
        }
    }
}

/// The files below a folder that are not journals. Files come and go meanwhile.
fn table_files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => table_files(&path),
            path if path.extension().is_some_and(|ending| ending == "jnl") => BTreeSet::new(),
            path => BTreeSet::from([path]),
        })
        .collect()
}
