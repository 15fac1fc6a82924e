//! Work that goes on when nobody waits for it any more.

use azure_core::error::ErrorKind;
use tracing::Instrument as _;

use super::error::Result;

/// Does work on a task of its own, which goes on when nobody waits for it any more: it ends by itself, or with the process.
///
/// # Errors
/// A runtime that is shut down.
pub(crate) async fn uncancelled<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    let ended = tokio::spawn(work.in_current_span()).await;
    ended.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => azure_core::Error::new(ErrorKind::Other, error),
    })
}
