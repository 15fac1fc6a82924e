//! What changes without a restart: accounts, certificates. And how a stop ends.

use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes};
use tavola_wire::auth::shared_key::Scheme;

use super::admin::{wait_for_log, wait_until};
use crate::support::{Client, Credentials, Launch, Server, minutes_from_now};

fn client(server: &Arc<Server>, account: &str, key: &[u8]) -> Client {
    let key = Credentials::Key(Scheme::SharedKey, AccountKey::from_bytes(key));
    let mut client = Client::with(server, key);
    client.account = account.to_owned();
    client.root = account.to_owned();
    client
}

/// Keys change when the file does. What was signed with the old ones is refused, also on a connection that was used
/// with it before; what the account has stored is still there.
#[test]
fn accounts_are_reloaded_when_their_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("accounts");
    std::fs::write(&file, "one:a2V5\n").unwrap();
    let launch = Launch::new().args(["--accounts-file", "accounts"]);
    let server = Arc::new(Server::start_in(launch, folder));
    let old = client(&server, "one", b"key");
    let table = old.new_table();
    let spec =
        AccountSasSpec::new(Permissions::ACCOUNT_ALL, ResourceTypes::ALL, minutes_from_now(10));
    let signed = old.with_sas(spec.sign("one", &AccountKey::from_bytes(b"key")));
    for _ in 0..3 {
        signed.query(&table, &[]).send().expect(200);
    }

    std::fs::write(&file, "one:bmV3\ntwo:a2V5\n").unwrap();
    wait_for_log(&server, "accounts reloaded");
    old.query(&table, &[]).send().expect_error(403, "AuthenticationFailed");
    signed.query(&table, &[]).send().expect_error(403, "AuthenticationFailed");
    client(&server, "one", b"new").query(&table, &[]).send().expect(200);
    client(&server, "two", b"key").new_table();

    // What cannot be read changes nothing.
    std::fs::write(&file, "one:***\n").unwrap();
    let log = wait_for_log(&server, "accounts not reloaded");
    assert!(!log.contains("***"), "{log}");
    client(&server, "one", b"new").query(&table, &[]).send().expect(200);

    std::fs::write(&file, "one:bmV3\n").unwrap();
    let gone = || Some(client(&server, "two", b"key").get("/Tables").send().status);
    wait_until("the account to go", || gone().filter(|status| *status == 404));
}

#[test]
fn a_hangup_reloads_although_nothing_changed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("accounts"), "one:a2V5\n").unwrap();
    let launch = Launch::new().args(["--accounts-file", "accounts"]);
    let server = Arc::new(Server::start_in(launch, folder));
    server.hang_up();
    wait_for_log(&server, "accounts reloaded");
    client(&server, "one", b"key").new_table();
}

fn make_certificate(folder: &std::path::Path) -> CertificateDer<'static> {
    let made = Launch::new().args(["cert", "--out", "tls", "--force"]).command(folder).output();
    let made = made.expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    CertificateDer::from_pem_file(folder.join("tls/cert.pem")).unwrap()
}

/// The certificate that the server shows.
fn shown(server: &Server, trusted: &CertificateDer<'static>) -> Option<CertificateDer<'static>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).ok()?;
    }
    connection.peer_certificates()?.first().cloned().map(CertificateDer::into_owned)
}

#[test]
fn certificates_are_reloaded_when_their_files_change() {
    let folder = tempfile::tempdir().unwrap();
    let first = make_certificate(folder.path());
    let launch = Launch::new().args(["--cert", "tls/cert.pem", "--key", "tls/key.pem"]);
    let server = Server::start_in(launch, folder);
    assert_eq!(shown(&server, &first), Some(first.clone()));
    let second = make_certificate(server.folder());
    assert_ne!(first, second);
    wait_for_log(&server, "certificate reloaded");
    wait_until("the new certificate", || shown(&server, &second));
    assert_eq!(shown(&server, &first), None, "the old one is not shown any more");
    std::fs::write(server.folder().join("tls/cert.pem"), "nothing").unwrap();
    wait_for_log(&server, "certificate not reloaded");
    assert_eq!(shown(&server, &second), Some(second.clone()));
}

/// Two moments in the form of certificates (RFC 5280, 4.1.2.5): `YYMMDDHHMMSSZ`, after a tag and a length.
fn validity(certificate: &[u8]) -> Vec<String> {
    let times = certificate.windows(15).filter(|bytes| bytes.starts_with(&[0x17, 13]));
    times.map(|bytes| String::from_utf8_lossy(&bytes[2..]).into_owned()).collect()
}

/// A certificate says where it is from, and does not outlive the year by far.
#[test]
fn a_development_certificate_has_a_subject_and_a_year() {
    let folder = tempfile::tempdir().unwrap();
    let made = make_certificate(folder.path());
    let contains = |text: &str| made.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(contains("Tavola development") && contains("localhost"));
    let validity = validity(&made);
    let year = |time: &str| time[..2].parse::<u32>().unwrap();
    assert_eq!(validity.len(), 2, "{validity:?}");
    assert!((1..=2).contains(&(year(&validity[1]) - year(&validity[0]))), "{validity:?}");
}

#[test]
fn a_stop_says_that_it_has_stopped() {
    let server = Launch::new().start();
    server.ask_to_stop();
    assert!(server.wait().success());
    let log = server.log();
    assert!(log.trim_end().ends_with("stopped"), "{log}");
    assert!(log.contains("stopping"), "{log}");
}

/// A client that holds on does not hold up a stop for longer than it was given.
#[test]
fn a_stop_ends_in_the_time_that_it_has() {
    use std::io::Write as _;
    let server = Launch::new().args(["--stop-timeout", "1"]).start();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = "POST /devstoreaccount1/Tables HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    // Without the flag the request would be waited for until its body is late: 20 seconds and more.
    server.ask_to_stop();
    assert!(server.wait().success());
    assert!(server.log().trim_end().ends_with("stopped"), "{}", server.log());
}
