//! Workers whose service, or service of tokens, is away, and messages that cannot be buried.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Method, Request};
use futures::{TryStreamExt, poll};
use tavola_client::ErrorExt;
use tavola_client::patterns::queue_worker::{JobError, QueueWorker};
use tavola_client::queue::{
    Backoff, MessageEncoding, MessageHandle, MessageStreamOptions, PeekMessagesOptions,
    QueueClient, StopSignal,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::support::{TestQueue, counts};

/// How often a busy machine may be late with a renewal.
const LATE_MAX: usize = 6;
const NO_PAUSE: Backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
const SHORT: Backoff =
    Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(100) };

/// Fails as many requests of a kind, before they are sent.
#[derive(Debug)]
struct Failing {
    method: Method,
    kind: ErrorKind,
    left: AtomicUsize,
}

impl Failing {
    fn new(method: Method, kind: ErrorKind, times: usize) -> Arc<Self> {
        Arc::new(Self { method, kind, left: AtomicUsize::new(times) })
    }

    fn client(self: &Arc<Self>, queue: &TestQueue) -> QueueClient {
        let client = QueueClient::builder(queue.name());
        let client = client.connection_string(queue.account.connection_string());
        client.policy(self.clone()).max_retries(0).build().unwrap()
    }

    fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Policy for Failing {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let (order, fails) = (Ordering::SeqCst, |left: usize| left.checked_sub(1));
        if request.method() == self.method && self.left.fetch_update(order, order, fails).is_ok() {
            return Err(azure_core::Error::with_message(self.kind.clone(), "it is away"));
        }
        next[0].send(context, request, &next[1..]).await
    }
}

/// Works until one message is done.
async fn run_to_the_first(worker: QueueWorker) -> (usize, usize, usize, usize) {
    let done = Arc::new(Notify::new());
    let signal = done.clone();
    let worker = worker.stop(StopSignal::new(async move { signal.notified().await }));
    let ran = worker.run(move |_| {
        let done = done.clone();
        async move {
            done.notify_one();
            Ok(())
        }
    });
    let ended = tokio::time::timeout(Duration::from_secs(30), ran).await;
    counts(ended.expect("an end").unwrap())
}

/// Neither a service that is away ends a worker, nor one of tokens.
#[tokio::test]
async fn a_service_that_is_away_is_asked_again() {
    for kind in [ErrorKind::Io, ErrorKind::Credential] {
        let queue = TestQueue::create().await;
        queue.send_message("one", None).await.unwrap();
        let failing = Failing::new(Method::Get, kind, 2);
        let worker = QueueWorker::new(failing.client(&queue)).poll(SHORT);
        assert_eq!(run_to_the_first(worker).await, (1, 0, 0, 0));
        assert_eq!(failing.left(), 0);
        queue.delete().await;
    }
}

/// Who drains a queue wants to know whether it is empty.
#[tokio::test]
async fn a_drain_without_an_answer_says_what_was_done() {
    let queue = TestQueue::create().await;
    let sender = queue.queue.clone();
    sender.send_message("one", None).await.unwrap();
    let failing = Failing::new(Method::Get, ErrorKind::Io, 0);
    let breaks = failing.clone();
    let worker = QueueWorker::new(failing.client(&queue)).poll(SHORT);
    let error = worker
        .drain(move |_| {
            breaks.left.store(1, Ordering::SeqCst);
            async { Ok(()) }
        })
        .await
        .unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(counts(error.report), (1, 0, 0, 0));
    assert_eq!(tavola_client::Error::from(error).to_string(), "it is away");
    queue.delete().await;
}

/// Each question to a service that is away comes after a longer pause.
#[tokio::test]
async fn pauses_grow_while_there_is_nothing() {
    let queue = TestQueue::create().await;
    queue.send_message("one", None).await.unwrap();
    let failing = Failing::new(Method::Get, ErrorKind::Io, 4);
    let pauses = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(60) };
    let worker = QueueWorker::new(failing.client(&queue)).poll(pauses);
    let began = Instant::now();
    assert_eq!(run_to_the_first(worker).await, (1, 0, 0, 0));
    // 200, 400, 800 and 1,600 ms, of which a random part of a half is left out.
    assert!(began.elapsed() >= Duration::from_millis(1500), "{:?}", began.elapsed());
    queue.delete().await;
}

