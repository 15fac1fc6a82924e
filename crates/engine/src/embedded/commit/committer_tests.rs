//! Drives the committer by hand over a sink that records what happens in which order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};

use bytes::Bytes;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::watch;

use super::*;
use crate::conformance::Apply;
use crate::embedded::commit::group::Admission;
use crate::embedded::commit::group::{
    CommitError, Failure, GROUP_BYTES_MAX, GROUP_TRANSITIONS_MAX, Overlay,
};
use crate::embedded::commit::job::Pending;
use crate::{Decision, Error, Result, Transition};

#[test]
fn what_gathered_is_committed_as_one_group() {
    let mut bench = Bench::new();
    let answers: Vec<_> = (0..5).map(|_| bench.send(increment())).collect();
    assert!(bench.committer.run_once().is_continue());
    let verdicts: Vec<_> = answers.into_iter().map(|answer| answered(answer).unwrap()).collect();
    assert_eq!(verdicts, [1, 2, 3, 4, 5]);
    assert_eq!(bench.sink.commits(), [1]);
    assert_eq!(bench.sink.value("counter"), Some("5".into()));
    assert_eq!(bench.stats.group_size.sum(), 5);
    assert_eq!(bench.stats.queue_depth.load(Ordering::Relaxed), 0);
}

#[test]
fn nobody_is_answered_before_the_commit() {
    let mut bench = Bench::new();
    let committed = bench.send(increment());
    let aborted =
        bench.send(Apply::new(["counter"], |values, _| Decision::Abort(values[0].clone())));
    let answers = Rc::new(RefCell::new((committed, aborted)));
    let seen = Rc::clone(&answers);
    bench.sink.state.borrow_mut().on_commit = Some(Box::new(move || {
        let (committed, aborted) = &mut *seen.borrow_mut();
        assert_eq!(committed.try_recv().unwrap_err(), TryRecvError::Empty);
        // It has read what is not durable yet, so it waits as well.
        assert_eq!(aborted.try_recv().unwrap_err(), TryRecvError::Empty);
    }));
    assert!(bench.committer.run_once().is_continue());
    let (committed, aborted) = &mut *answers.borrow_mut();
    assert_eq!(committed.try_recv().unwrap().unwrap(), 1);
    assert_eq!(aborted.try_recv().unwrap().unwrap(), Some("1".into()));
}

#[test]
fn aborts_alone_need_no_commit() {
    let mut bench = Bench::new();
    let answer = bench.send(Apply::new(["a"], |_, writes| {
        writes.put("a".into(), "1".into());
        Decision::Abort(7)
    }));
    assert!(bench.committer.run_once().is_continue());
    assert_eq!(answered(answer).unwrap(), 7);
    assert!(bench.sink.commits().is_empty());
}

#[test]
fn a_panic_drops_the_writes_of_its_transition_only() {
    let mut bench = Bench::new();
    let first = bench.send(increment());
    let panicking = bench.send(Apply::new(["counter"], |_, writes| -> Decision<()> {
        writes.put("counter".into(), "99".into());
        panic!("on purpose");
    }));
    let last = bench.send(increment());
    assert!(bench.committer.run_once().is_continue());
    assert_eq!(answered(first).unwrap(), 1);
    assert!(matches!(answered(panicking), Err(Error::Panicked(told)) if told == "on purpose"));
    assert_eq!(answered(last).unwrap(), 2);
    assert_eq!(bench.stats.panics.load(Ordering::Relaxed), 1);
}

#[test]
fn a_group_is_bounded_by_count_and_by_bytes() {
    let mut bench = Bench::new();
    let answers: Vec<_> = (0..GROUP_TRANSITIONS_MAX + 1).map(|_| bench.send(increment())).collect();
    assert!(bench.committer.run_once().is_continue());
    assert_eq!(bench.stats.group_size.sum(), GROUP_TRANSITIONS_MAX as u64);
    assert!(bench.committer.run_once().is_continue());
    assert_eq!(bench.sink.commits().len(), 2);
    drop(answers);

    let mut bench = Bench::new();
    let large = Bytes::from(vec![0; GROUP_BYTES_MAX / 2]);
    for index in 0..3 {
        let large = large.clone();
        bench.send(Apply::new([""; 0], move |_, writes| {
            writes.put(format!("large {index}").into(), large.clone());
            Decision::Commit(())
        }));
    }
    assert!(bench.committer.run_once().is_continue());
    assert!(bench.committer.run_once().is_continue());
    assert_eq!(bench.sink.commits(), [2, 1]);
}

