//! Peers that are slow to send, or slow to take.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{MIB, Target, is_timeout, read_until_closed};
use crate::support::http;
use crate::table::paging::all_pages;

/// Short against the limits of a second, so that a byte comes many times before they end.
const DRIP: Duration = Duration::from_millis(50);

/// Sends a byte at a time for as long as the server takes them.
fn drip(mut stream: TcpStream) {
    while stream.write_all(b"a").is_ok() {
        std::thread::sleep(DRIP);
    }
}

/// The time for a head is for the whole of it: a byte now and then does not extend it.
#[test]
fn heads_that_come_byte_by_byte_are_cut_off() {
    let target = Target::start(&["--tableKeepAliveTimeout", "1"]);
    let bystander = target.bystander();
    let streams: Vec<_> = (0..50)
        .map(|_| {
            let mut stream = target.connect();
            stream.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    let drips: Vec<_> = streams.iter().map(|stream| stream.try_clone().unwrap()).collect();
    let drips: Vec<_> =
        drips.into_iter().map(|stream| std::thread::spawn(move || drip(stream))).collect();
    for mut stream in streams {
        read_until_closed(&mut stream);
    }
    for drip in drips {
        drip.join().unwrap();
    }
    bystander.finish();
    target.assert_unharmed();
}

/// A body that comes byte by byte is given up, and the client is told.
#[test]
fn bodies_that_come_byte_by_byte_are_cut_off() {
    let target = Target::start(&["--transfer-timeout", "1"]);
    let bystander = target.bystander();
    let framings = ["Content-Length: 1000000", "Transfer-Encoding: chunked\r\n\r\n100000"];
    for framing in framings {
        let mut stream = BufReader::new(target.connect());
        stream.get_mut().write_all(target.insert_head(framing).as_bytes()).unwrap();
        let sender = stream.get_ref().try_clone().unwrap();
        let sender = std::thread::spawn(move || drip(sender));
        http::read(&mut stream).expect("an answer").expect_error(500, "OperationTimedOut");
        read_until_closed(&mut stream);
        sender.join().unwrap();
    }
    bystander.finish();
    target.assert_unharmed();
}

/// A body that stops is answered when its time is up, and its time runs once. A head that stops has a second more here and
/// is cut off after the answer, so that nothing depends on how fast the machine is.
#[test]
fn a_body_that_stops_is_answered_in_time() {
    let target = Target::start(&["--transfer-timeout", "2", "--tableKeepAliveTimeout", "3"]);
    let mut body = BufReader::new(target.connect());
    let request = target.insert_head("Content-Length: 1000") + "{";
    body.get_mut().write_all(request.as_bytes()).unwrap();
    let mut head = target.connect();
    head.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").unwrap();
    read_until_closed(&mut head);
    body.get_ref().set_nonblocking(true).unwrap();
    let answer = http::read(&mut body).expect("an answer before the head was given up");
    answer.expect_error(500, "OperationTimedOut");
    target.assert_unharmed();
}

/// A slow line is not cut off: bytes that keep coming renew the time, so that the whole may take longer than it.
#[test]
fn a_body_on_a_slow_line_is_taken() {
    let target = Target::start(&["--transfer-timeout", "1"]);
    let json = r#"{"PartitionKey":"p","RowKey":"slow"}"#;
    let body = format!("{json}{}", " ".repeat(96 * 1024));
    let mut stream = BufReader::new(target.connect());
    let head = target.insert_head(&format!("Content-Length: {}", body.len()));
    stream.get_mut().write_all(head.as_bytes()).unwrap();
    for piece in body.as_bytes().chunks(body.len() / 24) {
        stream.get_mut().write_all(piece).unwrap();
        std::thread::sleep(DRIP);
    }
    http::read(&mut stream).expect("an answer").expect(201);
}

/// Who asks for page after page and never reads is cut off, and holds no memory until then but what all may hold.
#[test]
fn clients_that_never_read_are_cut_off() {
    let arguments = ["--transfer-timeout", "1", "--message-memory-mb", "16"];
    // Those who got no page, because the others hold all the memory, are idle.
    let arguments = [&arguments[..], &["--tableKeepAliveTimeout", "2"]].concat();
    let target = Target::start(&arguments).with_a_large_page();
    let before = target.memory();
    let bystander = target.bystander();
    let requests = target.get_page().repeat(2);
    let streams: Vec<_> = (0..60)
        .map(|_| {
            let mut stream = target.connect_narrowly();
            stream.write_all(requests.as_bytes()).unwrap();
            stream
        })
        .collect();
    // The bystander, and whoever asks for the figure.
    target.wait_until("tavola_connections", ..=3);
    // Their pages together are 260 MiB. Of 16 they hold 12; the rest is what the allocator keeps for each thread.
    target.memory().assert_grew_less_than(160 * MIB, before);
    bystander.finish();
    for mut stream in streams {
        let sent = read_until_closed(&mut stream);
        assert!(sent.len() < 2 * 4 * MIB);
    }
    target.assert_unharmed();
}

/// While others hold the memory, pages are shorter, and nobody who reads on is refused.
#[test]
fn pages_are_shorter_while_others_hold_the_memory() {
    let target = Target::start(&["--message-memory-mb", "8"]).with_a_large_page();
    let mut unread = target.connect_narrowly();
    unread.write_all(target.get_page().as_bytes()).unwrap();
    target.wait_until("tavola_message_memory_bytes", 4 * MIB as u64..);
    // On one connection: each page is given back before the next is asked for.
    let pages = all_pages(&target.client, &target.table, &[], || {});
    assert!(pages.len() > 2, "{}", pages.len());
    let rows: Vec<_> = pages.iter().flatten().map(|row| row["RowKey"].clone()).collect();
    assert_eq!(rows, (0..9).map(|row| row.to_string()).collect::<Vec<_>>());
    drop(unread);
    target.assert_unharmed();
}

/// A reader that is slow, but reads, gets everything.
#[test]
fn a_client_that_reads_slowly_is_served() {
    let target = Target::start(&["--transfer-timeout", "1"]).with_a_large_page();
    let mut stream = target.connect();
    let requests = target.get_page().repeat(2);
    stream.write_all(requests.as_bytes()).unwrap();
    let mut stream = BufReader::with_capacity(MIB / 2, Dawdling(stream));
    for _ in 0..2 {
        let page = http::read(&mut stream).expect("an answer").expect(200);
        assert!(page.body.len() > 4 * MIB);
    }
    target.assert_unharmed();
}

/// Reads with a pause before each time.
struct Dawdling(TcpStream);

impl Read for Dawdling {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        std::thread::sleep(DRIP);
        self.0.read(buffer)
    }
}

/// A handshake that never comes holds a connection no longer than a head that never comes.
#[test]
fn a_silent_tls_handshake_is_cut_off() {
    let (target, _) = super::http2::with_tls(&["--tableKeepAliveTimeout", "1"]);
    for hello in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00\x01"] {
        let mut stream = TcpStream::connect(target.address()).unwrap();
        stream.set_read_timeout(Some(super::GIVE_UP)).unwrap();
        stream.write_all(hello).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(!ended.is_err_and(|error| is_timeout(&error)), "the connection stays open");
    }
}
