//! The step of a request's way that signs it with the account's key.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::headers::{AUTHORIZATION, MS_DATE};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};

use super::clock;
use super::credential::SharedKeyCredential;
use super::service::ServiceSpec;

/// Signs every attempt with the account's key, each with a date of its own, in the form of the service.
#[derive(Debug)]
pub(crate) struct SharedKeyPolicy {
    pub credential: SharedKeyCredential,
    pub service: &'static ServiceSpec,
}

#[async_trait]
impl Policy for SharedKeyPolicy {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let date = clock::http_date();
        let authorization = (self.service.sign)(request, &date, &self.credential)?;
        request.insert_header(MS_DATE, date);
        request.insert_header(AUTHORIZATION, authorization);
        next[0].send(context, request, &next[1..]).await
    }
}
