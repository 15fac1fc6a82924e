//! Bodies that stream, through everything that lies between a socket and a handler: HTTP/1.1 and HTTP/2, with TLS and
//! without it.
//!
//! The handler here answers GET with as many bytes as the path says, and PUT with the number of bytes that it took.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Frame;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use tavola_engine::{AnyEngine, MemoryEngine};
use tavola_wire::ErrorCode;
use tavola_wire::uri::AddressRules;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::*;
use crate::error::Result;
use crate::net::memory_budget::MemoryBudget;
use crate::net::stall_timeout::StallTimeout;
use crate::net::stream_window::PIECE_BYTES_MAX;
use crate::request::body::{self, BodyLimit, RequestBody};
use crate::request::reply::ReplyBody;
use crate::state::Settings;
use crate::storage::features::Features;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// What a stream may have under way.
const WINDOW_BYTES: usize = 128 * KIB;
/// Longer than any limit of these tests; a test that waits that long has failed.
const GIVE_UP: Duration = Duration::from_secs(60);

/// Of what is streamed through, how much there is in memory, and how much there was at most.
#[derive(Debug, Default)]
struct Live {
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// A piece of a reply that tells when it has gone.
struct LivePiece {
    bytes: Vec<u8>,
    live: Arc<Live>,
}

impl LivePiece {
    /// The bytes of a reply from `start` on.
    fn make(live: &Arc<Live>, start: usize, bytes: usize) -> Bytes {
        let now = live.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        live.peak.fetch_max(now, Ordering::Relaxed);
        let bytes = pattern(start, bytes).to_vec();
        Bytes::from_owner(Self { bytes, live: live.clone() })
    }
}

impl AsRef<[u8]> for LivePiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for LivePiece {
    fn drop(&mut self) {
        self.live.now.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// The bytes of a body from `start` on: a pattern that shows when pieces are lost, doubled or out of order.
fn pattern(start: usize, bytes: usize) -> &'static [u8] {
    /// Its period divides the size of no piece.
    const PERIOD: usize = 251;
    static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| (0..=250).cycle().take(MIB).collect());
    &PATTERN[start % PERIOD..][..bytes]
}

#[derive(Clone, Debug, Default)]
struct Streamer {
    live: Arc<Live>,
    /// How uploads ended.
    uploads: Arc<Mutex<Vec<Result<(), ErrorCode>>>>,
    /// The most that was reserved when a piece was made or taken.
    reserved_peak: Arc<AtomicUsize>,
}

impl Streamer {
    fn note(&self, budget: &MemoryBudget) {
        self.reserved_peak.fetch_max(budget.used(), Ordering::Relaxed);
    }

    fn download(&self, budget: &Arc<MemoryBudget>, length: usize) -> Result<Reply> {
        let (streamer, noted) = (self.clone(), budget.clone());
        let pieces = (0..length).step_by(PIECE_BYTES_MAX).map(move |start| {
            streamer.note(&noted);
            Ok(LivePiece::make(&streamer.live, start, PIECE_BYTES_MAX.min(length - start)))
        });
        let body = ReplyBody::stream(budget, Some(length as u64), stream::iter(pieces))?;
        Ok(Response::new(body))
    }

    async fn upload(&self, state: &ServerState, mut body: Incoming) -> Result<Reply> {
        let (limit, budget) = (BodyLimit::Stream(1 << 40), &state.memory_budget);
        let mut stall_timeout = StallTimeout::new(state.settings.limits.transfer_timeout);
        let body = body::admit(&mut body, limit, &mut stall_timeout, budget).await?;
        let RequestBody::Stream(mut stream) = body else { panic!("a stream was asked for") };
        let mut taken = 0;
        while let Some(piece) = stream.next().await? {
            self.note(budget);
            assert!(piece == pattern(taken, piece.len()));
            taken += piece.len();
        }
        Ok(Response::new(ReplyBody::from(taken.to_string())))
    }
}

/// Tells of an upload also when its connection is gone, and its handler with it.
struct Outcome<'a> {
    uploads: &'a Mutex<Vec<Result<(), ErrorCode>>>,
    outcome: Result<(), ErrorCode>,
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        self.uploads.lock().unwrap().push(self.outcome);
    }
}

