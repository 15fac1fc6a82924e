//! Work that must come to its end although nobody may be waiting any more.

use super::Result;

/// Runs `work` to its end. A request is dropped when its client goes away, but the engine commits all the same:
/// what has to follow a commit must follow it then, too.
pub(crate) async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(work).await?
}