/// A renewal that gets no token is tried again, as one that gets no answer.
#[tokio::test]
async fn a_renewal_without_a_token_is_tried_again() {
    let queue = TestQueue::create().await;
    let time = Duration::from_secs(6);
    let mut is_kept = false;
    // A busy machine may be late with one.
    for _ in 0..LATE_MAX {
        queue.send_message("x", None).await.unwrap();
        let failing = Failing::new(Method::Put, ErrorKind::Credential, 2);
        let options = MessageStreamOptions { visibility_timeout: Some(time), ..Default::default() };
        let mut messages = failing.client(&queue).messages(Some(options));
        let message = messages.try_next().await.unwrap().unwrap();
        // Longer than it would be hidden without a renewal.
        sleep(time * 5 / 4).await;
        assert_eq!(failing.left(), 0);
        is_kept = !message.is_lost() && message.complete().await.unwrap();
        if is_kept {
            break;
        }
    }
    assert!(is_kept);
    queue.delete().await;
}

/// Its attempts are used up and its work is not done again; it stays until it can be copied.
#[tokio::test]
async fn what_cannot_be_buried_stays_and_is_buried_later() {
    let queue = TestQueue::create().await;
    queue.send_message("bad", None).await.unwrap();
    let failing = Failing::new(Method::Post, ErrorKind::Io, 1);
    let worker =
        QueueWorker::new(failing.client(&queue)).poll(SHORT).retry(NO_PAUSE).max_attempts(1);
    let tries = Arc::new(AtomicUsize::new(0));
    let drain = || {
        let tries = tries.clone();
        worker.drain(move |_| {
            tries.fetch_add(1, Ordering::SeqCst);
            async { Err(JobError::poison("never")) }
        })
    };
    let mut retried = 0;
    loop {
        let report = drain().await.unwrap();
        retried += report.retried;
        if report.dead_lettered == 1 {
            break;
        }
    }
    assert_eq!((retried, tries.load(Ordering::SeqCst)), (1, 1));
    let name = format!("{}-poison", queue.name());
    queue.account.queues().delete_queue(&name, None).await.unwrap();
    queue.delete().await;
}

/// What the service has is copied, whatever it means.
#[tokio::test]
async fn dead_letters_are_as_they_were_whatever_the_encoding() {
    let queue = TestQueue::create().await;
    let base64 = queue.queue.clone().with_encoding(MessageEncoding::Base64);
    base64.send_message(b"\xff\x00", None).await.unwrap();
    queue.send_message("no base64!", None).await.unwrap();
    let worker = QueueWorker::new(base64.clone()).poll(SHORT).retry(NO_PAUSE);
    let fails = |_| async { Err(JobError::poison("never")) };
    assert_eq!(counts(worker.drain(fails).await.unwrap()), (0, 0, 2, 0));
    let name = format!("{}-poison", queue.name());
    let dead_letters = queue.account.queues().queue_client(name).unwrap();
    let texts = |queue: QueueClient| async move {
        let options = PeekMessagesOptions { max_messages: Some(32), ..Default::default() };
        let messages = queue.peek_messages(Some(options)).await.unwrap();
        let mut texts: Vec<_> = messages.iter().map(|it| it.raw_text().to_owned()).collect();
        texts.sort_unstable();
        texts
    };
    assert_eq!(texts(dead_letters.clone()).await, ["/wA=", "no base64!"]);
    assert_eq!(worker.redrive().await.unwrap(), 2);
    assert_eq!(texts(queue.queue.clone()).await, ["/wA=", "no base64!"]);
    dead_letters.delete(None).await.unwrap();
    queue.delete().await;
}

