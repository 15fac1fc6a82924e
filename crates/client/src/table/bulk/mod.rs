//! Bulk work: any number of operations, grouped into transactions and run in parallel.
//!
//! Operations are gathered by partition into transactions of at most 100 operations and 4 MiB, a bounded number of which is
//! under way at a time. Operations on the same entity keep their order; others run in any. Each operation has its own
//! outcome: when one fails, the rest of its transaction is sent again without it.
//!
//! Prefer upserts. A lost answer makes the client send a transaction again, and an insert that finds its own entity
//! fails, while an upsert succeeds; [`may_have_been_applied`](crate::ErrorExt::may_have_been_applied) tells of such
//! failures.
//!
//! A service that is too busy (503) gets half as many transactions at a time, and gradually more when it is not.

mod packing;
mod rate;
mod run;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use azure_core::http::Etag;
use futures::{Stream, stream};

use super::TableClient;
use super::transaction::Operation;
pub use crate::core::stop::StopSignal;
use run::Work;

/// Transactions under way at a time, unless told otherwise.
const CONCURRENCY: usize = 8;

/// How to do bulk work.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use std::sync::Arc;
/// use tavola_client::bulk::BulkOptions;
///
/// let options = BulkOptions {
///     concurrency: Some(4),
///     progress: Some(Arc::new(|progress| println!("{} done", progress.done))),
///     // The first failure ends it.
///     fail_fast: true,
///     ..Default::default()
/// };
/// let report = table.bulk(Vec::new(), Some(options)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct BulkOptions {
    /// Transactions under way at a time; 8 unless set. Fewer while the service is too busy.
    pub concurrency: Option<usize>,
    /// Called after every transaction.
    pub progress: Option<Arc<dyn Fn(BulkProgress) + Send + Sync>>,
    /// Stops after the first operation that failed: nothing more is pulled or sent, and what is under way is waited for.
    pub fail_fast: bool,
    /// Stops when this says so, in the same way.
    pub stop: Option<StopSignal>,
}

impl fmt::Debug for BulkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkOptions")
            .field("concurrency", &self.concurrency)
            .field("fail_fast", &self.fail_fast)
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}

/// How far the work is.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
/// use tavola_client::bulk::{BulkOptions, BulkProgress};
///
/// // Whoever shows the progress reads it from here.
/// let done = Arc::new(AtomicUsize::new(0));
/// let shown = done.clone();
/// let options = BulkOptions {
///     progress: Some(Arc::new(move |progress: BulkProgress| {
///         shown.store(progress.done, Ordering::Relaxed);
///     })),
///     ..Default::default()
/// };
/// # options.progress.unwrap()(BulkProgress { done: 7, ..Default::default() });
/// # assert_eq!(done.load(Ordering::Relaxed), 7);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkProgress {
    /// Operations that were done.
    pub done: usize,
    /// Operations that failed.
    pub failed: usize,
    /// Transactions that were sent, with those that failed and were sent again without their failed operation.
    pub transactions: usize,
    /// Transactions that may be under way at a time now: fewer than asked for while the service is too busy.
    pub concurrency: usize,
}

/// What became of every operation.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::bulk::BulkReport;
/// use tavola_client::{Entity, ErrorExt, Operation};
///
/// let report: BulkReport = table.bulk([Operation::insert(&Entity::new("Sales", "00010"))?], None).await;
/// println!("{} of {} done", report.progress.done, report.outcomes.len());
/// for (index, error) in report.failures() {
///     println!("operation {index}: {error}");
///     if error.may_have_been_applied() {
///         println!("it may have happened all the same: read the entity to know");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct BulkReport {
    /// The outcomes, in the order of the operations; those that were never pulled because the work was stopped have none.
    pub outcomes: Vec<BulkOutcome>,
    /// The totals.
    pub progress: BulkProgress,
}

