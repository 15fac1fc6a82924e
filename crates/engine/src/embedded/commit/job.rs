//! A transition on its way through a group, with its type erased.

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{Decision, Result, Transition, WriteSet};

/// What a group knows of a request.
pub(crate) trait Job: Send {
    /// See [`Transition::keys`].
    fn keys(&self) -> &[Bytes];

    /// See [`Transition::frees_space`].
    fn frees_space(&self) -> bool;

    /// Runs the transition and keeps its verdict; true if `writes` shall be committed.
    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> bool;

    /// Hands the kept verdict, or the error, to whoever waits for it.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// A transition, the place for its verdict, and where the verdict goes.
pub(crate) struct Pending<T: Transition> {
    transition: T,
    verdict: Option<T::Verdict>,
    reply: oneshot::Sender<Result<T::Verdict>>,
}

impl<T: Transition> Pending<T> {
    pub(crate) fn new(transition: T, reply: oneshot::Sender<Result<T::Verdict>>) -> Self {
        Self { transition, verdict: None, reply }
    }
}

impl<T: Transition> Job for Pending<T> {
    fn keys(&self) -> &[Bytes] {
        self.transition.keys()
    }

    fn frees_space(&self) -> bool {
        self.transition.frees_space()
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> bool {
        let (commit, verdict) = match self.transition.apply(values, writes) {
            Decision::Commit(verdict) => (true, verdict),
            Decision::Abort(verdict) => (false, verdict),
        };
        self.verdict = Some(verdict);
        commit
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Self { verdict, reply, .. } = *self;
        let answer = outcome.map(|()| verdict.expect("a job is applied before it is answered"));
        // The caller may have stopped waiting; then nobody misses the answer.
        let _ = reply.send(answer);
    }
}