#[test]
fn a_failed_commit_poisons() {
    let mut bench = Bench::new();
    bench.sink.state.borrow_mut().failure = Some(false);
    let in_group = bench.send(increment());
    let aborted = bench.send(Apply::new(["counter"], |_, _| Decision::Abort(())));
    assert!(bench.committer.run_once().is_continue());
    assert!(matches!(answered(in_group), Err(Error::OutcomeUnknown(_))));
    assert!(matches!(answered(aborted), Err(Error::OutcomeUnknown(_))));
    assert!(bench.failure.borrow().is_some());
    // The disk may work again, but what it holds is unknown: nothing is tried any more.
    let later = bench.send(increment());
    assert!(bench.committer.run_once().is_continue());
    assert!(matches!(answered(later), Err(Error::Unavailable(_))));
    assert!(bench.sink.commits().is_empty());
}

/// A mistake in the committer itself leaves nobody who could write: it is told, so that the process stops.
#[test]
fn a_panic_of_the_committer_is_a_failure_with_its_reason() {
    let bench = Bench::new();
    bench.sink.state.borrow_mut().on_commit = Some(Box::new(|| panic!("a broken committer")));
    let mut unanswered = bench.send(increment());
    bench.committer.run();
    let failure = bench.failure.borrow().clone().expect("a failure");
    assert_eq!(&*failure, "the committer panicked: a broken committer");
    assert!(unanswered.try_recv().is_err());
}

#[test]
fn a_commit_that_never_began_is_told_apart() {
    let mut bench = Bench::new();
    bench.sink.state.borrow_mut().failure = Some(true);
    let answer = bench.send(increment());
    assert!(bench.committer.run_once().is_continue());
    assert!(matches!(answered(answer), Err(Error::Unavailable(_))));
}

#[test]
fn what_there_is_no_room_for_is_refused() {
    let mut bench = Bench::new();
    let all = [Admission::Everything, Admission::Deletions, Admission::Nothing];
    for (admission, taken) in
        all.into_iter().zip([[true; 4], [false, false, true, true], [false, false, false, true]])
    {
        bench.sink.state.borrow_mut().admission = Some(admission);
        let put = Apply::new([""; 0], |_, writes| {
            writes.put("a".into(), "1".into());
            Decision::Commit(())
        });
        // Takes room, whatever it removes beside it: a row that moves in an index, say.
        let small = Apply::new([""; 0], |_, writes| {
            writes.delete("a".into());
            writes.put("b".into(), "1".into());
            Decision::Commit(())
        });
        let delete = Apply::new([""; 0], |_, writes| {
            writes.delete("a".into());
            writes.put("note".into(), "gone".into());
            Decision::Commit(())
        });
        let delete = delete.freeing_space();
        let nothing = Apply::new([""; 0], |_, _| Decision::Commit(()));
        let answers = [bench.send(put), bench.send(small), bench.send(delete), bench.send(nothing)];
        assert!(bench.committer.run_once().is_continue());
        for (answer, taken) in answers.into_iter().zip(taken) {
            match answered(answer) {
                Ok(()) => assert!(taken, "{admission:?}"),
                Err(error) => {
                    assert!(!taken && matches!(error, Error::Full), "{admission:?} {error}");
                }
            }
        }
    }
    assert_eq!(bench.stats.full_refusals.load(Ordering::Relaxed), 5);
}

