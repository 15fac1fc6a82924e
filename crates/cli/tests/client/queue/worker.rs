//! The worker: several at a time, retries, dead letters, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Method, Request};
use tavola_client::patterns::queue_worker::{JobError, QueueWorker, WorkerReport};
use tavola_client::queue::{
    Backoff, PeekMessagesOptions, QueueClient, SendMessageOptions, StopSignal, TimeToLive,
};
use tavola_client::{DateTime, ErrorExt, Result};
use tokio::sync::{Barrier, Notify};

use super::received;
use crate::support::{TestQueue, counts};

const NO_PAUSE: Backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
const SHORT: Backoff =
    Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(100) };

fn worker(queue: &QueueClient) -> QueueWorker {
    QueueWorker::new(queue.clone()).retry(NO_PAUSE).poll(SHORT)
}

async fn send(queue: &QueueClient, texts: impl IntoIterator<Item = impl AsRef<[u8]>>) {
    for text in texts {
        queue.send_message(text, None).await.unwrap();
    }
}

fn poison(queue: &TestQueue) -> QueueClient {
    queue.account.queues().queue_client(format!("{}-poison", queue.name())).unwrap()
}

async fn raw_texts(queue: &QueueClient) -> Vec<String> {
    let options = PeekMessagesOptions { max_messages: Some(32), ..Default::default() };
    let messages = queue.peek_messages(Some(options)).await.unwrap();
    messages.iter().map(|message| message.raw_text().to_owned()).collect()
}

