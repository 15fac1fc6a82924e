//! No secret is ever told: not in a log at its most verbose, not in an answer, not in the list of processes.
//!
//! A server does everything it can be asked to do, well and badly, and whatever it has said is searched.

use std::io::BufReader;
use std::net::TcpStream;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{
    AccountSasSpec, KeyRangeLimit, Permissions, ResourceTypes, TableSasSpec,
};
use tavola_wire::auth::shared_key::{Scheme, SignedRequest};

use crate::server::bearer::{self, AUDIENCE, CONTRIBUTOR, ISSUER, Issuer};
use crate::support::client::entity_path;
use crate::support::stream::trusting;
use crate::support::{
    Batch, Client, Credentials, Launch, Response, Server, encode, http, minutes_from_now, now,
};

/// Two keys that are text, so that they are found in whatever form they are printed.
const KEYS: [&str; 2] = ["the-first-key-of-the-account", "the-second-key-of-the-account"];
const ACCOUNT: &str = "acct";

/// Texts that nobody may see, by what they are.
#[derive(Default)]
struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// In the forms in which a careless line would show it.
    fn add(&mut self, what: &str, secret: &str) {
        self.0.push((what.to_owned(), secret.to_owned()));
        self.0.push((format!("{what}, encoded"), encode(secret)));
        let bytes = format!("{:?}", &secret.as_bytes()[..12.min(secret.len())]);
        self.0.push((format!("{what}, as bytes"), bytes.trim_end_matches(']').to_owned()));
    }

    fn add_key(&mut self, key: &str) {
        self.add("an account key", key);
        self.add("an account key in base64", &STANDARD.encode(key));
    }

    /// The signature of a token.
    fn add_token(&mut self, token: &str) {
        let signature =
            http::between(&format!("{token}&"), "sig=", "&").expect("a signature").to_owned();
        let plain = signature.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
        self.add("the signature of a token", &plain);
    }

    #[track_caller]
    fn assert_not_in(&self, place: &str, text: &str) {
        for (what, secret) in &self.0 {
            assert!(!text.contains(secret.as_str()), "{what} ({secret}) in {place}: {text}");
        }
    }
}

fn key(index: usize) -> AccountKey {
    AccountKey::from_bytes(KEYS[index].as_bytes())
}

/// Everything that was answered, in one text.
#[derive(Default)]
struct Answers(String);

impl Answers {
    fn add(&mut self, answer: &Response) {
        let body = String::from_utf8_lossy(&answer.body);
        let Response { status, reason, headers, .. } = answer;
        self.0.push_str(&format!("{status} {reason} {headers:?} {body}\n"));
    }
}

/// A server at its most talkative, with keys from a file and bearer tokens.
fn talkative(issuer: &Issuer, format: &str) -> Arc<Server> {
    let folder = tempfile::tempdir().expect("a folder");
    bearer::write_keys(folder.path(), &[issuer]);
    let accounts = format!("{ACCOUNT}:{}:{}\n", STANDARD.encode(KEYS[0]), STANDARD.encode(KEYS[1]));
    std::fs::write(folder.path().join("accounts"), accounts).expect("a file");
    let config = format!(
        "[bearer]\nissuer = \"{ISSUER}\"\naudiences = [\"{AUDIENCE}\"]\njwks-file = \"keys.json\"\n\
         allow-http = true\n"
    );
    std::fs::write(folder.path().join("tavola.toml"), config).expect("a file");
    let launch = Launch::new()
        .env("TAVOLA_LOG", "trace")
        .args(["--config", "tavola.toml", "--accounts-file", "accounts", "--slow-query-ms", "0"])
        .args(["--debug", "debug.log", "--admin-port", "0", "--log-format", format])
        .args(["--access-log", "access.log"]);
    Arc::new(Server::start_in(launch, folder))
}

fn with(server: &Arc<Server>, credentials: Credentials) -> Client {
    let mut client = Client::with(server, credentials);
    (client.account, client.root) = (ACCOUNT.to_owned(), ACCOUNT.to_owned());
    client
}

