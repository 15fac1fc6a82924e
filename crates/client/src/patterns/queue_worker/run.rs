//! The worker at work: messages in, tasks, and what becomes of each.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};
use tokio::task::{JoinError, JoinSet};

use super::job::Fate;
use super::{JobError, JobResult, QueueWorker, WorkerError, WorkerReport};
use crate::error::may_pass;
use crate::queue::{BATCH_MAX, ClaimedMessage, Claims, MessageHandle, Source};

/// A message that ends by itself sooner is not put off: it would be gone before somebody could see it.
const TIME_LEFT_MIN: Duration = Duration::from_secs(4);

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Retried,
    DeadLettered,
    Lost,
}

impl WorkerReport {
    fn note(&mut self, outcome: &Result<Outcome, JoinError>) {
        match outcome {
            Ok(Outcome::Done) => self.done += 1,
            Ok(Outcome::Retried) => self.retried += 1,
            Ok(Outcome::DeadLettered) => self.dead_lettered += 1,
            // A task ends without an outcome only when it is given up.
            Ok(Outcome::Lost) | Err(_) => self.lost += 1,
        }
    }
}

pub(super) async fn run<F, R>(
    worker: &QueueWorker,
    work: Arc<F>,
    until_empty: bool,
) -> Result<WorkerReport, WorkerError>
where
    F: Fn(MessageHandle) -> R + Send + Sync + 'static,
    R: Future<Output = JobResult> + Send + 'static,
{
    let mut report = WorkerReport::default();
    // Before there is something to bury.
    if let Err(source) = worker.dead_letter_queue() {
        return Err(WorkerError { report, source });
    }
    let settings = Arc::new(worker.clone());
    let (queue, timeout) = (worker.queue.clone(), worker.visibility_timeout);
    let mut source = Source::new(queue, timeout, worker.poll, worker.stop.clone());
    if let Some(limit) = worker.shutdown_timeout {
        source.stop_timeout_at_most(limit);
    }
    // Dropping it ends all tasks.
    let mut tasks = JoinSet::new();
    let ended = loop {
        while let Some(outcome) = tasks.try_join_next() {
            report.note(&outcome);
        }
        let places = worker.concurrency.saturating_sub(tasks.len());
        if places == 0 {
            match ended_before_stop(&mut tasks, &source).await {
                Some(outcome) => report.note(&outcome),
                None => break Ok(()),
            }
            continue;
        }
        let batch = u8::try_from(places).unwrap_or(BATCH_MAX);
        let claims = match until_empty && !source.is_stopped() {
            true => source.ask(batch).await,
            false => source.wait(batch).await,
        };
        match claims {
            // Also those that come with the stop: the service has counted an attempt for each of them.
            Ok(Claims::Some(messages)) => {
                for message in messages {
                    tasks.spawn(job(settings.clone(), work.clone(), message));
                }
            }
            Ok(Claims::Stopped) => break Ok(()),
            Ok(Claims::None) if until_empty => match ended_before_stop(&mut tasks, &source).await {
                Some(outcome) => report.note(&outcome),
                None => break Ok(()),
            },
            Ok(Claims::None) => {}
            Err(error) if may_pass(&error) && !until_empty => {
                tracing::warn!(queue = worker.queue.name(), %error, "cannot receive messages");
            }
            Err(error) => break Err(error),
        }
    };
    let limit = worker.shutdown_timeout;
    let limit = limit.map(|limit| limit.saturating_sub(source.waited_after_stop()));
    finish(tasks, limit, &mut report).await;
    match ended {
        Ok(()) => Ok(report),
        Err(source) => Err(WorkerError { report, source }),
    }
}

/// Waits for one of the tasks; `None` if there is none, or if it takes longer than until the stop.
async fn ended_before_stop(
    tasks: &mut JoinSet<Outcome>,
    source: &Source,
) -> Option<Result<Outcome, JoinError>> {
    match select(pin!(tasks.join_next()), pin!(source.stopped())).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => None,
    }
}

/// Waits for what is under way, and gives up what takes too long.
async fn finish(mut tasks: JoinSet<Outcome>, limit: Option<Duration>, report: &mut WorkerReport) {
    let rest = async {
        while let Some(outcome) = tasks.join_next().await {
            report.note(&outcome);
        }
    };
    match limit {
        None => rest.await,
        Some(limit) => {
            if tokio::time::timeout(limit, rest).await.is_err() {
                report.lost += tasks.len();
                tasks.shutdown().await;
            }
        }
    }
}

