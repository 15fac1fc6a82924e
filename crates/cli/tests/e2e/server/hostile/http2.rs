//! HTTP/2 as an attacker speaks it.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::SendRequest;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, GOAWAY, HEADERS, NOTHING, PING, REFUSED_STREAM, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, begin, block, connect, frame, push_field, read, read_until_closed,
    request,
};
use super::{KIB, MIB, Target, is_timeout, write_until_closed};
use crate::support::{Launch, Server};

/// A server with TLS, and the certificates to trust.
pub(super) fn with_tls(arguments: &[&str]) -> (Arc<Server>, RootCertStore) {
    let folder = tempfile::tempdir().unwrap();
    let made = Launch::new().args(["cert", "--out", "tls"]).command(folder.path()).output();
    assert!(made.expect("it runs").status.success());
    let mut roots = RootCertStore::empty();
    let certificate = folder.path().join("tls/cert.pem");
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let launch = Launch::new().args(["--cert", "tls/cert.pem", "--key", "tls/key.pem"]);
    let launch = launch.args(arguments.iter().copied());
    (Arc::new(Server::start_in(launch, folder)), roots)
}

/// HTTP/2 is chosen in the handshake by those who offer it.
#[tokio::test]
async fn http_2_over_tls() {
    let (server, roots) = with_tls(&[]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let uri = format!("https://localhost:{}/devstoreaccount1/Tables", server.address().port());
    let request = ::http::Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
    let answer = sender.send_request(request).await.expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.version()), (401, ::http::Version::HTTP_2));
    assert!(!answer.into_body().collect().await.unwrap().to_bytes().is_empty());
}

/// Requests that are taken back as soon as they are made: they cost the client nothing, so they must not pile up.
#[test]
fn rapid_resets() {
    let target = Target::start(&[]).with_a_large_page();
    let before = target.memory();
    let bystander = target.bystander();
    for _ in 0..3 {
        let mut stream = connect(&target);
        let page = format!("{}()", target.table);
        let reset = |number: u32| {
            let id = 2 * number + 1;
            let mut both = request(&target, id, &page);
            both.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
            both
        };
        let frames: Vec<_> = (0..2000).map(reset).collect();
        // The server may say that it is enough.
        write_until_closed(&mut stream, frames.iter().map(Vec::as_slice));
    }
    target.wait_until("tavola_connections", ..=3);
    target.memory().assert_grew_less_than(100 * MIB, before);
    bystander.finish();
    target.assert_unharmed();
}

/// Frames that want an answer each, from a client that reads none of them.
#[test]
fn floods_of_pings_and_settings() {
    let target = Target::start(&["--transfer-timeout", "1"]);
    let before = target.memory();
    let bystander = target.bystander();
    for kind in [PING, SETTINGS] {
        let payload = if kind == PING { &[7; 8][..] } else { &[] };
        let frames = frame(kind, 0, 0, payload).repeat(1000);
        let mut stream = begin(target.connect_narrowly());
        let sent = write_until_closed(&mut stream, std::iter::repeat_n(&frames[..], 100_000));
        assert!(sent < 1000 * MIB, "{sent} bytes were taken");
    }
    target.memory().assert_grew_less_than(32 * MIB, before);
    bystander.finish();
    target.assert_unharmed();
}

/// A head that goes on and on in continuations.
#[test]
fn floods_of_continuations() {
    let target = Target::start(&[]);
    let before = target.memory();
    let bystander = target.bystander();
    let mut field = Vec::new();
    push_field(&mut field, "x-large", &"a".repeat(8 * KIB));
    for piece in [&field[..], &[]] {
        let mut stream = connect(&target);
        let start = block(&target, "GET", NOTHING);
        stream.write_all(&frame(HEADERS, 0, 1, &start)).unwrap();
        let piece = frame(CONTINUATION, 0, 1, piece);
        let sent = write_until_closed(&mut stream, std::iter::repeat_n(&piece[..], 1_000_000));
        assert!(sent < 100 * MIB, "{sent} bytes were taken");
    }
    target.memory().assert_grew_less_than(32 * MIB, before);
    bystander.finish();
    target.assert_unharmed();
}

