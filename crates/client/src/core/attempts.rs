//! What happened to the earlier attempts of a request, which its last answer does not tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};

use super::error::is_transient_status;

/// Remembers whether an attempt reached, or may have reached, the service without a final answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(Arc<AtomicBool>);

impl Attempts {
    pub(crate) fn maybe_applied(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn note_lost_answer(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Watches every attempt; sits between the retry policy and the transport.
#[derive(Debug)]
pub(crate) struct AttemptsPolicy;

#[async_trait]
impl Policy for AttemptsPolicy {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let result = next[0].send(context, request, &next[1..]).await;
        let is_lost = match &result {
            Ok(response) => is_transient_status(response.status()),
            // A connection that was never made carried nothing.
            Err(error) => matches!(error.kind(), ErrorKind::Io),
        };
        if is_lost && let Some(attempts) = context.value::<Attempts>() {
            attempts.note_lost_answer();
        }
        result
    }
}
