//! Servers that cannot be reached: the error comes soon, and says where and why.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tavola_client::azure_core::error::ErrorKind;
use tavola_client::{
    CallOptions, ClientBuilder, Entity, ErrorExt, SharedKeyCredential, StatusCode, TableClient,
    UpdateMode,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tracing_subscriber::fmt::format::FmtSpan;

fn people(address: &str) -> ClientBuilder<TableClient> {
    TableClient::builder("people")
        .endpoint(format!("{address}/devstoreaccount1"))
        .credential(SharedKeyCredential::development())
}

/// An upsert that must fail, and how long that took.
async fn failure(people: &TableClient) -> (azure_core::Error, Duration) {
    let start = Instant::now();
    let entity = Entity::new("p", "r");
    let result = people.upsert_entity(&entity, UpdateMode::Replace, None).await;
    (result.unwrap_err(), start.elapsed())
}

#[tokio::test]
async fn a_closed_port_is_told_within_a_second() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    // As it comes: no setting is needed for this.
    let people = people(&format!("http://127.0.0.1:{port}")).build().unwrap();
    let (error, elapsed) = failure(&people).await;
    assert_eq!(
        error.to_string(),
        format!(
            "cannot connect to 127.0.0.1:{port}: connection refused (os error 111); is the service running?"
        )
    );
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert_eq!(*error.kind(), ErrorKind::Connection);
    assert!(error.is_transient() && !error.may_have_been_applied());
}

/// The server starts a little later than its client.
#[tokio::test]
async fn a_server_that_is_just_starting_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let people = people(&format!("http://{address}")).connect_retries(6).build().unwrap();
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let listener = TcpListener::bind(address).await.unwrap();
        answer(&listener, "HTTP/1.1 204 No Content\r\nETag: W/\"1\"\r\n\r\n").await;
    });
    let written = people.upsert_entity(&Entity::new("p", "r"), UpdateMode::Replace, None).await;
    assert_eq!(written.unwrap().status(), StatusCode::NoContent);
    server.await.unwrap();
}

#[tokio::test]
async fn a_name_that_nobody_has_is_told() {
    let (error, elapsed) =
        failure(&people("http://no-such-host.invalid:10002").build().unwrap()).await;
    let said = error.to_string();
    assert!(said.starts_with("cannot find the address of host no-such-host.invalid: "), "{said}");
    assert!(elapsed < Duration::from_secs(30), "{elapsed:?}");
    assert!(!error.may_have_been_applied());
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { answer(&listener, "HTTP/1.1 400 Bad Request\r\n\r\n").await });
    let (error, elapsed) = failure(&people(&format!("https://{address}")).build().unwrap()).await;
    let said = error.to_string();
    assert!(said.starts_with(&format!("cannot speak TLS with {address}: ")), "{said}");
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert!(!error.is_transient() && !error.may_have_been_applied());
}

/// The connection is made and no answer comes.
#[tokio::test]
async fn a_server_that_hangs_is_left_after_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let people = people(&format!("http://{address}"))
        .attempt_timeout(Duration::from_millis(200))
        .max_retries(0)
        .build()
        .unwrap();
    let (error, elapsed) = failure(&people).await;
    assert_eq!(error.to_string(), format!("no answer from {address} within 200ms"));
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert!(error.is_transient() && error.may_have_been_applied(), "it may have been read");
}

/// The deadline ends the retries too, that of a call before that of the client.
#[tokio::test]
async fn a_deadline_ends_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let people = people(&format!("http://{address}"))
        .attempt_timeout(Duration::from_millis(100))
        .deadline(Duration::from_millis(500))
        .build()
        .unwrap();
    let (error, elapsed) = failure(&people).await;
    assert_eq!(error.to_string(), format!("no answer from {address} within 500ms"));
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert!(error.is_transient() && error.may_have_been_applied());

    let options = CallOptions { deadline: Some(Duration::from_millis(50)), ..Default::default() };
    let error = people.delete(Some(options)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no answer from {address} within 50ms"));
}

/// What passes is tried again: a busy server, and a connection that breaks.
#[tokio::test]
async fn a_busy_server_and_a_broken_connection_are_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        answer(&listener, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
        answer(&listener, "").await;
        answer(&listener, "HTTP/1.1 204 No Content\r\nETag: W/\"1\"\r\nx-ms-request-id: 7\r\n\r\n")
            .await;
    });
    let people = people(&format!("http://{address}")).build().unwrap();
    let entity = Entity::new("p", "r");
    let written = people.upsert_entity(&entity, UpdateMode::Replace, None).await.unwrap();
    assert_eq!((written.request_id(), written.etag().as_ref()), (Some("7"), "W/\"1\""));
    server.await.unwrap();
}

#[tokio::test]
async fn a_connection_that_breaks_every_time_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        for _ in 0..2 {
            answer(&listener, "").await;
        }
    });
    let (error, _) =
        failure(&people(&format!("http://{address}")).max_retries(1).build().unwrap()).await;
    let said = error.to_string();
    assert!(said.starts_with(&format!("the connection to {address} broke: ")), "{said}");
    assert!(error.is_transient() && error.may_have_been_applied());
    server.await.unwrap();
}

#[test]
fn a_builder_says_what_is_missing() {
    let error = |builder: ClientBuilder<TableClient>| builder.build().unwrap_err().to_string();
    let people = || TableClient::builder("people");
    assert!(error(people()).contains("neither a connection string nor an endpoint"));
    assert!(error(people().endpoint("http://127.0.0.1")).contains("needs a credential"));
    let development = || people().connection_string("UseDevelopmentStorage=true");
    assert!(
        error(development().credential(SharedKeyCredential::development())).contains("its own")
    );
    assert!(error(development().user_agent("two words")).contains("user_agent=two words"));
    assert!(error(development().root_certificate("no certificate")).contains("certificate"));
    let unnamed =
        TableClient::builder("no-such-name").connection_string("UseDevelopmentStorage=true");
    assert!(unnamed.build().is_err());
}

/// What a log shows of the calls, without any setting.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// In a process of its own: whether a span is made is remembered for all threads, and other tests make calls that nobody
/// listens to.
#[test]
fn every_call_is_a_span() {
    let alone = ["--exact", "connect::every_call_is_a_span_alone", "--ignored"];
    let run = std::process::Command::new(std::env::current_exe().unwrap()).args(alone).output();
    let run = run.unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
#[ignore = "run by every_call_is_a_span"]
async fn every_call_is_a_span_alone() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        answer(&listener, "HTTP/1.1 404 Gone\r\nx-ms-request-id: 7\r\nContent-Length: 0\r\n\r\n")
            .await;
    });
    let people = people(&format!("http://{address}")).build().unwrap();
    let (_, _) = failure(&people).await;
    server.await.unwrap();
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for part in [
        "service=\"table\"",
        "operation=\"upsert_entity\"",
        "server.address=\"127.0.0.1\"",
        "http.response.status_code=404",
        "az.client_request_id=",
        "az.service_request_id=\"7\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Reads a request and answers this.
async fn answer(listener: &TcpListener, text: &str) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let _ = stream.read(&mut [0; 4096]).await;
    let _ = stream.write_all(text.as_bytes()).await;
}
