//! A connection that wakes itself goes on at once.
//!
//! hyper hands the body of a request over to its handler and wakes the task that waits to hand over more. Both are polled by
//! one task, which so wakes itself, with every request that has a body. The runtime takes that for a wish to step back: it
//! queues the task and wakes a sleeping thread to fetch it, which finds nothing left to do and sleeps again.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often a future that wakes itself goes on before others have their turn.
const TURNS_MAX: usize = 4;

const RESTING: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// Runs `work`, and polls it again at once when it was woken while it was polled.
pub(crate) async fn go_on_at_once<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    std::future::poll_fn(move |context| {
        woken.task.register(context.waker());
        for _ in 0..TURNS_MAX {
            // A swap, as in `wake`: who comes before it has told everything that this poll may see.
            woken.state.swap(POLLED, Ordering::AcqRel);
            let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() || woken.rests() {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[derive(Default)]
struct Woken {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Woken {
    /// Ends a poll; false if somebody wants another.
    fn rests(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(POLLED, RESTING, success, failure).is_ok()
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == RESTING {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, AtomicUsize};
    use std::time::{Duration, Instant};

    use tokio::sync::mpsc;

    use super::*;

    #[derive(Default)]
    struct Task {
        wakes: AtomicUsize,
    }

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes itself the first `times` it is polled, and is ready then; tells how often it was polled.
    async fn waking_itself(times: usize, polls: &AtomicUsize) {
        std::future::poll_fn(|context| {
            if polls.fetch_add(1, Ordering::Relaxed) == times {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn what_wakes_itself_goes_on_without_its_task_being_woken() {
        let (task, polls) = (Arc::new(Task::default()), AtomicUsize::new(0));
        let waker = Waker::from(Arc::clone(&task));
        let work = pin!(go_on_at_once(waking_itself(TURNS_MAX - 1, &polls)));
        assert!(work.poll(&mut Context::from_waker(&waker)).is_ready());
        assert_eq!(task.wakes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_wakes_itself_for_ever_lets_others_have_their_turn() {
        let (task, polls) = (Arc::new(Task::default()), AtomicUsize::new(0));
        let waker = Waker::from(Arc::clone(&task));
        let mut work = pin!(go_on_at_once(waking_itself(usize::MAX, &polls)));
        for turn in 1..=3 {
            assert!(work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(polls.load(Ordering::Relaxed), turn * TURNS_MAX);
            assert_eq!(task.wakes.load(Ordering::Relaxed), turn);
        }
    }

    #[test]
    fn what_rests_is_woken_through_its_task() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let (sender, mut receiver) = mpsc::channel(1);
        let mut work = pin!(go_on_at_once(receiver.recv()));
        assert!(work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(task.wakes.load(Ordering::Relaxed), 0);
        sender.try_send(7).unwrap();
        assert_eq!(task.wakes.load(Ordering::Relaxed), 1);
        assert_eq!(work.poll(&mut Context::from_waker(&waker)), Poll::Ready(Some(7)));
    }

    /// Woken at every moment of its poll and right after it. One wake that is lost, and both wait for ever.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn no_wake_from_another_thread_is_lost() {
        const ROUNDS: u32 = 50_000;
        static TOLD: AtomicU32 = AtomicU32::new(0);
        static SEEN: AtomicU32 = AtomicU32::new(0);
        static LISTENER: OnceLock<Waker> = OnceLock::new();
        let listener = tokio::spawn(go_on_at_once(std::future::poll_fn(|context| {
            // Once: nothing but the state orders what is told and what is seen after that.
            let waker = LISTENER.get_or_init(|| context.waker().clone());
            let told = TOLD.load(Ordering::Acquire);
            SEEN.store(told, Ordering::Release);
            // The next wake falls into this, or just behind it.
            (0..told % 64).for_each(|_| std::hint::spin_loop());
            if told.is_multiple_of(3) {
                waker.wake_by_ref();
            }
            if told == ROUNDS { Poll::Ready(()) } else { Poll::Pending }
        })));
        let teller = tokio::task::spawn_blocking(|| {
            for round in 1..=ROUNDS {
                TOLD.store(round, Ordering::Release);
                LISTENER.wait().wake_by_ref();
                let told = Instant::now();
                while SEEN.load(Ordering::Acquire) != round {
                    assert!(told.elapsed() < Duration::from_secs(60), "wake {round} was lost");
                    std::thread::yield_now();
                }
            }
        });
        teller.await.unwrap();
        listener.await.unwrap();
    }
}