/// A head that is too large is told so, and the connection stays.
#[tokio::test]
async fn a_large_header_list_is_refused() {
    let target = Target::start(&[]);
    let (mut sender, connection) = dial(&target, h2::client::Builder::new()).await;
    let connection = tokio::spawn(connection);
    let with = |bytes: usize| {
        let request = ::http::Request::get(uri(&target, "Tables"));
        request.header("x-large", "a".repeat(bytes)).body(()).unwrap()
    };
    for (bytes, status) in [(60 * KIB, 200), (200 * KIB, 431), (1000, 200)] {
        sender = sender.ready().await.expect("the connection stays");
        let (answer, _) = sender.send_request(with(bytes), true).unwrap();
        assert_eq!(answer.await.expect("an answer").status(), status);
    }
    connection.abort();
    target.assert_unharmed();
}

/// More requests at a time than were agreed upon are refused one by one.
#[test]
fn streams_beyond_the_limit_are_refused() {
    let target = Target::start(&["--transfer-timeout", "1"]);
    let mut stream = connect(&target);
    let head = block(&target, "POST", &target.table);
    for number in 0..300 {
        // The body is never sent.
        stream.write_all(&frame(HEADERS, END_HEADERS, 2 * number + 1, &head)).unwrap();
    }
    let mut refused = 0;
    while refused < 300 - 256 {
        let frame = read(&mut stream).expect("a frame");
        assert_ne!(frame.kind, GOAWAY);
        let reason = REFUSED_STREAM.to_be_bytes();
        refused += usize::from(frame.kind == RST_STREAM && frame.payload == reason);
    }
    drop(stream);
    target.assert_unharmed();
}

/// A window that is never opened: the socket is writable, every ping is answered, and no reply is ever taken.
#[test]
fn replies_that_a_shut_window_holds_back() {
    let arguments = ["--transfer-timeout", "1", "--message-memory-mb", "16"];
    let target = Target::start(&arguments).with_a_large_page();
    let before = target.memory();
    let bystander = target.bystander();
    let page = format!("{}()", target.table);
    let shut = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let mut streams: Vec<TcpStream> = (0..9)
        .map(|_| {
            let mut stream = connect(&target);
            stream.write_all(&shut).unwrap();
            for number in 0..20 {
                // Every second one is small.
                let path = if number % 2 == 0 { &page } else { NOTHING };
                stream.write_all(&request(&target, 2 * number + 1, path)).unwrap();
            }
            stream
        })
        .collect();
    for stream in &mut streams {
        let frames = read_until_closed(stream);
        assert!(frames.iter().all(|frame| frame.kind != DATA || frame.payload.is_empty()));
        assert!(frames.iter().any(|frame| frame.kind == HEADERS));
    }
    assert_eq!(target.metric("tavola_connections_stalled_total"), 9);
    target.memory().assert_grew_less_than(180 * MIB, before);
    bystander.finish();
    target.assert_unharmed();
}

/// The same by a client that takes a byte now and then.
#[test]
fn replies_that_are_taken_byte_by_byte() {
    let target = Target::start(&["--transfer-timeout", "1"]);
    let mut stream = connect(&target);
    stream.write_all(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1])).unwrap();
    stream.write_all(&request(&target, 1, NOTHING)).unwrap();
    let byte = frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
    let ended = loop {
        match read(&mut stream) {
            Ok(frame) if frame.kind == DATA => {
                std::thread::sleep(std::time::Duration::from_millis(50));
                let _ = stream.write_all(&byte);
            }
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(!is_timeout(&ended), "the connection stays open");
    assert_eq!(target.metric("tavola_connections_stalled_total"), 1);
    target.assert_unharmed();
}

/// A reply to HEAD has no body, whatever it is a reply to: one would be an error of the protocol. It has the length that
/// the body would have had, as over HTTP/1.
#[tokio::test]
async fn replies_to_head_have_no_body() {
    let target = Target::start(&[]);
    let admin = target.admin_address();
    let service = target.server.address();
    let paths = [
        (service, target.path("Tables")),
        (service, target.path(NOTHING)),
        (service, "/nobody/Tables".to_owned()),
        (service, "/devstoreaccount1/Tables".to_owned()),
        (admin, "/health".to_owned()),
        (admin, "/nothing".to_owned()),
    ];
    for (address, path) in paths {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        let uri = format!("http://{address}{path}");
        let request = ::http::Request::head(uri).body(()).unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        let (head, mut body) = answer.await.expect("an answer").into_parts();
        if let Some(data) = body.data().await {
            panic!("{path}: {data:?}");
        }
        drop((sender, body));
        connection.await.unwrap().expect("no error of the protocol");
        let length = head.headers.get("content-length").expect("a length").to_str().unwrap();

        let mut stream = TcpStream::connect(address).unwrap();
        let request =
            format!("HEAD {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let answer = String::from_utf8(super::read_until_closed(&mut stream)).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {} ", head.status.as_u16())), "{answer}");
        assert!(answer.contains(&format!("content-length: {length}\r\n")), "{path}: {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{path}: {answer}");
        assert_ne!(length, "0", "{path}");
    }
    target.assert_unharmed();
}

