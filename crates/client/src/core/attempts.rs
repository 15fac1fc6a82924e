//! What happened to the earlier attempts of a request, which its last answer does not tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request, StatusCode};

use super::error::is_transient_status;

/// Remembers whether an attempt reached, or may have reached, the service without a final answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    is_answer_lost: AtomicBool,
    is_under_way: AtomicBool,
    throttled: AtomicU32,
}

impl Attempts {
    pub(crate) fn maybe_applied(&self) -> bool {
        self.0.is_answer_lost.load(Ordering::Relaxed)
    }

    /// Tells whether an attempt was sent and has no answer yet.
    pub(crate) fn is_under_way(&self) -> bool {
        self.0.is_under_way.load(Ordering::Relaxed)
    }

    /// How often the service said that it is too busy.
    pub(crate) fn throttled(&self) -> u32 {
        self.0.throttled.load(Ordering::Relaxed)
    }

    fn note(&self, result: &PolicyResult) {
        self.0.is_under_way.store(false, Ordering::Relaxed);
        let is_lost = match result {
            Ok(response) => is_transient_status(response.status()),
            // A connection that was never made carried nothing.
            Err(error) => matches!(error.kind(), ErrorKind::Io),
        };
        if is_lost {
            self.0.is_answer_lost.store(true, Ordering::Relaxed);
        }
        let busy = [StatusCode::ServiceUnavailable, StatusCode::TooManyRequests];
        if result.as_ref().is_ok_and(|response| busy.contains(&response.status())) {
            self.0.throttled.fetch_add(1, Ordering::Relaxed);
        }
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
        let attempts = context.value::<Attempts>();
        if let Some(attempts) = attempts {
            attempts.0.is_under_way.store(true, Ordering::Relaxed);
        }
        let result = next[0].send(context, request, &next[1..]).await;
        if let Some(attempts) = attempts {
            attempts.note(&result);
        }
        result
    }
}
