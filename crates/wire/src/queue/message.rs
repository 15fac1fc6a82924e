//! Messages as they are answered: ids, and the documents of Put, Get and Peek.
//!
//! A list is written message by message, and a text in parts if need be, so that a long one need not be in memory as a
//! whole.

use memchr::{memchr, memchr3};

use super::receipt::PopReceipt;
use crate::table::stored::guid_text;
use crate::ticks::Ticks;

/// The text of a message, in bytes of UTF-8 after everything of XML was undone.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

const START: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList>";
const END: &str = "</QueueMessagesList>";
const EMPTY: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList />";

const TEXT_START: &str = "<MessageText>";
const TEXT_END: &str = "</MessageText></QueueMessage>";

/// What one message takes beside its text.
const MESSAGE_BYTES: usize = 480;
/// The same with what stands before or behind all of them.
pub const FRAME_BYTES: usize = MESSAGE_BYTES + 160;
/// The most that one byte of a text becomes.
const ESCAPED_BYTES_MAX: usize = 5;
/// A part of a text ends where there may be no room for so many bytes.
const PART_BYTES_MIN: usize = 16;

/// The id of a message, a GUID. Ids sort by the moment in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub [u8; 16]);

impl MessageId {
    pub const MIN: Self = Self([0; 16]);

    /// An id in the layout of a UUID of version 7: milliseconds, then ticks within one, then what is random. No two moments
    /// of the same clock make ids that sort otherwise.
    pub fn at(moment: Ticks, random: u64) -> Self {
        const TICKS_PER_MILLISECOND: i64 = 10_000;
        let unix = (moment.0 - Ticks::from_unix_nanos(0).0).max(0).unsigned_abs();
        let per_millisecond = TICKS_PER_MILLISECOND.unsigned_abs();
        let (milliseconds, ticks) = (unix / per_millisecond, unix % per_millisecond);
        // 14 bits of ticks: twelve behind the version, two behind the variant.
        let high = milliseconds << 16 | 0x7000 | ticks >> 2;
        let low = 0b10 << 62 | (ticks & 0b11) << 60 | random >> 4;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&high.to_be_bytes());
        id[8..].copy_from_slice(&low.to_be_bytes());
        Self(id)
    }

    /// Reads the id in a URL; `None` for what is no id, and so for what was never given out.
    pub fn parse(text: &str) -> Option<Self> {
        let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
        let mut id = [0; 16];
        let mut digits = text.iter().enumerate();
        for byte in &mut id {
            let mut digit = || {
                let (at, digit) = digits.next()?;
                let digit = match (at, digit) {
                    (8 | 13 | 18 | 23, b'-') => digits.next()?.1,
                    (8 | 13 | 18 | 23, _) => return None,
                    (_, digit) => digit,
                };
                match digit {
                    b'0'..=b'9' => Some(digit - b'0'),
                    b'a'..=b'f' => Some(digit - b'a' + 10),
                    _ => None,
                }
            };
            *byte = digit()? << 4 | digit()?;
        }
        Some(Self(id))
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&guid_text(&self.0));
    }
}

impl std::fmt::Display for MessageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::str::from_utf8(&guid_text(&self.0)).expect("a GUID is ASCII"))
    }
}

/// One message of an answer. Put shows no text, Peek no receipt.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub id: MessageId,
    pub inserted: Ticks,
    /// [`Ticks::MAX`] for one that never expires.
    pub expires: Ticks,
    pub receipt: Option<PopReceipt>,
    pub dequeue_count: Option<u32>,
    pub text: Option<&'a str>,
}

impl Message<'_> {
    /// Appends the element.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(MESSAGE_BYTES + self.text.map_or(0, str::len));
        self.write_head(out);
        match self.text {
            Some("") => out.extend_from_slice(b"<MessageText /></QueueMessage>"),
            Some(text) => {
                out.extend_from_slice(TEXT_START.as_bytes());
                push_text(out, text);
                out.extend_from_slice(TEXT_END.as_bytes());
            }
            None => out.extend_from_slice(b"</QueueMessage>"),
        }
    }

    /// Appends what stands before the text.
    fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<QueueMessage><MessageId>");
        self.id.write(out);
        out.extend_from_slice(b"</MessageId><InsertionTime>");
        self.inserted.write_rfc1123(out);
        out.extend_from_slice(b"</InsertionTime><ExpirationTime>");
        self.expires.write_rfc1123(out);
        out.extend_from_slice(b"</ExpirationTime>");
        if let Some(receipt) = &self.receipt {
            out.extend_from_slice(b"<PopReceipt>");
            let mut text = String::with_capacity(32);
            receipt.write(&mut text);
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"</PopReceipt><TimeNextVisible>");
            receipt.next_visible.write_rfc1123(out);
            out.extend_from_slice(b"</TimeNextVisible>");
        }
        if let Some(count) = self.dequeue_count {
            out.extend_from_slice(b"<DequeueCount>");
            out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
            out.extend_from_slice(b"</DequeueCount>");
        }
    }
}

