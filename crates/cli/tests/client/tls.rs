//! A server with a certificate of its own: trusted when it is given, refused when it is not.

use std::process::Command;

use tavola_client::{
    DEVELOPMENT_ACCOUNT, ErrorExt, SharedKeyCredential, TableServiceClient, TransportOptions,
    new_transport,
};

use crate::support::{options_trusting, start_server};

fn client(url: &str, root_certificates: Vec<Vec<u8>>) -> TableServiceClient {
    let options = options_trusting(root_certificates);
    let endpoint = format!("{url}/{DEVELOPMENT_ACCOUNT}");
    TableServiceClient::new(&endpoint, SharedKeyCredential::development(), Some(options)).unwrap()
}

#[tokio::test]
async fn a_certificate_is_trusted_if_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_tavola"))
        .args(["cert", "--out", "tls"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success());
    let arguments = ["--inMemoryPersistence", "--cert", "tls/cert.pem", "--key", "tls/key.pem"];
    let (_server, url) = start_server(folder.path(), &arguments);
    assert!(url.starts_with("https://"), "{url}");

    let pem = std::fs::read(folder.path().join("tls/cert.pem")).unwrap();
    client(&url, vec![pem]).create_table("people", None).await.unwrap();

    let error = client(&url, Vec::new()).create_table("animals", None).await.unwrap_err();
    let said = "the certificate of host 127.0.0.1 is not trusted: unknown issuer";
    assert_eq!(error.to_string(), said);
    assert!(!error.is_transient(), "waiting does not help");
    assert!(!error.may_have_been_applied(), "nothing was sent");
    assert!(
        new_transport(Some(TransportOptions {
            root_certificates: vec![b"no certificate".to_vec()],
            ..Default::default()
        }))
        .is_err()
    );
}
