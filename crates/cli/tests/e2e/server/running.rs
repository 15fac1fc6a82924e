//! Running it: flags, files, ports, TLS, HTTP/2, stopping, and what is told where.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Output;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes};
use tavola_wire::auth::shared_key::Scheme;

use crate::support::client::unused_name;
use crate::support::server::LISTENING;
use crate::support::{
    ACCOUNT, Client, Credentials, KEY, Launch, Response, Server, http, minutes_from_now,
};

/// For localhost, as `openssl x509 -req -signkey` makes them.
const VERSION_1_CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBJTCBywIURLf5a1qMB/fqCGf8/KiySNmfjKswCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNzIzNTc1N1oYDzIxMjYxMDI0MjM1NzU3
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AARlaG1uJIZ+sQ/zCkzR6ONPWZJbjBkRgQdi19EdX1IWKxPIWQ1CnpMmv8JK/Hd0
T5kzpPIqJtEJBq7ffl6/tsLKMAoGCCqGSM49BAMCA0kAMEYCIQCbsBYIF/HHamwC
R5yFpXBknwSNUZOTkFET6pfQ6ycdvwIhAPLZitsGzM+djBkyzmrJnklNiyLKxtHQ
gm2bwxZQPLB1
-----END CERTIFICATE-----
";

fn start(launch: Launch) -> (Arc<Server>, Client) {
    let server = Arc::new(launch.start());
    let client = Client::new(&server);
    (server, client)
}

/// A token for everything, for clients that cannot sign.
fn token(account: &str, key: &AccountKey) -> String {
    let spec =
        AccountSasSpec::new(Permissions::ACCOUNT_ALL, ResourceTypes::ALL, minutes_from_now(10));
    spec.sign(account, key)
}

fn development_token() -> String {
    token(ACCOUNT, &AccountKey::from_base64(KEY).unwrap())
}

/// A run that is expected to fail at the start.
fn failed(launch: &Launch, folder: &std::path::Path) -> (Output, String) {
    let output = launch.command(folder).output().expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{told}");
    (output, told)
}

/// The lines at the start: a connection string to paste, and the phrase that test tools wait for, with the port
/// that was picked.
#[test]
fn port_0_prints_what_it_got() {
    let (server, client) = start(Launch::new());
    let address = server.address();
    assert_ne!(address.port(), 0);
    let lines = server.lines();
    let last = lines.last().expect("a line");
    assert!(last.ends_with(&format!("{LISTENING}http://{address}")), "{last}");
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};\
         TableEndpoint=http://{address}/{ACCOUNT};"
    );
    assert!(lines.iter().any(|line| line.contains(&connection)), "{lines:?}");
    client.new_table();
    assert!(server.data_folder().is_dir());
}

/// Every flag of Azurite is taken; those that mean nothing are warned about once.
#[test]
fn flags_of_azurite_are_accepted() {
    let (server, client) = start(Launch::new().args([
        "--silent",
        "--loose",
        "--skipApiVersionCheck",
        "--disableProductStyleUrl",
        "--disableTelemetry",
        "--oauth",
        "basic",
        "--pwd",
        "secret",
        "--extentMemoryLimit",
        "10",
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        "10000",
        "--blobKeepAliveTimeout",
        "5",
        "--queueHost",
        "127.0.0.1",
        "--queuePort",
        "10001",
        "--queueKeepAliveTimeout",
        "5",
        "--tableHost",
        "127.0.0.1",
        "--tableKeepAliveTimeout",
        "5",
        "--location",
        ".",
        "--debug",
        "debug.log",
    ]));
    let table = client.new_table();
    // --loose ignores options that are not served.
    client.get(format!("/{table}()?$orderby=Name")).send().expect(200);
    let log = server.log();
    for flag in ["--skipApiVersionCheck", "--disableTelemetry", "--oauth", "--pwd", "--blob"] {
        assert_eq!(log.matches(flag).count(), 1, "{flag} in {log}");
    }
    assert!(!log.contains("secret"));
    let debug = std::fs::read_to_string(server.folder().join("debug.log")).expect("a debug log");
    assert!(debug.contains("CreateTable"), "{debug}");
}

