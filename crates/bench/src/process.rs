//! What a server's process uses, as the system counts it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Ticks of `/proc/PID/stat` in a second; Linux shows a hundred to every process, whatever it counts inside.
const TICKS_PER_SECOND: f64 = 100.0;
/// The unit that the system counts a file's room in, whatever the file system's own.
const BLOCK_BYTES: u64 = 512;
/// A process that used less of a core than this rests.
const RESTING_SHARE: f64 = 0.03;
const RESTING_LOOK: Duration = Duration::from_millis(500);
/// Looks in a row that must find nothing. The service begins to compact when nothing was written for a second: who looks
/// for a shorter time takes the pause before it for rest.
const RESTING_LOOKS: u32 = 4;

/// CPU seconds that a process has used, in user and in system mode; `None` when there is no such process.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    parse_cpu_seconds(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the name in parentheses, which may hold blanks and parentheses itself.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let (user, system): (f64, f64) = (fields.get(11)?.parse().ok()?, fields.get(12)?.parse().ok()?);
    Some((user + system) / TICKS_PER_SECOND)
}

/// Memory of a process that is in use, in bytes.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    status_bytes(pid, "VmRSS:")
}

/// The most memory that a process ever had in use, in bytes.
pub fn resident_bytes_max(pid: u32) -> Option<u64> {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    parse_status_bytes(&status, name)
}

fn parse_status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Bytes that the files below a folder take on disk. Files that go away meanwhile do not count.
pub fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
            Ok(metadata) => metadata.blocks() * BLOCK_BYTES,
            Err(_) => 0,
        })
        .sum()
}

/// Waits until none of these processes does anything worth mentioning, for that long at most; gives whether they rest.
pub fn wait_until_resting(pids: &[u32], at_most: Duration) -> bool {
    if pids.is_empty() {
        return true;
    }
    let start = Instant::now();
    let used = || pids.iter().filter_map(|pid| cpu_seconds(*pid)).sum::<f64>();
    let used_max = RESTING_SHARE * RESTING_LOOK.as_secs_f64() + 1.0 / TICKS_PER_SECOND;
    let mut looks = 0;
    while start.elapsed() < at_most {
        let before = used();
        std::thread::sleep(RESTING_LOOK);
        looks = if used() - before <= used_max { looks + 1 } else { 0 };
        if looks == RESTING_LOOKS {
            return true;
        }
    }
    false
}

/// Has the system write what it still holds of files that nobody synced. What one server left behind would be written
/// while another syncs.
pub fn write_back() {
    // Best effort: not every system has this command.
    let _ = std::process::Command::new("sync").status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_does_not_confuse() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0";
        assert_eq!(parse_cpu_seconds(stat), Some(3.0));
        assert_eq!(parse_cpu_seconds("nonsense"), None);
    }

    #[test]
    fn memory_is_given_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_status_bytes(status, "VmRSS:"), Some(1024 * 1024));
        assert_eq!(parse_status_bytes(status, "VmHWM:"), Some(2048 * 1024));
        assert_eq!(parse_status_bytes(status, "VmSwap:"), None);
    }

    #[test]
    fn a_folder_is_what_its_files_take_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        std::fs::write(folder.path().join("a"), vec![7; 100_000]).unwrap();
        std::fs::write(folder.path().join("inner/b"), vec![7; 50_000]).unwrap();
        // Room that was asked for and never written takes none.
        std::fs::File::create(folder.path().join("sparse")).unwrap().set_len(1 << 30).unwrap();
        std::fs::File::open(folder.path().join("a")).unwrap().sync_all().unwrap();
        std::fs::File::open(folder.path().join("inner/b")).unwrap().sync_all().unwrap();
        let bytes = folder_bytes(folder.path());
        assert!((150_000..400_000).contains(&bytes), "{bytes}");
        assert_eq!(folder_bytes(&folder.path().join("missing")), 0);
    }
}