impl Handler for Streamer {
    async fn answer(&self, connection: Arc<Connection>, request: Request<Incoming>) -> Reply {
        let state = &connection.state;
        let reply = if request.method() == Method::GET {
            let length = request.uri().path().trim_start_matches('/').parse().expect("a length");
            self.download(&state.memory_budget, length)
        } else {
            let dropped = Err(ErrorCode::InternalError);
            let mut outcome = Outcome { uploads: &self.uploads, outcome: dropped };
            let reply = self.upload(state, request.into_body()).await;
            outcome.outcome = reply.as_ref().map(|_| ()).map_err(|error| error.code());
            reply
        };
        reply.unwrap_or_else(|error| {
            let mut reply = Response::new(ReplyBody::Empty);
            *reply.status_mut() = StatusCode::from_u16(error.status()).unwrap();
            reply
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Line {
    protocol: Protocol,
    tls: bool,
}

const LINES: [Line; 4] = [
    Line { protocol: Protocol::Http1, tls: false },
    Line { protocol: Protocol::Http1, tls: true },
    Line { protocol: Protocol::Http2, tls: false },
    Line { protocol: Protocol::Http2, tls: true },
];

/// A listener with the handler of these tests.
struct Fixture {
    streamer: Streamer,
    state: Arc<ServerState>,
    address: SocketAddr,
    connector: Option<TlsConnector>,
    _stop: watch::Sender<bool>,
}

impl Fixture {
    async fn start(tls: bool, transfer_timeout: Duration) -> Self {
        let limits = Limits { message_bytes_max: MIB, transfer_timeout, ..Limits::default() };
        let settings = Settings {
            limits: limits.clone(),
            loose: false,
            address_rules: AddressRules { disable_product_style_url: false },
            slow_query: GIVE_UP,
        };
        let engine = AnyEngine::Memory(MemoryEngine::new());
        let features = Features::open(&engine).await.unwrap();
        let state =
            ServerState::open(engine, features, Vec::new(), None, settings, &[]).await.unwrap();
        let listener =
            Listener::bind(Site::Admin, "127.0.0.1:0".parse().unwrap(), limits.head_timeout)
                .unwrap();
        let (acceptor, connector) = tls.then(certified).unzip();
        let (stop, stopped) = watch::channel(false);
        let streamer = Streamer::default();
        let acceptor = Acceptor {
            state: state.clone(),
            handler: streamer.clone(),
            tls: acceptor,
            limits,
            permits: Arc::new(Semaphore::new(100)),
            http2_permits: Arc::new(Semaphore::new(100)),
            stop: stopped,
        };
        tokio::spawn(acceptor.accept(listener.socket));
        Self { streamer, state, address: listener.address, connector, _stop: stop }
    }

    async fn connect(&self, protocol: Protocol) -> Client {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let Some(connector) = &self.connector else { return Client::new(socket, protocol).await };
        let name = ServerName::try_from("localhost").unwrap();
        Client::new(connector.connect(name, socket).await.unwrap(), protocol).await
    }

    fn used(&self) -> usize {
        self.state.memory_budget.used()
    }

    /// Nothing is left of any stream.
    async fn wait_until_all_is_given_back(&self) {
        let all = async {
            while self.used() > 0 || self.streamer.live.now.load(Ordering::Relaxed) > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let all = timeout(GIVE_UP, all).await;
        assert!(all.is_ok(), "{} bytes are reserved, {:?}", self.used(), self.streamer.live);
    }

    async fn wait_until_closed(&self) {
        let closed = async {
            while self.state.metrics.connections.get() > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(GIVE_UP, closed).await.expect("the connection ends");
    }

    fn assert_memory_was_bounded(&self) {
        let peak = self.streamer.live.peak.load(Ordering::Relaxed);
        assert!(peak <= WINDOW_BYTES, "{peak} bytes of a reply at a time");
        let reserved = self.streamer.reserved_peak.load(Ordering::Relaxed);
        assert!(reserved <= WINDOW_BYTES, "{reserved} bytes were reserved");
    }

    fn uploads(&self) -> Vec<Result<(), ErrorCode>> {
        self.streamer.uploads.lock().unwrap().clone()
    }
}

/// A certificate for this test, and who trusts it.
fn certified() -> (TlsAcceptor, TlsConnector) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (TlsAcceptor::from(Arc::new(server)), TlsConnector::from(Arc::new(client)))
}

type ClientBody = UnsyncBoxBody<Bytes, io::Error>;

/// A connection of a client.
enum Client {
    Http1(hyper::client::conn::http1::SendRequest<ClientBody>),
    Http2(hyper::client::conn::http2::SendRequest<ClientBody>),
}

impl Client {
    async fn new<S>(stream: S, protocol: Protocol) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        match protocol {
            Protocol::Http1 => {
                let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                Self::Http1(sender)
            }
            Protocol::Http2 => {
                let executor = TokioExecutor::new();
                let (sender, connection) =
                    hyper::client::conn::http2::handshake(executor, io).await.unwrap();
                tokio::spawn(connection);
                Self::Http2(sender)
            }
        }
    }

    async fn send(
        &mut self,
        request: http::request::Builder,
        body: ClientBody,
    ) -> hyper::Result<Response<Incoming>> {
        let request = request.header("host", "localhost").body(body).unwrap();
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Http2(sender) => {
                let (mut parts, body) = request.into_parts();
                parts.uri = format!("http://localhost{}", parts.uri).parse().unwrap();
                parts.headers.remove("host");
                sender.send_request(Request::from_parts(parts, body)).await
            }
        }
    }

    async fn get(&mut self, bytes: usize) -> Response<Incoming> {
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        self.send(Request::get(format!("/{bytes}")), body).await.unwrap()
    }

    async fn put(&mut self, body: ClientBody) -> hyper::Result<Response<Incoming>> {
        self.send(Request::put("/"), body).await
    }
}

/// A body of this many bytes in pieces, with pauses between them.
fn upload_of(bytes: usize, piece_bytes: usize, pause: Duration) -> ClientBody {
    let pieces = stream::unfold(0, move |start| async move {
        if start == bytes {
            return None;
        }
        if start > 0 {
            sleep(pause).await;
        }
        let end = bytes.min(start + piece_bytes);
        let piece = Bytes::from_static(pattern(start, end - start));
        Some((Ok(Frame::data(piece)), end))
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// Reads a body to its end, with a pause before each frame; how many bytes there were.
async fn read_all(mut body: Incoming, pause: Duration) -> hyper::Result<usize> {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let piece = frame?.into_data().expect("data");
        assert!(piece == pattern(read, piece.len()));
        read += piece.len();
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
    Ok(read)
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_go_both_ways_in_little_memory() {
    const BYTES: usize = 64 * MIB;
    for line in LINES {
        let fixture = Fixture::start(line.tls, Duration::from_secs(30)).await;
        let mut client = fixture.connect(line.protocol).await;
        let answer = client.get(BYTES).await;
        assert_eq!(answer.headers()["content-length"], BYTES.to_string().as_str(), "{line:?}");
        assert_eq!(read_all(answer.into_body(), Duration::ZERO).await.unwrap(), BYTES, "{line:?}");
        fixture.wait_until_all_is_given_back().await;
        let answer = client.put(upload_of(BYTES, 100_000, Duration::ZERO)).await.unwrap();
        assert_eq!(answer.status(), 200, "{line:?}");
        let taken = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(taken, BYTES.to_string(), "{line:?}");
        fixture.wait_until_all_is_given_back().await;
        fixture.assert_memory_was_bounded();
    }
}

/// It is cut off when its time is up, and nothing of its reply is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_is_cut_off() {
    for line in LINES {
        let fixture = Fixture::start(line.tls, Duration::from_secs(1)).await;
        let mut client = fixture.connect(line.protocol).await;
        let mut answer = client.get(64 * MIB).await.into_body();
        assert!(answer.frame().await.unwrap().unwrap().is_data());
        assert_eq!(fixture.used(), WINDOW_BYTES, "{line:?}");
        fixture.wait_until_all_is_given_back().await;
        fixture.wait_until_closed().await;
        fixture.assert_memory_was_bounded();
        let stalled = fixture.state.metrics.connections_stalled.get();
        assert_eq!(stalled, u64::from(line.protocol == Protocol::Http2), "{line:?}");
        let rest = read_all_unchecked(answer).await;
        assert!(rest.is_err(), "{line:?}: a part was taken for the whole");
    }
}

async fn read_all_unchecked(mut body: Incoming) -> hyper::Result<()> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// However long it takes altogether.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_slowly_is_served() {
    let stall_max = Duration::from_secs(1);
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let fixture = Fixture::start(false, stall_max).await;
        let mut client = fixture.connect(protocol).await;
        let answer = client.get(4 * MIB).await.into_body();
        let started = Instant::now();
        // Frames have 16 KiB or less with HTTP/2, and more with HTTP/1.
        let pause = Duration::from_millis(if protocol == Protocol::Http1 { 100 } else { 10 });
        assert_eq!(read_all(answer, pause).await.unwrap(), 4 * MIB, "{protocol:?}");
        assert!(started.elapsed() > stall_max, "{protocol:?}: {:?}", started.elapsed());
        fixture.wait_until_all_is_given_back().await;
        fixture.assert_memory_was_bounded();
    }
}

/// The same for a body that comes slowly.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_slowly_is_served() {
    let stall_max = Duration::from_secs(1);
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let fixture = Fixture::start(false, stall_max).await;
        let mut client = fixture.connect(protocol).await;
        let body = upload_of(MIB, 32 * KIB, Duration::from_millis(100));
        assert_eq!(client.put(body).await.unwrap().status(), 200, "{protocol:?}");
        fixture.wait_until_all_is_given_back().await;
        fixture.assert_memory_was_bounded();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_sending_is_told_and_gives_its_memory_back() {
    for line in LINES {
        let fixture = Fixture::start(line.tls, Duration::from_secs(1)).await;
        let mut client = fixture.connect(line.protocol).await;
        let started = Instant::now();
        // The second piece never comes.
        let answer = client.put(upload_of(MIB, 60 * KIB, Duration::from_secs(600))).await;
        if let Ok(answer) = answer {
            assert_eq!(answer.status(), 500, "{line:?}");
        }
        assert!(started.elapsed() < GIVE_UP);
        assert_eq!(fixture.uploads(), [Err(ErrorCode::OperationTimedOut)], "{line:?}");
        fixture.wait_until_all_is_given_back().await;
    }
}

/// In the middle of a reply, and in the middle of a body.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disconnects_leaves_nothing_behind() {
    for line in LINES {
        let fixture = Fixture::start(line.tls, Duration::from_secs(30)).await;
        let mut client = fixture.connect(line.protocol).await;
        let mut answer = client.get(64 * MIB).await.into_body();
        assert!(answer.frame().await.unwrap().unwrap().is_data());
        drop((answer, client));
        fixture.wait_until_all_is_given_back().await;
        fixture.wait_until_closed().await;

        let mut client = fixture.connect(line.protocol).await;
        let body = upload_of(MIB, 16 * KIB, Duration::from_millis(50));
        let upload = tokio::spawn(async move { client.put(body).await.map(drop) });
        let begun = async {
            while fixture.used() == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(GIVE_UP, begun).await.expect("the upload begins");
        upload.abort();
        fixture.wait_until_all_is_given_back().await;
        fixture.wait_until_closed().await;
        assert_eq!(fixture.uploads().len(), 1, "{line:?}");
        assert!(fixture.uploads()[0].is_err(), "{line:?}: {:?}", fixture.uploads());
    }
}

/// A stream that finds no memory is refused before it begins; one that has begun never lacks it.
#[tokio::test(flavor = "multi_thread")]
async fn streams_beyond_the_memory_are_busy() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let fixture = Fixture::start(false, Duration::from_secs(30)).await;
        let mut clients = Vec::new();
        let mut answers = Vec::new();
        // Of a MiB three quarters are for large messages.
        let streams = 3 * MIB / 4 / WINDOW_BYTES;
        for _ in 0..streams {
            let mut client = fixture.connect(protocol).await;
            answers.push(client.get(16 * MIB).await);
            clients.push(client);
        }
        let mut late = fixture.connect(protocol).await;
        assert_eq!(late.get(16 * MIB).await.status(), 503, "{protocol:?}");
        let body = upload_of(16 * MIB, 64 * KIB, Duration::ZERO);
        match late.put(body).await {
            Ok(answer) => assert_eq!(answer.status(), 503, "{protocol:?}"),
            // The answer came while the client was still writing.
            Err(error) => assert_eq!(protocol, Protocol::Http1, "{error}"),
        }
        assert_eq!(late_small(&fixture).await, 200);
        for answer in answers {
            assert_eq!(answer.status(), 200, "{protocol:?}");
            let read = read_all(answer.into_body(), Duration::ZERO).await;
            assert_eq!(read.unwrap(), 16 * MIB, "{protocol:?}");
        }
        fixture.wait_until_all_is_given_back().await;
    }
}

/// A short stream counts as the small message that it is.
async fn late_small(fixture: &Fixture) -> u16 {
    fixture.connect(Protocol::Http1).await.get(10 * KIB).await.status().as_u16()
}

/// On the wire a stream of known length looks like a whole body.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_known_length_has_a_content_length() {
    let fixture = Fixture::start(false, Duration::from_secs(30)).await;
    let mut socket = TcpStream::connect(fixture.address).await.unwrap();
    socket
        .write_all(b"GET /300000 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut all = Vec::new();
    timeout(GIVE_UP, socket.read_to_end(&mut all)).await.unwrap().unwrap();
    let head_end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&all[..head_end]).to_lowercase();
    assert!(head.contains("content-length: 300000\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert_eq!(all.len() - head_end, 300_000);
}
