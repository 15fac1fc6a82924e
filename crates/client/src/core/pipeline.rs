//! The way of a request: its address, the policies that it passes, the time that it may take, and its answer.

use std::sync::Arc;
use std::time::Duration;

use azure_core::http::headers::{ACCEPT, CLIENT_REQUEST_ID, CONTENT_TYPE, VERSION};
use azure_core::http::policies::Policy;
use azure_core::http::policies::auth::BearerTokenAuthorizationPolicy;
use azure_core::http::{
    ClientMethodOptions, ClientOptions, Method, Pipeline, PipelineSendOptions, Request, Transport,
    Url,
};
use tavola_wire::uri::percent::push_encoded;
use tracing::{Instrument, Span, field};

use super::attempts::{Attempts, AttemptsPolicy};
use super::connect_retry::{CONNECT_RETRIES, ConnectRetryPolicy};
use super::connection_string::{ConnectionString, parse_url};
use super::credential::{Credential, SasCredential, SasPolicy, SharedKeyCredential};
use super::error::{ErrorExt, Interrupted, Result, ServiceError, conversion, refused};
use super::options::{CallOptions, ServiceClientOptions};
use super::response::Answer;
use super::service::ServiceSpec;
use super::shared_key_policy::SharedKeyPolicy;
use super::transport::new_transport;
use super::transport_error::TransportError;

const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";
/// How long a call may take with all its retries, unless told otherwise: a busy server gets two full attempts.
const DEADLINE: Duration = Duration::from_secs(100);

/// The inside of every client.
#[derive(Debug)]
pub(crate) struct ServicePipeline {
    service: &'static ServiceSpec,
    pipeline: Pipeline,
    endpoint: Url,
    secondary: Option<Url>,
    shared_key: Option<SharedKeyCredential>,
    deadline: Duration,
}

/// What a request says and expects.
pub(crate) struct Call<'a> {
    /// What is done, for spans: the name of the client's method.
    pub operation: &'static str,
    pub method: Method,
    /// The path below the endpoint, percent-encoded.
    pub resource: &'a str,
    /// Query names and values, not yet encoded.
    pub query: &'a [(&'a str, &'a str)],
    pub headers: &'a [(&'a str, &'a str)],
    pub body: Vec<u8>,
    pub format: Format,
}

impl<'a> Call<'a> {
    /// A call without a body, in XML.
    pub(crate) fn new(operation: &'static str, method: Method, resource: &'a str) -> Self {
        let (query, headers, body) = (&[], &[], Vec::new());
        Self { operation, method, resource, query, headers, body, format: Format::XML }
    }

    /// A call that is about the service as a whole, the same for each.
    pub(crate) fn of_service(
        operation: &'static str,
        method: Method,
        query: &'static ServiceQuery,
    ) -> Self {
        Self { query, ..Self::new(operation, method, "") }
    }
}

/// What is asked of a service as a whole.
type ServiceQuery = [(&'static str, &'static str); 2];
pub(crate) const PROPERTIES: ServiceQuery = [("restype", "service"), ("comp", "properties")];
pub(crate) const STATS: ServiceQuery = [("restype", "service"), ("comp", "stats")];

/// The language of bodies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub accept: &'static str,
    pub content_type: &'static str,
    /// Headers that go with every request in this language.
    pub headers: &'static [(&'static str, &'static str)],
}

impl Format {
    /// The language of settings and policies, the same for every service.
    pub(crate) const XML: Self =
        Self { accept: "application/xml", content_type: "application/xml", headers: &[] };
}

impl ServicePipeline {
    pub(crate) fn new(
        service: &'static ServiceSpec,
        endpoint: &str,
        credential: Credential,
        options: Option<ServiceClientOptions>,
    ) -> Result<Self> {
        Self::with_secondary(service, parse_url(endpoint)?, None, credential, options)
    }

