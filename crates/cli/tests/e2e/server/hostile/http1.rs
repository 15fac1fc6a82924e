//! HTTP/1.1 that is too large, too much, or breaks off.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};

use super::{KIB, MIB, Target, answer_to, read_until_closed, write_until_closed};
use crate::support::http;

/// A body without end is refused when it has become too large, and taken in for a while for the sake of those who
/// write first.
#[test]
fn an_endless_chunked_body_is_refused() {
    let target = Target::start(&[]);
    let before = target.memory();
    let bystander = target.bystander();
    let mut stream = BufReader::new(target.connect());
    let head = target.insert_head("Transfer-Encoding: chunked");
    stream.get_mut().write_all(head.as_bytes()).unwrap();
    let mut sender = stream.get_ref().try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(64 * KIB)).into_bytes();
        write_until_closed(&mut sender, std::iter::repeat_n(&chunk[..], 16 * KIB))
    });
    http::read(&mut stream).expect("an answer").expect_error(413, "RequestBodyTooLarge");
    read_until_closed(&mut stream);
    let sent = sender.join().unwrap();
    assert!(sent < 256 * MIB, "{sent} bytes were taken");
    target.memory().assert_grew_less_than(64 * MIB, before);
    bystander.finish();
    target.assert_unharmed();
}

/// Tiny chunks cost more than they carry; the limits are the same.
#[test]
fn an_endless_body_of_tiny_chunks_is_refused() {
    let target = Target::start(&[]);
    let before = target.memory();
    let mut stream = BufReader::new(target.connect());
    let head = target.insert_head("Transfer-Encoding: chunked");
    stream.get_mut().write_all(head.as_bytes()).unwrap();
    let mut sender = stream.get_ref().try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let chunks = format!("20\r\n{}\r\n", " ".repeat(32)).repeat(10_000);
        write_until_closed(&mut sender, std::iter::repeat(chunks.as_bytes()))
    });
    http::read(&mut stream).expect("an answer").expect_error(413, "RequestBodyTooLarge");
    read_until_closed(&mut stream);
    sender.join().unwrap();
    target.memory().assert_grew_less_than(64 * MIB, before);
    target.assert_unharmed();
}

#[test]
fn a_head_has_128_kib_and_100_headers() {
    let target = Target::start(&[]);
    let before = target.memory();
    let bystander = target.bystander();
    let head = target.head("GET", "Tables");
    let with = |headers: String| answer_to(&target, format!("{head}{headers}\r\n"));
    with(format!("X-Large: {}\r\n", "a".repeat(60 * KIB))).expect(200);
    with("X-Many: a\r\n".repeat(90)).expect(200);
    with(format!("X-Large: {}\r\n", "a".repeat(200 * KIB))).expect(431);
    with("X-Many: a\r\n".repeat(150)).expect(431);
    // One that never ends is answered just as well.
    with(format!("X-Large: {}\r\n", "a".repeat(16 * MIB))).expect(431);
    with(format!("X-Large: {}\r\n", "a".repeat(1000)).repeat(2000)).expect(431);
    target.memory().assert_grew_less_than(32 * MIB, before);
    bystander.finish();
    target.assert_unharmed();
}

/// What may stand beside the bytes of a chunked body is limited like the body.
#[test]
fn chunk_extensions_and_trailers_are_limited() {
    let target = Target::start(&[]);
    let before = target.memory();
    let head = target.insert_head("Transfer-Encoding: chunked");
    let entity = |row: &str| {
        let json = format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);
        format!("{:x};name=value\r\n{json}\r\n0\r\n", json.len())
    };
    answer_to(&target, format!("{head}{}Trailer: a\r\n\r\n", entity("plain"))).expect(201);
    let extension = format!("1;{}\r\n \r\n0\r\n\r\n", "a".repeat(4 * MIB));
    answer_to(&target, format!("{head}{extension}")).expect_error(400, "InvalidInput");
    let trailers = format!("{}Trailer: {}\r\n\r\n", entity("large"), "a".repeat(4 * MIB));
    answer_to(&target, format!("{head}{trailers}")).expect_error(400, "InvalidInput");
    assert_eq!(target.client.rows(&target.table, ""), ["plain"]);
    target.memory().assert_grew_less_than(32 * MIB, before);
    target.assert_unharmed();
}

