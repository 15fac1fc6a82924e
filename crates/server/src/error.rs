//! From what an engine reports to what a client is told. One function maps the kinds to codes.

use tavola_engine::Error as EngineError;
use tavola_wire::{ErrorCode, StorageError};

pub type Result<T, E = StorageError> = std::result::Result<T, E>;

const DISK_FULL: &str = "The disk of the server is nearly full. Reading and deleting work; writing will when there is room.";

/// The answer to a request that the engine failed.
pub fn engine_error(error: EngineError) -> StorageError {
    if matches!(error, EngineError::Full) {
        // Clients try again after a while, and find room if someone has made it.
        return StorageError::with_detail(ErrorCode::ServerBusy, DISK_FULL).caused_by(error);
    }
    let code = match &error {
        EngineError::Full
        | EngineError::Busy
        | EngineError::Closed
        | EngineError::Unavailable(_) => ErrorCode::ServerBusy,
        EngineError::OutcomeUnknown(_) | EngineError::Corrupt(_) => ErrorCode::InternalError,
    };
    StorageError::new(code).caused_by(error)
}

/// The answer to a request that met stored bytes which nobody can have written.
pub fn corrupt(what: impl std::fmt::Display) -> StorageError {
    engine_error(EngineError::Corrupt(what.to_string()))
}
