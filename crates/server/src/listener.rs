//! The listener: connections in, requests to [`handle`](crate::handle), and an orderly stop.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tavola_wire::Service;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::admin;
use crate::config::{Limits, ServiceConfig};
use crate::connection::Connection;
use crate::net::framing;
use crate::net::h2_watchdog::{H2Watchdog, Verdict, WatchedBody};
use crate::net::head_timer::HeadTimer;
use crate::net::overload::Rejections;
use crate::net::sniff::{Protocol, Sniffed, sniff};
use crate::net::transport::Transport;
use crate::request::head::Peer;
use crate::request::header_case::HEADERS_MAX;
use crate::request::reply::Reply;
use crate::request::respond;
use crate::services;
use crate::state::ServerState;

/// A handshake that takes longer is given up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept: it fails again at once while file descriptors are short.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);
/// The failing accepts of a shortage are logged no more often than this.
const ACCEPT_WARNING_EVERY: Duration = Duration::from_secs(10);
/// Connections that the kernel keeps until they are accepted; a burst is worth a few milliseconds of them.
const BACKLOG: u32 = 4096;
/// Probes and collectors are few. They are not to take the file descriptors of the service where these are scarce.
const ADMIN_CONNECTIONS_MAX: usize = 64;
const ADMIN_CONNECTIONS_MIN: usize = 4;
const ADMIN_CONNECTIONS_SHARE: usize = 8;
/// HTTP/2 requests at a time on one connection.
const STREAMS_MAX: u32 = 256;
/// What a client may send of one HTTP/2 request, and of all requests of a connection, before we have read it.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Answers the requests of a listener.
trait Handler: Clone + Send + Sync + 'static {
    /// Whether there are metadata in headers: then it asks how names were written, and there may be many of them. Both cost
    /// each request a little.
    fn takes_metadata(&self) -> bool {
        false
    }

    fn answer(
        &self,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Reply> + Send;
}

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Service(Service),
    Admin,
}

/// The listeners of the server: one per service, and the admin port.
pub(crate) struct Server {
    state: Arc<ServerState>,
    listeners: Vec<Listener>,
    tls: Option<TlsAcceptor>,
    limits: Limits,
}

/// A bound port.
struct Listener {
    site: Site,
    socket: TcpListener,
    /// Also when port 0 was asked for.
    address: SocketAddr,
    head_timeout: Duration,
}

impl Listener {
    fn bind(
        site: Site,
        address: SocketAddr,
        head_timeout: Duration,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let failed = |error| (address, error);
        let socket = listen(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { site, socket, address, head_timeout })
    }
}

/// As the standard library does, with a longer queue.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Stands for everything a listener needs for its connections.
#[derive(Clone)]
struct Acceptor<H> {
    state: Arc<ServerState>,
    handler: H,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    permits: Arc<Semaphore>,
    http2_permits: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

impl Server {
    pub(crate) fn bind(
        state: Arc<ServerState>,
        services: &[ServiceConfig],
        admin: Option<SocketAddr>,
        tls: Option<TlsAcceptor>,
        limits: Limits,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let services = services.iter().filter_map(|config| {
            let ServiceConfig { service, address, keep_alive, is_optional } = *config;
            match Listener::bind(Site::Service(service), address, keep_alive) {
                Err((_, error)) if is_optional && error.kind() == io::ErrorKind::AddrInUse => {
                    let service = service.name();
                    tracing::warn!(service, %address, "not served: its port is in use");
                    None
                }
                bound => Some(bound),
            }
        });
        let admin = admin.map(|address| Listener::bind(Site::Admin, address, limits.head_timeout));
        let listeners = services.chain(admin).collect::<Result<_, _>>()?;
        Ok(Self { state, listeners, tls, limits })
    }

    /// Where each service listens.
    pub(crate) fn service_addresses(&self) -> Vec<(Service, SocketAddr)> {
        let of_service = |listener: &Listener| match listener.site {
            Site::Service(service) => Some((service, listener.address)),
            Site::Admin => None,
        };
        self.listeners.iter().filter_map(of_service).collect()
    }

    pub(crate) fn admin_address(&self) -> Option<SocketAddr> {
        let admin = self.listeners.iter().find(|listener| listener.site == Site::Admin);
        admin.map(|listener| listener.address)
    }

