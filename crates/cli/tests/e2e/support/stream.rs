//! How a client reaches the server: from which address, and with TLS or without.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The way to the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    /// Where connections come from; the system chooses when there is none. All of 127.0.0.0/8 is this machine on
    /// Linux alone.
    pub source: Option<Ipv4Addr>,
    pub tls: Option<Arc<ClientConfig>>,
}

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A client's TLS that trusts this certificate.
pub(crate) fn trusting(certificate: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

impl Route {
    pub(crate) fn connect(&self, server: SocketAddr) -> std::io::Result<Stream> {
        let stream = match self.source {
            None => TcpStream::connect(server)?,
            Some(source) => connect_from(source, server)?,
        };
        stream.set_nodelay(true)?;
        let Some(config) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(config.clone(), name);
        let connection = connection.map_err(std::io::Error::other)?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(connection, stream))))
    }
}

/// The standard library cannot choose the address that a connection comes from.
fn connect_from(source: Ipv4Addr, server: SocketAddr) -> std::io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(source.into(), 0))?;
        let stream = socket.connect(server).await?.into_std()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    })
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