#[test]
fn secrets_are_not_told() {
    for format in ["text", "json"] {
        let issuer = Issuer::new("one");
        let server = talkative(&issuer, format);
        let (mut secrets, mut answers) = (Secrets::default(), Answers::default());
        KEYS.iter().for_each(|key| secrets.add_key(key));
        let owner = with(&server, Credentials::Key(Scheme::SharedKey, key(0)));
        let table = owner.new_table();
        owner.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
        shared_keys(&owner, &table, &mut secrets, &mut answers);
        tokens(&owner, &table, &mut secrets, &mut answers);
        bearers(&owner, &table, &issuer, &mut secrets, &mut answers);
        malformed_headers(&owner, &table, &mut secrets, &mut answers);
        over_http_2(&server, &table, &mut secrets);

        let admin = server.admin_address().expect("an admin port");
        for path in ["/metrics", "/health", "/ready", "/other"] {
            let mut stream = BufReader::new(TcpStream::connect(admin).expect("a connection"));
            let headers = [("Host".to_owned(), admin.to_string())];
            http::write(stream.get_mut(), "GET", path, &headers, b"").expect("a request");
            answers.add(&http::read(&mut stream).expect("an answer"));
        }
        let debug = std::fs::read_to_string(server.folder().join("debug.log")).expect("a log");
        for log in [&debug, &server.log()] {
            assert!(log.contains("QueryEntities") && log.contains("request refused"), "{log}");
            assert!(log.contains("slow query"), "{log}");
            assert!(log.contains("(redacted)"), "{log}");
        }
        secrets.assert_not_in("the debug log", &debug);
        let access = std::fs::read_to_string(server.folder().join("access.log")).expect("a log");
        assert!(access.lines().count() > 10, "{access}");
        secrets.assert_not_in("the access log", &access);
        secrets.assert_not_in("standard error", &server.log());
        secrets.assert_not_in("standard output", &server.lines().join("\n"));
        secrets.assert_not_in("an answer", &answers.0);
        if cfg!(target_os = "linux") {
            let path = format!("/proc/{}/cmdline", server.process_id());
            let listed = std::fs::read(path).expect("a process");
            secrets.assert_not_in("the list of processes", &String::from_utf8_lossy(&listed));
        }
    }
}

/// Signatures of requests: those that were sent, and those that would have been right.
fn shared_keys(owner: &Client, table: &str, secrets: &mut Secrets, answers: &mut Answers) {
    let date = httpdate::fmt_http_date(now());
    let target = entity_path(table, "p", "r");
    let path = format!("/{ACCOUNT}{target}");
    let signed = SignedRequest {
        verb: "GET",
        content_md5: "",
        content_type: "",
        date: &date,
        account: ACCOUNT,
        raw_path: &path,
        comp: None,
    };
    let wrong = AccountKey::from_bytes(b"a key of nobody");
    for (scheme, key, status) in [
        (Scheme::SharedKey, key(0), 200),
        (Scheme::SharedKeyLite, key(1), 200),
        (Scheme::SharedKey, wrong.clone(), 403),
        (Scheme::SharedKeyLite, wrong, 403),
    ] {
        for right in [&key, &self::key(0), &self::key(1)] {
            let header = signed.sign(scheme, right);
            let (_, signature) = header.split_once(':').expect("a signature");
            secrets.add("the signature of a request", signature);
        }
        for (accept, status) in [
            ("application/json", status),
            ("*/*", status),
            // There is no Atom, for those who may ask.
            ("application/xml", if status == 200 { 415 } else { status }),
        ] {
            let request = owner.get(&target).header("x-ms-date", &date).accept(accept);
            let answer = request.header("Authorization", signed.sign(scheme, &key)).send();
            answers.add(&answer.expect(status));
        }
        let old = owner.get(&target).header("x-ms-date", "Thu, 01 Jan 2015 00:00:00 GMT");
        answers.add(&old.header("Authorization", signed.sign(scheme, &key)).send().expect(403));
    }
}

