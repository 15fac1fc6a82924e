//! Bearer tokens (wire-reference 10.6): whose are taken, what their roles allow, and every way to be refused.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::KeyPair;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use crate::support::client::unused_name;
use crate::support::{Client, Credentials, Launch, Response, Server, now_ticks};

pub(crate) const ISSUER: &str = "https://issuer.example/tenant/";
pub(crate) const AUDIENCE: &str = "https://storage.azure.com";
pub(crate) const CONTRIBUTOR: &str = "Storage Table Data Contributor";
const READER: &str = "Storage Table Data Reader";

/// A key of an issuer, with its id.
pub(crate) struct Issuer {
    id: &'static str,
    pair: KeyPair,
}

impl Issuer {
    pub(crate) fn new(id: &'static str) -> Self {
        Self { id, pair: KeyPair::generate().expect("a P-256 key") }
    }

    /// The public key as a member of a JWKS.
    fn jwk(&self) -> Value {
        let point = self.pair.public_key_raw();
        let [4, coordinates @ ..] = point else { panic!("an uncompressed point") };
        let (x, y) = coordinates.split_at(32);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        })
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": self.id});
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", encode(&header), encode(claims));
        let random = SystemRandom::new();
        let der = self.pair.serialize_der();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random);
        let signature = key.expect("a key").sign(&random, message.as_bytes()).expect("a signature");
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

pub(crate) fn claims(roles: &[&str]) -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "exp": now_ticks().unix_seconds() + 600,
        "nbf": now_ticks().unix_seconds() - 600, "sub": "someone", "roles": roles,
    })
}

/// A server that trusts these keys.
pub(crate) fn serve(keys: &[&Issuer], more: &str) -> Arc<Server> {
    let folder = tempfile::tempdir().expect("a folder");
    write_keys(folder.path(), keys);
    std::fs::write(folder.path().join("tavola.toml"), config(more)).expect("a file");
    Arc::new(Server::start_in(Launch::new().args(["--config", "tavola.toml"]), folder))
}

fn config(more: &str) -> String {
    format!(
        "[bearer]\nissuer = \"{ISSUER}\"\naudiences = [\"{AUDIENCE}\", \"https://other.example\"]\n\
         jwks-file = \"keys.json\"\n{more}\n[bearer.roles]\nAuditor = \"r\"\n"
    )
}

pub(crate) fn write_keys(folder: &std::path::Path, keys: &[&Issuer]) {
    let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
    std::fs::write(folder.join("keys.json"), json!({ "keys": keys }).to_string()).expect("a file");
}

fn bearer(server: &Arc<Server>, token: String) -> Client {
    Client::with(server, Credentials::Bearer(token))
}

/// Roles grant what their permissions say, and no more.
#[test]
fn roles_decide() {
    let issuer = Issuer::new("one");
    let server = serve(&[&issuer], "allow-http = true");
    let as_role = |roles: &[&str]| bearer(&server, issuer.token(&claims(roles)));
    let writer = as_role(&[CONTRIBUTOR]);
    let table = writer.new_table();
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    writer.insert(&table, &entity).expect(204);
    writer.put(&table, ("p", "r"), &entity).send().expect(204);
    let mismatch = "AuthorizationPermissionMismatch";
    for reader in [as_role(&[READER]), as_role(&["Auditor"]), as_role(&["unknown", READER])] {
        reader.entity(&table, ("p", "r")).expect(200);
        assert_eq!(reader.rows(&table, ""), ["r"]);
        reader.put(&table, ("p", "r"), &entity).send().expect_error(403, mismatch);
        reader.remove(&table, ("p", "r"), "*").expect_error(403, mismatch);
        reader.create_table(&unused_name()).expect_error(403, mismatch);
    }
    as_role(&[READER]).get("/Tables").send().expect(200);
    as_role(&["Auditor"]).get("/Tables").send().expect_error(403, mismatch);
    as_role(&[]).entity(&table, ("p", "r")).expect_error(403, mismatch);
    // 3.5: access policies are not known to bearers.
    let acl = writer.get(format!("/{table}?comp=acl")).send();
    acl.expect_error(404, "ResourceNotFound");
    writer.remove(&table, ("p", "r"), "*").expect(204);
}

#[track_caller]
fn assert_refused(response: Response) {
    let refused = response.expect_error(401, "InvalidAuthenticationInfo");
    let challenge = refused.header("www-authenticate").expect("a challenge");
    assert!(
        challenge.starts_with("Bearer authorization_uri=https://issuer.example/"),
        "{challenge}"
    );
    assert!(challenge.ends_with(&format!("resource_id={AUDIENCE}")), "{challenge}");
}

fn read(client: &Client) -> Response {
    client.get("/Tables").header("x-ms-version", "2020-12-06").send()
}

