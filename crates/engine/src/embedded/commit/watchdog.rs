//! What inline commits and the committer that looks after them know of each other.

/// Whether somebody looks after inline commits. It is kept with the group: whoever finds it running holds the group, and it
/// looks once more before it stops.
#[derive(Default)]
pub(crate) struct Watchdog {
    /// Whether there was an inline commit, or would have been, since the last look.
    is_wanted: bool,
    is_running: bool,
}

impl Watchdog {
    /// For an inline commit: whether the watchdog runs. If not, it will after the next commit.
    pub(crate) fn ask(&mut self) -> bool {
        self.is_wanted = true;
        self.is_running
    }

    /// For the committer, as often as it looks: whether it is to look again.
    pub(crate) fn keep_running(&mut self) -> bool {
        self.is_running = std::mem::take(&mut self.is_wanted);
        self.is_running
    }

    #[cfg(test)]
    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }
}
