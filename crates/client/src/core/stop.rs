//! The signal that ends long work before its time.

use std::fmt;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

/// Ends long work before its time: nothing more is begun, and what is under way is waited for. Those who do not want to
/// wait drop the future of the work instead.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::bulk::{BulkOptions, StopSignal};
///
/// // Any future will do; `tokio::signal::ctrl_c` in a program at a terminal.
/// let an_hour = tokio::time::sleep(Duration::from_secs(3600));
/// let options = BulkOptions { stop: Some(StopSignal::new(an_hour)), ..Default::default() };
/// let report = table.bulk(Vec::new(), Some(options)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StopSignal(Shared<BoxFuture<'static, ()>>);

impl StopSignal {
    /// A signal that is given when the future is ready.
    pub fn new(signal: impl Future<Output: Send> + Send + 'static) -> Self {
        Self(signal.map(|_| ()).boxed().shared())
    }

    /// A signal that is never given.
    pub(crate) fn never() -> Self {
        Self::new(std::future::pending::<()>())
    }

    /// Whether it was given.
    pub(crate) fn is_given(&mut self) -> bool {
        self.wait().now_or_never().is_some()
    }

    /// Waits until it is given.
    pub(crate) async fn wait(&self) {
        self.0.clone().await;
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_unpin(context)
    }
}

impl fmt::Debug for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopSignal")
    }
}
