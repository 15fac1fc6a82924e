//! From what storage and engine report to what a client is told. One function maps the engine's errors to codes.

use tavola_engine::Error as EngineError;
use tavola_wire::{ErrorCode, StorageError};

use crate::storage;

pub(crate) type Result<T, E = StorageError> = std::result::Result<T, E>;

const DISK_FULL: &str = "The disk of the server is nearly full. Reading works, and deleting as long as some room is left; everything will when there is more.";

/// The answer to a request that the engine failed.
pub(crate) fn engine_error(error: EngineError) -> StorageError {
    let code = match &error {
        // Too many at a time is nobody's mistake, and must not fill the log.
        EngineError::Busy => return ErrorCode::ServerBusy.into(),
        // Clients try again after a while, and find room if someone has made it. The engine has logged it once: a line
        // per request would fill what is left of the disk.
        EngineError::Full => return StorageError::with_detail(ErrorCode::ServerBusy, DISK_FULL),
        // Nothing was written, and who asks again is told by what the row is now.
        EngineError::GuardFailed => return ErrorCode::ServerBusy.into(),
        EngineError::Closed | EngineError::Unavailable(_) => ErrorCode::ServerBusy,
        EngineError::OutcomeUnknown(_) | EngineError::Panicked(_) | EngineError::Corrupt(_) => {
            ErrorCode::InternalError
        }
    };
    StorageError::new(code).caused_by(error)
}

/// The answer to a request that met stored bytes which nobody can have written.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> StorageError {
    engine_error(EngineError::Corrupt(what.to_string()))
}

/// The answer to a request that storage failed. A service that asks for names says first what it calls those that are
/// missing or taken; from anyone else these two are a mistake of ours.
pub(crate) fn storage_failure(error: storage::Error) -> StorageError {
    match error {
        storage::Error::Engine(error) => engine_error(error),
        storage::Error::Corrupt(what) => corrupt(what),
        storage::Error::NotFound
        | storage::Error::Exists
        | storage::Error::UnknownFeature(_)
        | storage::Error::Interrupted(_) => {
            StorageError::new(ErrorCode::InternalError).caused_by(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_fails_as_the_engine_does() {
        use tavola_engine::Error as Engine;
        for (error, expected) in [
            (storage::Error::Engine(Engine::Busy), ErrorCode::ServerBusy),
            (storage::Error::Engine(Engine::Closed), ErrorCode::ServerBusy),
            (storage::Error::Corrupt("a row".into()), ErrorCode::InternalError),
            (storage::Error::NotFound, ErrorCode::InternalError),
            (storage::Error::Exists, ErrorCode::InternalError),
        ] {
            assert_eq!(storage_failure(error).code(), expected);
        }
    }

    /// Clients retry 503 because it will pass; a panic will not.
    #[test]
    fn a_panic_in_the_engine_is_500_and_told_to_the_log() {
        let error = engine_error(EngineError::Panicked("on purpose".into()));
        assert_eq!((error.code(), error.status()), (ErrorCode::InternalError, 500));
        let source = std::error::Error::source(&error).expect("a source for the log");
        assert!(source.to_string().contains("on purpose"));
        assert!(!error.message().contains("on purpose"));
    }
}
