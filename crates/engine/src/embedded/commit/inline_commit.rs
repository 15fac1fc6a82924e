//! Inline commits: while there is only one caller, its thread commits what it brings.
//!
//! To wake the committer and to be woken by it takes a fifth of the time of an insert that waits for nobody else. But the
//! thread is one of the few that serve everybody, and while it waits for the disk it serves nobody. So this is for a
//! caller that has the engine to itself: every call, of whatever kind, notes the task that it comes from, and only when
//! very many in a row came from one task is it the only one. A server serves a connection with a task, so a second
//! connection ends it with its first read or write.
//!
//! And it is for one row at a time, while commits are quick, and never unsupervised: the committer, which has nothing else
//! to do meanwhile, is a watchdog. Every few milliseconds it looks, and where it finds the same commit twice it wakes
//! another thread of the runtime in the place of the one that waits.
//!
//! Everything about it is in this file, apart from the calls.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task;

use crate::embedded::commit::group::{Failures, SharedGroup, Sink, fail};
use crate::embedded::commit::job::Job;
use crate::embedded::stats::Stats;
use crate::panic_message;

/// Calls in a row of one task after which it is the only caller: some hundredths of a second. Callers that ask more seldom
/// lose next to nothing when they have to wait for a commit.
const STREAK_MIN: u32 = 256;

/// What the last commit may have taken: a few times a sync of a good disk.
const QUICK: Duration = Duration::from_micros(500);

/// How often the watchdog looks. Others wait for twice as long at worst because a commit takes long, or for the quick ones
/// that a connection has sent ahead.
pub(crate) const WATCHDOG_PERIOD: Duration = Duration::from_millis(10);

/// Commits on the threads of callers.
pub(crate) struct InlineCommits<S> {
    group: SharedGroup<S>,
    failures: Failures,
    stats: Arc<Stats>,
    streak: CallerStreak,
    spare_worker: Arc<SpareWorker>,
    quick: Duration,
}

/// The task that called last, and how often in a row.
#[derive(Debug)]
struct CallerStreak {
    /// The task in the upper half, its calls in the lower.
    latest: AtomicU64,
    length_min: u32,
}

/// Another thread of the runtime for the one that waits for the disk.
pub(crate) struct SpareWorker {
    /// `None` where there is no other thread.
    runtime: Option<Handle>,
    /// Inline commits that have begun, ever.
    commits_begun: AtomicU64,
}

impl<S: Sink> InlineCommits<S> {
    pub(crate) fn new(
        group: SharedGroup<S>,
        failures: Failures,
        stats: Arc<Stats>,
        spare_worker: Arc<SpareWorker>,
    ) -> Self {
        let streak = CallerStreak::new(STREAK_MIN);
        Self { group, failures, stats, streak, spare_worker, quick: QUICK }
    }

    /// To be told of every call that does not commit.
    pub(crate) fn note_call(&self) {
        self.streak.note(current_task());
    }

    /// Changes when a call comes from another task than the one before.
    pub(crate) fn latest_call(&self) -> u64 {
        self.streak.latest.load(Ordering::Relaxed)
    }

    /// Commits and answers a request; gives it back if it is for the committer.
    pub(crate) fn try_commit(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        if !self.streak.note(current_task()) {
            return Err(job);
        }
        // What is queued counts until the committer holds the group: nobody who was queued before is overtaken.
        let is_next = self.stats.queue_depth.load(Ordering::Relaxed) == 0;
        if is_next { self.commit(job) } else { Err(job) }
    }

    fn commit(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        if job.keys().len() > 1 || !self.spare_worker.is_available() {
            return Err(job);
        }
        // Not `lock_if_free`: where the committer has panicked with the group, nobody knows what is in it.
        let Ok(mut shared) = self.group.try_lock() else { return Err(job) };
        let Some(group) = shared.as_mut() else { return Err(job) };
        if !group.watchdog.ask() || group.last_commit_time() > self.quick {
            return Err(job);
        }
        self.spare_worker.commits_begun.fetch_add(1, Ordering::Relaxed);
        let committed = catch_unwind(AssertUnwindSafe(|| {
            group.admit(job);
            group.commit();
        }));
        if let Err(panic) = committed {
            // ORDER: told before the group is dropped, as in the committer.
            fail(&self.failures, &format!("a commit panicked: {}", panic_message(&*panic)));
            *shared = None;
        }
        Ok(())
    }
}

