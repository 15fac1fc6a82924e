//! The wire codes of the errors that queues have.

use tavola_wire::{ErrorCode, StorageError};

use crate::error::storage_failure;
use crate::storage;

pub(super) fn of_queue(error: storage::Error) -> StorageError {
    match error {
        storage::Error::NotFound => ErrorCode::QueueNotFound.into(),
        storage::Error::Exists => ErrorCode::QueueAlreadyExists.into(),
        error => storage_failure(error),
    }
}
