//! Bulk work: any number of operations, grouped into transactions and run in parallel.
//!
//! Operations are gathered by partition into transactions of at most 100 operations and 4 MiB, a bounded number of which is
//! under way at a time. Operations on the same entity keep their order; others run in any. Each operation has its own
//! outcome: when one fails, the rest of its transaction is sent again without it.
//!
//! Prefer upserts. A lost answer makes the client send a transaction again, and an insert that finds its own entity
//! fails, while an upsert succeeds; [`may_have_been_applied`](crate::ErrorExt::may_have_been_applied) tells of such
//! failures.

mod packing;

use std::fmt;
use std::sync::Arc;

use azure_core::http::{ClientMethodOptions, Context, Etag};
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::core::attempts::Attempts;
use crate::core::error::ErrorExt;
use crate::table::transaction::{Operation, Transaction};
use crate::table::{CallOptions, TableClient};
use packing::{Packed, Packer};

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
/// };
/// let report = table.bulk(Vec::new(), Some(options)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct BulkOptions {
    /// Transactions under way at a time; 8 unless set.
    pub concurrency: Option<usize>,
    /// Called after every transaction.
    pub progress: Option<Arc<dyn Fn(BulkProgress) + Send + Sync>>,
}

impl fmt::Debug for BulkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkOptions")
            .field("concurrency", &self.concurrency)
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
/// # options.progress.unwrap()(BulkProgress { done: 7, failed: 0, transactions: 1 });
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
    /// The outcomes, in the order of the operations.
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
}

impl BulkReport {
    /// The operations that failed, by their place.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &azure_core::Error)> {
        self.outcomes.iter().enumerate().filter_map(|(index, outcome)| match outcome {
            BulkOutcome::Failed(error) => Some((index, &**error)),
            BulkOutcome::Done(_) => None,
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
        let options = options.unwrap_or_default();
        let concurrency = options.concurrency.unwrap_or(CONCURRENCY).max(1);
        let mut packer = Packer::new(operations.into_iter());
        let mut report = BulkReport::default();
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < concurrency
                && let Some(packed) = packer.next()
            {
                under_way.push(run(self, packed));
            }
            let Some(finished) = under_way.next().await else { break };
            packer.finish(&finished.keys);
            report.note(finished);
            if let Some(progress) = &options.progress {
                progress(report.progress);
            }
        }
        report
    }
}

impl BulkReport {
    fn note(&mut self, finished: Finished) {
        self.progress.transactions += finished.transactions;
        for (index, outcome) in finished.outcomes {
            match outcome {
                BulkOutcome::Done(_) => self.progress.done += 1,
                BulkOutcome::Failed(_) => self.progress.failed += 1,
            }
            if self.outcomes.len() <= index {
                // Places of operations that are still under way are filled when those finish.
                self.outcomes.resize_with(index + 1, || BulkOutcome::Done(None));
            }
            self.outcomes[index] = outcome;
        }
    }
}

/// A transaction that is over, one way or another.
struct Finished {
    keys: Vec<(String, String)>,
    outcomes: Vec<(usize, BulkOutcome)>,
    transactions: usize,
}

/// Sends a transaction until nothing of it is left: each failed operation is taken out and the rest sent again.
async fn run(table: &TableClient, packed: Packed) -> Finished {
    let keys = packed.keys();
    let Packed { mut operations } = packed;
    let (mut outcomes, mut transactions) = (Vec::with_capacity(operations.len()), 0);
    // A lost answer was one to all operations: those that fail in a later round may have been applied too.
    let attempts = Attempts::default();
    while !operations.is_empty() {
        transactions += 1;
        let options = Some(options_with(&attempts));
        match table.submit_transaction(&transaction_of(&operations), options).await {
            Ok(etags) => {
                let done = operations.drain(..).zip(etags);
                outcomes.extend(done.map(|((index, _), etag)| (index, BulkOutcome::Done(etag))));
            }
            Err(error) => match error.failed_operation() {
                Some(failed) => {
                    let (index, _) = operations.remove(failed);
                    outcomes.push((index, BulkOutcome::Failed(Arc::new(error))));
                }
                None => {
                    let error = Arc::new(error);
                    let failed = operations.drain(..);
                    outcomes.extend(
                        failed.map(|(index, _)| (index, BulkOutcome::Failed(error.clone()))),
                    );
                }
            },
        }
    }
    Finished { keys, outcomes, transactions }
}

fn options_with(attempts: &Attempts) -> CallOptions {
    let context = Context::new().with_value(attempts.clone());
    CallOptions { method_options: ClientMethodOptions { context } }
}

fn transaction_of(operations: &[(usize, Operation)]) -> Transaction {
    let mut transaction = Transaction::new();
    for (_, operation) in operations {
        transaction.push(operation.clone()).expect("the packer keeps the rules");
    }
    transaction
}
