//! Work that must come to its end although nobody may be waiting any more.

use std::future::poll_fn;
use std::pin::Pin;

use tokio::runtime::Handle;

use super::Result;

/// Runs `work` to its end. A request is dropped when its client goes away, but the engine commits all the same:
/// what has to follow a commit must follow it then, too.
pub(crate) async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(work).await?
}

/// Runs `work` where it is called, which costs less, and to its end all the same: if its caller is dropped meanwhile, it goes
/// on by itself.
pub(crate) async fn carry_on<F>(work: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut work = Carried(Some(Box::pin(work)));
    let done = poll_fn(|context| work.running().poll(context)).await;
    work.0 = None;
    done
}

/// Work that is not done yet.
struct Carried<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> Carried<F> {
    fn running(&mut self) -> Pin<&mut F> {
        self.0.as_mut().expect("it runs until it is done").as_mut()
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Carried<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && !std::thread::panicking()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_its_caller_is_dropped() {
        let (go, done) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
        let work = |go: Arc<Notify>, done: Arc<AtomicU32>| async move {
            go.notified().await;
            done.fetch_add(1, Ordering::Relaxed) + 1
        };
        let mut dropped = Box::pin(carry_on(work(Arc::clone(&go), Arc::clone(&done))));
        let is_done = poll_fn(|context| std::task::Poll::Ready(dropped.as_mut().poll(context)));
        assert!(is_done.await.is_pending());
        drop(dropped);
        go.notify_one();
        while done.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        go.notify_one();
        assert_eq!(carry_on(work(go, done)).await, 2);
    }
}
