//! What is found out about a request while it is served, for metrics and logs: written on the way, read at its end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tavola_wire::{ErrorCode, RefusalReason, StorageError};

/// Atomics because the request may move between threads; never contended.
#[derive(Debug, Default)]
pub(crate) struct RequestNotes {
    request_bytes: AtomicU64,
    /// Examined and returned, of a query.
    rows: OnceLock<(u64, u64)>,
    failure: OnceLock<NotedFailure>,
}

/// How a request failed, whatever the status of its reply: a batch that fails is answered 202.
#[derive(Debug)]
pub(crate) struct NotedFailure {
    pub(crate) code: ErrorCode,
    pub(crate) status: u16,
    /// Which part of a batch it was.
    pub(crate) part: Option<usize>,
    pub(crate) refusal: Option<RefusalReason>,
    /// Of a refusal: what the log may say beyond the reason.
    pub(crate) detail: Option<String>,
}

impl RequestNotes {
    pub(crate) fn add_request_bytes(&self, bytes: u64) {
        self.request_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn request_bytes(&self) -> u64 {
        self.request_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_rows(&self, examined: u64, returned: u64) {
        let _ = self.rows.set((examined, returned));
    }

    pub(crate) fn rows(&self) -> Option<(u64, u64)> {
        self.rows.get().copied()
    }

    /// The first failure counts: others follow from it.
    pub(crate) fn set_failure(&self, error: &StorageError, part: Option<usize>) {
        let refusal = error.refusal();
        let detail = refusal.and_then(|_| std::error::Error::source(error));
        let _ = self.failure.set(NotedFailure {
            code: error.code(),
            status: error.status(),
            part,
            refusal,
            detail: detail.map(ToString::to_string),
        });
    }

    pub(crate) fn failure(&self) -> Option<&NotedFailure> {
        self.failure.get()
    }
}