#[test]
fn in_memory_leaves_no_folder() {
    let (server, client) = start(Launch::new().arg("--inMemoryPersistence"));
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    assert_eq!(client.rows(&table, ""), ["r"]);
    assert!(!server.data_folder().exists());
    server.restart_cleanly();
    client.query(&table, &[]).send().expect_error(404, "TableNotFound");
    assert!(!server.data_folder().exists());
}

/// Accounts come from the environment, under our name or Azurite's.
#[test]
fn accounts_from_the_environment_and_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("accounts"), "# one a line\none:a2V5\ntwo:a2V5:a2V5Mg==\n")
        .unwrap();
    let from_file = Server::start_in(Launch::new().args(["--accounts-file", "accounts"]), folder);
    for server in [
        Launch::new().env("AZURITE_ACCOUNTS", "one:a2V5;two:a2V5").start(),
        Launch::new().env("TAVOLA_ACCOUNTS", "one:a2V5;two:a2V5").start(),
        from_file,
    ] {
        let server = Arc::new(server);
        for account in ["one", "two"] {
            let key = AccountKey::from_bytes(b"key");
            let mut client = Client::with(&server, Credentials::Key(Scheme::SharedKey, key));
            client.account = account.to_owned();
            client.root = account.to_owned();
            client.create_table("mine").expect(204);
        }
        let told = server.lines().join("\n");
        assert!(!told.contains("a2V5"), "{told}");
    }
}

/// The file has the same settings by their long names; a flag wins over it.
#[test]
fn settings_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = "in-memory = true\nadmin-port = 0\nslow-query-ms = 0\n";
    std::fs::write(folder.path().join("tavola.toml"), config).unwrap();
    let server = Server::start_in(Launch::new().args(["--config", "tavola.toml"]), folder);
    assert!(!server.data_folder().exists());
    assert!(server.lines().iter().any(|line| line.contains("/metrics")), "{:?}", server.lines());
}

#[test]
fn an_unknown_setting_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tavola.toml"), "in-memroy = true\n").unwrap();
    let launch = Launch::new().args(["--port", "0", "--config", "tavola.toml"]);
    let (_, told) = failed(&launch, folder.path());
    assert!(told.contains("in-memroy") && told.contains("tavola.toml"), "{told}");
    let (_, told) = failed(&Launch::new().arg("--no-such-flag"), folder.path());
    assert!(told.contains("--no-such-flag"), "{told}");
    let (_, told) = failed(&Launch::new().env("AZURITE_ACCOUNTS", "one:***"), folder.path());
    assert!(told.contains("one") && !told.contains("***"), "{told}");
}