/// All connections together have a limit of requests; beyond it they are told to come again.
#[tokio::test(flavor = "multi_thread")]
async fn requests_over_all_connections_have_a_limit() {
    let target = Target::start(&["--http2-requests-max", "10"]);
    let mut shut = h2::client::Builder::new();
    shut.initial_window_size(0);
    let mut statuses = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let (mut sender, connection) = dial(&target, shut.clone()).await;
        kept.push(tokio::spawn(connection));
        for _ in 0..5 {
            let request = ::http::Request::get(uri(&target, NOTHING)).body(()).unwrap();
            sender = sender.ready().await.unwrap();
            let (answer, _) = sender.send_request(request, true).unwrap();
            let answer = answer.await.expect("an answer");
            statuses.push(answer.status().as_u16());
            // The reply is kept, and not taken.
            kept.push(tokio::spawn(async move {
                let _answer = answer;
                std::future::pending().await
            }));
        }
    }
    assert_eq!(statuses[..10], [404; 10]);
    assert_eq!(statuses[10..], [503; 5]);
    assert_eq!(target.metric("tavola_http2_requests_refused_total"), 5);
    // Others are not concerned, and when the replies have been taken or dropped there is room again.
    target.client.query(&target.table, &[]).send().expect(200);
    kept.into_iter().for_each(|task| task.abort());
    target.wait_until("tavola_connections", ..=2);
    let (mut sender, connection) = dial(&target, h2::client::Builder::new()).await;
    let connection = tokio::spawn(connection);
    let request = ::http::Request::get(uri(&target, NOTHING)).body(()).unwrap();
    let (answer, _) = sender.send_request(request, true).unwrap();
    assert_eq!(answer.await.expect("an answer").status(), 404);
    connection.abort();
}

/// A connection without requests is closed in order, however well it answers pings.
#[tokio::test]
async fn an_idle_connection_is_closed() {
    let target = Target::start(&["--tableKeepAliveTimeout", "1"]);
    let (mut sender, connection) = dial(&target, h2::client::Builder::new()).await;
    let connection = tokio::spawn(connection);
    let request = ::http::Request::get(uri(&target, "Tables")).body(()).unwrap();
    let (answer, _) = sender.send_request(request, true).unwrap();
    assert_eq!(answer.await.expect("an answer").status(), 200);
    let ended = tokio::time::timeout(super::GIVE_UP, connection).await;
    let ended = ended.expect("the connection is closed").unwrap();
    assert!(ended.is_ok(), "{ended:?}");
}

fn uri(target: &Target, path: &str) -> String {
    format!("http://{}{}", target.server.address(), target.path(path))
}

async fn dial(
    target: &Target,
    builder: h2::client::Builder,
) -> (SendRequest<Bytes>, impl Future<Output = Result<(), h2::Error>> + use<>) {
    let stream = tokio::net::TcpStream::connect(target.server.address()).await.unwrap();
    builder.handshake::<_, Bytes>(stream).await.expect("HTTP/2")
}
