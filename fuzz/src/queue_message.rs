//! The body of Put and Update Message, and what names a message: its id and its receipt. The input is a body, and as a
//! text it is also the message that other bodies hold, written in every way that XML has for it.

use tavola_wire::ErrorCode;
use tavola_wire::Ticks;
use tavola_wire::queue::body::{BODY_BYTES_MAX, read};
use tavola_wire::queue::message::{Message, TEXT_BYTES_MAX};
use tavola_wire::queue::{MessageId, PopReceipt};

use crate::input::assert_refusal;

/// Inputs up to this size are also repeated until a message is full.
const REPEATED_BYTES_MAX: usize = 16;

pub fn run(data: &[u8]) {
    body(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    names(text);
    written(text);
    if (1..=REPEATED_BYTES_MAX).contains(&text.len()) {
        limit(text);
    }
}

/// What is read can be in an answer, and a client that sends the answer's element back sends the same.
fn body(data: &[u8]) {
    let text = match read(data) {
        Ok(text) => text,
        Err(error) => {
            let known = [ErrorCode::InvalidXmlDocument, ErrorCode::RequestBodyTooLarge];
            assert!(known.contains(&error.code()), "{error}");
            return assert_refusal(&error);
        }
    };
    assert!(text.len() <= TEXT_BYTES_MAX);
    assert!(text.chars().all(is_xml), "{text:?}");
    let message = Message {
        id: MessageId::MIN,
        inserted: Ticks::MIN_STORED,
        expires: Ticks::MAX,
        receipt: None,
        dequeue_count: Some(1),
        text: Some(&text),
    };
    let mut element = Vec::new();
    message.write(&mut element);
    assert_eq!(read(&element).expect("our own element"), text);
}

/// Ids and receipts have one spelling each.
fn names(text: &str) {
    if let Some(id) = MessageId::parse(text) {
        assert_eq!(id.to_string(), text);
    }
    match PopReceipt::parse(text) {
        Ok(Some(receipt)) => assert_eq!(receipt.to_string(), text),
        Ok(None) => {}
        Err(error) => assert_refusal(&error),
    }
}

/// The text in a body, however it is written; what XML has no character for is refused however it is written.
fn written(text: &str) {
    let is_message = text.chars().all(is_xml) && text.len() <= TEXT_BYTES_MAX;
    // Readers of XML see every line end as a line feed, unless it is a reference.
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let bodies = [
        (escaped(text, |char| "&<>\r".contains(char)), text),
        (escaped(text, |_| true), text),
        (escaped(text, |char| "&<>".contains(char)), &unified),
        (text.split("]]>").map(cdata).collect::<Vec<_>>().join(&cdata_end()), &unified),
    ];
    for (content, expected) in bodies {
        let body = format!("<QueueMessage><MessageText>{content}</MessageText></QueueMessage>");
        if body.len() > BODY_BYTES_MAX {
            continue;
        }
        match read(body.as_bytes()) {
            Ok(read) => assert!(is_message && read == *expected, "{body:?} as {read:?}"),
            Err(error) => assert!(!is_message, "{body:?}: {error}"),
        }
    }
}

/// A message may be as large as this and no larger.
fn limit(unit: &str) {
    if !unit.chars().all(is_xml) {
        return;
    }
    let full = unit.repeat(TEXT_BYTES_MAX / unit.len());
    let rest = "x".repeat(TEXT_BYTES_MAX - full.len());
    let is_markup = |char| "&<>\r".contains(char);
    let body = |text: &str| {
        let content = escaped(text, is_markup);
        format!("<QueueMessage><MessageText>{content}</MessageText></QueueMessage>").into_bytes()
    };
    let text = full + &rest;
    assert_eq!(read(&body(&text)).expect("a full message"), text);
    let error = read(&body(&(text + "x"))).expect_err("one byte too many");
    assert_eq!(error.code(), ErrorCode::RequestBodyTooLarge);
}

/// The text with references for some of its characters, decimal and hexadecimal in turns.
fn escaped(text: &str, is_reference: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, char) in text.chars().enumerate() {
        match (is_reference(char), char) {
            (false, char) => out.push(char),
            (true, '&') => out.push_str("&amp;"),
            (true, '<') => out.push_str("&lt;"),
            (true, char) if at.is_multiple_of(2) => out += &format!("&#{};", u32::from(char)),
            (true, char) => out += &format!("&#x{:X};", u32::from(char)),
        }
    }
    out
}

fn cdata(text: &str) -> String {
    format!("<![CDATA[{text}]]>")
}

/// What ends a section cannot be in one.
fn cdata_end() -> String {
    [cdata("]]"), cdata(">")].concat()
}

/// The characters of XML 1.0.
fn is_xml(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
