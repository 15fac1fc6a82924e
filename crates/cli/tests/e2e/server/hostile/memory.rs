//! The memory of a server, as the kernel counts it. Other systems than Linux count nothing here.

use crate::support::Server;

/// The most that a process ever had resident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub peak_bytes: usize,
}

impl Memory {
    pub(super) fn of(server: &Server) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()));
        Self { peak_bytes: status.map_or(0, |status| field(&status, "VmHWM:")) }
    }

    /// At no moment since `before` did the process have so much more.
    #[track_caller]
    pub(super) fn assert_grew_less_than(self, bytes: usize, before: Self) {
        let grown = self.peak_bytes.saturating_sub(before.peak_bytes);
        println!("grew by {} KiB from {} KiB", grown / 1024, before.peak_bytes / 1024);
        assert!(grown < bytes, "{grown} bytes more than {}", before.peak_bytes);
    }
}

fn field(status: &str, name: &str) -> usize {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
    let kib = line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number");
    kib * 1024
}
