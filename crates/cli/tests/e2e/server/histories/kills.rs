//! Kills the server amid an episode, and starts it again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::support::{Random, Server};

/// How long a client without a connection waits for the server to come back before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// The server of an episode, and its ends and starts.
pub(super) struct Kills {
    pub server: Arc<Server>,
    planned: usize,
    operations_between: usize,
    operations: AtomicUsize,
    /// How often it has been started again.
    restarts: Mutex<usize>,
    restarted: Condvar,
    is_over: AtomicBool,
}

impl Kills {
    pub(super) fn new(server: &Arc<Server>, planned: usize, operations: usize) -> Self {
        Self {
            server: Arc::clone(server),
            planned,
            operations_between: operations / (planned + 1),
            operations: AtomicUsize::new(0),
            restarts: Mutex::new(0),
            restarted: Condvar::new(),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn count_operation(&self) {
        self.operations.fetch_add(1, Ordering::Relaxed);
    }

    /// Nothing will happen any more that could be waited for.
    pub(super) fn finish(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Kills at moments that are chosen by progress, and a little chance on top.
    pub(super) fn run(&self, random: &mut Random) {
        for kill in 1..=self.planned {
            while self.operations.load(Ordering::Relaxed) < kill * self.operations_between {
                if self.is_over.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            std::thread::sleep(Duration::from_micros(random.next() % 3000));
            self.server.crash_and_restart();
            *self.restarts.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.restarted.notify_all();
        }
    }

    pub(super) fn restarts(&self) -> usize {
        *self.restarts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there have been more restarts than `before`: whatever was sent earlier is done by then, or never
    /// will be.
    pub(super) fn wait_for_restart(&self, before: usize, error: &std::io::Error) {
        let restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.restarted.wait_timeout_while(restarts, PATIENCE, |now| *now <= before);
        let (restarts, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(restarts);
        assert!(!waited.timed_out(), "nobody killed it: {error}\n{}", self.server.log());
    }
}
