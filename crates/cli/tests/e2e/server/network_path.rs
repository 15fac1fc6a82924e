//! Someone between client and server, or a client that pretends to be behind one.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use serde_json::json;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{IpRange, Permissions, Protocols, TableSasSpec};

use crate::support::stream::trusting;
use crate::support::{ACCOUNT, Client, KEY, Launch, Server, minutes_from_now, shared_client};

/// Where TLS is served, nothing is answered without it.
#[test]
fn plain_http_is_not_answered_where_tls_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Launch::new().args(["cert", "--out", "tls"]).command(folder.path()).output();
    assert!(made.expect("it runs").status.success());
    let tls = trusting(&folder.path().join("tls/cert.pem"));
    let launch = Launch::new().args(["--cert", "tls/cert.pem", "--key", "tls/key.pem"]);
    let server = Arc::new(Server::start_in(launch, folder));
    let mut client = Client::new(&server);
    client.route.tls = Some(tls);
    client.get("/Tables").send().expect(200);

    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    let request = format!("GET /{ACCOUNT}/Tables HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
}

/// Headers of proxies are anyone's to write: they change neither the address nor the protocol of a client.
#[test]
fn headers_of_proxies_are_not_believed() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    let key = AccountKey::from_base64(KEY).expect("a key");
    let spec = TableSasSpec::new(&table, Permissions::READ, minutes_from_now(9));
    let from = TableSasSpec { ip_range: IpRange::parse("10.0.0.1"), ..spec.clone() };
    let https = TableSasSpec { protocols: Some(Protocols::HttpsOnly), ..spec };
    for (spec, code) in
        [(from, "AuthorizationSourceIPMismatch"), (https, "AuthorizationProtocolMismatch")]
    {
        let holder = client.with_sas(spec.sign(ACCOUNT, &key));
        let answer = holder
            .query(&table, &[])
            .header("X-Forwarded-For", "10.0.0.1")
            .header("X-Real-IP", "10.0.0.1")
            .header("Forwarded", "for=10.0.0.1;proto=https")
            .header("X-Forwarded-Proto", "https")
            .send();
        answer.expect_error(403, code);
    }
}