#[cfg(test)]
impl<S> InlineCommits<S> {
    /// Takes every caller for the only one.
    pub(crate) fn allow_everybody(&mut self) {
        self.streak.length_min = 0;
    }

    pub(crate) fn set_quick(&mut self, quick: Duration) {
        self.quick = quick;
    }

    /// Inline commits so far.
    pub(crate) fn count(&self) -> u64 {
        self.spare_worker.current_commit()
    }
}

impl CallerStreak {
    fn new(length_min: u32) -> Self {
        Self { latest: AtomicU64::new(0), length_min }
    }

    /// Notes a call; true if its task has the engine to itself.
    fn note(&self, task: u32) -> bool {
        // Relaxed, and not even in one step: whoever is wrongly taken for the only one makes others wait for a moment,
        // nothing else.
        let latest = self.latest.load(Ordering::Relaxed);
        let (last, length) = ((latest >> 32) as u32, latest as u32);
        // Those who are no task are all alike, and may be many.
        let is_same = last == task && task != NO_TASK;
        let length = if is_same { length } else { 0 };
        if length < self.length_min {
            self.latest.store(u64::from(task) << 32 | u64::from(length + 1), Ordering::Relaxed);
        }
        length >= self.length_min
    }
}

/// Stands for every caller that is no task.
const NO_TASK: u32 = 0;

/// What tells tasks apart that are running at the same time; rarely, two are alike.
fn current_task() -> u32 {
    task::try_id().map_or(NO_TASK, |id| {
        let mut number = TaskNumber(0);
        id.hash(&mut number);
        (number.0 as u32).max(NO_TASK + 1)
    })
}

/// Takes the number out of an id, which the runtime does not hand out otherwise.
struct TaskNumber(u64);

impl Hasher for TaskNumber {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl SpareWorker {
    /// Of the runtime that this is called in.
    pub(crate) fn new() -> Self {
        let runtime = Handle::try_current().ok();
        let runtime = runtime.filter(|runtime| runtime.metrics().num_workers() > 1);
        Self { runtime, commits_begun: AtomicU64::new(0) }
    }

    fn is_available(&self) -> bool {
        self.runtime.is_some()
    }

    /// Which inline commit is under way, if one is.
    pub(crate) fn current_commit(&self) -> u64 {
        self.commits_begun.load(Ordering::Relaxed)
    }

    /// Wakes another thread of the runtime. It takes over what waits in line, and takes in what comes.
    pub(crate) fn wake(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async {});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_the_engine_to_itself_after_many_calls_in_a_row() {
        let streak = CallerStreak::new(STREAK_MIN);
        let first_alone = |task: u32| (0..10 * STREAK_MIN).position(|_| streak.note(task));
        for task in [1, 2, 1] {
            assert_eq!(first_alone(task), Some(STREAK_MIN as usize));
            assert!(streak.note(task));
        }
        assert!(!streak.note(2));
        assert!(!streak.note(1));
    }

    #[test]
    fn a_task_that_calls_now_and_then_is_enough_to_end_it() {
        let streak = CallerStreak::new(STREAK_MIN);
        for call in 0..100 * STREAK_MIN {
            // One calls a hundred times as often as the other.
            assert!(!streak.note(1 + u32::from(call % 100 == 0)));
        }
    }

    #[test]
    fn who_is_no_task_may_be_many() {
        let streak = CallerStreak::new(STREAK_MIN);
        assert_eq!(current_task(), NO_TASK);
        assert!((0..10 * STREAK_MIN).all(|_| !streak.note(NO_TASK)));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn tasks_are_told_apart_wherever_they_run() {
        let ask = || {
            tokio::spawn(async {
                let before = current_task();
                for _ in 0..20 {
                    task::yield_now().await;
                    assert_eq!(current_task(), before);
                }
                before
            })
        };
        let (first, second) = (ask(), ask());
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        assert!(first != second && first != NO_TASK && second != NO_TASK);
    }
}
