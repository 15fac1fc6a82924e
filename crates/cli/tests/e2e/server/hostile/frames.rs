//! HTTP/2 by the frame, for what no client library would send.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::Target;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

pub(super) const REFUSED_STREAM: u32 = 7;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Debug)]
pub(super) struct Frame {
    pub kind: u8,
    pub payload: Vec<u8>,
}

/// A connection that has said what HTTP/2 begins with.
pub(super) fn connect(target: &Target) -> TcpStream {
    begin(target.connect())
}

pub(super) fn begin(mut stream: TcpStream) -> TcpStream {
    let mut hello = PREFACE.to_vec();
    hello.extend(frame(SETTINGS, 0, 0, &[]));
    stream.write_all(&hello).unwrap();
    stream
}

/// Nine bytes of head, and the payload.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is small").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A request without a body.
pub(super) fn request(target: &Target, stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &block(target, "GET", path))
}

/// A compressed header block that compresses nothing.
pub(super) fn block(target: &Target, method: &str, path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    let authority = target.server.address().to_string();
    for (name, value) in [
        (":method", method),
        (":scheme", "http"),
        (":path", &target.path(path)),
        (":authority", &authority),
        ("accept", "application/json;odata=nometadata"),
        ("content-type", "application/json"),
    ] {
        push_field(&mut block, name, value);
    }
    block
}

/// A literal that is not remembered.
pub(super) fn push_field(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        push_length(block, text.len());
        block.extend_from_slice(text.as_bytes());
    }
}

/// An integer with a prefix of seven bits (RFC 7541, 5.1).
fn push_length(block: &mut Vec<u8>, length: usize) {
    const PREFIX_MAX: usize = 127;
    if length < PREFIX_MAX {
        block.push(u8::try_from(length).expect("below 127"));
        return;
    }
    block.push(127);
    let mut rest = length - PREFIX_MAX;
    while rest >= 128 {
        block.push(u8::try_from(rest % 128 + 128).expect("a byte"));
        rest /= 128;
    }
    block.push(u8::try_from(rest).expect("below 128"));
}

/// The next frame; an error at the end of the connection.
pub(super) fn read(stream: &mut TcpStream) -> std::io::Result<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload)?;
    Ok(Frame { kind: head[3], payload })
}

/// All frames until the server closes.
#[track_caller]
pub(super) fn read_until_closed(stream: &mut TcpStream) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        match read(stream) {
            Ok(frame) => frames.push(frame),
            Err(error) => {
                assert!(!super::is_timeout(&error), "still open after {} frames", frames.len());
                return frames;
            }
        }
    }
}

/// The path of nobody's table, for requests that cost little.
pub(super) const NOTHING: &str = "nothing()";