/// Works on one message.
async fn job<F, R>(worker: Arc<QueueWorker>, work: Arc<F>, message: ClaimedMessage) -> Outcome
where
    F: Fn(MessageHandle) -> R,
    R: Future<Output = JobResult>,
{
    // Its workers died of it, so that none of them could say so.
    if message.dequeue_count > worker.max_attempts {
        let error = JobError::poison("it was received too often");
        return bury(&worker, message, &error).await;
    }
    let handle = message.handle();
    let result = {
        let working = AssertUnwindSafe(async { work(handle).await }).catch_unwind();
        match select(pin!(working), pin!(message.lost())).await {
            Either::Left((result, _)) => result.unwrap_or_else(|_| Err(JobError::panicked())),
            Either::Right(_) => {
                tracing::warn!(message = message.id, "a message was lost while it was worked on");
                return Outcome::Lost;
            }
        }
    };
    match result {
        Ok(()) => complete(message).await,
        Err(error) => match error.fate() {
            Fate::Retry(pause) if message.dequeue_count < worker.max_attempts => {
                let pause = pause.unwrap_or_else(|| worker.retry.pause(message.dequeue_count));
                match pause_before_end(pause, message.time_left()) {
                    Some(pause) => retry(message, pause, &error).await,
                    None => bury(&worker, message, &error).await,
                }
            }
            _ => bury(&worker, message, &error).await,
        },
    }
}

/// The pause before the next try. One that a message does not outlive ends when half of its time is over; `None` if that is
/// too little.
fn pause_before_end(pause: Duration, time_left: Duration) -> Option<Duration> {
    match time_left / 2 {
        half if pause < half => Some(pause),
        half if time_left >= TIME_LEFT_MIN => Some(half),
        _ => None,
    }
}

/// Work that is done counts, also if the message cannot be deleted and it is done again.
async fn complete(message: ClaimedMessage) -> Outcome {
    let id = message.id.clone();
    match message.complete().await {
        Ok(true) => Outcome::Done,
        Ok(false) => Outcome::Lost,
        Err(error) => {
            tracing::warn!(message = id, %error, "cannot delete a message whose work is done");
            Outcome::Retried
        }
    }
}

async fn retry(message: ClaimedMessage, pause: Duration, error: &JobError) -> Outcome {
    let (id, attempt) = (message.id.clone(), message.dequeue_count);
    tracing::info!(message = id, attempt, ?pause, %error, "the work on a message failed");
    match message.release(pause).await {
        Ok(true) => Outcome::Retried,
        Ok(false) => Outcome::Lost,
        // It appears when its time is over.
        Err(error) => {
            tracing::warn!(message = id, %error, "cannot put a message off");
            Outcome::Retried
        }
    }
}

/// The copy comes first: a crash in between leaves a message too many, and never one too few.
async fn bury(worker: &QueueWorker, message: ClaimedMessage, error: &JobError) -> Outcome {
    let (id, attempt) = (message.id.clone(), message.dequeue_count);
    tracing::error!(message = id, attempt, %error, "a message goes to the dead letters");
    if let Err(error) = worker.bury(&message).await {
        tracing::error!(message = id, %error, "cannot copy a message to the dead letters");
        let pause = pause_before_end(worker.retry.longest, message.time_left());
        return retry(message, pause.unwrap_or_default(), &JobError::poison(error)).await;
    }
    match message.complete().await {
        Ok(true) => Outcome::DeadLettered,
        Ok(false) => Outcome::Lost,
        Err(_) => Outcome::Retried,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_before_the_message_does() {
        let seconds = Duration::from_secs;
        for (pause, time_left, expected) in [
            (seconds(300), Duration::MAX, Some(seconds(300))),
            (seconds(300), seconds(3600), Some(seconds(300))),
            (Duration::MAX, seconds(60), Some(seconds(30))),
            (seconds(3600), seconds(3), None),
            (seconds(0), seconds(3), Some(seconds(0))),
            (seconds(0), seconds(0), None),
        ] {
            assert_eq!(pause_before_end(pause, time_left), expected, "{pause:?} of {time_left:?}");
        }
    }
}
