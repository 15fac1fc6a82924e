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

    /// Runs the transition and keeps its verdict.
    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Outcome;

    /// Hands the kept verdict, or the error, to whoever waits for it.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

/// What a run of a transition came to, without its verdict.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// What it has written shall be committed.
    Commit,
    Abort,
    /// See [`Decision::Read`].
    Read(Vec<Bytes>),
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

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Outcome {
        let (outcome, verdict) = match self.transition.apply(values, writes) {
            Decision::Commit(verdict) => (Outcome::Commit, verdict),
            Decision::Abort(verdict) => (Outcome::Abort, verdict),
            Decision::Read(keys) => return Outcome::Read(keys),
        };
        self.verdict = Some(verdict);
        outcome
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Self { verdict, reply, .. } = *self;
        let answer = outcome.map(|()| verdict.expect("a job is applied before it is answered"));
        // The caller may have stopped waiting; then nobody misses the answer.
        let _ = reply.send(answer);
    }
}
