//! The case of header names, where it means something: in HTTP/1 the names of metadata come back as they were written.
//!
//! Names of headers are compared without case, so the types of HTTP know them in lower case alone. hyper remembers how
//! those of a request were written if it is told to ([`preserve_header_case`]), in an extension that belongs to this
//! request; nobody but hyper can look into it, but it can be handed on: a reply that carries it is written in that case.
//! So what is remembered is read by having hyper write a reply into memory, and made by having hyper read a request from
//! memory. Nothing is guessed from the bytes of a connection, and no request can be taken for another.
//!
//! Both happen only where names have a case: when metadata are set, and when they are asked for and some name has a
//! capital letter. HTTP/2 has names in lower case alone.
//!
//! [`preserve_header_case`]: http1::Builder::preserve_header_case

use std::cell::Cell;
use std::convert::Infallible;
use std::future::ready;

use bytes::Bytes;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, Version};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

/// Headers of a request that may have metadata. 8 KiB of it, with names as short as can be and nothing in them, are some
/// 3,100.
pub(crate) const HEADERS_MAX: usize = 4096;

/// Any request, to have it answered.
const ANY_REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// Those of a request's header names that begin like this (in lower case), each once, as they were written. Of several
/// spellings the first counts. Empty where the case is not known.
pub(crate) fn names_as_written(parts: &Parts, prefix: &str) -> Vec<String> {
    if parts.version > Version::HTTP_11 {
        return Vec::new();
    }
    let mut reply = Response::new(Empty::new());
    for name in parts.headers.keys().filter(|name| name.as_str().starts_with(prefix)) {
        reply.headers_mut().insert(name, HeaderValue::from_static(""));
    }
    if reply.headers().is_empty() {
        return Vec::new();
    }
    *reply.extensions_mut() = parts.extensions.clone();
    let written = exchange(ANY_REQUEST, |_| reply).unwrap_or_default();
    let lines = written.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
    let names = lines.filter_map(|line| line.split_once(':')).map(|(name, _)| name);
    let is_wanted = |name: &&str| {
        let start = name.as_bytes().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    names.filter(is_wanted).map(str::to_owned).collect()
}

/// Has a reply write these names like this. Does nothing where they are in lower case anyway.
pub(crate) fn write_as<B>(reply: &mut Response<B>, names: &[String]) {
    let has_capital = |name: &String| name.bytes().any(|byte| byte.is_ascii_uppercase());
    // A name that could not be in a head would change its meaning.
    let is_name = |name: &String| HeaderName::from_bytes(name.as_bytes()).is_ok();
    if !names.iter().any(has_capital) || !names.iter().all(is_name) {
        return;
    }
    let lines: String = names.iter().flat_map(|name| [name, ":\r\n"]).collect();
    let request = ["GET / HTTP/1.1\r\n", &lines, "\r\n"].concat();
    let mut remembered = None;
    exchange(request.as_bytes(), |request| {
        remembered = Some(request.into_parts().0.extensions);
        Response::new(Empty::new())
    });
    reply.extensions_mut().extend(remembered.unwrap_or_default());
}

/// Has hyper read this request and write the answer to it, in memory. `None` if it could not, which is no reason for a
/// request to fail: its names are in lower case then.
fn exchange(
    request: &[u8],
    answer: impl FnOnce(Request<Incoming>) -> Response<Empty<Bytes>>,
) -> Option<Vec<u8>> {
    let answer = Cell::new(Some(answer));
    let service = service_fn(|request| {
        let reply = answer.take().map_or_else(Response::default, |answer| answer(request));
        ready(Ok::<_, Infallible>(reply))
    });
    let mut written = Vec::new();
    let memory = TokioIo::new(tokio::io::join(request, &mut written));
    let connection = http1::Builder::new()
        .preserve_header_case(true)
        .max_headers(HEADERS_MAX)
        .header_read_timeout(None)
        .auto_date_header(false)
        .keep_alive(false)
        .half_close(true)
        .serve_connection(memory, service);
    // Memory is never waited for.
    connection.now_or_never()?.ok()?;
    Some(written)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PREFIX: &str = "x-ms-meta-";

    /// A request as hyper gives it to a service of ours.
    fn received(head: &str) -> Parts {
        let mut parts = None;
        let request = format!("PUT /q HTTP/1.1\r\n{head}\r\n");
        exchange(request.as_bytes(), |request| {
            parts = Some(request.into_parts().0);
            Response::default()
        });
        parts.expect("a request")
    }

    /// What hyper sends of a reply.
    fn sent(reply: Response<Empty<Bytes>>) -> String {
        String::from_utf8(exchange(ANY_REQUEST, |_| reply).expect("an answer")).unwrap()
    }

    #[test]
    fn names_are_read_as_they_were_written() {
        let head = "Host: a\r\nX-MS-Meta-MyName: 1\r\nx-ms-meta-plain: a: b\r\nX-Ms-Date: today\r\n\
                    x-ms-meta: none\r\nx-ms-meta-UPPER:\r\nx-ms-meta-myname: 2\r\n";
        let names = names_as_written(&received(head), PREFIX);
        assert_eq!(names, ["X-MS-Meta-MyName", "x-ms-meta-plain", "x-ms-meta-UPPER"]);
        assert!(names_as_written(&received("Host: a\r\n"), PREFIX).is_empty());
    }

    /// As many as a head can have.
    #[test]
    fn thousands_of_names_are_read_and_written() {
        let names: Vec<_> =
            (0..HEADERS_MAX).map(|number| format!("x-ms-meta-Name{number}")).collect();
        let head: String = names.iter().flat_map(|name| [name, ": x\r\n"]).collect();
        let parts = received(&head);
        assert_eq!(names_as_written(&parts, PREFIX), names);
        let mut reply = Response::<Empty<Bytes>>::default();
        *reply.headers_mut() = parts.headers;
        write_as(&mut reply, &names);
        let sent = sent(reply);
        let sent: HashSet<_> = sent.lines().collect();
        assert!(names.iter().all(|name| sent.contains(&*format!("{name}: x"))), "{sent:?}");
    }

    #[test]
    fn a_request_without_a_remembered_case_has_none() {
        let mut parts = received("X-MS-Meta-MyName: 1\r\n");
        parts.extensions = http::Extensions::new();
        assert_eq!(names_as_written(&parts, PREFIX), ["x-ms-meta-myname"]);
        parts.version = Version::HTTP_2;
        assert!(names_as_written(&parts, PREFIX).is_empty());
    }

    #[test]
    fn a_reply_is_written_as_told_and_its_other_names_as_ever() {
        let reply = |name: &str| {
            let mut reply = Response::<Empty<Bytes>>::default();
            reply.headers_mut().insert("x-ms-meta-myname", HeaderValue::from_static("1"));
            reply.headers_mut().insert("x-ms-version", HeaderValue::from_static("2"));
            write_as(&mut reply, &[name.to_owned()]);
            sent(reply)
        };
        let written = reply("x-ms-meta-MyName");
        assert!(written.contains("\r\nx-ms-meta-MyName: 1\r\n"), "{written}");
        assert!(written.contains("\r\nx-ms-version: 2\r\n"), "{written}");
        for name in ["x-ms-meta-myname", "x-ms-meta-Other", "x-ms-meta-My\r\nName", "My Name"] {
            let written = reply(name);
            assert!(written.contains("\r\nx-ms-meta-myname: 1\r\n"), "{name}: {written}");
        }
    }
}