/// One process per folder, with a clear word to the second.
#[test]
fn a_folder_serves_one_process() {
    let (server, client) = start(Launch::new());
    let table = client.new_table();
    let (output, told) = failed(&Launch::new().args(["--port", "0"]), server.folder());
    assert!(told.contains("another process is using the data folder"), "{told}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains(LISTENING));
    client.query(&table, &[]).send().expect(200);
    server.restart_cleanly();
    client.query(&table, &[]).send().expect(200);
}

#[test]
fn a_port_in_use_is_an_error() {
    let (server, _) = start(Launch::new());
    let port = server.address().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new().args(["--inMemoryPersistence", "--port", &port]);
    let (_, told) = failed(&launch, folder.path());
    assert!(told.contains(&port), "{told}");
}

fn admin_address(server: &Server) -> SocketAddr {
    server.admin_address().expect("a line that tells it")
}

fn plain_get(address: SocketAddr, path: &str) -> Response {
    let mut stream = BufReader::new(TcpStream::connect(address).expect("a connection"));
    let headers = [("Host".to_owned(), address.to_string())];
    http::write(stream.get_mut(), "GET", path, &headers, b"").expect("a request");
    http::read(&mut stream).expect("an answer")
}

/// Health, readiness and figures, on a port of their own.
#[test]
fn the_admin_port() {
    let (server, client) = start(Launch::new().args(["--admin-port", "0"]));
    let admin = admin_address(&server);
    assert_ne!(admin, server.address());
    assert_eq!(plain_get(admin, "/health").expect(200).text(), "ok\n");
    plain_get(admin, "/ready").expect(200);
    plain_get(admin, "/other").expect(404);
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(409);
    client.query(&table, &[]).send().expect(200);
    let metrics = plain_get(admin, "/metrics").expect(200);
    assert!(metrics.header("content-type").is_some_and(|kind| kind.contains("openmetrics")));
    for line in [
        "tavola_requests_total{service=\"table\",operation=\"InsertEntity\",class=\"2xx\"} 1\n",
        "tavola_requests_total{service=\"table\",operation=\"InsertEntity\",class=\"4xx\"} 1\n",
        "tavola_request_seconds_count{service=\"table\",operation=\"QueryEntities\"} 1\n",
        "tavola_rows_examined_total 1\n",
        "tavola_panics_total 0\n",
    ] {
        assert!(metrics.text().contains(line), "{line} in\n{}", metrics.text());
    }
    assert!(metrics.text().ends_with("# EOF\n"));
    // Not on the port of the service.
    assert_ne!(plain_get(server.address(), "/metrics").status, 200);
}

/// One line per slow query, with its kind and its cost.
#[test]
fn slow_queries_are_logged() {
    let (server, client) = start(Launch::new().args(["--slow-query-ms", "0"]));
    let table = client.new_table();
    for row in ["1", "2", "3"] {
        client.insert(&table, &json!({"PartitionKey": "p", "RowKey": row, "V": row})).expect(204);
    }
    client.matches(&table, "V eq '2'");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("slow query")).expect("a line");
    for part in [&table, "table scan", "rows_examined=3", "rows_returned=1", "request_id="] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

/// Logs for machines: each line is JSON with the id that the client was told.
#[test]
fn logs_can_be_json() {
    let launch = Launch::new().args(["--log-format", "json"]).env("TAVOLA_LOG", "debug");
    let (server, client) = start(launch);
    let answer = client.create_table(&unused_name()).expect(204);
    let id = answer.header("x-ms-request-id").expect("an id");
    let log = server.log();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let line = lines.iter().find(|line| line["request_id"] == id).expect("a line");
    assert_eq!((&line["operation"], &line["status"]), (&json!("CreateTable"), &json!(204)));
}

/// Connections beyond the limit are told so, and do not disturb the others.
#[test]
fn connections_have_a_limit() {
    let (server, client) = start(Launch::new().args(["--connections-max", "1"]));
    client.new_table();
    let mut second = BufReader::new(TcpStream::connect(server.address()).unwrap());
    let refused = http::read(&mut second).expect("an answer");
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    client.new_table();
}

/// A request that was accepted is answered after SIGTERM, and what it wrote is there.
#[test]
fn a_stop_finishes_what_was_accepted() {
    let (server, client) = start(Launch::new());
    let table = client.new_table();
    let body = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let target = format!("/{ACCOUNT}/{table}?{}", development_token());
    let headers = [
        ("Host", server.address().to_string()),
        ("Accept", "application/json".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Content-Length", body.len().to_string()),
        ("Expect", "100-continue".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let mut stream = BufReader::new(TcpStream::connect(server.address()).unwrap());
    http::write(stream.get_mut(), "POST", &target, &headers, b"").unwrap();
    // The server has the head and waits for the body.
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 100"), "{line}");
    stream.read_line(&mut line).unwrap();

    server.ask_to_stop();
    while TcpStream::connect(server.address()).is_ok() {
        std::thread::yield_now();
    }
    stream.get_mut().write_all(body.as_bytes()).unwrap();
    assert_eq!(http::read(&mut stream).expect("an answer").status, 201);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the connection is closed in order");
    assert!(server.wait().success());
    server.start_again();
    client.entity(&table, ("p", "r")).expect(200);
}

/// An idle connection does not hold up a stop.
#[test]
fn a_stop_closes_idle_connections() {
    let (server, client) = start(Launch::new());
    client.new_table();
    let _silent = TcpStream::connect(server.address()).unwrap();
    server.ask_to_stop();
    assert!(server.wait().success(), "{}", server.log());
    assert!(!server.log().contains("connections still open"), "{}", server.log());
}

fn certificate(folder: &std::path::Path) -> Output {
    Launch::new().args(["cert", "--out", "tls"]).command(folder).output().expect("it runs")
}

/// TLS with a certificate of `tavola cert`, over HTTP/1.1.
#[test]
fn tls_with_a_development_certificate() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certificate(folder.path()).status.success());
    assert!(!certificate(folder.path()).status.success(), "files are not replaced");
    use std::os::unix::fs::PermissionsExt as _;
    let key = std::fs::metadata(folder.path().join("tls/key.pem")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);

    let mut roots = rustls::RootCertStore::empty();
    let made = CertificateDer::from_pem_file(folder.path().join("tls/cert.pem")).unwrap();
    roots.add(made).unwrap();
    let launch = Launch::new().args(["--cert", "tls/cert.pem", "--key", "tls/key.pem"]);
    let server = Server::start_in(launch, folder);
    assert!(server.lines().last().unwrap().contains("https://"), "{:?}", server.lines());

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(server.address()).unwrap();
    let mut stream = BufReader::new(rustls::StreamOwned::new(connection, stream));
    let headers = [("Host".to_owned(), server.address().to_string())];
    let body = br#"{"TableName":"secure"}"#;
    let mut with_length = headers.to_vec();
    with_length.push(("Content-Length".to_owned(), body.len().to_string()));
    // A token for https alone is good here.
    let spec =
        AccountSasSpec::new(Permissions::ACCOUNT_ALL, ResourceTypes::ALL, minutes_from_now(10));
    let spec =
        AccountSasSpec { protocols: Some(tavola_wire::auth::sas::Protocols::HttpsOnly), ..spec };
    let token = spec.sign(ACCOUNT, &AccountKey::from_base64(KEY).unwrap());
    let target = format!("/{ACCOUNT}/Tables?{token}");
    http::write(stream.get_mut(), "POST", &target, &with_length, body).unwrap();
    let created = http::read(&mut stream).unwrap().expect(201);
    let location = format!("https://{}/{ACCOUNT}/Tables('secure')", server.address());
    assert_eq!(created.header("location"), Some(location.as_str()));
    http::write(stream.get_mut(), "GET", &target, &headers, b"").unwrap();
    assert!(http::read(&mut stream).unwrap().expect(200).text().contains("secure"));
}

#[test]
fn tls_needs_both_files() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certificate(folder.path()).status.success());
    failed(&Launch::new().args(["--cert", "tls/cert.pem"]), folder.path());
    let launch = Launch::new().args(["--cert", "tls/key.pem", "--key", "tls/key.pem"]);
    failed(&launch, folder.path());
}

