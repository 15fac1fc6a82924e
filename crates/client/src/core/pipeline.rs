//! What the clients share: the pipeline, the address, and the way from a request to an answer.

use std::sync::Arc;

use azure_core::http::headers::{ACCEPT, CONTENT_TYPE, VERSION};
use azure_core::http::policies::Policy;
use azure_core::http::policies::auth::BearerTokenAuthorizationPolicy;
use azure_core::http::{
    ClientMethodOptions, ClientOptions, Method, Pipeline, PipelineSendOptions, RawResponse,
    Request, Transport, Url,
};
use tavola_wire::table::names::TableName;

use super::attempts::{Attempts, AttemptsPolicy};
use super::connection_string::{ConnectionString, parse_url};
use super::credential::{
    Credential, SasCredential, SasPolicy, SharedKeyCredential, SharedKeyPolicy,
};
use super::error::{Interrupted, Result, TableError, conversion};
use super::transport::new_transport;
use crate::table::TableClientOptions;

/// The first version of the service that takes tokens of Entra.
const SERVICE_VERSION: &str = "2020-12-06";
const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";
const JSON: &str = "application/json;odata=minimalmetadata";
const XML: &str = "application/xml";

/// The inside of every client.
#[derive(Debug)]
pub(crate) struct Core {
    pipeline: Pipeline,
    endpoint: Url,
    secondary: Option<Url>,
    shared_key: Option<SharedKeyCredential>,
}

/// What a request says and expects.
pub(crate) struct Call<'a> {
    pub method: Method,
    /// The path below the endpoint, percent-encoded.
    pub resource: &'a str,
    /// Query names and values, not yet encoded.
    pub query: &'a [(&'a str, &'a str)],
    pub headers: &'a [(&'static str, &'a str)],
    pub body: Vec<u8>,
    pub format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Xml,
}

impl Core {
    pub(crate) fn new(
        endpoint: &str,
        credential: Credential,
        options: Option<TableClientOptions>,
    ) -> Result<Self> {
        Self::with_secondary(parse_url(endpoint)?, None, credential, options)
    }

    pub(crate) fn from_connection_string(
        text: &str,
        options: Option<TableClientOptions>,
    ) -> Result<Self> {
        let ConnectionString { endpoint, secondary_endpoint, credential } =
            ConnectionString::parse(text)?;
        Self::with_secondary(endpoint, secondary_endpoint, credential, options)
    }

    /// Takes the signature out of a URL, as portals hand it out.
    pub(crate) fn from_sas_url(url: &str, options: Option<TableClientOptions>) -> Result<Self> {
        let mut endpoint = parse_url(url)?;
        let token = endpoint.query().map(SasCredential::new);
        let token = token.ok_or_else(|| conversion("the URL has no shared access signature"))?;
        endpoint.set_query(None);
        Self::with_secondary(endpoint, None, token.into(), options)
    }

    fn with_secondary(
        endpoint: Url,
        secondary: Option<Url>,
        credential: Credential,
        options: Option<TableClientOptions>,
    ) -> Result<Self> {
        let TableClientOptions { mut client_options, token_scope } = options.unwrap_or_default();
        if client_options.transport.is_none() {
            client_options.transport = Some(Transport::new(new_transport(None)?));
        }
        let shared_key = match &credential {
            Credential::SharedKey(credential) => Some(credential.clone()),
            _ => None,
        };
        let pipeline = pipeline(credential, client_options, token_scope);
        Ok(Self { pipeline, endpoint, secondary, shared_key })
    }

    pub(crate) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    pub(crate) fn shared_key(&self) -> Option<&SharedKeyCredential> {
        self.shared_key.as_ref()
    }

    /// The absolute URL of a resource below the endpoint.
    pub(crate) fn url(&self, resource: &str) -> String {
        format!("{}/{resource}", self.endpoint.as_str().trim_end_matches('/'))
    }

    /// Sends a request; an answer that is no success is an error.
    pub(crate) async fn send(
        &self,
        call: Call<'_>,
        options: &ClientMethodOptions<'static>,
    ) -> Result<RawResponse> {
        Ok(self.send_watched(call, options).await?.0)
    }

    /// Like [`Core::send`]; tells also whether an earlier attempt may have been applied.
    pub(crate) async fn send_watched(
        &self,
        call: Call<'_>,
        options: &ClientMethodOptions<'static>,
    ) -> Result<(RawResponse, bool)> {
        let url = request_url(&self.endpoint, &call);
        self.send_to(url, call, options).await
    }