#[test]
fn closing_finishes_the_queue() {
    let mut bench = Bench::new();
    let before = bench.send(increment());
    bench.queue.try_send(Message::Close).expect("room in the queue");
    let after = bench.send(increment());
    while bench.committer.run_once().is_continue() {}
    assert_eq!(answered(before).unwrap(), 1);
    assert_eq!(answered(after).unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_the_only_caller_is_committed_inline() {
    let mut bench = Bench::new();
    let inline = bench.inline();
    assert!(!bring(&inline, increment()).1, "there is no watchdog");
    assert!(bench.is_watched());
    assert!(!bring(&inline, increment()).1, "nobody knows how long a commit takes");
    assert_eq!(bench.commit_one(increment()), 1);
    for expected in 2..10 {
        let (answer, taken) = bring(&inline, increment());
        assert!(taken);
        assert_eq!(answered(answer).unwrap(), expected);
        assert_eq!(bench.stats.group_size.count(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watchdog_runs_while_there_are_inline_commits() {
    let mut bench = Bench::new();
    let inline = bench.inline();
    bench.commit_one(increment());
    assert!(!bench.is_watched());
    assert!(!bring(&inline, increment()).1);
    for _ in 0..3 {
        assert!(bench.is_watched());
        assert!(bring(&inline, increment()).1);
    }
    assert!(bench.is_watched());
    // None came since the last look.
    assert!(!bench.is_watched());
    assert!(!bring(&inline, increment()).1);
    // When there is nothing to do it sleeps, but not before the next is committed and the housekeeping done.
    bench.housekeep();
    assert!(bring(&inline, increment()).1);
    assert!(bench.is_watched());
    assert!(!bench.is_watched());
    bench.housekeep();
    assert_eq!(bench.committer.idle_timeout(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_for_an_inline_commit_is_given_back() {
    let mut bench = Bench::new();
    let inline = bench.inline();
    let mut inline_on_a_slow_disk = bench.inline();
    inline_on_a_slow_disk.set_quick(Duration::ZERO);
    bench.commit_one(increment());
    assert!(!bring(&inline, increment()).1);
    assert!(bench.is_watched());

    let several = Apply::new(["a", "b"], |_, _| Decision::Commit(()));
    assert!(!bring(&inline, several).1);
    {
        let _others = bench.committer.group.lock().unwrap();
        assert!(!bring(&inline, increment()).1);
    }
    assert!(!bring(&inline_on_a_slow_disk, increment()).1);
    assert!(bring(&inline, increment()).1);

    bench.queue.try_send(Message::Close).expect("room in the queue");
    bench.committer.run();
    assert!(!bring(&inline, increment()).1);
}

#[test]
fn where_no_other_thread_could_take_over_there_are_no_inline_commits() {
    let one_thread = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let current_thread = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for runtime in [Some(one_thread), Some(current_thread), None] {
        let _entered = runtime.as_ref().map(tokio::runtime::Runtime::enter);
        let mut bench = Bench::new();
        let inline = bench.inline();
        bench.commit_one(increment());
        assert!(!bring(&inline, increment()).1);
        assert!(!bench.is_watched());
        assert!(!bring(&inline, increment()).1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_an_inline_commit_is_a_failure_with_its_reason() {
    let mut bench = Bench::new();
    let inline = bench.inline();
    bench.commit_one(increment());
    assert!(!bring(&inline, increment()).1);
    assert!(bench.is_watched());
    bench.sink.state.borrow_mut().on_commit = Some(Box::new(|| panic!("a broken commit")));
    let (mut unanswered, taken) = bring(&inline, increment());
    assert!(taken && unanswered.try_recv().is_err());
    let failure = bench.failure.borrow().clone().expect("a failure");
    assert_eq!(&*failure, "a commit panicked: a broken commit");
    // Nobody writes any more.
    assert!(!bring(&inline, increment()).1);
    bench.send(increment());
    assert!(bench.committer.run_once().is_break());
}

struct Bench {
    queue: SyncSender<Message>,
    committer: Committer<Recorder>,
    sink: Recorder,
    stats: Arc<Stats>,
    failure: watch::Receiver<Option<Failure>>,
}

#[derive(Clone, Default)]
struct Recorder {
    state: Rc<RefCell<Recorded>>,
}

#[derive(Default)]
struct Recorded {
    rows: BTreeMap<Bytes, Bytes>,
    commits: Vec<usize>,
    on_commit: Option<Box<dyn FnMut()>>,
    admission: Option<Admission>,
    /// Fail, and say whether nothing was written.
    failure: Option<bool>,
}

impl Bench {
    fn new() -> Self {
        let (queue, requests) = sync_channel(2 * GROUP_TRANSITIONS_MAX);
        let (failure_sender, failure) = watch::channel(None);
        let (sink, stats) = (Recorder::default(), Arc::new(Stats::default()));
        let (failures, spare_worker) = (Arc::new(failure_sender), SpareWorker::new());
        let committer =
            Committer::new(requests, sink.clone(), Arc::clone(&stats), failures, spare_worker);
        Self { queue, committer, sink, stats, failure }
    }

    /// As one task that has the engine to itself sees it, whatever else this machine does. The first commit's time is
    /// unknown all the same.
    fn inline(&self) -> InlineCommits<Recorder> {
        let mut inline = self.committer.inline_commits();
        inline.allow_everybody();
        inline.set_quick(Duration::from_secs(3600));
        inline
    }

    /// Whether the committer, on going to sleep, is a watchdog.
    fn is_watched(&self) -> bool {
        let timeout = self.committer.idle_timeout();
        let group = self.committer.group.lock().unwrap();
        let is_watched = group.as_ref().is_some_and(|group| group.watchdog.is_running());
        assert!(!is_watched || timeout.is_some_and(|timeout| timeout <= WATCHDOG_PERIOD));
        is_watched
    }

    fn housekeep(&mut self) {
        let (done, _) = oneshot::channel();
        self.queue.try_send(Message::Housekeep(done)).expect("room in the queue");
        assert!(self.committer.run_once().is_continue());
    }

    fn commit_one<T: Transition>(&mut self, transition: T) -> T::Verdict {
        let answer = self.send(transition);
        assert!(self.committer.run_once().is_continue());
        answered(answer).unwrap()
    }

    fn send<T: Transition>(&self, transition: T) -> oneshot::Receiver<Result<T::Verdict>> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Pending::new(transition, reply));
        self.stats.queue_depth.fetch_add(1, Ordering::Relaxed);
        self.queue.try_send(Message::Job(job)).expect("room in the queue");
        answer
    }
}

/// Brings a request to be committed inline; false if it was given back.
fn bring<T: Transition>(
    inline: &InlineCommits<Recorder>,
    transition: T,
) -> (oneshot::Receiver<Result<T::Verdict>>, bool) {
    let (reply, answer) = oneshot::channel();
    let taken = inline.try_commit(Box::new(Pending::new(transition, reply))).is_ok();
    (answer, taken)
}

impl Recorder {
    /// The number of writes of each commit.
    fn commits(&self) -> Vec<usize> {
        self.state.borrow().commits.clone()
    }

    fn value(&self, key: &str) -> Option<Bytes> {
        self.state.borrow().rows.get(key.as_bytes()).cloned()
    }
}

impl Sink for Recorder {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.state.borrow().rows.get(key).cloned())
    }

    fn commit(&self, overlay: &mut Overlay) -> Result<(), CommitError> {
        let mut state = self.state.borrow_mut();
        if let Some(nothing_written) = state.failure.take() {
            return Err(CommitError { message: "on purpose".into(), nothing_written });
        }
        if let Some(on_commit) = &mut state.on_commit {
            on_commit();
        }
        state.commits.push(overlay.len());
        for (key, value) in std::mem::take(overlay) {
            match value {
                Some(value) => state.rows.insert(key, value),
                None => state.rows.remove(&key),
            };
        }
        Ok(())
    }

    fn admission(&self) -> Admission {
        self.state.borrow().admission.unwrap_or(Admission::Everything)
    }

    fn housekeep(&self) -> bool {
        false
    }
}

fn increment() -> impl Transition<Verdict = u64> {
    Apply::new(["counter"], |values, writes| {
        let count = values[0].as_ref().map_or(0, |value| {
            std::str::from_utf8(value).expect("text").parse::<u64>().expect("a number")
        }) + 1;
        writes.put("counter".into(), count.to_string().into());
        Decision::Commit(count)
    })
}

fn answered<V>(mut answer: oneshot::Receiver<Result<V>>) -> Result<V> {
    answer.try_recv().expect("it is answered")
}
