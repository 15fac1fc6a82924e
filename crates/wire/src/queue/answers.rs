//! The documents of the queue service from the client's side: answers are read, the text of a message is written.
//!
//! Answers are read leniently: elements in any order, unknown ones skipped, with and without the byte order mark. Receipts
//! are opaque here; what they say is the server's own affair.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use crate::error::Result;
use crate::ticks::Ticks;
use crate::xml::document::{
    self, DECLARATION, Element, invalid, write_close, write_leaf, write_open,
};
use crate::xml::syntax::first_not_xml;

/// More than the largest page of queues has: 5,000 of them, each with the few elements of its metadata. An answer comes from
/// a service that the client chose, so that this bounds mistakes and not attacks.
const ANSWER_ELEMENTS_MAX: usize = 1_000_000;

/// A message, as far as an answer tells of it: a new one has no text, one that was peeked at no receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageAnswer {
    pub id: String,
    pub insertion_time: Ticks,
    pub expiration_time: Ticks,
    pub pop_receipt: Option<String>,
    pub time_next_visible: Option<Ticks>,
    pub dequeue_count: Option<u32>,
    pub text: Option<String>,
}

/// A page of queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueListAnswer {
    pub queues: Vec<QueueAnswer>,
    /// Where the next page begins, if there is one.
    pub next_marker: Option<String>,
}

/// A queue in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueAnswer {
    pub name: String,
    /// `None` unless it was asked for.
    pub metadata: Option<BTreeMap<String, String>>,
}

/// Reads the answer to Put, Get or Peek Messages.
///
/// # Errors
/// 400 `InvalidXmlDocument` for anything that is no list of messages.
pub fn parse_messages(body: &[u8]) -> Result<Vec<MessageAnswer>> {
    let root = document::parse_up_to(body, ANSWER_ELEMENTS_MAX)?;
    expect(&root, "QueueMessagesList")?;
    let messages = root.children.iter().filter(|child| child.name == "QueueMessage");
    messages.map(parse_message).collect()
}

fn parse_message(element: &Element) -> Result<MessageAnswer> {
    let text = |name: &str| optional(element, name);
    let moment = |name: &str| text(name)?.map(parse_http_date).transpose();
    let missing = |name: &str| invalid(format!("element is missing: name={name}"));
    let count = text("DequeueCount")?.map(|it| it.trim().parse());
    Ok(MessageAnswer {
        id: text("MessageId")?.ok_or_else(|| missing("MessageId"))?.to_owned(),
        insertion_time: moment("InsertionTime")?.ok_or_else(|| missing("InsertionTime"))?,
        expiration_time: moment("ExpirationTime")?.ok_or_else(|| missing("ExpirationTime"))?,
        pop_receipt: text("PopReceipt")?.map(str::to_owned),
        time_next_visible: moment("TimeNextVisible")?,
        dequeue_count: count.transpose().map_err(|_| invalid("DequeueCount is no number"))?,
        text: text("MessageText")?.map(str::to_owned),
    })
}

/// Reads the answer to List Queues.
///
/// # Errors
/// 400 `InvalidXmlDocument` for anything that is no list of queues.
pub fn parse_queues(body: &[u8]) -> Result<QueueListAnswer> {
    let root = document::parse_up_to(body, ANSWER_ELEMENTS_MAX)?;
    expect(&root, "EnumerationResults")?;
    let queues = root.children.iter().find(|child| child.name == "Queues");
    let queues = queues.map_or(&[][..], |queues| &queues.children);
    let queues = queues.iter().filter(|child| child.name == "Queue").map(parse_queue);
    let next = optional(&root, "NextMarker")?.filter(|marker| !marker.is_empty());
    Ok(QueueListAnswer {
        queues: queues.collect::<Result<_>>()?,
        next_marker: next.map(str::to_owned),
    })
}

fn parse_queue(element: &Element) -> Result<QueueAnswer> {
    let name = optional(element, "Name")?.ok_or_else(|| invalid("a queue has no name"))?;
    let metadata = element.children.iter().find(|child| child.name == "Metadata");
    let metadata = metadata.map(|metadata| {
        let pairs = metadata.children.iter();
        pairs
            .map(|pair| Ok((pair.name.clone(), pair.leaf_text()?.to_owned())))
            .collect::<Result<_>>()
    });
    Ok(QueueAnswer { name: name.to_owned(), metadata: metadata.transpose()? })
}

/// Writes the body of Put or Update Message.
///
/// The text is made of [characters of XML](is_message_text); another could not be read.
pub fn write_message(text: &str) -> String {
    let mut out = DECLARATION.to_owned();
    write_open(&mut out, "QueueMessage");
    write_leaf(&mut out, "MessageText", text);
    write_close(&mut out, "QueueMessage");
    out
}

/// Whether a text can be that of a message: XML has no control characters but tab and line ends, not even as references.
pub fn is_message_text(text: &str) -> bool {
    first_not_xml(text).is_none()
}

/// Reads a moment in the form of HTTP and of messages: `Thu, 27 Oct 2022 22:04:45 GMT`.
///
/// # Errors
/// 400 `InvalidXmlDocument` for anything else.
pub fn parse_http_date(text: &str) -> Result<Ticks> {
    let since = httpdate::parse_http_date(text.trim())
        .ok()
        .and_then(|moment| moment.duration_since(UNIX_EPOCH).ok())
        .ok_or_else(|| invalid("a moment is no date of HTTP"))?;
    Ok(Ticks::from_unix_nanos(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)))
}

