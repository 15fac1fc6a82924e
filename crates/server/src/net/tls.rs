//! TLS from PEM files.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// Why the certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {file}")]
    Read { file: String, source: rustls::pki_types::pem::Error },
    #[error("{file} holds no certificate")]
    NoCertificate { file: String },
    #[error("certificate and key do not go together")]
    Mismatch(#[from] rustls::Error),
}

/// An acceptor that offers HTTP/2 and HTTP/1.1.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let file = files.certificate.display().to_string();
    let read = |source| TlsError::Read { file: file.clone(), source };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(read)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { file });
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|source| TlsError::Read { file: files.key.display().to_string(), source })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