/// Issuer, audience, lifetime, signature, algorithm: each alone is enough to be refused.
#[test]
fn tokens_that_are_not_taken() {
    let issuer = Issuer::new("one");
    let stranger = Issuer::new("one");
    let server = serve(&[&issuer], "allow-http = true");
    read(&bearer(&server, issuer.token(&claims(&[READER])))).expect(200);
    let changed = |name: &str, value: Value| {
        let mut claims = claims(&[READER]);
        claims[name] = value;
        bearer(&server, issuer.token(&claims))
    };
    let now = now_ticks().unix_seconds();
    read(&changed("aud", json!(["https://else.example", "https://other.example"]))).expect(200);
    assert_refused(read(&changed("iss", json!("https://evil.example/"))));
    assert_refused(read(&changed("aud", json!("https://else.example"))));
    assert_refused(read(&changed("exp", json!(now - 600))));
    assert_refused(read(&changed("nbf", json!(now + 600))));
    assert_refused(read(&changed("exp", Value::Null)));
    assert_refused(read(&bearer(&server, stranger.token(&claims(&[READER])))));
    assert_refused(read(&bearer(&server, "not.a.token".to_owned())));

    let good = issuer.token(&claims(&[READER]));
    let (head, signature) = good.rsplit_once('.').expect("a signature");
    let (header, _) = head.split_once('.').expect("a header");
    let forged = URL_SAFE_NO_PAD.encode(claims(&[CONTRIBUTOR]).to_string());
    assert_refused(read(&bearer(&server, format!("{header}.{forged}.{signature}"))));
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
    let payload = URL_SAFE_NO_PAD.encode(claims(&[READER]).to_string());
    assert_refused(read(&bearer(&server, format!("{none}.{payload}."))));
    // Signed with the public key, as if it were a shared secret.
    let shared = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT","kid":"one"}"#);
    let message = format!("{shared}.{payload}");
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, issuer.pair.public_key_raw());
    let signature = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&secret, message.as_bytes()));
    assert_refused(read(&bearer(&server, format!("{message}.{signature}"))));
}

/// An issuer changes its keys, and the file is read again.
#[test]
fn new_keys_are_found() {
    let (old, new) = (Issuer::new("old"), Issuer::new("new"));
    let server = serve(&[&old], "allow-http = true");
    assert_refused(read(&bearer(&server, new.token(&claims(&[READER])))));
    write_keys(server.folder(), &[&old, &new]);
    // The file is read once a second at most, so that strangers cannot make the server read all the time.
    let client = bearer(&server, new.token(&claims(&[READER])));
    let mut tries = 0..200;
    while tries.next().is_some() && read(&client).status != 200 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    read(&client).expect(200);
}

/// 10.6: over TLS alone, unless configured; and not at all without configuration.
#[test]
fn tokens_need_tls_and_configuration() {
    let issuer = Issuer::new("one");
    let server = serve(&[&issuer], "");
    assert_refused(read(&bearer(&server, issuer.token(&claims(&[READER])))));
    let unconfigured = crate::support::shared();
    let refused = read(&bearer(&unconfigured, issuer.token(&claims(&[READER]))));
    refused.expect_error(401, "InvalidAuthenticationInfo");
}

/// 10.4: a bad token is answered 401 from version 2020-12-06 on, and 403 before.
#[test]
fn a_bad_token_of_an_older_version() {
    let issuer = Issuer::new("one");
    let server = serve(&[&issuer], "allow-http = true");
    let stranger = bearer(&server, Issuer::new("one").token(&claims(&[READER])));
    assert_refused(read(&stranger));
    let older = stranger.get("/Tables").header("x-ms-version", "2019-02-02").send();
    older.expect_error(403, "AuthenticationFailed");
}

/// The roles of a token count for every account that the server has: issuers know nothing of accounts.
#[test]
fn roles_count_for_every_account() {
    let issuer = Issuer::new("one");
    let folder = tempfile::tempdir().expect("a folder");
    write_keys(folder.path(), &[&issuer]);
    std::fs::write(folder.path().join("tavola.toml"), config("allow-http = true")).expect("a file");
    let launch = Launch::new().args(["--config", "tavola.toml"]);
    let launch = launch.env("TAVOLA_ACCOUNTS", "first:a2V5;second:b3RoZXI=");
    let server = Arc::new(Server::start_in(launch, folder));
    for account in ["first", "second"] {
        let mut client = bearer(&server, issuer.token(&claims(&[READER])));
        (client.account, client.root) = (account.to_owned(), account.to_owned());
        client.get("/Tables").send().expect(200);
        client.create_table("more").expect_error(403, "AuthorizationPermissionMismatch");
    }
}