/// Writes a list of messages, one after the other.
#[derive(Debug, Default)]
pub struct ListWriter {
    has_begun: bool,
}

impl ListWriter {
    /// Appends a message, and before the first one what the document begins with.
    pub fn push(&mut self, out: &mut Vec<u8>, message: &Message<'_>) {
        self.begin(out);
        message.write(out);
    }

    /// Appends a message up to its text, which is not empty. It is appended with [`push_part`], and what stands behind it
    /// with [`end_text`].
    pub fn start_text(&mut self, out: &mut Vec<u8>, message: &Message<'_>) {
        self.begin(out);
        message.write_head(out);
        out.extend_from_slice(TEXT_START.as_bytes());
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.has_begun {
            self.has_begun = true;
            out.extend_from_slice(START.as_bytes());
        }
    }

    /// Appends the end, or all of a document without messages.
    pub fn finish(self, out: &mut Vec<u8>) {
        let end = if self.has_begun { END } else { EMPTY };
        out.extend_from_slice(end.as_bytes());
    }
}

/// Appends as much of a text as fits into `bytes_max` bytes of `out`, and tells how much that is. A part may end within a
/// character.
pub fn push_part(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) -> usize {
    let mut taken = 0;
    loop {
        let room = bytes_max.saturating_sub(out.len()) / ESCAPED_BYTES_MAX;
        if taken == text.len() || room < PART_BYTES_MIN {
            return taken;
        }
        let end = text.len().min(taken + room);
        push_escaped(out, &text[taken..end]);
        taken = end;
    }
}

/// Appends what stands behind a text.
pub fn end_text(out: &mut Vec<u8>) {
    out.extend_from_slice(TEXT_END.as_bytes());
}

/// The document without messages.
pub fn empty_list() -> &'static str {
    EMPTY
}

/// Appends text for an element. A carriage return must be a reference, or readers turn it into a line feed.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    push_escaped(out, text.as_bytes());
}

fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    // Most texts are base64, and bytes are looked at many at a time.
    let is_plain = memchr3(b'&', b'<', b'>', bytes).is_none() && memchr(b'\r', bytes).is_none();
    if is_plain {
        return out.extend_from_slice(bytes);
    }
    // Doubling until it fits would take twice the room of a large text.
    out.reserve(bytes.iter().map(|byte| escaped(*byte).map_or(1, str::len)).sum());
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let Some(escaped) = escaped(*byte) else { continue };
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(escaped.as_bytes());
        start = at + 1;
    }
    out.extend_from_slice(&bytes[start..]);
}

