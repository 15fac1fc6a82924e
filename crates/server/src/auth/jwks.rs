//! The signing keys of a token issuer (JWKS), from a file or from its URL.

use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use jsonwebtoken::jwk::JwkSet;

use crate::config::KeySource;

/// A key set has a few kilobytes.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    #[error("cannot read {file}")]
    Read { file: String, source: std::io::Error },
    #[error("{url} is not the URL of a key set")]
    Url { url: String },
    #[error("cannot fetch {url}: {reason}")]
    Fetch { url: String, reason: String },
    #[error("the document is not a key set")]
    Parse(#[from] serde_json::Error),
}

pub(crate) async fn load(source: &KeySource) -> Result<JwkSet, JwksError> {
    let document = match source {
        KeySource::File(path) => tokio::fs::read(path)
            .await
            .map_err(|source| JwksError::Read { file: path.display().to_string(), source })?
            .into(),
        KeySource::Url(url) => fetch(url).await?,
    };
    Ok(serde_json::from_slice(&document)?)
}

async fn fetch(url: &str) -> Result<Bytes, JwksError> {
    let failed = |reason: String| JwksError::Fetch { url: url.to_owned(), reason };
    let uri: Uri = url.parse().map_err(|_| JwksError::Url { url: url.to_owned() })?;
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
        .map_err(|error| failed(error.to_string()))?
        .https_or_http()
        .enable_http1()
        .build();
    let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
    let exchange = async {
        let response = client.get(uri).await.map_err(|error| failed(error.to_string()))?;
        if !response.status().is_success() {
            return Err(failed(format!("status {}", response.status())));
        }
        let body = Limited::new(response.into_body(), DOCUMENT_BYTES_MAX);
        let body = body.collect().await.map_err(|error| failed(error.to_string()))?;
        Ok(body.to_bytes())
    };
    match tokio::time::timeout(FETCH_TIMEOUT, exchange).await {
        Ok(document) => document,
        Err(_) => Err(failed("no answer in time".to_owned())),
    }
}
