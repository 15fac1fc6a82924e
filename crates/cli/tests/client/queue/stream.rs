//! The stream of messages: each is hidden while it is worked on, and a stop leaves nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Method, Request};
use futures::{StreamExt, TryStreamExt};
use tavola_client::queue::{Backoff, MessageStreamOptions, QueueClient, QueueSasSpec, StopSignal};
use tavola_client::{DateTime, ErrorExt, Permissions, SasCredential};
use tokio::time::sleep;

use super::received;
use crate::support::{TestQueue, account, fresh_name};

const POLL: Backoff =
    Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(200) };

fn options() -> MessageStreamOptions {
    MessageStreamOptions { poll: Some(POLL), ..Default::default() }
}

async fn is_empty(queue: &QueueClient) -> bool {
    queue.get_properties(None).await.unwrap().approximate_message_count == 0
}

#[tokio::test]
async fn messages_come_as_they_are_sent() {
    let queue = TestQueue::create().await;
    let mut messages = queue.messages(Some(options()));
    let sender = queue.queue.clone();
    let sending = tokio::spawn(async move {
        for number in 0..5 {
            sleep(Duration::from_millis(20)).await;
            sender.send_message(number.to_string(), None).await.unwrap();
        }
    });
    for number in 0..5 {
        let message = messages.try_next().await.unwrap().unwrap();
        assert_eq!(message.text().unwrap(), number.to_string());
        assert!(message.complete().await.unwrap());
    }
    sending.await.unwrap();
    assert!(is_empty(&queue).await);
    queue.delete().await;
}

/// Twice as long as it would be hidden without renewal.
#[tokio::test]
async fn a_message_is_hidden_while_it_is_worked_on() {
    let queue = TestQueue::create().await;
    let timeout = Duration::from_secs(6);
    for _ in 0..2 {
        queue.send_message("x", None).await.unwrap();
    }
    let options =
        MessageStreamOptions { batch: Some(2), visibility_timeout: Some(timeout), ..options() };
    let mut messages = queue.messages(Some(options));
    let first = messages.try_next().await.unwrap().unwrap();
    sleep(timeout + timeout / 2).await;
    assert!(!first.is_lost());
    assert!(queue.peek_messages(None).await.unwrap().is_empty(), "somebody else can see it");
    assert!(first.complete().await.unwrap());
    // The one that waited in the stream was kept, too.
    let second = messages.try_next().await.unwrap().unwrap();
    assert_eq!(second.dequeue_count, 1);
    assert!(second.complete().await.unwrap());
    assert!(is_empty(&queue).await);
    queue.delete().await;
}

#[tokio::test]
async fn a_message_that_is_gone_is_lost() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let timeout = Some(Duration::from_secs(2));
    let options = MessageStreamOptions { visibility_timeout: timeout, ..options() };
    let mut messages = queue.messages(Some(options));
    let message = messages.try_next().await.unwrap().unwrap();
    queue.clear_messages(None).await.unwrap();
    message.lost().await;
    assert!(message.is_lost());
    assert!(!message.complete().await.unwrap());
    queue.delete().await;
}

#[tokio::test]
async fn a_stop_gives_back_what_was_not_handed_out() {
    let queue = TestQueue::create().await;
    for number in 0..4 {
        queue.send_message(number.to_string(), None).await.unwrap();
    }
    let (stop, signal) = futures::channel::oneshot::channel::<()>();
    let options = MessageStreamOptions {
        batch: Some(32),
        stop: Some(StopSignal::new(signal)),
        visibility_timeout: Some(Duration::from_secs(3600)),
        ..options()
    };
    let mut messages = queue.messages(Some(options));
    let first = messages.try_next().await.unwrap().unwrap();
    let second = messages.try_next().await.unwrap().unwrap();
    stop.send(()).unwrap();
    assert!(messages.next().await.is_none());
    // Those that were handed out are still ours.
    assert!(first.release(Duration::ZERO).await.unwrap());
    assert!(second.complete().await.unwrap());
    let mut texts = received(&queue).await;
    texts.sort_unstable();
    assert_eq!(texts, ["0", "2", "3"]);
    queue.delete().await;
}