    pub(crate) fn from_connection_string(
        service: &'static ServiceSpec,
        text: &str,
        options: Option<ServiceClientOptions>,
    ) -> Result<Self> {
        let ConnectionString { endpoint, secondary_endpoint, credential } =
            ConnectionString::parse(service, text)?;
        Self::with_secondary(service, endpoint, secondary_endpoint, credential, options)
    }

    /// Takes the signature out of a URL, as portals hand it out.
    pub(crate) fn from_sas_url(
        service: &'static ServiceSpec,
        url: &str,
        options: Option<ServiceClientOptions>,
    ) -> Result<Self> {
        let mut endpoint = parse_url(url)?;
        let token = endpoint.query().map(SasCredential::new);
        let token = token.ok_or_else(|| conversion("the URL has no shared access signature"))?;
        endpoint.set_query(None);
        Self::with_secondary(service, endpoint, None, token.into(), options)
    }

    fn with_secondary(
        service: &'static ServiceSpec,
        endpoint: Url,
        secondary: Option<Url>,
        credential: Credential,
        options: Option<ServiceClientOptions>,
    ) -> Result<Self> {
        let ServiceClientOptions { mut client_options, token_scope, deadline, connect_retries } =
            options.unwrap_or_default();
        if client_options.transport.is_none() {
            client_options.transport = Some(Transport::new(new_transport(None)?));
        }
        check_application_id(client_options.user_agent.application_id.as_deref())?;
        let shared_key = match &credential {
            Credential::SharedKey(credential) => Some(credential.clone()),
            _ => None,
        };
        let connect = ConnectRetryPolicy { retries: connect_retries.unwrap_or(CONNECT_RETRIES) };
        let pipeline = pipeline(service, credential, client_options, token_scope, connect);
        let deadline = deadline.unwrap_or(DEADLINE);
        Ok(Self { service, pipeline, endpoint, secondary, shared_key, deadline })
    }

    pub(crate) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// The account's key, for making signatures.
    pub(crate) fn signing_key(&self) -> Result<&SharedKeyCredential> {
        let key = self.shared_key.as_ref();
        key.ok_or_else(|| refused("only a client with the account's key can make signatures"))
    }

    /// The name of the account, as the endpoint has it: the last part of the path, or the first of the host.
    pub(crate) fn account(&self) -> &str {
        account_of(&self.endpoint)
    }

    /// The absolute URL of a resource below the endpoint.
    pub(crate) fn url(&self, resource: &str) -> String {
        format!("{}/{resource}", self.endpoint.as_str().trim_end_matches('/'))
    }

    /// Sends a request; an answer that is no success is an error.
    pub(crate) async fn send(&self, call: Call<'_>, options: &CallOptions) -> Result<Answer> {
        self.send_to(&self.endpoint, call, options).await
    }

    /// Sends a request to the readable copy, whose address is derived from the primary's unless it was given.
    pub(crate) async fn send_to_secondary(
        &self,
        call: Call<'_>,
        options: &CallOptions,
    ) -> Result<Answer> {
        match &self.secondary {
            Some(endpoint) => self.send_to(endpoint, call, options).await,
            None => self.send_to(&secondary_of(&self.endpoint)?, call, options).await,
        }
    }

    async fn send_to(
        &self,
        endpoint: &Url,
        call: Call<'_>,
        options: &CallOptions,
    ) -> Result<Answer> {
        let span = tracing::info_span!(
            "storage call",
            service = self.service.name,
            operation = call.operation,
            server.address = endpoint.host_str(),
            server.port = endpoint.port_or_known_default(),
            http.response.status_code = field::Empty,
            az.client_request_id = field::Empty,
            az.service_request_id = field::Empty,
            error = field::Empty,
        );
        let result = self.exchange(endpoint, call, options).instrument(span.clone()).await;
        record(&span, &result);
        result
    }

