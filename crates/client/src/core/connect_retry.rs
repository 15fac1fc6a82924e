//! Connections that cannot be made: tried again a few times in quick succession, and then no more.
//!
//! The retries of `azure_core` are for what passes: a busy server, a connection that broke. They wait up to a minute, which
//! is too long to learn that a port is wrong or a certificate unknown. So this policy stands inside of them, tries what
//! may pass in a moment, and marks what is left as final.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};

use super::error::find;
use super::transport_error::{Failure, TransportError};

/// Tries after the first, unless told otherwise: enough for a server that is being restarted by its supervisor.
pub(crate) const CONNECT_RETRIES: u32 = 2;
/// The pause before the first of them; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The policy; the first inside of the retry policy.
#[derive(Debug)]
pub(crate) struct ConnectRetryPolicy {
    pub retries: u32,
}

/// Wraps an error that the retry policy must not try again; taken off again by the pipeline.
#[derive(Debug)]
pub(crate) struct Final(azure_core::Error);

impl fmt::Display for Final {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Final {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

#[async_trait]
impl Policy for ConnectRetryPolicy {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let (mut retries_left, mut pause) = (self.retries, FIRST_PAUSE);
        loop {
            let error = match next[0].send(context, request, &next[1..]).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let failure = find::<TransportError>(&error).map(TransportError::failure);
            match failure {
                // Another transport's errors, and what breaks later, are the retry policy's to judge.
                None | Some(Failure::NoAnswer) => return Err(error),
                Some(Failure::NoConnection) if retries_left > 0 => {
                    tokio::time::sleep(pause).await;
                    (retries_left, pause) = (retries_left - 1, (pause * 2).min(PAUSE_MAX));
                }
                Some(_) => return Err(azure_core::Error::new(ErrorKind::Other, Final(error))),
            }
        }
    }
}
