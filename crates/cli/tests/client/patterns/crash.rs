//! A process that dies at any of its requests, for the patterns that have to survive it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{ClientOptions, Context, Request};
use futures::{StreamExt, stream};
use tavola_client::patterns::queue_worker::{JobResult, QueueWorker};
use tavola_client::queue::{Backoff, MessageHandle, QueueClient, QueueServiceClient};
use tavola_client::{ServiceClientOptions, TableServiceClient};

use crate::support::{Account, account, fresh_name};

const SHORT: Backoff =
    Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(100) };
/// Crashes that are tried at a time.
const AT_A_TIME: usize = 6;

/// Dies at a request: those before it are made, it is made or not, and those after it are not.
#[derive(Debug)]
pub(super) struct Crash {
    at: usize,
    is_sent: bool,
    requests: AtomicUsize,
}

impl Crash {
    pub(super) fn new(at: usize, is_sent: bool) -> Arc<Self> {
        Arc::new(Self { at, is_sent, requests: AtomicUsize::new(0) })
    }

    /// Whether it came to that.
    pub(super) fn has_happened(&self) -> bool {
        self.requests.load(Ordering::SeqCst) > self.at
    }
}

#[async_trait]
impl Policy for Crash {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        if number < self.at || number == self.at && self.is_sent {
            let answer = next[0].send(context, request, &next[1..]).await;
            if number < self.at {
                return answer;
            }
        }
        Err(azure_core::Error::with_message(ErrorKind::Other, "the process died"))
    }
}

/// The clients of a process, alive or about to die.
#[derive(Clone)]
pub(super) struct Process {
    pub(super) tables: TableServiceClient,
    pub(super) queues: QueueServiceClient,
}

impl Process {
    pub(super) fn new(account: &Account, crash: Option<Arc<Crash>>) -> Self {
        let per_try_policies = crash.map(|crash| crash as Arc<dyn Policy>).into_iter().collect();
        let client_options = ClientOptions { per_try_policies, ..Default::default() };
        let options = Some(ServiceClientOptions { client_options, ..Default::default() });
        let text = account.connection_string();
        Self {
            tables: TableServiceClient::from_connection_string(text, options.clone()).unwrap(),
            queues: QueueServiceClient::from_connection_string(text, options).unwrap(),
        }
    }
}

/// Lets a process die at each of its requests, before and after it is made, until it lives to its end.
pub(super) async fn at_each_request<R>(run: impl Fn(Arc<Account>, Arc<Crash>, String) -> R)
where
    R: Future<Output = ()>,
{
    let account = account();
    let mut first = 0;
    loop {
        let crashes = (first..first + AT_A_TIME).flat_map(|at| [(at, false), (at, true)]);
        let crashes: Vec<_> = crashes.map(|(at, is_sent)| Crash::new(at, is_sent)).collect();
        let runs = crashes.iter().map(|it| run(account.clone(), it.clone(), fresh_name()));
        stream::iter(runs).buffer_unordered(AT_A_TIME).collect::<()>().await;
        if !crashes.iter().all(|crash| crash.has_happened()) {
            return;
        }
        first += AT_A_TIME;
        assert!(first < 100, "the process never ends");
    }
}

/// A worker that neither waits nor gives up.
pub(super) fn worker(queue: &QueueClient) -> QueueWorker {
    QueueWorker::new(queue.clone())
        .visibility_timeout(Duration::from_secs(1))
        .max_attempts(1000)
        .retry(Backoff { first: Duration::ZERO, longest: Duration::ZERO })
        .poll(SHORT)
}

/// A worker that nothing on a busy machine takes a message from, so that its tries can be counted.
pub(super) fn counting_worker(queue: &QueueClient) -> QueueWorker {
    worker(queue).visibility_timeout(Duration::from_secs(3600))
}

/// Works until there is no message, hidden or not.
pub(super) async fn settle<R>(
    queue: &QueueClient,
    job: impl Fn(MessageHandle) -> R + Clone + Send + Sync + 'static,
) where
    R: Future<Output = JobResult> + Send + 'static,
{
    loop {
        worker(queue).drain(job.clone()).await.unwrap();
        if queue.get_properties(None).await.unwrap().approximate_message_count == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