/// Azurite's own test certificate is of version 1, which rustls does not take. The message has to say so.
#[test]
fn a_certificate_of_version_1_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certificate(folder.path()).status.success());
    std::fs::write(folder.path().join("tls/cert.pem"), VERSION_1_CERTIFICATE).unwrap();
    let launch = Launch::new().args(["--cert", "tls/cert.pem", "--key", "tls/key.pem"]);
    let (_, told) = failed(&launch, folder.path());
    assert!(told.contains("cert.pem holds an X.509 version 1 certificate"), "{told}");
    assert!(told.contains("tavola cert"), "{told}");
}

/// HTTP/2 without negotiation, many requests on one connection.
#[tokio::test]
async fn http_2_with_prior_knowledge() {
    let (server, client) = start(Launch::new());
    let table = client.new_table();
    let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let requests = (0..50).map(|row| {
        let mut sender = sender.clone();
        let entity = json!({"PartitionKey": "p", "RowKey": format!("{row:02}")});
        let uri = format!("http://{}/{ACCOUNT}/{table}?{}", server.address(), development_token());
        let request = ::http::Request::post(uri)
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .body(Full::new(bytes::Bytes::from(entity.to_string())))
            .unwrap();
        tokio::spawn(async move { sender.send_request(request).await })
    });
    for answer in requests.collect::<Vec<_>>() {
        let answer = answer.await.unwrap().expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.version()), (201, ::http::Version::HTTP_2));
        assert!(answer.headers().contains_key("etag"));
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"{\"odata.metadata\":\"http://"), "{body:?}");
    }
    drop(sender);
    connection.abort();
    assert_eq!(client.rows(&table, "").len(), 50);
}