/// What became of one operation.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::bulk::BulkOutcome;
/// use tavola_client::{Entity, Operation};
///
/// let operations = ["00010", "00011"].map(|row| Operation::insert(&Entity::new("Sales", row)));
/// let operations = operations.into_iter().collect::<Result<Vec<_>, _>>()?;
/// for outcome in table.bulk(operations, None).await.outcomes {
///     match outcome {
///         BulkOutcome::Done(etag) => println!("done, the new version is {etag:?}"),
///         BulkOutcome::Failed(error) => println!("failed: {error}"),
///         BulkOutcome::NotTried => println!("not sent: the work was stopped before"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub enum BulkOutcome {
    /// It was done; the new version, unless it was a delete.
    Done(Option<Etag>),
    /// It failed; operations that failed together share the error.
    Failed(Arc<azure_core::Error>),
    /// It was not sent, because the work was stopped.
    NotTried,
}

impl BulkReport {
    /// The operations that failed, by their place.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &azure_core::Error)> {
        self.outcomes.iter().enumerate().filter_map(|(index, outcome)| match outcome {
            BulkOutcome::Failed(error) => Some((index, &**error)),
            BulkOutcome::Done(_) | BulkOutcome::NotTried => None,
        })
    }
}

impl TableClient {
    /// Does any number of operations; see [`bulk`](crate::bulk).
    ///
    /// The operations are pulled as there is room for them, so that an iterator can make them on the way.
    ///
    /// ```no_run
    /// # async fn run(table: tavola_client::TableClient) -> azure_core::Result<()> {
    /// use std::sync::Arc;
    /// use tavola_client::bulk::BulkOptions;
    /// use tavola_client::{Entity, Operation, UpdateMode};
    ///
    /// let operations = (0..1_000_000).map(|index| {
    ///     let entity = Entity::new(format!("{:03}", index % 200), format!("{index:07}"));
    ///     Operation::upsert(&entity.with("N", index), UpdateMode::Replace).expect("a legal entity")
    /// });
    /// let options = BulkOptions {
    ///     concurrency: Some(16),
    ///     progress: Some(Arc::new(|progress| println!("{} done", progress.done))),
    ///     ..Default::default()
    /// };
    /// let report = table.bulk(operations, Some(options)).await;
    /// for (index, error) in report.failures() {
    ///     eprintln!("{index}: {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bulk(
        &self,
        operations: impl IntoIterator<Item = Operation>,
        options: Option<BulkOptions>,
    ) -> BulkReport {
        self.bulk_stream(stream::iter(operations), options).await
    }

    /// As [`TableClient::bulk`], with operations that come from somewhere else: a query, a file that is read, a channel.
    ///
    /// While the stream has nothing and nothing is under way, what has been gathered is sent and not kept waiting.
    ///
    /// ```no_run
    /// # async fn run(old: tavola_client::TableClient, new: tavola_client::TableClient) -> tavola_client::Result<()> {
    /// use tavola_client::{Entity, Operation, StreamExt, TryStreamExt, UpdateMode};
    ///
    /// // Copies a table; an entity that cannot be read ends the stream.
    /// let mut failure = None;
    /// let entities = old.query_entities::<Entity>(None).map(|found| {
    ///     found.and_then(|entity| Operation::upsert(&entity.value, UpdateMode::Replace))
    /// });
    /// let operations = entities.scan((), |(), operation| {
    ///     std::future::ready(operation.map_err(|error| failure = Some(error)).ok())
    /// });
    /// let report = new.bulk_stream(operations, None).await;
    /// println!("{} copied", report.progress.done);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bulk_stream(
        &self,
        operations: impl Stream<Item = Operation>,
        options: Option<BulkOptions>,
    ) -> BulkReport {
        let operations = pin!(operations);
        Work::new(self, options.unwrap_or_default()).run(operations).await
    }
}

impl BulkReport {
    fn set(&mut self, index: usize, outcome: BulkOutcome) {
        match outcome {
            BulkOutcome::Done(_) => self.progress.done += 1,
            BulkOutcome::Failed(_) => self.progress.failed += 1,
            BulkOutcome::NotTried => {}
        }
        if self.outcomes.len() <= index {
            // Places of operations that are still under way are filled when those finish.
            self.outcomes.resize_with(index + 1, || BulkOutcome::NotTried);
        }
        self.outcomes[index] = outcome;
    }
}
