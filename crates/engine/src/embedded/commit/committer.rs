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
use crate::embedded::commit::inline_commit::{InlineCommits, LOOK_EVERY, Relief};
use crate::embedded::commit::job::Job;
use crate::embedded::locks::lock_if_free;
use crate::embedded::stats::Stats;
use crate::panic_message;

pub(crate) enum Message {
    Job(Box<dyn Job>),
    /// Clean up now, and say when it is done.
    Tidy(oneshot::Sender<()>),
    /// Finish the queue, then end.
    Close,
}

/// Owns the queue's end and commits what comes out of it.
pub(crate) struct Committer<S> {
    queue: Receiver<Message>,
    group: SharedGroup<S>,
    stats: Arc<Stats>,
    failures: Failures,
    relief: Arc<Relief>,
    /// The lone commits that had begun at the last look.
    begun_before: u64,
    closing: bool,
}

impl<S: Sink> Committer<S> {
    pub(crate) fn new(
        queue: Receiver<Message>,
        sink: S,
        stats: Arc<Stats>,
        failures: Failures,
        relief: Relief,
    ) -> Self {
        let group = Group::new(sink, Arc::clone(&stats), Arc::clone(&failures));
        let (group, relief) = (Arc::new(Mutex::new(Some(group))), Arc::new(relief));
        Self { queue, group, stats, failures, relief, begun_before: 0, closing: false }
    }

    /// For those who commit without the committer.
    pub(crate) fn lone_commits(&self) -> InlineCommits<S> {
        let (group, failures) = (Arc::clone(&self.group), Arc::clone(&self.failures));
        InlineCommits::new(group, failures, Arc::clone(&self.relief))
    }

    /// Commits group after group until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let ended = catch_unwind(AssertUnwindSafe(|| while self.run_once().is_continue() {}));
        if let Err(panic) = ended {
            // ORDER: the failure is told before the queue and the group are dropped, so that callers who find
            // themselves unanswered find the reason.
            fail(&self.failures, &format!("the committer panicked: {}", panic_message(&*panic)));
        }
        *hold(&self.group, &self.relief) = None;
    }

    /// Waits for a request and commits it together with all that have gathered. Breaks when there will be no more.
    pub(crate) fn run_once(&mut self) -> ControlFlow<()> {
        let Some(first) = self.wait() else { return ControlFlow::Break(()) };
        let mut group = hold(&self.group, &self.relief);
        // A lone commit has panicked, and the process is about to stop.
        let Some(group) = group.as_mut() else { return ControlFlow::Break(()) };
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Job(job) => {
                    // ORDER: counted until the group is held, so that nobody goes ahead of what is queued.
                    self.stats.queue_depth.fetch_sub(1, Ordering::Relaxed);
                    group.admit(job);
                }
                Message::Tidy(done) => group.tidy(done),
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
        while let Some(rest) = self.rest() {
            let next = if rest.is_zero() {
                Err(RecvTimeoutError::Timeout)
            } else {
                self.queue.recv_timeout(rest)
            };
            match next {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.queue.recv().ok()
    }

    /// How long to wait for a request before there is something else to do; `None` if there is nothing.
    fn rest(&self) -> Option<Duration> {
        let Some(mut group) = lock_if_free(&self.group) else { return Some(LOOK_EVERY) };
        let group = group.as_mut()?;
        let until_look = group.watch.keep().then_some(LOOK_EVERY);
        until_look.into_iter().chain(group.until_tidy()).min()
    }

    fn look(&mut self) {
        let begun = self.relief.begun.load(Ordering::Relaxed);
        let begun_before = std::mem::replace(&mut self.begun_before, begun);
        match lock_if_free(&self.group) {
            Some(mut group) => group.iter_mut().for_each(Group::tidy_if_rested),
            None if begun == begun_before => self.relief.call(),
            None => {}
        }
    }
}

fn hold<'a, S>(group: &'a SharedGroup<S>, relief: &Relief) -> MutexGuard<'a, Option<Group<S>>> {
    lock_if_free(group).unwrap_or_else(|| {
        // From here nobody looks.
        relief.call();
        group.lock().unwrap_or_else(PoisonError::into_inner)
    })
}

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
