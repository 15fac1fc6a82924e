//! Tokens of Entra, from any credential of `azure_core`: here one that signs for an issuer that the server trusts.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::{Duration, OffsetDateTime};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::KeyPair;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use tavola_client::{DEVELOPMENT_ACCOUNT, Entity, ErrorCode, ErrorExt, TableClient};

use crate::support::{options_trusting, start_server};

const ISSUER: &str = "https://issuer.example/tenant/";
const AUDIENCE: &str = "https://storage.azure.com";

/// Signs a token with one role for whoever asks.
#[derive(Debug)]
struct Signer {
    pkcs8: Vec<u8>,
    role: &'static str,
}

impl Signer {
    fn token(&self, expiry: OffsetDateTime) -> String {
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let header = json!({"alg": "ES256", "typ": "JWT", "kid": "one"});
        let claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "someone", "roles": [self.role],
            "exp": expiry.unix_timestamp(), "nbf": expiry.unix_timestamp() - 7200,
        });
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, &self.pkcs8, &random).expect("a key");
        let signature = key.sign(&random, message.as_bytes()).expect("a signature");
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

#[async_trait]
impl TokenCredential for Signer {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        assert_eq!(scopes, ["https://storage.azure.com/.default"]);
        let expiry = OffsetDateTime::now_utc() + Duration::hours(1);
        Ok(AccessToken::new(self.token(expiry), expiry))
    }
}

/// The issuer's public key and the settings that name it, and a certificate: tokens travel over TLS alone.
fn prepare(folder: &Path, pair: &KeyPair) {
    let [4, coordinates @ ..] = pair.public_key_raw() else { panic!("an uncompressed point") };
    let (x, y) = coordinates.split_at(32);
    let key = json!({
        "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "one",
        "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
    });
    std::fs::write(folder.join("keys.json"), json!({ "keys": [key] }).to_string()).unwrap();
    let settings = format!(
        "[bearer]\nissuer = \"{ISSUER}\"\naudiences = [\"{AUDIENCE}\"]\njwks-file = \"keys.json\"\n"
    );
    std::fs::write(folder.join("tavola.toml"), settings).unwrap();
    let mut certificate = Command::new(env!("CARGO_BIN_EXE_tavola"));
    let made = certificate.args(["cert", "--out", "tls"]).current_dir(folder).output().unwrap();
    assert!(made.status.success());
}

#[tokio::test]
async fn a_token_opens_what_its_role_allows() {
    let folder = tempfile::tempdir().unwrap();
    let pair = KeyPair::generate().unwrap();
    prepare(folder.path(), &pair);
    let mut arguments = vec!["--inMemoryPersistence", "--config", "tavola.toml"];
    arguments.extend(["--cert", "tls/cert.pem", "--key", "tls/key.pem"]);
    let (_server, url) = start_server(folder.path(), &arguments);
    let certificate = std::fs::read(folder.path().join("tls/cert.pem")).unwrap();
    let people = |role| {
        let options = options_trusting(vec![certificate.clone()]);
        let signer = Arc::new(Signer { pkcs8: pair.serialize_der(), role });
        let endpoint = format!("{url}/{DEVELOPMENT_ACCOUNT}");
        TableClient::new(&endpoint, "people", signer, Some(options)).unwrap()
    };

    let writer = people("Storage Table Data Contributor");
    writer.create(None).await.unwrap();
    let jens = Entity::new("Sales", "00010").with("Age", 34);
    writer.insert_entity(&jens, None).await.unwrap();

    let reader = people("Storage Table Data Reader");
    let read = reader.get_entity::<Entity>("Sales", "00010", None).await.unwrap();
    assert_eq!(read.value, jens);
    let error = reader.insert_entity(&Entity::new("Sales", "1"), None).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AuthorizationPermissionMismatch));
    assert!(!error.is_transient() && !error.may_have_been_applied());
}