    async fn exchange(
        &self,
        endpoint: &Url,
        call: Call<'_>,
        options: &CallOptions,
    ) -> Result<Answer> {
        let mut request = self.request(endpoint, call);
        let ClientMethodOptions { context } = &options.method_options;
        // Bulk work brings one that outlives the call, because it sends the rest of a transaction again.
        let attempts = context.value::<Attempts>().cloned().unwrap_or_default();
        let context = context.clone().with_value(attempts.clone());
        let unchecked = PipelineSendOptions { skip_checks: true, ..Default::default() };
        let deadline = options.deadline.unwrap_or(self.deadline);
        let sent = self.pipeline.send(&context, &mut request, Some(unchecked));
        let response = match tokio::time::timeout(deadline, sent).await {
            Ok(result) => {
                result.map_err(|error| Interrupted::wrap(error, attempts.maybe_applied()))?
            }
            Err(_) => {
                let maybe_applied = attempts.maybe_applied() || attempts.is_under_way();
                let error = TransportError::timeout(endpoint, deadline);
                return Err(Interrupted::wrap(error.into(), maybe_applied));
            }
        };
        let id = request.headers().get_optional_str(&CLIENT_REQUEST_ID).map(str::to_owned);
        let answer = Answer::new(response, id, attempts.maybe_applied());
        match answer.info.status().is_success() {
            true => Ok(answer),
            false => Err(ServiceError::from_answer(self.service, &answer).into()),
        }
    }

    fn request(&self, endpoint: &Url, call: Call<'_>) -> Request {
        let mut request = Request::new(request_url(endpoint, &call), call.method);
        request.insert_header(VERSION, self.service.api_version);
        request.insert_header(ACCEPT, call.format.accept);
        for (name, value) in call.format.headers {
            request.insert_header(*name, *value);
        }
        if !call.body.is_empty() {
            request.insert_header(CONTENT_TYPE, call.format.content_type);
            request.set_body(call.body);
        }
        for (name, value) in call.headers {
            request.insert_header((*name).to_owned(), (*value).to_owned());
        }
        request
    }
}

/// Says in the span how the call ended.
fn record(span: &Span, result: &Result<Answer>) {
    let (status, ours, theirs) = match result {
        Ok(Answer { info, .. }) => (info.status(), info.client_request_id(), info.request_id()),
        Err(error) => {
            span.record("error", field::display(error));
            let Some(error) = error.service_error() else { return };
            (error.status(), error.client_request_id(), error.request_id())
        }
    };
    span.record("http.response.status_code", u16::from(status));
    span.record("az.client_request_id", ours);
    span.record("az.service_request_id", theirs);
}

