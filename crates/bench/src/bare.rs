//! The bare server: what HTTP alone costs on this machine, in the same stack as the service's.
//!
//! Asked for tables it answers 600 bytes of JSON to any GET and 204 to anything else, after reading the body. Asked for the
//! messages of a queue it answers documents as long as the service's: what a put, a claim of one or many, a peek and a poll
//! of an empty queue get, and 204 to a delete. A service can come near it and not beyond.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tavola_wire::Ticks;
use tavola_wire::queue::message::{ListWriter, Message, empty_list};
use tavola_wire::queue::receipt::MadeBy;
use tavola_wire::queue::{MessageId, PopReceipt};
use tokio::net::{TcpListener, TcpStream};

use crate::queue::message;
use crate::queue::operations::CLAIM_MAX;
use crate::random::Random;
use crate::request::{NO_METADATA, XML};

/// The queue that has no messages.
pub const IDLE_QUEUE: &str = "idle";

const BODY_BYTES: usize = 600;

/// Everything that it can say.
struct Answers {
    entity: Bytes,
    put: Bytes,
    one_message: Bytes,
    many_messages: Bytes,
    peeked: Bytes,
    no_message: Bytes,
}

/// Listens on loopback; port 0 picks a free one.
pub async fn listen(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves until the process ends.
pub async fn serve(listener: TcpListener) -> Infallible {
    let answers = Arc::new(Answers::new());
    loop {
        // What fails to be accepted is the client's to notice.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_connection(stream, answers.clone()));
        }
    }
}

async fn serve_connection(stream: TcpStream, answers: Arc<Answers>) {
    let service = service_fn(|request| answers.answer(request));
    if stream.set_nodelay(true).is_ok() {
        // A connection that breaks has nobody left to be told.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }
}

impl Answers {
    fn new() -> Self {
        let text = message::text(&mut Random::new(1));
        let text = std::str::from_utf8(text).expect("texts are ASCII");
        let now = Ticks::parse_iso("2026-11-18T05:00:00.1234567Z").expect("a moment");
        let receipt = PopReceipt { next_visible: now, made_by: MadeBy::PutOrGet };
        let claimed = Message {
            id: MessageId::at(now, 1),
            inserted: now,
            expires: now,
            receipt: Some(receipt),
            dequeue_count: Some(1),
            text: Some(text),
        };
        let put = Message { dequeue_count: None, text: None, ..claimed };
        let peeked = Message { receipt: None, dequeue_count: Some(0), ..claimed };
        Self {
            entity: Bytes::from(format!("{{\"value\":\"{}\"}}", "x".repeat(BODY_BYTES - 12))),
            put: list(&put, 1),
            one_message: list(&claimed, 1),
            many_messages: list(&claimed, CLAIM_MAX),
            peeked: list(&peeked, 1),
            no_message: Bytes::from_static(empty_list().as_bytes()),
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let path = request.uri().path();
        let (status, content_type, body) = match *request.method() {
            Method::GET if path.ends_with("/messages") => {
                let query = request.uri().query().unwrap_or_default();
                (StatusCode::OK, XML, self.messages(path, query))
            }
            Method::GET => (StatusCode::OK, NO_METADATA, &self.entity),
            Method::POST if path.ends_with("/messages") => (StatusCode::CREATED, XML, &self.put),
            _ => (StatusCode::NO_CONTENT, "", &Bytes::new()),
        };
        let body = body.clone();
        if request.method() != Method::GET {
            request.into_body().collect().await?;
        }
        let mut reply = Response::builder().status(status).header("x-ms-version", "2019-02-02");
        if !content_type.is_empty() {
            reply = reply.header("content-type", content_type);
        }
        Ok(reply.body(Full::new(body)).expect("these headers are legal"))
    }

    /// Operations stand first in the query, before the signature.
    fn messages(&self, path: &str, query: &str) -> &Bytes {
        if query.starts_with("peekonly") {
            &self.peeked
        } else if query.starts_with("numofmessages") {
            &self.many_messages
        } else if path.split('/').nth(2) == Some(IDLE_QUEUE) {
            &self.no_message
        } else {
            &self.one_message
        }
    }
}

fn list(message: &Message<'_>, count: u64) -> Bytes {
    let (mut document, mut list) = (Vec::new(), ListWriter::default());
    for _ in 0..count {
        list.push(&mut document, message);
    }
    list.finish(&mut document);
    document.into()
}