/// Answers come in the order of the requests, however many are sent before the first is read.
#[test]
fn pipelined_requests_are_answered_in_order() {
    let target = Target::start(&[]);
    let mut stream = BufReader::new(target.connect());
    let heads = [target.head("GET", "Tables"), target.head("GET", "missing()")];
    let count = 1000;
    let mut requests = String::new();
    for number in 0..count {
        let head = &heads[number % heads.len()];
        requests.push_str(&format!("{head}x-ms-client-request-id: {number}\r\n\r\n"));
    }
    let mut sender = stream.get_ref().try_clone().unwrap();
    let sender = std::thread::spawn(move || sender.write_all(requests.as_bytes()).unwrap());
    for number in 0..count {
        let answer = http::read(&mut stream).expect("an answer");
        assert_eq!(answer.header("x-ms-client-request-id"), Some(&*number.to_string()));
        answer.expect([200, 404][number % heads.len()]);
    }
    sender.join().unwrap();
}

/// Many requests are no harm: memory does not grow with them, and others are served between them.
#[test]
fn a_hundred_thousand_tiny_requests_on_one_connection() {
    let target = Target::start(&["--in-memory"]);
    let tiny = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut stream = BufReader::new(target.connect());
    let send = |stream: &mut BufReader<TcpStream>, count: usize| {
        let mut sender = stream.get_ref().try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let hundred = tiny.repeat(100);
            for _ in 0..count / 100 {
                sender.write_all(hundred.as_bytes()).unwrap();
            }
        });
        let mut line = Vec::new();
        let mut answers = 0;
        while answers < count {
            line.clear();
            assert_ne!(stream.read_until(b'\n', &mut line).unwrap(), 0, "it was closed");
            // The body before it has no line end.
            answers += usize::from(line.ends_with(b"HTTP/1.1 400 Bad Request\r\n"));
        }
        sending.join().unwrap();
    };
    send(&mut stream, 1000);
    let before = target.memory();
    let bystander = target.bystander();
    send(&mut stream, 99_000);
    bystander.finish();
    target.memory().assert_grew_less_than(16 * MIB, before);
    target.assert_unharmed();
}

/// A client that shuts its writing side has gone, for all that the server can know. It is answered or closed, and
/// nothing stays behind.
#[test]
fn half_closed_connections_end() {
    let target = Target::start(&[]);
    for request in [target.get_page(), target.insert_head("Content-Length: 10"), String::new()] {
        let mut stream = target.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_until_closed(&mut stream);
    }
    target.wait_until("tavola_connections", ..=2);
    target.assert_unharmed();
}

/// Clients that disappear in the middle of a body leave nothing behind.
#[test]
fn bodies_that_break_off_leave_nothing() {
    let target = Target::start(&["--message-memory-mb", "16"]);
    let before = target.memory();
    let bystander = target.bystander();
    let head = target.insert_head("Content-Length: 4000000");
    for _ in 0..100 {
        let mut stream = target.connect();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![b' '; 3 * MIB]).unwrap();
    }
    target.wait_until("tavola_message_memory_bytes", ..=0);
    target.wait_until("tavola_connections", ..=3);
    bystander.finish();
    target.memory().assert_grew_less_than(150 * MIB, before);
    assert!(target.client.rows(&target.table, "").is_empty());
    target.assert_unharmed();
}

/// Who asks first whether to send a body is told to, or gets the answer without sending it.
#[test]
fn a_body_can_be_asked_about_first() {
    let target = Target::start(&[]);
    let body = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let framing = format!("Content-Length: {}\r\nExpect: 100-continue", body.len());
    let mut stream = BufReader::new(target.connect());
    stream.get_mut().write_all(target.insert_head(&framing).as_bytes()).unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 100"), "{line}");
    stream.read_line(&mut line).unwrap();
    stream.get_mut().write_all(body.as_bytes()).unwrap();
    http::read(&mut stream).expect("an answer").expect(201);

    let refused = target.insert_head(&framing).replace("sig=", "sig=x");
    assert_eq!(answer_to(&target, refused).status, 403);
    let large = "Content-Length: 5000000\r\nExpect: 100-continue";
    answer_to(&target, target.insert_head(large)).expect_error(413, "RequestBodyTooLarge");
}

/// A proxy may send the whole URL.
#[test]
fn the_absolute_form_is_served() {
    let target = Target::start(&[]);
    let origin = format!("GET http://{}/", target.server.address());
    let request = format!("{}\r\n", target.head("GET", "Tables").replacen("GET /", &origin, 1));
    answer_to(&target, request).expect(200);
}
