//! The bare server: what HTTP alone costs on this machine, in the same stack as the service's.
//!
//! It answers 600 bytes of JSON to any GET and 204 to anything else, after reading the body. A service can come near
//! it and not beyond.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::request::NO_METADATA;

const BODY_BYTES: usize = 600;

/// Listens on loopback; port 0 picks a free one.
pub async fn listen(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves until the process ends.
pub async fn serve(listener: TcpListener) -> Infallible {
    let body = Bytes::from(format!("{{\"value\":\"{}\"}}", "x".repeat(BODY_BYTES - 12)));
    loop {
        // What fails to be accepted is the client's to notice.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_connection(stream, body.clone()));
        }
    }
}

async fn serve_connection(stream: TcpStream, body: Bytes) {
    let service = service_fn(move |request| answer(request, body.clone()));
    if stream.set_nodelay(true).is_ok() {
        // A connection that breaks has nobody left to be told.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }
}

async fn answer(
    request: Request<Incoming>,
    body: Bytes,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let reply = Response::builder().header("x-ms-version", "2019-02-02");
    let reply = if request.method() == Method::GET {
        reply.header("content-type", NO_METADATA).body(Full::new(body))
    } else {
        request.into_body().collect().await?;
        reply.status(204).body(Full::new(Bytes::new()))
    };
    Ok(reply.expect("these headers are legal"))
}
