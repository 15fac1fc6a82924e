//! Work that no request waits for: one runner for all of it.
//!
//! A [`Task`] works in rounds, and says after each when the next one is due. The runner waits until then, or until the
//! task is asked for; it logs failures and waits longer after each; and when the server stops, it lets the
//! running round come to its end. It knows nothing of the work itself.

mod build_pace;
pub(crate) mod index_builder;
mod index_checks;
pub(crate) mod queue_sweeper;
pub(crate) mod sweeper;
pub(crate) mod workload_merge;

use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tavola_engine::{Error as EngineError, panic_message};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::storage::{Error, Result};

/// The rest after a first failure; it doubles with each one that follows.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// The longest rest: a full disk may have room again any minute.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Every pause is longer by up to this share of itself, so that what has begun together does not go on together.
const JITTER_SHARE: f64 = 0.1;

/// Work that is done in rounds.
pub(crate) trait Task: Send + 'static {
    /// As the log calls it.
    const NAME: &'static str;

    /// Asks for a round before its time.
    fn trigger(&self) -> Arc<Notify>;

    /// One round. A long one asks between its steps whether to stop, and then returns whatever it likes.
    fn round(&mut self, stop: &Stop) -> impl Future<Output = Result<Next>> + Send;
}

/// When the next round is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    WhenAsked,
    /// After a pause, or when asked.
    After(Duration),
}

/// Tells a task to stop: when asked to, or when nobody is left to ask.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    async fn requested(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// The tasks that are running.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Stop,
    tasks: JoinSet<()>,
}

impl Background {
    /// `stop` becomes true when tasks are to stop.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Self {
        Self { stop: Stop(stop), tasks: JoinSet::new() }
    }

    /// Runs a task until the stop; its first round is due at once.
    pub(crate) fn start(&mut self, task: impl Task) {
        self.tasks.spawn(run(task, self.stop.clone()));
    }

    /// Resolves when every task has ended. May be abandoned and called again.
    pub(crate) async fn ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn run<T: Task>(mut task: T, mut stop: Stop) {
    let (trigger, random) = (task.trigger(), RandomState::new());
    let (mut rounds, mut failures) = (0_u64, 0_u32);
    while !stop.is_requested() {
        let (pause, is_woken) = match round(&mut task, &stop).await {
            Ok(next) => {
                failures = 0;
                let pause = match next {
                    Next::WhenAsked => None,
                    Next::After(pause) => Some(pause),
                };
                (pause, true)
            }
            Err(Error::Engine(EngineError::Closed)) => return,
            Err(error) => {
                let pause = backoff(failures);
                failures = failures.saturating_add(1);
                tracing::warn!(task = T::NAME, %error, failures, "failed, will try again");
                // Asking more often does not make it succeed. The trigger is kept for later.
                (Some(pause), false)
            }
        };
        rounds += 1;
        let pause = pause.map(|pause| spread(pause, random.hash_one(rounds)));
        tokio::select! {
            () = stop.requested() => {}
            () = trigger.notified(), if is_woken => {}
            () = sleep(pause) => {}
        }
    }
}

/// A round; a panic in it is a failure like any other.
async fn round<T: Task>(task: &mut T, stop: &Stop) -> Result<Next> {
    AssertUnwindSafe(task.round(stop))
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(EngineError::Panicked(panic_message(&*panic).into()).into()))
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// The rest after a failure that had `before` others right before it.
fn backoff(before: u32) -> Duration {
    BACKOFF_MIN.saturating_mul(1_u32.checked_shl(before).unwrap_or(u32::MAX)).min(BACKOFF_MAX)
}

/// The pause with jitter.
fn spread(pause: Duration, random: u64) -> Duration {
    // The upper half of the bits is exact in a float.
    let share = f64::from(u32::try_from(random >> 32).expect("32 bits")) / f64::from(u32::MAX);
    pause + pause.mul_f64(share * JITTER_SHARE)
}

#[cfg(test)]
mod tests;