/// An error is told, and the stream goes on when it has passed.
#[tokio::test]
async fn an_error_does_not_end_the_stream() {
    let account = account();
    let queue = account.queues().queue_client(fresh_name()).unwrap();
    let mut messages = queue.messages(Some(options()));
    assert!(messages.next().await.unwrap().unwrap_err().is_not_found());
    assert!(messages.next().await.unwrap().unwrap_err().is_not_found());
    queue.create(None).await.unwrap();
    queue.send_message("x", None).await.unwrap();
    assert_eq!(messages.next().await.unwrap().unwrap().text().unwrap(), "x");
    queue.delete(None).await.unwrap();
}

/// A client with a signature that can receive and delete, and not change.
fn without_update(queue: &TestQueue) -> QueueClient {
    let expiry = DateTime::parse_iso("2040-01-01").unwrap();
    let token = queue.sas(&QueueSasSpec::new("any", Permissions::PROCESS, expiry)).unwrap();
    let endpoint = queue.account.queues().endpoint().to_string();
    QueueClient::new(&endpoint, queue.name(), SasCredential::new(token), None).unwrap()
}

/// Without the permission to renew, the message is ours for its time, and no longer.
#[tokio::test]
async fn a_message_that_cannot_be_renewed_is_lost_in_time() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let worker = without_update(&queue);
    let timeout = Some(Duration::from_secs(2));
    let options = MessageStreamOptions { visibility_timeout: timeout, ..options() };
    let mut messages = worker.messages(Some(options));
    let message = messages.try_next().await.unwrap().unwrap();
    message.lost().await;
    // Others can have it now.
    let mut others = Vec::new();
    while others.is_empty() {
        others = queue.receive_messages(None).await.unwrap();
    }
    assert_eq!(others[0].dequeue_count, 2);
    assert!(!message.complete().await.unwrap());
    queue.delete().await;
}

/// Whoever ends the work on it before that does not wait for its time to be over.
#[tokio::test]
async fn a_message_that_cannot_be_renewed_is_ended_at_once() {
    let queue = TestQueue::create().await;
    for _ in 0..2 {
        queue.send_message("x", None).await.unwrap();
    }
    let worker = without_update(&queue);
    let timeout = Duration::from_secs(12);
    let options =
        MessageStreamOptions { batch: Some(2), visibility_timeout: Some(timeout), ..options() };
    let mut messages = worker.messages(Some(options));
    let done = messages.try_next().await.unwrap().unwrap();
    let put_off = messages.try_next().await.unwrap().unwrap();
    // The renewals were refused after half of it.
    sleep(timeout / 2 + Duration::from_secs(1)).await;
    let soon = Duration::from_secs(3);
    assert!(tokio::time::timeout(soon, done.complete()).await.unwrap().unwrap());
    let refused = tokio::time::timeout(soon, put_off.release(Duration::ZERO)).await.unwrap();
    assert!(!refused.unwrap_err().is_transient());
    queue.delete().await;
}

/// Renewals that get no answer are tried again while there is time.
#[tokio::test]
async fn a_renewal_is_tried_again() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let deaf = Arc::new(DeafToUpdates(AtomicUsize::new(2)));
    let worker = QueueClient::builder(queue.name())
        .connection_string(queue.account.connection_string())
        .policy(deaf.clone())
        .max_retries(0)
        .build()
        .unwrap();
    let timeout = Duration::from_secs(10);
    let options = MessageStreamOptions { visibility_timeout: Some(timeout), ..options() };
    let mut messages = worker.messages(Some(options));
    let message = messages.try_next().await.unwrap().unwrap();
    while deaf.0.load(Ordering::SeqCst) > 0 && !message.is_lost() {
        sleep(Duration::from_millis(100)).await;
    }
    // Longer than it would be hidden without a renewal.
    sleep(timeout / 2).await;
    assert!(!message.is_lost());
    assert!(message.complete().await.unwrap());
    queue.delete().await;
}