fn expect(root: &Element, name: &str) -> Result<()> {
    match root.name == name {
        true => Ok(()),
        false => Err(invalid(format!("the root is not {name}"))),
    }
}

fn optional<'e>(element: &'e Element, name: &str) -> Result<Option<&'e str>> {
    let child = element.children.iter().find(|child| child.name == name);
    child.map(Element::leaf_text).transpose()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticks(text: &str) -> Ticks {
        Ticks::parse_iso(text).unwrap()
    }

    /// The recorded answers in the reference, sections 3.6 to 3.8.
    #[test]
    fn recorded_messages_are_read() {
        let put = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>ac198a0a-bcd5-4aaa-9c2e-658fbda15f47</MessageId><InsertionTime>Thu, 27 Oct 2022 22:04:45 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><PopReceipt>AgAAAAMAAAAAAAAAVNNsH1Dq2AE=</PopReceipt><TimeNextVisible>Thu, 27 Oct 2022 22:04:45 GMT</TimeNextVisible></QueueMessage></QueueMessagesList>";
        let read = parse_messages(put.as_bytes()).unwrap();
        let expected = MessageAnswer {
            id: "ac198a0a-bcd5-4aaa-9c2e-658fbda15f47".into(),
            insertion_time: ticks("2022-10-27T22:04:45Z"),
            expiration_time: ticks("9999-12-31T23:59:59Z"),
            pop_receipt: Some("AgAAAAMAAAAAAAAAVNNsH1Dq2AE=".into()),
            time_next_visible: Some(ticks("2022-10-27T22:04:45Z")),
            dequeue_count: None,
            text: None,
        };
        assert_eq!(read, [expected]);
        let peeked = "<QueueMessagesList><QueueMessage><MessageId>7</MessageId><InsertionTime>Fri, 16 Jun 2023 19:55:16 GMT</InsertionTime><ExpirationTime>Fri, 16 Jun 2023 19:55:56 GMT</ExpirationTime><DequeueCount>1</DequeueCount><MessageText> a&amp;b&#xD;\n </MessageText></QueueMessage></QueueMessagesList>";
        let read = parse_messages(peeked.as_bytes()).unwrap().remove(0);
        assert_eq!((read.pop_receipt, read.time_next_visible), (None, None));
        assert_eq!((read.dequeue_count, read.text.as_deref()), (Some(1), Some(" a&b\r\n ")));
        assert_eq!(parse_messages(b"<QueueMessagesList />").unwrap(), []);
        for empty in ["<MessageText />", "<MessageText></MessageText>"] {
            let body = peeked.replace("<MessageText> a&amp;b&#xD;\n </MessageText>", empty);
            assert_eq!(parse_messages(body.as_bytes()).unwrap()[0].text.as_deref(), Some(""));
        }
    }

    /// The recorded pages in the reference, section 3.1.
    #[test]
    fn recorded_lists_are_read() {
        let first = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://acct.queue.core.windows.net/\"><Prefix>listqueue</Prefix><MaxResults>3</MaxResults><Queues><Queue><Name>listqueue0</Name></Queue><Queue><Name>listqueue1</Name></Queue></Queues><NextMarker>/acct/listqueue3</NextMarker></EnumerationResults>";
        let read = parse_queues(first.as_bytes()).unwrap();
        let names: Vec<_> = read.queues.iter().map(|queue| queue.name.as_str()).collect();
        assert_eq!(names, ["listqueue0", "listqueue1"]);
        assert_eq!(read.next_marker.as_deref(), Some("/acct/listqueue3"));
        assert_eq!(read.queues[0].metadata, None);
        let last = "<EnumerationResults><Queues><Queue><Name>a</Name><Metadata><Capital>letter</Capital><foo>b&lt;r</foo></Metadata></Queue><Queue><Name>b</Name><Metadata /></Queue></Queues><NextMarker /></EnumerationResults>";
        let read = parse_queues(last.as_bytes()).unwrap();
        let metadata = [("Capital", "letter"), ("foo", "b<r")];
        let metadata = metadata.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read.queues[0].metadata, Some(BTreeMap::from(metadata)));
        assert_eq!(read.queues[1].metadata, Some(BTreeMap::new()));
        assert_eq!(read.next_marker, None);
    }

    #[test]
    fn other_documents_are_refused() {
        for body in ["", "<html/>", "<QueueMessagesList><QueueMessage/></QueueMessagesList>"] {
            assert!(parse_messages(body.as_bytes()).is_err(), "{body}");
            assert!(parse_queues(body.as_bytes()).is_err(), "{body}");
        }
        assert!(!is_message_text("a\u{0}") && !is_message_text("\u{ffff}"));
    }

    /// A page as large as the service makes them.
    #[test]
    fn a_full_page_is_read() {
        let queue = "<Queue><Name>q</Name><Metadata><a>1</a><b>2</b></Metadata></Queue>";
        let body = format!(
            "<EnumerationResults><Queues>{}</Queues><NextMarker /></EnumerationResults>",
            queue.repeat(5000)
        );
        assert_eq!(parse_queues(body.as_bytes()).unwrap().queues.len(), 5000);
    }

    proptest! {
        #[test]
        fn a_written_text_is_read_back(text in "[\t\n\r -\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]*") {
            prop_assert!(is_message_text(&text));
            let root = document::parse(write_message(&text).as_bytes()).unwrap();
            prop_assert_eq!(optional(&root, "MessageText").unwrap(), Some(text.as_str()));
        }
    }
}