    /// Serves until `stop` turns true, then lets what was accepted finish.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) {
        // The limits are the process's: all services together keep to them.
        let connections = Arc::new(Semaphore::new(self.limits.connections_max));
        let admin_max = (self.limits.connections_max / ADMIN_CONNECTIONS_SHARE)
            .clamp(ADMIN_CONNECTIONS_MIN, ADMIN_CONNECTIONS_MAX);
        let http2_requests = Arc::new(Semaphore::new(self.limits.http2_requests_max));
        let accepting = self.listeners.into_iter().map(|listener| {
            // Probes have permits of their own: those of the services may all be taken, and then it matters most.
            let (tls, permits, http2_permits) = match listener.site {
                Site::Service(_) => (self.tls.clone(), connections.clone(), http2_requests.clone()),
                Site::Admin => {
                    let own = |count| Arc::new(Semaphore::new(count));
                    (None, own(admin_max), own(self.limits.http2_requests_max))
                }
            };
            let acceptor = Acceptor {
                state: self.state.clone(),
                handler: listener.site,
                tls,
                limits: Limits { head_timeout: listener.head_timeout, ..self.limits.clone() },
                permits,
                http2_permits,
                stop: stop.clone(),
            };
            acceptor.accept(listener.socket)
        });
        join_all(accepting).await;
    }
}

