//! Why an engine could not do what it was asked, by what the caller should do about it.

/// Why an engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The queue is full: try again later.
    #[error("engine is busy")]
    Busy,
    /// The disk is nearly full, and this would take more of it. As long as some room is left, transitions that
    /// [free space](crate::Transition::frees_space) are taken.
    #[error("disk is nearly full")]
    Full,
    /// A row that the transition guards has changed since the caller read it. Nothing was written; read it again.
    #[error("a guarded row has changed")]
    GuardFailed,
    /// The engine cannot be reached or has failed; nothing was written.
    #[error("engine is unavailable: {0}")]
    Unavailable(String),
    /// The commit may or may not have happened; only a later read can tell.
    #[error("outcome of the commit is unknown: {0}")]
    OutcomeUnknown(String),
    /// A transition or a visitor panicked: a mistake of ours. Nothing was written.
    #[error("panicked: {0}")]
    Panicked(String),
    /// Stored bytes are not what was written.
    #[error("stored data is corrupt: {0}")]
    Corrupt(String),
    /// The engine has been closed.
    #[error("engine is closed")]
    Closed,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
