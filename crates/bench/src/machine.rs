//! The machine that figures belong to, and how quickly its disk makes a write durable.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// What one durable write is measured with: a page appended to a file.
const PAGE_BYTES: usize = 4096;

/// Where something was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cores: usize,
    pub processor: String,
    pub memory_gigabytes: f64,
    pub kernel: String,
    /// Processes that wanted a core in the minute before: more than a fraction, and the figures are theirs too.
    pub load_before: f64,
    /// One `fdatasync` of an appended page, on the disk that the data was on.
    pub fdatasync_p50_micros: f64,
    pub fdatasync_p99_micros: f64,
}

impl Machine {
    /// Looks around, and syncs for a second in this folder.
    pub fn look(folder: &Path) -> anyhow::Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let syncs = fdatasync_for(folder, Duration::from_secs(1))?;
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown").to_owned(),
            memory_gigabytes: memory_gigabytes(&read("/proc/meminfo")).unwrap_or(0.0),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: load_average(&read("/proc/loadavg")).unwrap_or(0.0),
            fdatasync_p50_micros: syncs.micros(0.50),
            fdatasync_p99_micros: syncs.micros(0.99),
        })
    }
}

/// Appends pages to a file and makes each durable before the next, for so long.
pub fn fdatasync_for(folder: &Path, duration: Duration) -> anyhow::Result<Histogram> {
    let path = folder.join("tavola-bench-fdatasync");
    let mut file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
    let mut syncs = Histogram::new();
    let start = Instant::now();
    while start.elapsed() < duration {
        let before = Instant::now();
        file.write_all(&[7; PAGE_BYTES])?;
        file.sync_data()?;
        syncs.record(before.elapsed());
    }
    drop(file);
    fs::remove_file(&path)?;
    Ok(syncs)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

fn memory_gigabytes(meminfo: &str) -> Option<f64> {
    let kibibytes: f64 = field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some((kibibytes * 1024.0 / 1e9 * 10.0).round() / 10.0)
}

fn load_average(loadavg: &str) -> Option<f64> {
    loadavg.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_describes_itself() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::look(folder.path()).unwrap();
        assert!(machine.cores > 0 && machine.fdatasync_p50_micros > 0.0, "{machine:?}");
        assert!(machine.fdatasync_p99_micros >= machine.fdatasync_p50_micros, "{machine:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        assert_eq!(load_average("15.14 18.22 16.89 3/512 99\n"), Some(15.14));
        assert_eq!(load_average(""), None);
    }

    #[test]
    fn memory_is_that_of_meminfo() {
        assert_eq!(memory_gigabytes("MemTotal:       24546812 kB\nMemFree: 1 kB\n"), Some(25.1));
        assert_eq!(memory_gigabytes(""), None);
    }
}