impl<H: Handler> Acceptor<H> {
    async fn accept(mut self, listener: TcpListener) {
        let connections = GracefulShutdown::new();
        let rejections = Rejections::new(self.permits.available_permits());
        let mut warned: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = self.stop.wait_for(|stop| *stop) => break,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if warned.is_none_or(|warned| warned.elapsed() >= ACCEPT_WARNING_EVERY) {
                        tracing::warn!(%error, "accepting a connection failed");
                        warned = Some(Instant::now());
                    }
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            };
            let Ok(permit) = self.permits.clone().try_acquire_owned() else {
                self.state.metrics.connections_refused.inc();
                rejections.reject(stream, self.tls.is_some());
                continue;
            };
            let acceptor = self.clone();
            let watcher = connections.watcher();
            tokio::spawn(async move {
                acceptor.state.metrics.connections.inc();
                acceptor.state.metrics.connections_accepted.inc();
                acceptor.connect(stream, address, watcher).await;
                acceptor.state.metrics.connections.dec();
                drop(permit);
            });
        }
        drop(listener);
        let drained = connections.shutdown();
        if tokio::time::timeout(self.limits.drain_timeout, drained).await.is_err() {
            tracing::warn!("stopped with connections still open");
        }
    }

    async fn connect(&self, socket: TcpStream, address: SocketAddr, watcher: Watcher) {
        // Replies are written whole; waiting for more to send would only delay them.
        let _ = socket.set_nodelay(true);
        let transport = Transport::new(socket, self.limits.transfer_timeout);
        let written = transport.written();
        let Some(tls) = &self.tls else {
            return self.serve(transport, written, Peer { address, tls: false }, watcher).await;
        };
        let timeout = HANDSHAKE_TIMEOUT.min(self.limits.head_timeout);
        match tokio::time::timeout(timeout, tls.accept(transport)).await {
            Ok(Ok(stream)) => {
                // What is less common than plain HTTP/1 is boxed: every connection would carry its size.
                Box::pin(self.serve(stream, written, Peer { address, tls: true }, watcher)).await;
            }
            Ok(Err(error)) => {
                self.state.metrics.tls_handshakes_failed.inc();
                tracing::debug!(%error, "TLS handshake failed");
            }
            Err(_) => {
                self.state.metrics.tls_handshakes_failed.inc();
                tracing::debug!("TLS handshake took too long");
            }
        }
    }

    async fn serve<S>(&self, stream: S, written: Arc<AtomicU64>, peer: Peer, watcher: Watcher)
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
        let served = match protocol {
            Protocol::Http1 => self.serve_http1(stream, peer, watcher).await,
            Protocol::Http2 => Box::pin(self.serve_http2(stream, written, peer, watcher)).await,
        };
        if let Err(error) = served {
            tracing::debug!(%error, "connection ended");
        }
    }

    async fn serve_http1<S>(
        &self,
        stream: Sniffed<S>,
        peer: Peer,
        watcher: Watcher,
    ) -> hyper::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = Connection::new(self.state.clone(), peer);
        let handler = self.handler.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (handler, connection) = (handler.clone(), connection.clone());
            async move { Ok::<_, Infallible>(answer(&handler, connection, request).await) }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(HeadTimer::default())
            .header_read_timeout(self.limits.head_timeout)
            .max_buf_size(self.limits.head_bytes_max);
        if self.handler.takes_metadata() {
            builder.preserve_header_case(true).max_headers(HEADERS_MAX);
        }
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        watcher.watch(connection).await
    }

    async fn serve_http2<S>(
        &self,
        stream: Sniffed<S>,
        written: Arc<AtomicU64>,
        peer: Peer,
        _until_drained: Watcher,
    ) -> hyper::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shared = Connection::new(self.state.clone(), peer);
        let handler = self.handler.clone();
        let watchdog = Arc::new(H2Watchdog::new(&self.limits, written));
        let (watching, permits) = (watchdog.clone(), self.http2_permits.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let exchange = permits.clone().try_acquire_owned().map(|permit| watching.begin(permit));
            let (handler, shared) = (handler.clone(), shared.clone());
            async move {
                let Ok(exchange) = exchange else {
                    shared.state.metrics.http2_requests_refused.inc();
                    return Ok(respond::too_many_requests().map(WatchedBody::unwatched));
                };
                let reply = answer(&handler, shared, request).await;
                Ok::<_, Infallible>(reply.map(|body| exchange.reply(body)))
            }
        });
        let head_bytes_max = u32::try_from(self.limits.head_bytes_max).unwrap_or(u32::MAX);
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(head_bytes_max)
            .max_concurrent_streams(STREAMS_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(self.limits.head_timeout)
            .serve_connection(TokioIo::new(stream), service);

        let mut connection = pin!(connection);
        let mut stop = self.stop.clone();
        let mut is_closing = false;
        let mut checks = tokio::time::interval(watchdog.check_interval());
        loop {
            tokio::select! {
                served = connection.as_mut() => return served,
                _ = stop.wait_for(|stop| *stop), if !is_closing => {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                _ = checks.tick() => match watchdog.check() {
                    Verdict::Healthy => {}
                    Verdict::Idle if is_closing => {}
                    Verdict::Idle => {
                        is_closing = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    Verdict::Stalled => {
                        self.state.metrics.connections_stalled.inc();
                        tracing::debug!("replies were not taken in time");
                        return Ok(());
                    }
                },
            }
        }
    }
}

/// Answers a request as its handler does, with what HTTP asks of every reply.
async fn answer(
    handler: &impl Handler,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Reply {
    if !framing::is_served(request.headers()) {
        return misframed();
    }
    let is_head = request.method() == Method::HEAD;
    let reply = handler.answer(connection, request).await;
    if is_head { framing::without_body(reply) } else { reply }
}

/// As hyper answers what it cannot read. Where the next request would begin is not to be trusted.
fn misframed() -> Reply {
    let mut reply = Reply::default();
    *reply.status_mut() = StatusCode::BAD_REQUEST;
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

impl Handler for Site {
    fn takes_metadata(&self) -> bool {
        matches!(self, Self::Service(service) if service.has_metadata())
    }

    async fn answer(&self, connection: Arc<Connection>, request: Request<Incoming>) -> Reply {
        match self {
            Self::Service(service) => services::answer(*service, connection, request).await,
            Self::Admin => admin::answer(&connection.state, &request),
        }
    }
}

#[cfg(test)]
#[path = "listener_stream_tests.rs"]
mod stream_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<'a, F: Future>(
        _: impl Fn(&'a Acceptor<Site>, TcpStream, SocketAddr, Watcher) -> F,
    ) -> usize {
        size_of::<F>()
    }

    /// There are thousands of connections, and most of them are idle.
    #[test]
    fn the_future_of_a_connection_stays_small() {
        let size = size_of_future(Acceptor::connect);
        assert!(size <= 8192, "{size} bytes");
    }
}
