//! How the body of a message is framed, where hyper leaves it to us.
//!
//! hyper reads a request by its last transfer coding and does not look at those before it: `gzip, chunked` would come to
//! an operation as compressed bytes that nobody undoes, and to a proxy in front as something else than to us.
//! And hyper sends the body of a reply to HEAD over HTTP/2, which clients must take for an error of the protocol.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::body::Body;

/// Whether the codings of a request are none, or `chunked` once: all that is served.
pub(crate) fn is_served(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        _ => false,
    }
}

/// The reply to a HEAD request: the head that GET would have been answered with, and its length if that is known
/// (RFC 9110, 9.3.2).
pub(crate) fn without_body<B: Body + Default>(reply: Response<B>) -> Response<B> {
    let (mut parts, body) = reply.into_parts();
    let may_have_length =
        !matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    // An operation that has no body may know the length all the same, such as that of a blob.
    if let Some(length) = body.size_hint().exact().filter(|_| may_have_length) {
        parts.headers.entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    Response::from_parts(parts, B::default())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;

    use super::*;

    fn with_codings(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (TRANSFER_ENCODING, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn chunked_alone_is_served() {
        for (values, served) in [
            (&[][..], true),
            (&["chunked"], true),
            (&[" Chunked "], true),
            (&["gzip, chunked"], false),
            (&["chunked, chunked"], false),
            (&["gzip", "chunked"], false),
            (&["chunked", "chunked"], false),
            (&["identity,chunked"], false),
        ] {
            assert_eq!(is_served(&with_codings(values)), served, "{values:?}");
        }
    }

    #[test]
    fn a_reply_to_head_keeps_the_length_alone() {
        let length = |reply: &Response<Full<Bytes>>| reply.headers().get(CONTENT_LENGTH).cloned();
        let reply = without_body(Response::new(Full::from("four")));
        assert_eq!(length(&reply), Some(HeaderValue::from(4)));
        assert!(reply.body().is_end_stream());
        let mut known = Response::new(Full::default());
        known.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(1000));
        assert_eq!(length(&without_body(known)), Some(HeaderValue::from(1000)));
        let mut empty = Response::new(Full::default());
        *empty.status_mut() = StatusCode::NO_CONTENT;
        assert_eq!(length(&without_body(empty)), None);
    }
}
