//! Why a worker ended before it was told to.

use std::error::Error as StdError;
use std::fmt;

use super::WorkerReport;
use crate::{ErrorExt, ServiceError};

/// Why a worker ended, and what it did until then. It becomes the error of the client by `?`.
///
/// ```no_run
/// # async fn run(orders: tavola_client::queue::QueueClient) -> tavola_client::Result<()> {
/// use tavola_client::ErrorExt;
/// use tavola_client::patterns::queue_worker::{QueueWorker, WorkerError};
///
/// match QueueWorker::new(orders).run(|_| async { Ok(()) }).await {
///     Ok(report) => println!("{} done", report.done),
///     Err(error) if error.is_not_found() => println!("somebody deleted the queue"),
///     Err(WorkerError { report, source, .. }) => {
///         println!("{} done before: {source}", report.done);
///         return Err(source);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct WorkerError {
    /// What it did, the work included that was under way.
    pub report: WorkerReport,
    /// Why it ended.
    pub source: azure_core::Error,
}

/// It reads as its reason does.
impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl StdError for WorkerError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.source()
    }
}

impl From<WorkerError> for azure_core::Error {
    fn from(error: WorkerError) -> Self {
        error.source
    }
}

impl ErrorExt for WorkerError {
    fn service_error(&self) -> Option<&ServiceError> {
        self.source.service_error()
    }

    fn may_have_been_applied(&self) -> bool {
        self.source.may_have_been_applied()
    }

    fn is_transient(&self) -> bool {
        self.source.is_transient()
    }
}
