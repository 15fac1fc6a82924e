//! The time limit for the head of a request, with one timer for the whole connection.
//!
//! hyper sets a timer before each head and drops it after, so that every request would enter the runtime's list of
//! timers and leave it again, under its lock. Here the timer stays where it is. It fires early for all heads but the
//! first; then it is set again, to the deadline that counts by now.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::time;

/// The timer of one connection; none before it is first waited for.
type Shared = Arc<Mutex<Option<Pin<Box<time::Sleep>>>>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct HeadTimer {
    shared: Shared,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadDeadline { deadline: deadline.into(), shared: self.shared.clone() })
    }
}

/// Until when one head must have come.
struct HeadDeadline {
    deadline: time::Instant,
    shared: Shared,
}

impl Sleep for HeadDeadline {}

impl Future for HeadDeadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let timer = shared.get_or_insert_with(|| Box::pin(time::sleep_until(self.deadline)));
        if timer.deadline() > self.deadline {
            timer.as_mut().reset(self.deadline);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= self.deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(self.deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn is_over(sleep: &mut Pin<Box<dyn Sleep>>) -> bool {
        std::future::poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test(start_paused = true)]
    async fn each_deadline_counts_although_there_is_one_timer() {
        let timer = HeadTimer::default();
        let start = time::Instant::now();
        let mut first = timer.sleep_until((start + 10 * SECOND).into_std());
        assert!(!is_over(&mut first).await);
        time::advance(6 * SECOND).await;
        drop(first);
        let mut second = timer.sleep_until((start + 16 * SECOND).into_std());
        assert!(!is_over(&mut second).await);
        // The timer fires for the first; nothing is over.
        time::advance(5 * SECOND).await;
        assert!(!is_over(&mut second).await);
        second.await;
        assert!(start.elapsed() >= 16 * SECOND && start.elapsed() < 17 * SECOND);
        // One that comes earlier than what the timer stands at.
        let mut late = timer.sleep_until((start + 100 * SECOND).into_std());
        assert!(!is_over(&mut late).await);
        timer.sleep_until((start + 20 * SECOND).into_std()).await;
        assert!(start.elapsed() < 21 * SECOND);
    }
}