/// What is buried there would be worked on for ever, and a drain would never end.
#[tokio::test]
async fn dead_letters_are_another_queue() {
    let queue = TestQueue::create().await;
    let elsewhere = queue.account.connection_string().replace("127.0.0.1", "localhost");
    let same = QueueClient::from_connection_string(&elsewhere, queue.name(), None).unwrap();
    for same in [queue.queue.clone(), same] {
        let worker = QueueWorker::new(queue.queue.clone()).dead_letters(same);
        let error = worker.drain(|_| async { Ok(()) }).await.unwrap_err();
        assert!(error.to_string().contains("are the queue itself"), "{error}");
        assert!(worker.redrive().await.is_err());
    }
    queue.delete().await;
}

/// Progress is in the message for whoever receives it next, and in the dead letter; the renewal goes on.
#[tokio::test]
async fn work_writes_into_its_message_how_far_it_is() {
    let queue = TestQueue::create().await;
    queue.send_message("0", None).await.unwrap();
    let time = Duration::from_secs(4);
    let worker = QueueWorker::new(queue.queue.clone())
        .poll(SHORT)
        .retry(NO_PAUSE)
        .visibility_timeout(time)
        .max_attempts(LATE_MAX as u32);
    let packed = Arc::new(Mutex::new(Vec::new()));
    let written = packed.clone();
    let work = move |message: MessageHandle| {
        let packed = written.clone();
        async move {
            let before: u32 = message.text()?.parse()?;
            let mut is_written = message.update_body((before + 1).to_string()).await?;
            // Longer than it is hidden: what was written did not end the claim.
            sleep(time * 3 / 2).await;
            is_written &= !message.is_lost();
            is_written &= message.update_body((before + 2).to_string()).await?;
            if !is_written {
                return Err(JobError::retry("a busy machine was late"));
            }
            let mut packed = packed.lock().unwrap();
            packed.push(before + 2);
            match packed.len() {
                1 => Err(JobError::retry("out of boxes")),
                _ => Err(JobError::poison("out of boxes")),
            }
        }
    };
    while worker.drain(work.clone()).await.unwrap().dead_lettered == 0 {}
    let packed = std::mem::take(&mut *packed.lock().unwrap());
    let [first, second] = packed[..] else { panic!("lost again and again: {packed:?}") };
    assert!(second >= first + 2, "{first}, {second}");
    let name = format!("{}-poison", queue.name());
    let dead_letters = queue.account.queues().queue_client(name).unwrap();
    let buried = dead_letters.peek_messages(None).await.unwrap();
    assert_eq!(buried[0].text().unwrap(), second.to_string());
    dead_letters.delete(None).await.unwrap();
    queue.delete().await;
}

/// Whoever keeps the handle does not keep the message, and cannot hide it from those who have it next.
#[tokio::test]
async fn a_handle_is_of_no_use_after_its_claim() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let mut messages = queue.messages(None);
    let message = messages.try_next().await.unwrap().unwrap();
    let handle = message.handle();
    assert!(!handle.is_lost());
    assert!(message.release(Duration::ZERO).await.unwrap());
    handle.lost().await;
    assert!(handle.is_lost() && !handle.update_body("y").await.unwrap());
    let next = messages.try_next().await.unwrap().unwrap();
    assert_eq!((next.text().unwrap().as_ref(), next.dequeue_count), ("x", 2));
    queue.delete().await;
}

/// Who stops to wait for a change and keeps its future must not keep others from ending the work.
#[tokio::test]
async fn a_change_that_nobody_waits_for_holds_nobody_up() {
    let queue = TestQueue::create().await;
    queue.send_message("x", None).await.unwrap();
    let mut messages = queue.messages(None);
    let message = messages.try_next().await.unwrap().unwrap();
    let handle = message.handle();
    let mut change = pin!(handle.update_body("y"));
    assert!(poll!(&mut change).is_pending());
    // The task that makes the change has it in its hands.
    sleep(Duration::from_millis(1)).await;
    assert!(message.release(Duration::ZERO).await.unwrap());
    // Begun before the end, it was made; after it, it was refused.
    let text = if change.await.unwrap() { "y" } else { "x" };
    let next = messages.try_next().await.unwrap().unwrap();
    assert_eq!((next.text().unwrap().as_ref(), next.dequeue_count), (text, 2));
    queue.delete().await;
}