/// Tokens, in URLs of every operation and in places where they do not belong.
fn tokens(owner: &Client, table: &str, secrets: &mut Secrets, answers: &mut Answers) {
    let spec =
        AccountSasSpec::new(Permissions::ACCOUNT_ALL, ResourceTypes::ALL, minutes_from_now(9));
    let everything = spec.sign(ACCOUNT, &key(0));
    let expired = AccountSasSpec { expiry: minutes_from_now(-9), ..spec.clone() };
    let expired = expired.sign(ACCOUNT, &key(1));
    let forged = spec.sign(ACCOUNT, &AccountKey::from_bytes(b"a key of nobody"));
    let ranged = TableSasSpec {
        range: KeyRangeLimit::new(Some("x"), None, Some("y"), None).expect("a range"),
        ..TableSasSpec::new(table, Permissions::TABLE_ALL, minutes_from_now(9))
    };
    let ranged = ranged.sign(ACCOUNT, &key(0));
    let of_policy = TableSasSpec::with_policy(table, "unknown").sign(ACCOUNT, &key(1));
    let tampered = ranged.replace("spk=x", "spk=a");
    for token in [&everything, &expired, &forged, &ranged, &of_policy, &tampered] {
        secrets.add_token(token);
        let client = owner.with_sas(token.as_str());
        let entity = json!({"PartitionKey": "p", "RowKey": "new"});
        let batch =
            Batch::new().insert(&client, table, &entity).delete(&client, table, ("p", "new"), "*");
        for answer in [
            client.query(table, &[]).send(),
            client.query(table, &[("$filter", "this is no filter")]).send(),
            client.query(table, &[("NextPartitionKey", "no token")]).send(),
            client.query("missing", &[]).send(),
            client.query("1", &[]).send(),
            client.entity(table, ("p", "r")),
            client.entity(table, ("p", "missing")),
            client.put(table, ("p", "r"), &json!({"A": [1]})).send(),
            client.put(table, ("p", "r"), &json!({})).if_match("no etag").send(),
            client.merge(table, ("p", "r"), &json!({"A": 1})).send(),
            client.remove(table, ("p", "other"), "*"),
            client.insert(table, &entity),
            client.create_table("tables"),
            client.drop_table("missing"),
            client.get("/Tables").send(),
            client.get(format!("/{table}?comp=acl")).send(),
            client.get("/?restype=service&comp=properties").send(),
            client.get("/?restype=service&comp=nonsense").send(),
            client.request("PUT", "/?restype=service&comp=properties").body("a/b", "<x").send(),
            client.request("OPTIONS", format!("/{table}")).send(),
            client.request("TRACE", format!("/{table}")).send(),
            client.get("/%zz").send(),
            batch.send(&client).response,
            client.request("POST", "/$batch").body("multipart/mixed", "nonsense").send(),
            // With the question mark encoded, the token is part of the path.
            owner.anonymous().get(format!("/{table}%3F{token}")).send(),
            owner.anonymous().get(format!("/{table}%3F{}", encode(token))).send(),
            owner
                .anonymous()
                .get(format!("/{table}(PartitionKey='{}',RowKey='')", encode(token)))
                .send(),
            // In a batch, where nobody asks for one.
            Batch::new()
                .operation(owner, "DELETE", &format!("/{table}('x')?{token}"), "", None)
                .send(owner)
                .response,
        ] {
            answers.add(&answer);
        }
    }
}

fn bearers(
    owner: &Client,
    table: &str,
    issuer: &Issuer,
    secrets: &mut Secrets,
    answers: &mut Answers,
) {
    let good = issuer.token(&bearer::claims(&[CONTRIBUTOR]));
    let powerless = issuer.token(&bearer::claims(&[]));
    let unknown = Issuer::new("two").token(&bearer::claims(&[CONTRIBUTOR]));
    let forged = Issuer::new("one").token(&bearer::claims(&[CONTRIBUTOR]));
    let nonsense = "eyJhbGciOiJub25lIn0.c2VjcmV0IGNsYWltcw.c2lnbmF0dXJl".to_owned();
    for token in [good, powerless, unknown, forged, nonsense] {
        for part in token.split('.').skip(1) {
            secrets.add("a part of a bearer token", part);
        }
        let client = owner.as_other(Credentials::Bearer(token));
        for version in ["2019-02-02", "2020-12-06"] {
            let request = client.get(entity_path(table, "p", "r"));
            answers.add(&request.header("x-ms-version", version).send());
        }
        answers.add(&client.query(table, &[("$filter", "no filter")]).send());
    }
}

fn malformed_headers(owner: &Client, table: &str, secrets: &mut Secrets, answers: &mut Answers) {
    let signature = key(0).sign("something else").to_base64();
    secrets.add("a signature in a malformed header", &signature);
    for header in [
        signature.clone(),
        format!("SharedKey {signature}"),
        format!("SharedKey :{signature}"),
        format!("SharedKey {ACCOUNT}:{signature}{signature}"),
        format!("SharedKey other:{signature}"),
        format!("SharedKeyLite {ACCOUNT}:{}", &signature[1..]),
        format!("Basic {signature}"),
        format!("Bearer {signature} {signature}"),
        format!("bearer {signature}"),
    ] {
        let request = owner.query(table, &[]).header("Authorization", header);
        let answer = request.send();
        assert!((400..404).contains(&answer.status), "{answer:?}");
        answers.add(&answer);
    }
}