fn escaped(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'\r' => "&#xD;",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::receipt::MadeBy;
    use super::*;

    const ID: &str = "786c3a38-a121-420a-b514-62bc30edf7d3";

    fn at(text: &str) -> Ticks {
        Ticks::parse_iso(text).unwrap()
    }

    fn list(messages: &[Message<'_>]) -> String {
        let (mut out, mut list) = (Vec::new(), ListWriter::default());
        for message in messages {
            list.push(&mut out, message);
        }
        list.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn message(text: Option<&str>) -> Message<'_> {
        let receipt = PopReceipt {
            next_visible: at("2023-06-16T19:55:56.6911488Z"),
            made_by: MadeBy::PutOrGet,
        };
        Message {
            id: MessageId::parse(ID).unwrap(),
            inserted: at("2023-06-16T19:55:16Z"),
            expires: at("2023-06-16T19:55:56Z"),
            receipt: Some(receipt),
            dequeue_count: Some(1),
            text,
        }
    }

    /// The recorded documents of sections 3.6 to 3.8.
    #[test]
    fn documents_are_those_of_the_live_service() {
        let head = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
        assert_eq!(list(&[]), format!("{head}<QueueMessagesList />"));
        let got = list(&[message(Some("Hello World"))]);
        assert_eq!(
            got,
            format!(
                "{head}<QueueMessagesList><QueueMessage><MessageId>786c3a38-a121-420a-b514-62bc30edf7d3</MessageId><InsertionTime>Fri, 16 Jun 2023 19:55:16 GMT</InsertionTime><ExpirationTime>Fri, 16 Jun 2023 19:55:56 GMT</ExpirationTime><PopReceipt>AgAAAAMAAAAAAAAAAKSnkIyg2QE=</PopReceipt><TimeNextVisible>Fri, 16 Jun 2023 19:55:56 GMT</TimeNextVisible><DequeueCount>1</DequeueCount><MessageText>Hello World</MessageText></QueueMessage></QueueMessagesList>"
            )
        );
        let put = Message { dequeue_count: None, ..message(None) };
        assert!(list(&[put]).ends_with(
            "<TimeNextVisible>Fri, 16 Jun 2023 19:55:56 GMT</TimeNextVisible></QueueMessage></QueueMessagesList>"
        ));
        let peeked = Message { receipt: None, dequeue_count: Some(0), ..message(Some("")) };
        assert!(list(&[peeked, peeked]).ends_with(
            "</ExpirationTime><DequeueCount>0</DequeueCount><MessageText /></QueueMessage></QueueMessagesList>"
        ));
    }

    #[test]
    fn only_what_must_be_is_escaped() {
        let mut out = Vec::new();
        push_text(&mut out, " a<b> & 'c' \"d\"\r\n\t\u{1F600}\u{e000} ");
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, " a&lt;b&gt; &amp; 'c' \"d\"&#xD;\n\t\u{1F600}\u{e000} ");
    }

    /// However much of it is escaped, and wherever it is cut.
    #[test]
    fn parts_of_a_text_keep_to_their_room() {
        for unit in ["a", "\r", "&<>\r", "\u{20ac}&", "a b c d e f g h i <"] {
            let text = unit.repeat(TEXT_BYTES_MAX / unit.len());
            let mut whole = Vec::new();
            push_text(&mut whole, &text);
            assert_eq!(whole.capacity(), whole.len(), "{unit:?}");
            let (mut left, mut parts) = (text.as_bytes(), Vec::new());
            while !left.is_empty() {
                let mut part = Vec::with_capacity(10_000);
                let taken = push_part(&mut part, left, 10_000);
                assert!(taken > 0 && part.len() <= 10_000 && part.capacity() == 10_000);
                assert!(taken == left.len() || part.len() > 9_900, "{} bytes", part.len());
                left = &left[taken..];
                parts.extend(part);
            }
            assert!(parts == whole, "{unit:?}");
        }
        assert_eq!(push_part(&mut vec![0; 95], b"text", 100), 0);
    }

    #[test]
    fn ids_are_lower_case_guids() {
        let id = MessageId::parse(ID).unwrap();
        assert_eq!(id.to_string(), ID);
        for text in [
            "",
            "786C3A38-A121-420A-B514-62BC30EDF7D3",
            "786c3a38a121420ab51462bc30edf7d3",
            "786c3a38-a121-420a-b514-62bc30edf7d",
            "786c3a38-a121-420a-b514-62bc30edf7d33",
            "786c3a38-a121-420a-b514_62bc30edf7d3",
            "786c3a3--a121-420a-b514-62bc30edf7d3",
            "786c3a38-a121-420a-b514-62bc30edf7g3",
        ] {
            assert_eq!(MessageId::parse(text), None, "{text}");
        }
        let made = MessageId::at(at("2026-11-16T12:00:00.1234567Z"), u64::MAX).to_string();
        assert_eq!(&made[14..15], "7");
        assert!("89ab".contains(&made[19..20]));
    }

    proptest! {
        #[test]
        fn ids_sort_by_moment(
            a in Ticks::MIN_STORED.0..Ticks::MAX.0 / 2,
            later in 1..1_000_000i64,
            random: (u64, u64),
        ) {
            let a = a + Ticks::from_unix_nanos(0).0;
            prop_assume!(a + later < Ticks::MAX.0);
            let (one, other) = (
                MessageId::at(Ticks(a), random.0),
                MessageId::at(Ticks(a + later), random.1),
            );
            prop_assert!(one < other);
            prop_assert_eq!(MessageId::parse(&one.to_string()), Some(one));
        }

        #[test]
        fn any_id_is_handled(text: String, id: [u8; 16]) {
            let _ = MessageId::parse(&text);
            prop_assert_eq!(MessageId::parse(&MessageId(id).to_string()), Some(MessageId(id)));
        }
    }
}
