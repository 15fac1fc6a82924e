//! From what an engine reports to what a client is told. One function maps the kinds to codes.

use tavola_engine::Error as EngineError;
use tavola_wire::{ErrorCode, StorageError};

pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// The answer to a request that the engine failed.
pub fn engine_error(error: EngineError) -> StorageError {
    let code = match &error {
        EngineError::Busy | EngineError::Closed | EngineError::Unavailable(_) => {
            ErrorCode::ServerBusy
        }
        EngineError::OutcomeUnknown(_) | EngineError::Corrupt(_) => ErrorCode::InternalError,
    };
    StorageError::new(code).caused_by(error)
}

/// The answer to a request that met stored bytes which nobody can have written.
pub fn corrupt(what: impl std::fmt::Display) -> StorageError {
    engine_error(EngineError::Corrupt(what.to_string()))
}
