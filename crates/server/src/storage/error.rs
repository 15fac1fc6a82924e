//! Why storage did not do what it was asked, in its own words.

use tokio::task::JoinError;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is nothing of that name.
    #[error("there is nothing of that name")]
    NotFound,
    /// The name is taken.
    #[error("the name is taken")]
    Exists,
    /// What is stored uses something that this version does not know, and would not keep in order.
    #[error(
        "what is stored uses `{0}`, which this version does not know; use the version that wrote it, or a newer one"
    )]
    UnknownFeature(String),
    #[error(transparent)]
    Engine(#[from] tavola_engine::Error),
    /// Stored bytes that nobody can have written.
    #[error("stored data is corrupt: {0}")]
    Corrupt(String),
    /// Work that nobody may interrupt panicked, or the runtime went away below it.
    #[error("the work did not come to its end: {0}")]
    Interrupted(#[from] JoinError),
}

impl Error {
    /// Whether something that is stored cannot be read, now or ever.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Engine(tavola_engine::Error::Corrupt(_)))
    }
}
