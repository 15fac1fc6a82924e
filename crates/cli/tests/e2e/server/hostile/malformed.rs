//! What is not HTTP, or says two things at once.

use std::io::Write;

use super::{Target, answer_to, read_until_closed};

/// Each is refused with an answer that says so, and ends the connection.
#[test]
fn malformed_heads_are_refused() {
    let target = Target::start(&[]);
    let bystander = target.bystander();
    let get = target.head("GET", "Tables");
    let post = target.insert_head("Content-Length: 2").replace("Content-Length: 2\r\n\r\n", "");
    for request in [
        // Headers: folded, with a zero byte, without a colon, without a name, with a space before the colon.
        format!("{get}X-Folded: a\r\n b\r\n\r\n"),
        format!("{get}X-Zero: a\0b\r\n\r\n"),
        format!("{get}no colon\r\n\r\n"),
        format!("{get}: no name\r\n\r\n"),
        format!("{get}X-Space : a\r\n\r\n"),
        // Request lines.
        "G\u{e9}T / HTTP/1.1\r\n\r\n".to_owned(),
        "G(T / HTTP/1.1\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "GET /a b HTTP/1.1\r\n\r\n".to_owned(),
        "GET \r\n\r\n".to_owned(),
        "GET /\0 HTTP/1.1\r\n\r\n".to_owned(),
        // Lengths that are none, that differ, or that are beyond all limits.
        format!("{post}Content-Length: x\r\n\r\nab"),
        format!("{post}Content-Length: -1\r\n\r\nab"),
        format!("{post}Content-Length: +2\r\n\r\nab"),
        format!("{post}Content-Length: 2, 2\r\n\r\nab"),
        format!("{post}Content-Length: 2\r\nContent-Length: 3\r\n\r\nab"),
        format!("{post}Content-Length: 99999999999999999999\r\n\r\nab"),
        // Encodings that nobody can undo.
        format!("{post}Transfer-Encoding: gzip\r\n\r\nab"),
        format!("{post}Transfer-Encoding: chunked, gzip\r\n\r\nab"),
        // Also where the last coding is known.
        format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
        format!("{post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        format!("{get}Transfer-Encoding: deflate,chunked\r\n\r\n0\r\n\r\n"),
        format!("{}\r\n", get.replace("HTTP/1.1", "HTTP/1.0") + "Transfer-Encoding: chunked\r\n"),
    ] {
        let mut stream = target.connect();
        let _ = stream.write_all(request.as_bytes());
        let answers = read_until_closed(&mut stream);
        let answers = String::from_utf8_lossy(&answers);
        assert!(answers.starts_with("HTTP/1.1 400 "), "{answers:?} to {request:?}");
        assert_eq!(answers.matches("HTTP/1.").count(), 1, "{answers:?} to {request:?}");
    }
    bystander.finish();
    target.assert_unharmed();
}

/// A body that is not framed as it says is no body.
#[test]
fn malformed_chunks_are_refused() {
    let target = Target::start(&[]);
    let head = target.insert_head("Transfer-Encoding: chunked");
    for chunks in [
        "zz\r\n{}\r\n0\r\n\r\n",
        "-2\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n{}",
        "\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}too long\r\n0\r\n\r\n",
        "2\n{}\r\n0\r\n\r\n",
    ] {
        let refused = answer_to(&target, format!("{head}{chunks}"));
        refused.expect_error(400, "InvalidInput");
    }
    target.assert_unharmed();
}

/// Request smuggling: two servers in a row that disagree about where a request ends let a client put a request
/// into another one's mouth. A request with both framings is read by the stronger, as the standard wants it, and
/// nothing behind it is ever taken for a request.
#[test]
fn two_framings_end_the_connection() {
    let target = Target::start(&[]);
    let head = target.head("POST", &target.table);
    let smuggled = format!("{}\r\n", target.head("DELETE", &format!("Tables('{}')", target.table)));
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
    ] {
        let mut stream = target.connect();
        let request = format!("{head}{framing}\r\n\r\n0\r\n\r\n{smuggled}");
        stream.write_all(request.as_bytes()).unwrap();
        let answers = String::from_utf8(read_until_closed(&mut stream)).expect("text");
        assert!(answers.starts_with("HTTP/1.1 400 "), "{answers}");
        assert_eq!(answers.matches("HTTP/1.").count(), 1, "{answers}");
        assert!(answers.to_lowercase().contains("connection: close"), "{answers}");
    }
    target.client.query(&target.table, &[]).send().expect(200);
    // The same length twice is one length.
    let json = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let length = format!("Content-Length: {}", json.len());
    let request = format!("{}{json}", target.insert_head(&format!("{length}\r\n{length}")));
    answer_to(&target, request).expect(201);
    target.assert_unharmed();
}

/// Methods that are words, but not ours.
#[test]
fn unknown_methods_are_refused() {
    let target = Target::start(&[]);
    for method in ["TRACE", "CONNECT", "get", "PROPFIND", "X"] {
        let refused = answer_to(&target, format!("{}\r\n", target.head(method, "Tables")));
        assert!((400..=501).contains(&refused.status), "{method}: {}", refused.status);
        assert_ne!(refused.status, 500, "{method}");
    }
    target.assert_unharmed();
}
