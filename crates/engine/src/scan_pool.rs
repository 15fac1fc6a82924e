//! The bounded pool that scans run on.
//!
//! A scan reads disk and may run for long, so it must not sit on the threads that answer connections, but for its first
//! rows where the engine reads those by itself. The pool is the runtime's blocking threads behind a semaphore: at most
//! `running_max` scans at a time, at most `waiting_max` waiting for a permit, and everyone else is told
//! [`Error::Busy`] at once.
//!
//! It does not time scans out: the visitor counts rows and time and breaks by itself. A scan whose caller has
//! gone away stops at the next check of [`Cancelled`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::{Error, Result, panic_message};

/// How many rows a scan may read between two looks at [`Cancelled`]: rare enough to cost nothing, often enough
/// that an abandoned scan ends within a millisecond.
pub(crate) const CANCEL_CHECK_ROWS: usize = 256;

/// The share of the places in the line that makes a crowd.
const CROWD_SHARE: usize = 16;

/// Hands out scan permits.
#[derive(Debug)]
pub(crate) struct ScanPool {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

/// Tells a running scan that nobody waits for it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl ScanPool {
    pub(crate) fn new(running_max: usize, waiting_max: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(running_max)),
            waiting: AtomicUsize::new(0),
            waiting_max,
        }
    }

    /// Whether so many wait that no more should come than must: each may hold what it has begun with.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > self.waiting_max / CROWD_SHARE
    }

    /// Runs `work` on a blocking thread when it has a permit.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] when too many already wait, [`Error::Panicked`] when `work` panics, [`Error::Closed`] when the
    /// process is stopping.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Cancelled) -> R + Send + 'static,
    ) -> Result<R> {
        Running::start(self.permit().await?, work).done().await
    }

    /// Waits for a permit.
    ///
    /// # Errors
    ///
    /// As [`ScanPool::run`].
    pub(crate) async fn permit(&self) -> Result<ScanPermit> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _place = Place::take(&self.waiting, self.waiting_max).ok_or(Error::Busy)?;
                Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Error::Closed)?
            }
        };
        Ok(Arc::new(permit))
    }

    /// A permit, if one is free.
    pub(crate) fn try_permit(&self) -> Option<ScanPermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok().map(Arc::new)
    }
}

/// Given back when the last clone of it is dropped.
pub(crate) type ScanPermit = Arc<OwnedSemaphorePermit>;

/// Work on a blocking thread. It is told when this is dropped.
pub(crate) struct Running<R> {
    scan: JoinHandle<R>,
    _cancel: CancelOnDrop,
}

impl<R: Send + 'static> Running<R> {
    pub(crate) fn start(
        permit: ScanPermit,
        work: impl FnOnce(&Cancelled) -> R + Send + 'static,
    ) -> Self {
        let cancelled = Cancelled::default();
        let cancel = CancelOnDrop(cancelled.clone());
        let scan = tokio::task::spawn_blocking(move || {
            // The permit is given back with the work, not with the caller, who may be gone earlier.
            let _permit = permit;
            work(&cancelled)
        });
        Self { scan, _cancel: cancel }
    }

    /// What the work came to.
    pub(crate) async fn done(mut self) -> Result<R> {
        (&mut self.scan).await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => Error::Panicked(panic_message(&*panic).into()),
            Err(_) => Error::Closed,
        })
    }
}

impl Cancelled {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// A place in the waiting line, given back on drop.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, waiting_max: usize) -> Option<Self> {
        let place = Self(waiting);
        // The guard exists before the check, so that a refused one is given back too.
        (waiting.fetch_add(1, Ordering::Relaxed) < waiting_max).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_line_is_busy_at_once() {
        let scans = Arc::new(ScanPool::new(1, 1));
        let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
        let (started, has_started) = tokio::sync::oneshot::channel();
        let first = tokio::spawn({
            let scans = Arc::clone(&scans);
            async move {
                scans
                    .run(move |_| {
                        started.send(()).expect("the test waits for it");
                        released.recv().expect("the test releases it");
                    })
                    .await
            }
        });
        has_started.await.expect("the first scan starts");
        let mut second = Box::pin(scans.run(|_| ()));
        assert!(futures_poll_once(second.as_mut()).await.is_none());
        assert!(matches!(scans.run(|_| ()).await, Err(Error::Busy)));
        release.send(()).expect("the first scan waits");
        first.await.expect("no panic").expect("not busy");
        second.await.expect("it got a permit");
    }

    #[tokio::test]
    async fn an_abandoned_scan_is_told() {
        let scans = ScanPool::new(1, 0);
        let (told, has_told) = tokio::sync::oneshot::channel();
        let mut scan = Box::pin(scans.run(move |cancelled: &Cancelled| {
            while !cancelled.is_set() {
                std::thread::yield_now();
            }
            told.send(()).expect("the test waits for it");
        }));
        assert!(futures_poll_once(scan.as_mut()).await.is_none());
        drop(scan);
        has_told.await.expect("the scan saw it");
    }

    #[tokio::test]
    async fn a_panicking_scan_gives_its_permit_back() {
        let scans = ScanPool::new(1, 0);
        let failed = scans.run(|_| panic!("on purpose")).await;
        assert!(matches!(failed, Err(Error::Panicked(told)) if told == "on purpose"));
        scans.run(|_| ()).await.expect("the permit is free again");
    }

    async fn futures_poll_once<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut future).poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
