//! What a server must know of an engine beside its rows: whether it is shared, how full it is, how well.
//!
//! Counters for an operator are not here: they differ from engine to engine.

use std::future::Future;
use std::io;

/// Asked of every engine. What most engines answer is the default.
pub trait Status {
    /// Whether other processes read and write the same rows. Then whatever a process remembers of them may be outdated:
    /// caches have an age and rest on guards, and work in the background is elected.
    fn is_shared(&self) -> bool {
        false
    }

    /// How full it is.
    fn fullness(&self) -> Fullness {
        Fullness { free_bytes: None, takes_writes: true }
    }

    /// Resolves with the reason when the engine can write no more and the process should stop; otherwise never.
    fn failed(&self) -> impl Future<Output = String> + Send {
        std::future::pending()
    }

    /// Sees to it that a version which does not know this format refuses what is stored, from now on. Durable when it
    /// answers, and cheap if that is so already. Blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// When that cannot be written.
    fn raise_format(&self, _format: u32) -> io::Result<()> {
        Ok(())
    }

    /// Finishes what was accepted and accepts no more. Blocks the calling thread meanwhile.
    fn close(&self) {}
}

/// How full an engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullness {
    /// Bytes that are left, if the engine knows.
    pub free_bytes: Option<u64>,
    /// Whether it takes what needs room. If not, transitions are told [`Error::Full`](crate::Error::Full), except, as
    /// long as some room is left, those that [free space](crate::Transition::frees_space).
    pub takes_writes: bool,
}
