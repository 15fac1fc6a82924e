//! TLS from PEM files.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// Why the certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {file}")]
    Read { file: String, source: rustls::pki_types::pem::Error },
    #[error("{file} holds no certificate")]
    NoCertificate { file: String },
    #[error(
        "{file} holds an X.509 version 1 certificate, which TLS libraries of today do not take: make one of version 3, \
         for instance with `tavola cert`"
    )]
    Version1 { file: String },
    #[error("certificate and key do not go together")]
    Mismatch(#[from] rustls::Error),
}

/// The certificate that the server shows, which can be replaced while it serves.
#[derive(Debug)]
pub(crate) struct ServerCertificate {
    files: TlsFiles,
    current: RwLock<Arc<CertifiedKey>>,
}

impl ServerCertificate {
    pub(crate) fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let current = RwLock::new(Arc::new(read(&files)?));
        Ok(Arc::new(Self { files, current }))
    }

    /// Reads the files again. If they cannot be used, the certificate stays the one it is.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let read = Arc::new(read(&self.files)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// An acceptor that offers HTTP/2 and HTTP/1.1.
    pub(crate) fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let file = files.certificate.display().to_string();
    let read = |source| TlsError::Read { file: file.clone(), source };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(read)?;
    let Some(own) = chain.first() else { return Err(TlsError::NoCertificate { file }) };
    if is_version_1(own) {
        return Err(TlsError::Version1 { file });
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|source| TlsError::Read { file: files.key.display().to_string(), source })?;
    Ok(CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())?)
}

/// Whether a certificate has no extensions because its version has none. rustls would only say that it is a bad one.
///
/// `Certificate ::= SEQUENCE { SEQUENCE { version [0] EXPLICIT INTEGER DEFAULT v1, .. } .. }` (RFC 5280, 4.1): the
/// version is left out where it is 1.
fn is_version_1(certificate: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let fields = within(certificate, SEQUENCE).and_then(|outer| within(outer, SEQUENCE));
    fields.and_then(<[u8]>::first).is_some_and(|tag| *tag != VERSION)
}

/// What follows the tag and the length of a DER value, if it has this tag.
fn within(der: &[u8], tag: u8) -> Option<&[u8]> {
    let (found, rest) = der.split_first()?;
    let (length, rest) = rest.split_first()?;
    // A long length is preceded by how many bytes it has.
    let more = if *length >= 0x80 { usize::from(length & 0x7f) } else { 0 };
    rest.get(more..).filter(|_| *found == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_certificate_is_found() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        assert!(!is_version_1(made.cert.der()));
        // A serial number where the version would be, with short and with long lengths.
        assert!(is_version_1(&[0x30, 5, 0x30, 3, 2, 1, 7]));
        assert!(is_version_1(&[0x30, 0x81, 6, 0x30, 0x82, 0, 3, 2, 1, 7]));
        for no_certificate in [&b""[..], b"0", b"00", b"0\x820", b"\x020\x02"] {
            assert!(!is_version_1(no_certificate), "{no_certificate:?}");
        }
    }
}