#[tokio::test]
async fn a_queue_is_worked_off_several_at_a_time() {
    let queue = TestQueue::create().await;
    send(&queue, (0..40).map(|number| number.to_string())).await;
    // All five places must be in use at once, or this waits for ever.
    let meeting = Arc::new(Barrier::new(5));
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = (running.clone(), most.clone());
    let report = worker(&queue)
        .concurrency(5)
        .drain(move |_| {
            let (meeting, (running, most)) = (meeting.clone(), seen.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                meeting.wait().await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
        .await
        .unwrap();
    assert_eq!(counts(report), (40, 0, 0, 0));
    assert_eq!(most.load(Ordering::SeqCst), 5);
    assert_eq!(queue.get_properties(None).await.unwrap().approximate_message_count, 0);
    queue.delete().await;
}

#[tokio::test]
async fn what_fails_is_tried_again_and_then_buried() {
    let queue = TestQueue::create().await;
    send(&queue, ["good", "flaky", "bad", "panic", "poison"]).await;
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let mut total = WorkerReport::default();
    let worker = worker(&queue).max_attempts(3);
    // Messages that fail are visible again at once, but others may be seen first.
    while total.done + total.dead_lettered < 5 {
        let counted = counted.clone();
        let report = worker
            .drain(move |message| {
                let counted = counted.clone();
                async move {
                    match &*message.text()? {
                        "flaky" if message.dequeue_count < 2 => {
                            Err(std::io::Error::other("not yet"))?
                        }
                        "bad" => {
                            counted.fetch_add(1, Ordering::SeqCst);
                            Err(std::io::Error::other("never"))?
                        }
                        "panic" => panic!("as a test of the worker"),
                        "poison" => Err(JobError::poison("nobody understands it")),
                        _ => Ok(()),
                    }
                }
            })
            .await
            .unwrap();
        total.done += report.done;
        total.retried += report.retried;
        total.dead_lettered += report.dead_lettered;
        assert_eq!(report.lost, 0);
    }
    // One failure of the flaky one, two of each of the others before the last.
    let expected = (2, 5, 3, 0);
    assert_eq!((counts(total), tries.load(Ordering::SeqCst)), (expected, 3));
    let dead_letters = poison(&queue);
    let mut buried = raw_texts(&dead_letters).await;
    buried.sort_unstable();
    assert_eq!(buried, ["bad", "panic", "poison"]);

    // Mended, and tried again as if they were new.
    assert_eq!(worker.redrive().await.unwrap(), 3);
    assert!(raw_texts(&dead_letters).await.is_empty());
    let report = worker.drain(|_| async { Ok(()) }).await.unwrap();
    assert_eq!(report.done, 3);
    dead_letters.delete(None).await.unwrap();
    queue.delete().await;
}

/// Buries each message anew as soon as it was sent, as a worker does whose reason to fail was not mended.
#[derive(Debug)]
struct NotMended(QueueClient);

#[async_trait]
impl Policy for NotMended {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let answer = next[0].send(context, request, &next[1..]).await;
        if request.method() == Method::Post {
            // The service tells moments by the second.
            tokio::time::sleep(Duration::from_millis(1100)).await;
            send(&self.0, ["again"]).await;
        }
        answer
    }
}

#[tokio::test]
async fn what_is_buried_meanwhile_is_not_sent_again() {
    let queue = TestQueue::create().await;
    let dead_letters = poison(&queue);
    dead_letters.create(None).await.unwrap();
    send(&dead_letters, ["one", "two", "three"]).await;
    let failing = QueueClient::builder(queue.name())
        .connection_string(queue.account.connection_string())
        .policy(Arc::new(NotMended(dead_letters.clone())))
        .build()
        .unwrap();
    let worker = worker(&failing).dead_letters(dead_letters.clone());
    let again = tokio::time::timeout(Duration::from_secs(20), worker.redrive()).await;
    assert_eq!(again.expect("an end").unwrap(), 3);
    // Those stay where they are, for the next time and to be looked at.
    assert_eq!(raw_texts(&dead_letters).await, ["again", "again", "again"]);
    // However long the worker is away.
    let a_century_ahead = DateTime::parse_iso("2126-01-01").unwrap();
    let options = PeekMessagesOptions { max_messages: Some(32), ..Default::default() };
    let waiting = queue.peek_messages(Some(options)).await.unwrap();
    assert_eq!(waiting.len(), 3);
    assert!(waiting.iter().all(|message| message.expires_at > a_century_ahead));
    dead_letters.delete(None).await.unwrap();
    queue.delete().await;
}

/// A message that no worker survives: nobody ever reports a failure.
#[tokio::test]
async fn what_kills_its_workers_is_buried_too() {
    let queue = TestQueue::create().await;
    send(&queue, ["killer"]).await;
    let mut kills = 0;
    let worker = worker(&queue).max_attempts(2).visibility_timeout(Duration::from_secs(2));
    let dead_letters = poison(&queue);
    while !dead_letters.exists(None).await.unwrap() {
        let begun = Arc::new(Notify::new());
        let (begins, running) = (begun.clone(), worker.clone());
        let task = tokio::spawn(async move {
            running
                .run(move |_| {
                    begins.notify_one();
                    std::future::pending()
                })
                .await
        });
        // It is killed in the midst of its work, or has buried the message.
        let mut is_begun = false;
        while !is_begun && !dead_letters.exists(None).await.unwrap() {
            is_begun =
                tokio::time::timeout(Duration::from_millis(200), begun.notified()).await.is_ok();
        }
        kills += usize::from(is_begun);
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    // On a busy machine a worker can lose the message and get it again before it is killed.
    assert!((1..=2).contains(&kills), "{kills}");
    // The last one may have been killed after it made the queue and before it copied the message.
    while raw_texts(&dead_letters).await.is_empty() {
        worker.drain(|_| async { Ok(()) }).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(raw_texts(&dead_letters).await, ["killer"]);
    dead_letters.delete(None).await.unwrap();
    queue.delete().await;
}

#[tokio::test]
async fn a_stop_waits_for_what_is_under_way() {
    let queue = TestQueue::create().await;
    send(&queue, ["one", "two", "three"]).await;
    let (stop, signal) = futures::channel::oneshot::channel::<()>();
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let inside = (begun.clone(), go.clone());
    let running = worker(&queue).concurrency(1).stop(StopSignal::new(signal));
    let running = tokio::spawn(async move {
        running
            .run(move |_| {
                let (begun, go) = inside.clone();
                async move {
                    begun.notify_one();
                    go.notified().await;
                    Ok(())
                }
            })
            .await
    });
    begun.notified().await;
    stop.send(()).unwrap();
    assert!(!running.is_finished());
    go.notify_one();
    let report = running.await.unwrap().unwrap();
    assert_eq!(counts(report), (1, 0, 0, 0));
    assert_eq!(received(&queue).await, ["two", "three"]);
    queue.delete().await;
}

/// Tells when messages are asked for.
#[derive(Debug)]
struct Asked(Arc<Notify>);

#[async_trait]
impl Policy for Asked {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        if request.method() == Method::Get {
            self.0.notify_one();
        }
        next[0].send(context, request, &next[1..]).await
    }
}

/// Given back, their receipt would count as an attempt, and as the only one here.
#[tokio::test]
async fn messages_that_come_with_the_stop_are_worked_on() {
    let queue = TestQueue::create().await;
    send(&queue, ["one", "two"]).await;
    let asked = Arc::new(Notify::new());
    let client = QueueClient::builder(queue.name())
        .connection_string(queue.account.connection_string())
        .policy(Arc::new(Asked(asked.clone())))
        .build()
        .unwrap();
    let mut report = worker(&client)
        .max_attempts(1)
        .stop(StopSignal::new(async move { asked.notified().await }))
        .run(|_| async { Ok(()) })
        .await
        .unwrap();
    let next = worker(&queue).max_attempts(1).drain(|_| async { Ok(()) }).await.unwrap();
    report.done += next.done;
    assert_eq!((report.done, next.dead_lettered), (2, 0));
    queue.delete().await;
}

/// Work that does not end is given up, and its message comes back; also if there is a place for no other.
#[tokio::test]
async fn a_stop_gives_up_what_takes_too_long() {
    for places in [1, 2] {
        let queue = TestQueue::create().await;
        send(&queue, ["endless"]).await;
        let begun = Arc::new(Notify::new());
        let (signal, begins) = (begun.clone(), begun.clone());
        let worker = worker(&queue)
            .concurrency(places)
            .visibility_timeout(Duration::from_secs(1))
            .stop(StopSignal::new(async move { signal.notified().await }))
            .shutdown_timeout(Duration::from_millis(100));
        let running = worker.run(move |_| {
            begins.notify_one();
            std::future::pending()
        });
        let report = tokio::time::timeout(Duration::from_secs(20), running).await;
        let given_up = (0, 0, 0, 1);
        assert_eq!(counts(report.expect("an end").unwrap()), given_up);
        while received(&queue).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        queue.delete().await;
    }
}

#[tokio::test]
async fn a_worker_without_a_queue_says_so() -> Result<()> {
    let account = crate::support::account();
    let queue = account.queues().queue_client(crate::support::fresh_name())?;
    let error = worker(&queue).run(|_| async { Ok(()) }).await.unwrap_err();
    assert!(error.is_not_found());
    let long = account.queues().queue_client("q".repeat(60))?;
    let error = worker(&long).run(|_| async { Ok(()) }).await.unwrap_err();
    assert!(error.to_string().contains("-poison"), "{error}");
    Ok(())
}

/// Put off for longer than it is kept, a message would be gone and nobody would know.
#[tokio::test]
async fn what_ends_by_itself_is_tried_again_before() {
    let queue = TestQueue::create().await;
    let time_to_live = Some(TimeToLive::For(Duration::from_secs(24)));
    let options = SendMessageOptions { time_to_live, ..Default::default() };
    queue.send_message("short", Some(options)).await.unwrap();
    let worker = worker(&queue).max_attempts(2);
    let fails = |_| async { Err(JobError::retry_after(Duration::MAX, "not today")) };
    let report = worker.drain(fails).await.unwrap();
    assert_eq!(counts(report), (0, 1, 0, 0));
    let tried_again = async {
        while worker.drain(fails).await.unwrap().dead_lettered == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let soon = Duration::from_secs(40);
    tokio::time::timeout(soon, tried_again).await.expect("it is seen again");
    let dead_letters = poison(&queue);
    assert_eq!(raw_texts(&dead_letters).await, ["short"]);
    dead_letters.delete(None).await.unwrap();
    queue.delete().await;
}

/// There is no time for a pause.
#[tokio::test]
async fn what_is_about_to_end_is_buried() {
    let queue = TestQueue::create().await;
    let time_to_live = Some(TimeToLive::For(Duration::from_secs(3)));
    let options = SendMessageOptions { time_to_live, ..Default::default() };
    queue.send_message("short", Some(options)).await.unwrap();
    let fails = |_| async { Err(JobError::retry_after(Duration::from_secs(60), "not today")) };
    let report = worker(&queue).drain(fails).await.unwrap();
    assert_eq!(counts(report), (0, 0, 1, 0));
    poison(&queue).delete(None).await.unwrap();
    queue.delete().await;
}

/// No setting is too long to be one.
#[tokio::test]
async fn a_worker_may_have_all_the_time_there_is() {
    let queue = TestQueue::create().await;
    send(&queue, ["one"]).await;
    let for_ever = Backoff { first: Duration::MAX, longest: Duration::MAX };
    let report = QueueWorker::new(queue.queue.clone())
        .visibility_timeout(Duration::MAX)
        .retry(for_ever)
        .poll(for_ever)
        .shutdown_timeout(Duration::MAX)
        .drain(|_| async { Err(std::io::Error::other("not yet"))? })
        .await
        .unwrap();
    assert_eq!(counts(report), (0, 1, 0, 0));
    queue.delete().await;
}
