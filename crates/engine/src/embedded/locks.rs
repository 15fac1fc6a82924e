//! Locks that are asked for without waiting.

use std::sync::{Mutex, MutexGuard, TryLockError};

/// Takes the lock unless somebody holds it. Who panicked with it does not hold it any more.
pub(crate) fn lock_if_free<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