/// The pipeline of `azure_core` panics about an application id that it does not take.
fn check_application_id(id: Option<&str>) -> Result<()> {
    const LENGTH_MAX: usize = 24;
    let is_token = |id: &str| {
        id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    match id {
        Some(id) if id.len() > LENGTH_MAX || !is_token(id) => Err(refused(format!(
            "the user agent is one word of at most {LENGTH_MAX} characters, such as my-app-1.0: user_agent={id}"
        ))),
        _ => Ok(()),
    }
}

fn pipeline(
    service: &'static ServiceSpec,
    credential: Credential,
    options: ClientOptions,
    scope: Option<String>,
    connect: ConnectRetryPolicy,
) -> Pipeline {
    let mut per_call: Vec<Arc<dyn Policy>> = Vec::new();
    // ORDER: a connection is tried again inside of the retries and outside of what watches each attempt.
    let mut per_try: Vec<Arc<dyn Policy>> = vec![Arc::new(connect), Arc::new(AttemptsPolicy)];
    match credential {
        Credential::SharedKey(credential) => {
            per_try.push(Arc::new(SharedKeyPolicy { credential, service }));
        }
        Credential::Sas(credential) => per_call.push(Arc::new(SasPolicy(credential))),
        Credential::Token(credential) => {
            let scope = scope.unwrap_or_else(|| STORAGE_SCOPE.to_owned());
            per_try.push(Arc::new(BearerTokenAuthorizationPolicy::new(credential, [scope])));
        }
    }
    let (name, version) = (option_env!("CARGO_PKG_NAME"), option_env!("CARGO_PKG_VERSION"));
    Pipeline::new(name, version, options, per_call, per_try, None)
}

fn request_url(endpoint: &Url, call: &Call<'_>) -> Url {
    let mut url = endpoint.clone();
    let path = format!("{}/{}", endpoint.path().trim_end_matches('/'), call.resource);
    url.set_path(&path);
    if !call.query.is_empty() {
        let mut query = String::new();
        for (name, value) in call.query {
            if !query.is_empty() {
                query.push('&');
            }
            query.push_str(name);
            query.push('=');
            push_encoded(value, &mut query);
        }
        url.set_query(Some(&query));
    }
    url
}

fn account_of(endpoint: &Url) -> &str {
    match endpoint.path().trim_matches('/') {
        "" => {
            let host = endpoint.host_str().unwrap_or_default();
            host.split_once('.').map_or(host, |(account, _)| account)
        }
        path => path.rsplit_once('/').map_or(path, |(_, account)| account),
    }
}

/// The address of the readable copy: `-secondary` after the account, in the path or in the host.
fn secondary_of(endpoint: &Url) -> Result<Url> {
    let mut url = endpoint.clone();
    match endpoint.path().trim_end_matches('/') {
        "" => {
            let host = endpoint.host_str().unwrap_or_default();
            let (account, rest) = host
                .split_once('.')
                .ok_or_else(|| conversion("the endpoint has no account to append to"))?;
            url.set_host(Some(&format!("{account}-secondary.{rest}")))?;
        }
        path => url.set_path(&format!("{path}-secondary")),
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_keep_what_was_encoded_and_encode_the_rest() {
        let endpoint = parse_url("http://127.0.0.1:10002/devstoreaccount1/").unwrap();
        let resource = "t(PartitionKey='a%2Fb''c',RowKey='%E2%82%AC')";
        let query = &[("$filter", "A eq 'x&y + z'"), ("comp", "acl")];
        let call = Call { query, ..Call::new("test", Method::Get, resource) };
        assert_eq!(
            request_url(&endpoint, &call).as_str(),
            "http://127.0.0.1:10002/devstoreaccount1/t(PartitionKey='a%2Fb''c',RowKey='%E2%82%AC')?$filter=A%20eq%20%27x%26y%20%2B%20z%27&comp=acl"
        );
    }

    #[test]
    fn the_secondary_is_beside_the_account() {
        for (endpoint, secondary) in [
            ("https://acct.any.core.windows.net/", "https://acct-secondary.any.core.windows.net/"),
            ("http://127.0.0.1:10002/acct", "http://127.0.0.1:10002/acct-secondary"),
        ] {
            assert_eq!(secondary_of(&parse_url(endpoint).unwrap()).unwrap().as_str(), secondary);
        }
        assert!(secondary_of(&parse_url("http://localhost/").unwrap()).is_err());
    }

    /// One account has several addresses.
    #[test]
    fn the_account_is_in_the_path_or_in_the_host() {
        for endpoint in [
            "https://acct.table.core.windows.net/",
            "http://acct.table.localhost:10002",
            "http://127.0.0.1:10002/acct",
            "http://localhost:10002/acct/",
        ] {
            assert_eq!(account_of(&parse_url(endpoint).unwrap()), "acct", "{endpoint}");
        }
    }

    #[test]
    fn an_application_id_that_cannot_be_is_an_error_and_no_panic() {
        assert!(check_application_id(Some("my-app-1.0")).is_ok());
        for id in ["my app", "x/1", &"x".repeat(25)] {
            assert!(check_application_id(Some(id)).is_err(), "{id}");
        }
    }
}