/// The verb is the default one.
#[test]
fn serve_is_a_command_too() {
    let (_, client) = start(Launch::new().args(["serve", "--inMemoryPersistence"]));
    client.new_table();
}

/// Longer than any limit of these tests; a test that waits so long has failed.
const GIVE_UP: std::time::Duration = std::time::Duration::from_secs(15);

/// Sends this and nothing more; the server must end the connection, and others must not notice.
fn assert_closed_after(sent: &[u8]) {
    let (server, client) = start(Launch::new().args(["--tableKeepAliveTimeout", "1"]));
    let table = client.new_table();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(GIVE_UP)).unwrap();
    stream.write_all(sent).unwrap();
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    client.query(&table, &[]).send().expect(200);
    let waits = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(!ended.as_ref().is_err_and(waits), "the connection is still open: {answer:?}");
}

#[test]
fn a_connection_that_sends_half_a_head_is_closed() {
    assert_closed_after(b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: localhost\r\n");
}

#[test]
fn a_connection_that_does_not_speak_http_is_closed() {
    assert_closed_after(b"\x16\x03\x01 this is not HTTP, but something else\r\n\r\n");
}

/// A connection that never sends a byte holds one of the allowed connections; it must not do so for ever.
#[test]
fn a_connection_that_sends_nothing_is_closed() {
    assert_closed_after(b"");
}

/// The same with a beginning that could become HTTP/2.
#[test]
fn a_connection_that_sends_half_a_preface_is_closed() {
    assert_closed_after(b"PRI * HT");
}

/// Requests that follow each other without waiting are answered in order.
#[test]
fn requests_can_be_pipelined() {
    let (server, client) = start(Launch::new());
    let table = client.new_table();
    let mut stream = BufReader::new(TcpStream::connect(server.address()).unwrap());
    let headers = [("Host".to_owned(), server.address().to_string())];
    let token = development_token();
    let mut requests = Vec::new();
    for target in [format!("/{ACCOUNT}/{table}()?{token}"), format!("/{ACCOUNT}/missing()?{token}")]
    {
        http::write(&mut requests, "GET", &target, &headers, b"").unwrap();
    }
    stream.get_mut().write_all(&requests).unwrap();
    http::read(&mut stream).unwrap().expect(200);
    http::read(&mut stream).unwrap().expect(404);
}

/// A folder of something else is not touched.
#[test]
fn a_foreign_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("tavola-data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("holiday.jpg"), "a picture").unwrap();
    let (_, told) = failed(&Launch::new().args(["--port", "0"]), folder.path());
    assert!(told.contains("holiday.jpg"), "{told}");
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1);
}

/// Ctrl-C stops as well as SIGTERM does.
#[test]
fn an_interrupt_stops_cleanly() {
    let (server, client) = start(Launch::new());
    client.new_table();
    server.interrupt();
    assert!(server.wait().success(), "{}", server.log());
}

/// A folder of a newer version is left alone, with a word that says so.
#[test]
fn a_newer_format_is_refused() {
    let (server, client) = start(Launch::new());
    let table = client.new_table();
    server.ask_to_stop();
    assert!(server.wait().success());
    let marker = server.data_folder().join("TAVOLA");
    let text = std::fs::read_to_string(&marker).unwrap();
    std::fs::write(&marker, text.replace("format 1", "format 99")).unwrap();
    let (_, told) = failed(&Launch::new().args(["--port", "0"]), server.folder());
    assert!(told.contains("has format 99"), "{told}");
    std::fs::write(&marker, text).unwrap();
    server.start_again();
    client.query(&table, &[]).send().expect(200);
}
