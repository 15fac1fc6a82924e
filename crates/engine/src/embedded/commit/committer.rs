//! Group commit: the one thread that empties the queue.
//!
//! A disk syncs some ten thousand times a second, clients want more; so whatever has gathered in the queue while
//! the last [group](crate::embedded::commit::group) was synced becomes the next group, written as one batch with one sync. No timer waits for
//! a group to fill: a request that finds the queue empty is committed at once, and the busier the disk, the larger the groups.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::embedded::commit::group::{Failures, Group, SharedGroup, Sink, fail};
use crate::embedded::commit::inline_commit::{InlineCommits, SpareWorker, WATCHDOG_PERIOD};
use crate::embedded::commit::job::Job;
use crate::embedded::locks::lock_if_free;
use crate::embedded::stats::Stats;
use crate::panic_message;

pub(crate) enum Message {
    Job(Box<dyn Job>),
    /// Do the housekeeping now, and say when it is done.
    Housekeep(oneshot::Sender<()>),
    /// Finish the queue, then end.
    Close,
}

/// Owns the queue's end and commits what comes out of it.
pub(crate) struct Committer<S> {
    queue: Receiver<Message>,
    group: SharedGroup<S>,
    stats: Arc<Stats>,
    failures: Failures,
    spare_worker: Arc<SpareWorker>,
    /// The inline commit that was the latest when the watchdog last looked.
    inline_commit_before: u64,
    closing: bool,
}

impl<S: Sink> Committer<S> {
    pub(crate) fn new(
        queue: Receiver<Message>,
        sink: S,
        stats: Arc<Stats>,
        failures: Failures,
        spare_worker: SpareWorker,
    ) -> Self {
        let group = Group::new(sink, Arc::clone(&stats), Arc::clone(&failures));
        Self {
            queue,
            group: Arc::new(Mutex::new(Some(group))),
            stats,
            failures,
            spare_worker: Arc::new(spare_worker),
            inline_commit_before: 0,
            closing: false,
        }
    }

    /// The same group, for commits on the threads of callers.
    pub(crate) fn inline_commits(&self) -> InlineCommits<S> {
        let (group, failures) = (Arc::clone(&self.group), Arc::clone(&self.failures));
        let (stats, spare_worker) = (Arc::clone(&self.stats), Arc::clone(&self.spare_worker));
        InlineCommits::new(group, failures, stats, spare_worker)
    }

    /// Commits group after group until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let ended = catch_unwind(AssertUnwindSafe(|| while self.run_once().is_continue() {}));
        if let Err(panic) = ended {
            // ORDER: the failure is told before the queue and the group are dropped, so that callers who find
            // themselves unanswered find the reason.
            fail(&self.failures, &format!("the committer panicked: {}", panic_message(&*panic)));
        }
        *hold(&self.group, &self.spare_worker) = None;
    }

    /// Waits for a request and commits it together with all that have gathered. Breaks when there will be no more.
    pub(crate) fn run_once(&mut self) -> ControlFlow<()> {
        let Some(first) = self.wait() else { return ControlFlow::Break(()) };
        let mut group = hold(&self.group, &self.spare_worker);
        // An inline commit has panicked, and the process is about to stop.
        let Some(group) = group.as_mut() else { return ControlFlow::Break(()) };
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Job(job) => {
                    // ORDER: counted until the group is held, so that nobody goes ahead of what is queued.
                    self.stats.queue_depth.fetch_sub(1, Ordering::Relaxed);
                    group.admit(job);
                }
                Message::Housekeep(done) => group.housekeep(done),
                Message::Close => self.closing = true,
            }
            next = if group.is_full() { None } else { self.queue.try_recv().ok() };
        }
        group.commit();
        ControlFlow::Continue(())
    }

    fn wait(&mut self) -> Option<Message> {
        if self.closing {
            return self.queue.try_recv().ok();
        }
        while let Some(timeout) = self.idle_timeout() {
            let next = if timeout.is_zero() {
                Err(RecvTimeoutError::Timeout)
            } else {
                self.queue.recv_timeout(timeout)
            };
            match next {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => self.on_idle(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.queue.recv().ok()
    }

    /// How long to wait for a request before there is something else to do; `None` if there is nothing.
    fn idle_timeout(&self) -> Option<Duration> {
        let Some(mut group) = lock_if_free(&self.group) else { return Some(WATCHDOG_PERIOD) };
        let group = group.as_mut()?;
        let until_look = group.watchdog.keep_running().then_some(WATCHDOG_PERIOD);
        until_look.into_iter().chain(group.until_housekeeping()).min()
    }

    /// Does the housekeeping; or, if an inline commit still holds the group since the last time, has another thread take the
    /// place of the one that commits.
    fn on_idle(&mut self) {
        let current = self.spare_worker.current_commit();
        let before = std::mem::replace(&mut self.inline_commit_before, current);
        match lock_if_free(&self.group) {
            Some(mut group) => group.iter_mut().for_each(Group::housekeep_if_idle),
            None if current == before => self.spare_worker.wake(),
            None => {}
        }
    }
}

fn hold<'a, S>(
    group: &'a SharedGroup<S>,
    spare_worker: &SpareWorker,
) -> MutexGuard<'a, Option<Group<S>>> {
    lock_if_free(group).unwrap_or_else(|| {
        // While this waits, there is no watchdog.
        spare_worker.wake();
        group.lock().unwrap_or_else(PoisonError::into_inner)
    })
}

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
