//! A request that is alone is committed by the thread that brings it.
//!
//! To wake the committer and to be woken by it takes a fifth of the time of a lone insert. But the thread is one of a few
//! that serve everybody, and the one that would notice what else comes in. So the caller says when there is nobody else,
//! and this is for one row at a time, while commits are quick, and never without a watch: the committer, which has nothing
//! else to do meanwhile, looks every few milliseconds, and where it finds the same commit twice it has the runtime put
//! another thread in the place of the one that waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::embedded::commit::group::{Failures, SharedGroup, Sink, fail};
use crate::embedded::commit::job::Job;
use crate::panic_message;

/// What the last commit may have taken: a few times a sync of a good disk.
const QUICK: Duration = Duration::from_micros(500);

/// How often the committer looks. Others wait for twice as long at worst because a commit takes long, or for the quick ones
/// that a connection has sent ahead.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Commits on the threads of callers.
pub(crate) struct InlineCommits<S> {
    group: SharedGroup<S>,
    failures: Failures,
    relief: Arc<Relief>,
    pub(crate) quick: Duration,
}

/// What those who commit alone and the committer know of each other. It is kept with the group: whoever finds it looking
/// holds the group, and it looks again before it stops.
#[derive(Default)]
pub(crate) struct Watch {
    /// Whether somebody has wanted to commit alone since the committer looked.
    is_wanted: bool,
    /// Whether the committer looks.
    pub(crate) is_kept: bool,
}

/// Puts another thread in the place of one that waits for the disk.
pub(crate) struct Relief {
    /// `None` where there is no other thread.
    runtime: Option<Handle>,
    /// Lone commits that have begun, ever.
    pub(crate) begun: AtomicU64,
}

impl<S: Sink> InlineCommits<S> {
    pub(crate) fn new(group: SharedGroup<S>, failures: Failures, relief: Arc<Relief>) -> Self {
        Self { group, failures, relief, quick: QUICK }
    }

    /// Commits and answers a request; gives it back if it is for the committer.
    pub(crate) fn commit(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        if job.keys().len() > 1 || !self.relief.is_possible() {
            return Err(job);
        }
        // Not `lock_if_free`: where the committer has panicked with the group, nobody knows what is in it.
        let Ok(mut shared) = self.group.try_lock() else { return Err(job) };
        let Some(group) = shared.as_mut() else { return Err(job) };
        if !group.watch.ask() || group.last_took() > self.quick {
            return Err(job);
        }
        self.relief.begun.fetch_add(1, Ordering::Relaxed);
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

impl Watch {
    /// For one who would commit alone: whether the committer looks. If not, it will after the next commit.
    fn ask(&mut self) -> bool {
        self.is_wanted = true;
        self.is_kept
    }

    /// For the committer: whether it is to look, as it does while anybody wants to commit alone.
    pub(crate) fn keep(&mut self) -> bool {
        self.is_kept = std::mem::take(&mut self.is_wanted);
        self.is_kept
    }
}

impl Relief {
    /// By the threads of this runtime.
    pub(crate) fn new() -> Self {
        let runtime = Handle::try_current().ok();
        let runtime = runtime.filter(|runtime| runtime.metrics().num_workers() > 1);
        Self { runtime, begun: AtomicU64::new(0) }
    }

    fn is_possible(&self) -> bool {
        self.runtime.is_some()
    }

    /// Wakes another thread of the runtime. It takes over what waits in line, and takes in what comes.
    pub(crate) fn call(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async {});
        }
    }
}
