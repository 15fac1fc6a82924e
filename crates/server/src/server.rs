//! The listener: connections in, requests to [`handle`](crate::handle), and an orderly stop.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::config::Limits;
use crate::head::Peer;
use crate::services::Services;
use crate::sniff::{Protocol, sniff};
use crate::{admin, handle};

/// A handshake that takes longer is given up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept: it fails again at once while file descriptors are short.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);
/// HTTP/2 requests at a time on one connection.
const STREAMS_MAX: u32 = 256;
/// Sent to a connection beyond the limit, before it is closed.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Table,
    Admin,
}

/// The listeners of the service.
pub struct Server {
    services: Arc<Services>,
    table: Listener,
    admin: Option<Listener>,
    tls: Option<TlsAcceptor>,
    limits: Limits,
}

/// A bound port and its address.
struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    async fn bind(address: SocketAddr) -> Result<Self, (SocketAddr, io::Error)> {
        let failed = |error| (address, error);
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }
}

/// Stands for everything a listener needs for its connections.
#[derive(Clone)]
struct Acceptor {
    services: Arc<Services>,
    site: Site,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    permits: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

impl Server {
    pub async fn bind(
        services: Arc<Services>,
        table: SocketAddr,
        admin: Option<SocketAddr>,
        tls: Option<TlsAcceptor>,
        limits: Limits,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let table = Listener::bind(table).await?;
        let admin = match admin {
            Some(address) => Some(Listener::bind(address).await?),
            None => None,
        };
        Ok(Self { services, table, admin, tls, limits })
    }

    /// The address that was bound, also when port 0 was asked for.
    pub fn table_address(&self) -> SocketAddr {
        self.table.address
    }

    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|listener| listener.address)
    }

    /// Serves until `stop` turns true, then lets what was accepted finish.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let acceptor = |site, tls: Option<TlsAcceptor>| Acceptor {
            services: self.services.clone(),
            site,
            tls,
            limits: self.limits.clone(),
            permits: Arc::new(Semaphore::new(self.limits.connections_max)),
            stop: stop.clone(),
        };
        let table = acceptor(Site::Table, self.tls.clone());
        let admin = acceptor(Site::Admin, None);
        let admin_task = async {
            if let Some(listener) = self.admin {
                admin.accept(listener.socket).await;
            }
        };
        tokio::join!(table.accept(self.table.socket), admin_task);
    }
}

impl Acceptor {
    async fn accept(mut self, listener: TcpListener) {
        let connections = Connections::default();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = self.stop.wait_for(|stop| *stop) => break,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            };
            let Ok(permit) = self.permits.clone().try_acquire_owned() else {
                self.services.metrics.connections_refused.inc();
                refuse(stream);
                continue;
            };
            let acceptor = self.clone();
            let watcher = connections.graceful.watcher();
            tokio::spawn(async move {
                acceptor.services.metrics.connections.inc();
                acceptor.connect(stream, address, watcher).await;
                acceptor.services.metrics.connections.dec();
                drop(permit);
            });
        }
        drop(listener);
        let drained = connections.graceful.shutdown();
        if tokio::time::timeout(self.limits.drain_timeout, drained).await.is_err() {
            tracing::warn!("stopped with connections still open");
        }
    }

    async fn connect(&self, stream: TcpStream, address: SocketAddr, watcher: Watcher) {
        // Replies are written whole; waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.serve(stream, Peer { address, tls: false }, watcher).await;
        };
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, Peer { address, tls: true }, watcher).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn serve<S>(&self, stream: S, peer: Peer, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // A connection that says nothing holds one of the allowed ones: not for ever.
        let mut stop = self.stop.clone();
        let sniffed = tokio::select! {
            sniffed = sniff(stream, self.limits.head_timeout) => sniffed,
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let Some((protocol, stream)) = sniffed else { return };
        let stream = TokioIo::new(stream);
        let services = self.services.clone();
        let site = self.site;
        let service = service_fn(move |request: Request<Incoming>| {
            let services = services.clone();
            async move {
                match site {
                    Site::Table => {
                        Ok::<_, Infallible>(handle::answer(services, peer, request).await)
                    }
                    Site::Admin => admin::answer(&services, &request),
                }
            }
        });
        let served = match protocol {
            Protocol::Http1 => {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(self.limits.head_timeout)
                    .max_buf_size(self.limits.head_bytes_max)
                    .serve_connection(stream, service);
                watcher.watch(connection).await
            }
            Protocol::Http2 => {
                let head_bytes_max = u32::try_from(self.limits.head_bytes_max).unwrap_or(u32::MAX);
                let connection = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_header_list_size(head_bytes_max)
                    .max_concurrent_streams(STREAMS_MAX)
                    .keep_alive_interval(self.limits.head_timeout)
                    .serve_connection(stream, service);
                watcher.watch(connection).await
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "connection ended");
        }
    }
}

#[derive(Default)]
struct Connections {
    graceful: GracefulShutdown,
}

/// Says so and closes; in a task of its own, because even that may have to wait.
fn refuse(mut stream: TcpStream) {
    tokio::spawn(async move {
        let _ = tokio::time::timeout(Duration::from_secs(1), async {
            let _ = stream.write_all(REFUSAL).await;
            let _ = stream.shutdown().await;
        })
        .await;
    });
}
