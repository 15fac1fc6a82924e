//! Commits: what gathers in the queue becomes one group, written with one sync.

pub(crate) mod committer;
pub(crate) mod group;
pub(crate) mod inline_commit;
pub(crate) mod job;
pub(crate) mod watchdog;
