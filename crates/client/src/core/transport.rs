//! HTTP for the client: hyper with rustls, the stack that the server uses too.
//!
//! `azure_core` brings a transport on reqwest, whose TLS needs a C library to build. This one needs nothing but the
//! linker, and costs less for each request. Any other [`HttpClient`] can be given in the client's options instead.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use azure_core::http::request::Body;
use azure_core::http::{AsyncRawResponse, HttpClient, Request};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tavola_wire::header_text;

use super::transport_error::TransportError;

/// How long a connection is kept for the next request. Tavola closes one after 60 seconds without a request, and others
/// have like limits: a connection that the pool keeps longer than the server does is found closed by the request that uses
/// it, which then may have been lost.
const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(45);

/// How to make a transport.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use std::time::Duration;
/// use tavola_client::{TransportOptions, new_transport};
///
/// let options =
///     TransportOptions { request_timeout: Duration::from_secs(5), ..Default::default() };
/// let transport = new_transport(Some(options))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TransportOptions {
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long one attempt may take, from the request's first byte to the answer's last.
    pub request_timeout: Duration,
    /// Certificates to trust beside those of the system, in PEM or DER form; for a server with a certificate of its own.
    pub root_certificates: Vec<Vec<u8>>,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            // Long enough for a lost packet or two, short enough to wait for.
            connect_timeout: Duration::from_secs(5),
            // The service gives up after 30 seconds.
            request_timeout: Duration::from_secs(40),
            root_certificates: Vec::new(),
        }
    }
}

/// Makes a transport with a pool of connections of its own.
///
/// ```no_run
/// # fn main() -> azure_core::Result<()> {
/// use azure_core::http::{ClientOptions, Transport};
/// use tavola_client::{TableClientOptions, TransportOptions, new_transport};
///
/// let transport = new_transport(Some(TransportOptions {
///     root_certificates: vec![std::fs::read("cert.pem")?],
///     ..Default::default()
/// }))?;
/// let options = TableClientOptions {
///     client_options: ClientOptions {
///         transport: Some(Transport::new(transport)),
///         ..Default::default()
///     },
///     ..Default::default()
/// };
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A certificate that cannot be read.
pub fn new_transport(options: Option<TransportOptions>) -> crate::Result<Arc<dyn HttpClient>> {
    let options = options.unwrap_or_default();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(options.connect_timeout));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls_config(&options.root_certificates)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION_MAX)
        .build(connector);
    Ok(Arc::new(HyperTransport { client, request_timeout: options.request_timeout }))
}

fn tls_config(certificates: &[Vec<u8>]) -> crate::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    // A machine without certificates can still talk plain HTTP; a TLS connection then says what is missing.
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    for certificate in certificates {
        for certificate in read_certificate(certificate)? {
            roots.add(certificate).map_err(unreadable)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// The certificates in a file: all of a PEM file, or the one that a DER file is.
fn read_certificate(bytes: &[u8]) -> crate::Result<Vec<CertificateDer<'static>>> {
    if !bytes.trim_ascii_start().starts_with(b"-----BEGIN") {
        return Ok(vec![bytes.to_vec().into()]);
    }
    CertificateDer::pem_slice_iter(bytes).collect::<Result<_, _>>().map_err(unreadable)
}

fn unreadable(error: impl StdError + Send + Sync + 'static) -> azure_core::Error {
    azure_core::Error::with_error(
        ErrorKind::DataConversion,
        error,
        "a root certificate cannot be read",
    )
}

#[derive(Debug)]
struct HyperTransport {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    request_timeout: Duration,
}

#[async_trait]
impl HttpClient for HyperTransport {
    async fn execute_request(&self, request: &Request) -> crate::Result<AsyncRawResponse> {
        let url = request.url();
        let request = to_hyper(request)?;
        let exchange = async {
            let response =
                self.client.request(request).await.map_err(|error| match error.is_connect() {
                    true => TransportError::connect(url, error),
                    false => TransportError::broken(url, error),
                })?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| TransportError::broken(url, error))?;
            let (status, headers) = (head.status.as_u16().into(), to_headers(&head.headers));
            Ok(AsyncRawResponse::from_bytes(status, headers, body.to_bytes()))
        };
        match tokio::time::timeout(self.request_timeout, exchange).await {
            Ok(result) => result,
            Err(_) => Err(TransportError::timeout(url, self.request_timeout).into()),
        }
    }
}

fn to_hyper(request: &Request) -> crate::Result<http::Request<Full<Bytes>>> {
    let Body::Bytes(body) = request.body() else {
        return Err(super::error::refused("bodies that are streams are not sent"));
    };
    let mut builder =
        http::Request::builder().method(request.method().as_str()).uri(request.url().as_str());
    for (name, value) in request.headers().iter() {
        builder = builder.header(name.as_str(), value.as_str());
    }
    builder.body(Full::new(body.clone())).map_err(|error| {
        azure_core::Error::with_error(ErrorKind::DataConversion, error, "the request is malformed")
    })
}

fn to_headers(map: &http::HeaderMap) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in map {
        let name = HeaderName::from(name.as_str().to_owned());
        let value = header_text(value.as_bytes()).into_owned();
        headers.insert(name, HeaderValue::from(value));
    }
    headers
}
