//! The wire codes of the catalogue's errors. A missing table has two, by the operation that misses it.

use tavola_wire::{ErrorCode, StorageError};

use crate::error::storage_failure;
use crate::storage;

/// For operations on what is inside a table, and on its access policies.
pub(crate) fn in_table(error: storage::Error) -> StorageError {
    match error {
        storage::Error::NotFound => ErrorCode::TableNotFound.into(),
        error => of_table(error),
    }
}

/// For operations on the table itself: a missing table is a missing resource.
pub(crate) fn of_table(error: storage::Error) -> StorageError {
    match error {
        storage::Error::NotFound => ErrorCode::ResourceNotFound.into(),
        storage::Error::Exists => ErrorCode::TableAlreadyExists.into(),
        error => storage_failure(error),
    }
}
