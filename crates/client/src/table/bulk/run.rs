//! The loop behind bulk work: pulls operations, keeps the places filled, and gathers what became of each.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use azure_core::http::{ClientMethodOptions, Context as CallContext};
use futures::future::{BoxFuture, poll_fn};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream};

use super::packing::{Packed, Packer};
use super::rate::Rate;
use super::{BulkOptions, BulkOutcome, BulkReport, CONCURRENCY};
use crate::core::attempts::Attempts;
use crate::core::error::ErrorExt;
use crate::core::options::CallOptions;
use crate::table::TableClient;
use crate::table::transaction::{Operation, Transaction};

/// Bulk work that is under way.
pub(super) struct Work<'t> {
    table: &'t TableClient,
    options: BulkOptions,
    packer: Packer,
    rate: Rate,
    under_way: FuturesUnordered<BoxFuture<'t, Finished>>,
    report: BulkReport,
    /// True when no more operations are pulled: there are none, or it was told to stop.
    is_over: bool,
    is_stopped: bool,
}

/// What happens next.
enum Event {
    Pulled(Option<Operation>),
    Finished(Finished),
    /// Nothing comes and nothing is under way: what waits for company should wait no longer.
    Idle,
    Stop,
}

impl<'t> Work<'t> {
    pub(super) fn new(table: &'t TableClient, options: BulkOptions) -> Self {
        let rate = Rate::new(options.concurrency.unwrap_or(CONCURRENCY));
        Self {
            table,
            options,
            packer: Packer::default(),
            rate,
            under_way: FuturesUnordered::new(),
            report: BulkReport::default(),
            is_over: false,
            is_stopped: false,
        }
    }

    pub(super) async fn run(
        mut self,
        mut source: Pin<&mut (impl Stream<Item = Operation> + ?Sized)>,
    ) -> BulkReport {
        loop {
            self.fill();
            if self.is_over && self.under_way.is_empty() {
                break;
            }
            match poll_fn(|context| self.poll_event(source.as_mut(), context)).await {
                Event::Pulled(Some(operation)) => self.packer.push(operation),
                Event::Pulled(None) => {
                    self.is_over = true;
                    self.packer.flush();
                }
                Event::Idle => self.packer.flush(),
                Event::Finished(finished) => self.note(finished),
                Event::Stop => self.stop(),
            }
        }
        for index in self.packer.abandon() {
            self.report.set(index, BulkOutcome::NotTried);
        }
        self.report
    }

    /// Starts transactions while there are places and transactions for them.
    fn fill(&mut self) {
        while !self.is_stopped
            && self.under_way.len() < self.rate.places()
            && let Some(packed) = self.packer.next_ready()
        {
            let (table, cuts) = (self.table, self.rate.cuts());
            self.under_way.push(send(table, packed, cuts).boxed());
        }
    }

    fn poll_event<S: Stream<Item = Operation> + ?Sized>(
        &mut self,
        source: Pin<&mut S>,
        context: &mut Context<'_>,
    ) -> Poll<Event> {
        if !self.is_stopped
            && let Some(stop) = &mut self.options.stop
            && stop.poll(context).is_ready()
        {
            return Poll::Ready(Event::Stop);
        }
        let has_place = self.under_way.len() < self.rate.places();
        let mut is_dry = false;
        if !self.is_over && has_place && self.packer.is_open() {
            match source.poll_next(context) {
                Poll::Ready(operation) => return Poll::Ready(Event::Pulled(operation)),
                Poll::Pending => is_dry = true,
            }
        }
        match Pin::new(&mut self.under_way).poll_next(context) {
            Poll::Ready(Some(finished)) => Poll::Ready(Event::Finished(finished)),
            Poll::Ready(None) if is_dry && self.packer.has_waiting() => Poll::Ready(Event::Idle),
            _ => Poll::Pending,
        }
    }

    fn note(&mut self, finished: Finished) {
        self.packer.finish(&finished.keys);
        self.rate.note(finished.cuts, finished.was_throttled);
        let failed = self.report.progress.failed;
        self.report.progress.transactions += finished.transactions;
        self.report.progress.concurrency = self.rate.places();
        for (index, outcome) in finished.outcomes {
            self.report.set(index, outcome);
        }
        if self.options.fail_fast && self.report.progress.failed > failed {
            self.stop();
        }
        if let Some(progress) = &self.options.progress {
            progress(self.report.progress);
        }
    }

    /// Pulls and sends nothing more. What is under way is waited for, because it may be done already.
    fn stop(&mut self) {
        (self.is_over, self.is_stopped) = (true, true);
    }
}

/// A transaction that is over, one way or another.
struct Finished {
    keys: Vec<(String, String)>,
    outcomes: Vec<(usize, BulkOutcome)>,
    transactions: usize,
    cuts: u64,
    was_throttled: bool,
}

/// Sends a transaction until nothing of it is left: each failed operation is taken out and the rest sent again.
async fn send(table: &TableClient, packed: Packed, cuts: u64) -> Finished {
    let keys = packed.keys();
    let Packed { mut operations } = packed;
    let (mut outcomes, mut transactions) = (Vec::with_capacity(operations.len()), 0);
    // A lost answer was one to all operations: those that fail in a later round may have been applied too.
    let attempts = Attempts::default();
    while !operations.is_empty() {
        transactions += 1;
        let options = Some(options_with(&attempts));
        match table.submit_transaction(&transaction_of(&operations), options).await {
            Ok(response) => {
                let done = operations.drain(..).zip(response.into_etags());
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
    Finished { keys, outcomes, transactions, cuts, was_throttled: attempts.throttled() > 0 }
}

fn options_with(attempts: &Attempts) -> CallOptions {
    let context = CallContext::new().with_value(attempts.clone());
    CallOptions { method_options: ClientMethodOptions { context }, deadline: None }
}

fn transaction_of(operations: &[(usize, Operation)]) -> Transaction {
    let mut transaction = Transaction::new();
    for (_, operation) in operations {
        transaction.push(operation.clone()).expect("the packer keeps the rules");
    }
    transaction
}