    /// Sends a request to the readable copy, whose address is derived from the primary's unless it was given.
    pub(crate) async fn send_to_secondary(
        &self,
        call: Call<'_>,
        options: &ClientMethodOptions<'static>,
    ) -> Result<RawResponse> {
        let endpoint = match &self.secondary {
            Some(endpoint) => endpoint.clone(),
            None => secondary_of(&self.endpoint)?,
        };
        let url = request_url(&endpoint, &call);
        Ok(self.send_to(url, call, options).await?.0)
    }

    async fn send_to(
        &self,
        url: Url,
        call: Call<'_>,
        options: &ClientMethodOptions<'static>,
    ) -> Result<(RawResponse, bool)> {
        let mut request = Request::new(url, call.method);
        request.insert_header(VERSION, SERVICE_VERSION);
        match call.format {
            Format::Json => {
                request.insert_header(ACCEPT, JSON);
                request.insert_header("dataserviceversion", "3.0");
                request.insert_header("maxdataserviceversion", "3.0");
            }
            Format::Xml => request.insert_header(ACCEPT, XML),
        }
        if !call.body.is_empty() {
            let content_type = if call.format == Format::Json { "application/json" } else { XML };
            request.insert_header(CONTENT_TYPE, content_type);
            request.set_body(call.body);
        }
        for (name, value) in call.headers {
            request.insert_header(*name, (*value).to_owned());
        }
        // Bulk work brings one that outlives the call, because it sends the rest of a transaction again.
        let attempts = options.context.value::<Attempts>().cloned().unwrap_or_default();
        let context = options.context.clone().with_value(attempts.clone());
        let unchecked = PipelineSendOptions { skip_checks: true, ..Default::default() };
        let response = self
            .pipeline
            .send(&context, &mut request, Some(unchecked))
            .await
            .map_err(|error| Interrupted::wrap(error, attempts.maybe_applied()))?;
        if !response.status().is_success() {
            return Err(TableError::from_response(&response, attempts.maybe_applied()).into());
        }
        Ok((response, attempts.maybe_applied()))
    }
}

fn pipeline(credential: Credential, options: ClientOptions, scope: Option<String>) -> Pipeline {
    let mut per_call: Vec<Arc<dyn Policy>> = Vec::new();
    let mut per_try: Vec<Arc<dyn Policy>> = vec![Arc::new(AttemptsPolicy)];
    match credential {
        Credential::SharedKey(credential) => per_try.push(Arc::new(SharedKeyPolicy(credential))),
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
            percent_encode(value, &mut query);
        }
        url.set_query(Some(&query));
    }
    url
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

/// Encodes everything but the unreserved characters, so that no part of the way reads it otherwise.
pub(crate) fn percent_encode(value: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Checks a table's name before it goes into a URL.
pub(crate) fn check_table_name(name: &str) -> Result<()> {
    TableName::parse_addressed(name)
        .map(|_| ())
        .map_err(|error| conversion(format!("{} name={name}", error.message())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_keep_what_was_encoded_and_encode_the_rest() {
        let endpoint = parse_url("http://127.0.0.1:10002/devstoreaccount1/").unwrap();
        let call = Call {
            method: Method::Get,
            resource: "t(PartitionKey='a%2Fb''c',RowKey='%E2%82%AC')",
            query: &[("$filter", "A eq 'x&y + z'"), ("comp", "acl")],
            headers: &[],
            body: Vec::new(),
            format: Format::Json,
        };
        assert_eq!(
            request_url(&endpoint, &call).as_str(),
            "http://127.0.0.1:10002/devstoreaccount1/t(PartitionKey='a%2Fb''c',RowKey='%E2%82%AC')?$filter=A%20eq%20%27x%26y%20%2B%20z%27&comp=acl"
        );
    }

    #[test]
    fn the_secondary_is_beside_the_account() {
        for (endpoint, secondary) in [
            (
                "https://acct.table.core.windows.net/",
                "https://acct-secondary.table.core.windows.net/",
            ),
            ("http://127.0.0.1:10002/acct", "http://127.0.0.1:10002/acct-secondary"),
        ] {
            assert_eq!(secondary_of(&parse_url(endpoint).unwrap()).unwrap().as_str(), secondary);
        }
        assert!(secondary_of(&parse_url("http://localhost/").unwrap()).is_err());
    }
}
