//! The end of streams and workers while the service does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Method, Request};
use futures::{StreamExt, TryStreamExt};
use tavola_client::patterns::queue_worker::QueueWorker;
use tavola_client::queue::{MessageStreamOptions, QueueClient, StopSignal};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::received;
use crate::support::{TestQueue, counts};

/// A service that answers nothing of a kind, as soon as it is asked to.
#[derive(Debug)]
struct Silent {
    method: Method,
    is_silent: AtomicBool,
    asked: Notify,
}

impl Silent {
    fn new(method: Method, is_silent: bool) -> Arc<Self> {
        Arc::new(Self { method, is_silent: AtomicBool::new(is_silent), asked: Notify::new() })
    }

    fn client(self: &Arc<Self>, queue: &TestQueue) -> QueueClient {
        let client = QueueClient::builder(queue.name());
        let client = client.connection_string(queue.account.connection_string());
        client.policy(self.clone()).build().unwrap()
    }

    /// A signal that is given when the first question is under way.
    fn stop(self: &Arc<Self>) -> StopSignal {
        let silent = self.clone();
        StopSignal::new(async move { silent.asked.notified().await })
    }
}

#[async_trait]
impl Policy for Silent {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        if request.method() == self.method && self.is_silent.load(Ordering::SeqCst) {
            self.asked.notify_one();
            std::future::pending::<()>().await;
        }
        next[0].send(context, request, &next[1..]).await
    }
}

/// Less than a call may take with all its retries.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_stop_does_not_wait_for_a_service_that_does_not_answer() {
    let queue = TestQueue::create().await;
    let silent = Silent::new(Method::Get, true);
    let options = MessageStreamOptions { stop: Some(silent.stop()), ..Default::default() };
    let mut messages = silent.client(&queue).messages(Some(options));
    assert!(timeout(SOON, messages.next()).await.expect("an end").is_none());
    // Whoever asks again learns the same.
    assert!(messages.next().await.is_none());

    let silent = Silent::new(Method::Get, true);
    let worker = QueueWorker::new(silent.client(&queue)).stop(silent.stop());
    let report = timeout(SOON, worker.run(|_| async { Ok(()) })).await.expect("an end");
    assert_eq!(counts(report.unwrap()), (0, 0, 0, 0));
    queue.delete().await;
}

#[tokio::test]
async fn a_question_is_waited_for_no_longer_than_work_is() {
    let queue = TestQueue::create().await;
    let silent = Silent::new(Method::Get, true);
    let limit = Duration::from_millis(100);
    let worker = QueueWorker::new(silent.client(&queue)).stop(silent.stop());
    // Nothing is sent, so that all that passes is what is waited for.
    tokio::time::pause();
    let began = Instant::now();
    worker.shutdown_timeout(limit).run(|_| async { Ok(()) }).await.unwrap();
    assert!(began.elapsed() < 2 * limit, "{:?}", began.elapsed());
    tokio::time::resume();
    queue.delete().await;
}

/// All of them together, and not one after the other.
#[tokio::test]
async fn messages_that_cannot_be_given_back_do_not_hold_up_a_stop() {
    let queue = TestQueue::create().await;
    for number in 0..20 {
        queue.send_message(number.to_string(), None).await.unwrap();
    }
    let (stop, signal) = futures::channel::oneshot::channel::<()>();
    let options = MessageStreamOptions {
        batch: Some(32),
        stop: Some(StopSignal::new(signal)),
        visibility_timeout: Some(Duration::from_secs(30)),
        ..Default::default()
    };
    let silent = Silent::new(Method::Put, true);
    let mut messages = silent.client(&queue).messages(Some(options));
    let first = messages.try_next().await.unwrap().unwrap();
    stop.send(()).unwrap();
    assert!(timeout(SOON, messages.next()).await.expect("an end").is_none());
    assert!(first.complete().await.unwrap());
    assert!(received(&queue).await.is_empty(), "the others are hidden until their time is over");
    queue.delete().await;
}