/// The library for HTTP/2 has a log of its own.
fn over_http_2(server: &Arc<Server>, table: &str, secrets: &mut Secrets) {
    let spec = AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, minutes_from_now(8));
    let token = spec.sign(ACCOUNT, &key(0));
    secrets.add_token(&token);
    let signature = key(1).sign("over HTTP/2").to_base64();
    secrets.add("a signature over HTTP/2", &signature);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address()).await.expect("a connection");
        let io = TokioIo::new(stream);
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut sender, connection) = handshake.await.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        for authorization in [None, Some(format!("SharedKey {ACCOUNT}:{signature}"))] {
            let uri = format!("http://{}/{ACCOUNT}/{table}?{token}", server.address());
            let mut request = ::http::Request::get(uri).header("accept", "application/json");
            if let Some(authorization) = &authorization {
                request = request.header("authorization", authorization);
            }
            let request = request.body(Empty::<bytes::Bytes>::new()).expect("a request");
            let answer = sender.send_request(request).await.expect("an answer");
            let expected = if authorization.is_some() { 403 } else { 200 };
            assert_eq!(answer.status().as_u16(), expected);
            let body = answer.into_body().collect().await.expect("a body").to_bytes();
            secrets.assert_not_in("an answer over HTTP/2", &String::from_utf8_lossy(&body));
        }
        drop(sender);
        connection.abort();
    });
}

/// The private key of the certificate is not told either, whatever the handshakes are like.
#[test]
fn the_key_of_the_certificate_is_not_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Launch::new().args(["cert", "--out", "tls"]).command(folder.path()).output();
    let made = made.expect("it runs");
    assert!(made.status.success());
    let pem = std::fs::read_to_string(folder.path().join("tls/key.pem")).expect("a key");
    let tls = trusting(&folder.path().join("tls/cert.pem"));
    let launch = Launch::new().env("TAVOLA_LOG", "trace").args([
        "--cert",
        "tls/cert.pem",
        "--key",
        "tls/key.pem",
        "--debug",
        "debug.log",
    ]);
    let server = Arc::new(Server::start_in(launch, folder));
    let mut client = Client::new(&server);
    client.route.tls = Some(tls);
    client.new_table();
    // A handshake that fails is logged.
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\n\r\n").expect("it is sent");
    let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    let read = || std::fs::read_to_string(server.folder().join("debug.log")).expect("a log");
    // The connection ends a moment before the log says why.
    let mut tries = 0..500;
    while !read().contains("TLS handshake failed") && tries.next().is_some() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let debug = read();
    assert!(debug.contains("TLS handshake failed"), "{debug}");
    let told = [
        String::from_utf8_lossy(&made.stdout).into_owned(),
        server.log(),
        debug,
        server.lines().join("\n"),
    ];
    for line in pem.lines().filter(|line| !line.starts_with("---")) {
        assert!(told.iter().all(|told| !told.contains(line)), "{told:?}");
    }
}

/// Files and variables with keys that cannot be read: the error tells where and why, never the text.
#[test]
fn errors_at_the_start_do_not_quote_keys() {
    let secret = "c2VjcmV0IGtleSBvZiBhbiBhY2NvdW50";
    let (half, name) = (&secret[..12], "accounts");
    for text in [
        secret.to_owned(),
        format!("acct {secret}"),
        format!("acct:{secret}?"),
        format!("acct:{secret}\nacct:{secret}"),
        format!("acct:{secret}:{secret}:{secret}"),
        format!("Acct:{secret}"),
        format!("acct:\n{secret}"),
        format!("acct={secret}"),
        format!(":{secret}"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(name), &text).expect("a file");
        let variable = |name: &str| Launch::new().env(name, text.replace('\n', ";"));
        for launch in [
            Launch::new().args(["--accounts-file", name]),
            variable("TAVOLA_ACCOUNTS"),
            variable("AZURITE_ACCOUNTS"),
        ] {
            // Traces take long to write, and hold names of functions only.
            let launch = launch.env("RUST_BACKTRACE", "0");
            let output = launch.command(folder.path()).output().expect("it runs");
            let told = String::from_utf8_lossy(&output.stderr).into_owned()
                + &String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success(), "{text}");
            assert!(told.contains("account"), "{told}");
            assert!(!told.contains(half), "{told}");
        }
        // Someone may put the keys into the configuration file, where they do not belong.
        let config = format!("port = 0\naccounts = \"{}\"\n", text.replace('\n', ";"));
        std::fs::write(folder.path().join("tavola.toml"), config).expect("a file");
        let launch = Launch::new().args(["--config", "tavola.toml"]).env("RUST_BACKTRACE", "0");
        let output = launch.command(folder.path()).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("line 2") && !told.contains(half), "{told}");
    }
}