/// Loses as many requests to change a message.
#[derive(Debug)]
struct DeafToUpdates(AtomicUsize);

#[async_trait]
impl Policy for DeafToUpdates {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let fails = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if request.method() == Method::Put && self.0.fetch_update(order, order, fails).is_ok() {
            return Err(azure_core::Error::with_message(ErrorKind::Io, "the request was lost"));
        }
        next[0].send(context, request, &next[1..]).await
    }
}

/// What the network does to a kind of request, once.
#[derive(Debug)]
enum Slow {
    /// Its answer comes late.
    Answer(Method, Duration),
    /// It has no answer.
    Never(Method),
}

#[derive(Debug)]
struct SlowOnce(Slow, AtomicUsize);

impl SlowOnce {
    fn client(queue: &TestQueue, slow: Slow) -> QueueClient {
        QueueClient::builder(queue.name())
            .connection_string(queue.account.connection_string())
            .policy(Arc::new(Self(slow, AtomicUsize::new(0))))
            .max_retries(0)
            .build()
            .unwrap()
    }

    fn is_now(&self, wanted: Method, request: &Request) -> bool {
        request.method() == wanted && self.1.fetch_add(1, Ordering::SeqCst) == 0
    }
}

#[async_trait]
impl Policy for SlowOnce {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let late = match self.0 {
            Slow::Never(method) if self.is_now(method, request) => std::future::pending().await,
            Slow::Answer(method, time) if self.is_now(method, request) => Some(time),
            _ => None,
        };
        // As from far away: no request is done before somebody can look at the time.
        sleep(Duration::from_millis(50)).await;
        let answer = next[0].send(context, request, &next[1..]).await;
        if let Some(time) = late {
            sleep(time).await;
        }
        answer
    }
}

/// Nobody else wanted it in the time in which it could be seen.
#[tokio::test]
async fn a_message_whose_answer_was_late_is_renewed_at_once() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let timeout = Duration::from_secs(2);
    let worker = SlowOnce::client(&queue, Slow::Answer(Method::Get, timeout * 3 / 2));
    let options = MessageStreamOptions { visibility_timeout: Some(timeout), ..options() };
    let mut messages = worker.messages(Some(options));
    let message = messages.try_next().await.unwrap().unwrap();
    let hidden = async {
        while !queue.peek_messages(None).await.unwrap().is_empty() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), hidden).await.expect("it is hidden again");
    assert!(!message.is_lost());
    assert!(message.complete().await.unwrap());
    queue.delete().await;
}

/// One that hangs leaves time for another.
#[tokio::test]
async fn a_renewal_without_an_answer_is_given_up() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let worker = SlowOnce::client(&queue, Slow::Never(Method::Put));
    let timeout = Duration::from_secs(10);
    let options = MessageStreamOptions { visibility_timeout: Some(timeout), ..options() };
    let mut messages = worker.messages(Some(options));
    let message = messages.try_next().await.unwrap().unwrap();
    // Longer than it would be hidden without a renewal.
    sleep(timeout * 5 / 4).await;
    assert!(!message.is_lost());
    assert!(message.complete().await.unwrap());
    queue.delete().await;
}

/// The service hides a message for seven days at most.
#[tokio::test]
async fn a_claim_for_ever_lasts_as_long_as_it_can() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let poll = Backoff { first: Duration::MAX, longest: Duration::MAX };
    let options = MessageStreamOptions {
        visibility_timeout: Some(Duration::MAX),
        poll: Some(poll),
        ..Default::default()
    };
    let mut messages = queue.messages(Some(options));
    let message = messages.try_next().await.unwrap().unwrap();
    assert!(message.release(Duration::MAX).await.unwrap());
    // It pauses, for ever, and does not panic.
    let pause = tokio::time::timeout(Duration::from_millis(500), messages.next());
    assert!(pause.await.is_err());
    queue.delete().await;
}
