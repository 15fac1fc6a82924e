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
use crate::embedded::commit::group::{
    CommitError, Failure, GROUP_BYTES_MAX, GROUP_TRANSITIONS_MAX, Overlay,
};
use crate::embedded::commit::job::Pending;
use crate::embedded::store::disk_space::Admission;
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
    for (taking, taken) in
        all.into_iter().zip([[true; 3], [false, true, true], [false, false, true]])
    {
        bench.sink.state.borrow_mut().taking = Some(taking);
        let put = Apply::new([""; 0], |_, writes| {
            writes.put("a".into(), "1".into());
            Decision::Commit(())
        });
        let delete = Apply::new([""; 0], |_, writes| {
            writes.delete("a".into());
            Decision::Commit(())
        });
        let nothing = Apply::new([""; 0], |_, _| Decision::Commit(()));
        let answers = [bench.send(put), bench.send(delete), bench.send(nothing)];
        assert!(bench.committer.run_once().is_continue());
        for (answer, taken) in answers.into_iter().zip(taken) {
            match answered(answer) {
                Ok(()) => assert!(taken, "{taking:?}"),
                Err(error) => assert!(!taken && matches!(error, Error::Full), "{taking:?} {error}"),
            }
        }
    }
    assert_eq!(bench.stats.full_refusals.load(Ordering::Relaxed), 3);
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
async fn a_lone_request_is_committed_where_it_is_brought() {
    let mut bench = Bench::new();
    let lone = bench.lone();
    assert!(!bring(&lone, increment()).1, "nobody looks after it");
    assert!(bench.looks());
    assert!(!bring(&lone, increment()).1, "nobody knows how long a commit takes");
    assert_eq!(bench.commit_one(increment()), 1);
    for expected in 2..10 {
        let (answer, taken) = bring(&lone, increment());
        assert!(taken);
        assert_eq!(answered(answer).unwrap(), expected);
        assert_eq!(bench.stats.group_size.count(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_committer_looks_after_lone_commits_while_there_are_any() {
    let mut bench = Bench::new();
    let lone = bench.lone();
    bench.commit_one(increment());
    assert!(!bench.looks());
    assert!(!bring(&lone, increment()).1);
    for _ in 0..3 {
        assert!(bench.looks());
        assert!(bring(&lone, increment()).1);
    }
    assert!(bench.looks());
    // None came since the last look.
    assert!(!bench.looks());
    assert!(!bring(&lone, increment()).1);
    // When all is tidy it sleeps, but not before the next is committed and tidied up.
    bench.tidy();
    assert!(bring(&lone, increment()).1);
    assert!(bench.looks());
    assert!(!bench.looks());
    bench.tidy();
    assert_eq!(bench.committer.rest(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_for_a_lone_commit_is_given_back() {
    let mut bench = Bench::new();
    let lone = bench.lone();
    let mut lone_on_a_slow_disk = bench.lone();
    lone_on_a_slow_disk.quick = Duration::ZERO;
    bench.commit_one(increment());
    assert!(!bring(&lone, increment()).1);
    assert!(bench.looks());

    let several = Apply::new(["a", "b"], |_, _| Decision::Commit(()));
    assert!(!bring(&lone, several).1);
    {
        let _others = bench.committer.group.lock().unwrap();
        assert!(!bring(&lone, increment()).1);
    }
    assert!(!bring(&lone_on_a_slow_disk, increment()).1);
    assert!(bring(&lone, increment()).1);

    bench.queue.try_send(Message::Close).expect("room in the queue");
    bench.committer.run();
    assert!(!bring(&lone, increment()).1);
}

#[test]
fn where_no_other_thread_could_take_over_there_are_no_lone_commits() {
    let one_thread = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let current_thread = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for runtime in [Some(one_thread), Some(current_thread), None] {
        let _entered = runtime.as_ref().map(tokio::runtime::Runtime::enter);
        let mut bench = Bench::new();
        let lone = bench.lone();
        bench.commit_one(increment());
        assert!(!bring(&lone, increment()).1);
        assert!(!bench.looks());
        assert!(!bring(&lone, increment()).1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_a_lone_commit_is_a_failure_with_its_reason() {
    let mut bench = Bench::new();
    let lone = bench.lone();
    bench.commit_one(increment());
    assert!(!bring(&lone, increment()).1);
    assert!(bench.looks());
    bench.sink.state.borrow_mut().on_commit = Some(Box::new(|| panic!("a broken commit")));
    let (mut unanswered, taken) = bring(&lone, increment());
    assert!(taken && unanswered.try_recv().is_err());
    let failure = bench.failure.borrow().clone().expect("a failure");
    assert_eq!(&*failure, "a commit panicked: a broken commit");
    // Nobody writes any more.
    assert!(!bring(&lone, increment()).1);
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
    taking: Option<Admission>,
    /// Fail, and say whether nothing was written.
    failure: Option<bool>,
}

impl Bench {
    fn new() -> Self {
        let (queue, requests) = sync_channel(2 * GROUP_TRANSITIONS_MAX);
        let (failure_sender, failure) = watch::channel(None);
        let (sink, stats) = (Recorder::default(), Arc::new(Stats::default()));
        let (failures, relief) = (Arc::new(failure_sender), Relief::new());
        let committer =
            Committer::new(requests, sink.clone(), Arc::clone(&stats), failures, relief);
        Self { queue, committer, sink, stats, failure }
    }

    fn lone(&self) -> InlineCommits<Recorder> {
        let mut lone = self.committer.lone_commits();
        // Whatever else this machine does.
        lone.quick = Duration::from_secs(3600);
        lone
    }

    /// Whether the committer, on going to rest, looks after lone commits.
    fn looks(&self) -> bool {
        let rest = self.committer.rest();
        let group = self.committer.group.lock().unwrap();
        let is_kept = group.as_ref().is_some_and(|group| group.watch.is_kept);
        assert!(!is_kept || rest.is_some_and(|rest| rest <= LOOK_EVERY));
        is_kept
    }

    fn tidy(&mut self) {
        let (done, _) = oneshot::channel();
        self.queue.try_send(Message::Tidy(done)).expect("room in the queue");
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

/// Brings a request to be committed alone; false if it was given back.
fn bring<T: Transition>(
    lone: &InlineCommits<Recorder>,
    transition: T,
) -> (oneshot::Receiver<Result<T::Verdict>>, bool) {
    let (reply, answer) = oneshot::channel();
    let taken = lone.commit(Box::new(Pending::new(transition, reply))).is_ok();
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
        for (key, value) in overlay.drain() {
            match value {
                Some(value) => state.rows.insert(key, value),
                None => state.rows.remove(&key),
            };
        }
        Ok(())
    }

    fn taking(&self) -> Admission {
        self.state.borrow().taking.unwrap_or(Admission::Everything)
    }

    fn tidy(&self) -> bool {
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
