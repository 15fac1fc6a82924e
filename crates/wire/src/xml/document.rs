//! A small XML reader and writer: the tree of elements and texts, nothing else.
//!
//! The documents of this service are a few hundred bytes, so a tree costs nothing and lets elements
//! come in any order. Attributes, comments and processing instructions carry no meaning here and
//! are dropped.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// Deeper than any document of the service (4 levels), and shallow enough to bound the stack of
/// open elements.
const DEPTH_MAX: usize = 8;

/// More than any document of the service has (five CORS rules, and all else, are some sixty), so that a large body of
/// empty elements does not become a much larger tree.
const ELEMENTS_MAX: usize = 1000;

/// What bodies of the live service start with.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";
pub(crate) const DECLARATION: &str = r#"<?xml version="1.0" encoding="utf-8"?>"#;

/// An element: its local name, and either texts or elements inside.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub name: String,
    pub text: String,
    pub children: Vec<Element>,
    /// Where what follows it begins: bytes from the start of the document, a byte order mark not counted.
    pub end: usize,
}

/// Where a byte of a text stands: lines and characters, both from one.
pub(crate) fn line_and_position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].encode_utf16().count() + 1)
}

/// A document that cannot be taken, with the place of the fault, which queues and blobs tell.
pub(crate) fn fault_at(
    (line, position): (usize, usize),
    reason: impl Into<Cow<'static, str>>,
) -> StorageError {
    StorageError::new(ErrorCode::InvalidXmlDocument)
        .element("LineNumber", line.to_string())
        .element("LinePosition", position.to_string())
        .element("Reason", reason)
}

/// 400 `InvalidXmlDocument`; the reason goes to the log.
pub(crate) fn invalid(reason: impl Into<String>) -> StorageError {
    StorageError::new(ErrorCode::InvalidXmlDocument).caused_by(reason.into())
}

/// Reads a document of one root element.
///
/// # Errors
/// 400 `InvalidXmlDocument`.
pub(crate) fn parse(body: &[u8]) -> Result<Element> {
    parse_up_to(body, ELEMENTS_MAX)
}

/// As [`parse`], for documents that have more elements than a request can: lists that a service answers with.
///
/// # Errors
/// 400 `InvalidXmlDocument`.
pub(crate) fn parse_up_to(body: &[u8], elements_max: usize) -> Result<Element> {
    let text = std::str::from_utf8(body).map_err(|error| invalid(error.to_string()))?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut builder = Builder { elements_max, ..Builder::default() };
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().map_err(|error| invalid(error.to_string()))? {
            Event::Start(start) => builder.open(&start)?,
            Event::Empty(start) => {
                builder.open(&start)?;
                builder.close(position(&reader))?;
            }
            Event::End(_) => builder.close(position(&reader))?,
            Event::Text(text) => builder.append(&text.xml10_content())?,
            Event::CData(text) => builder.append(&text.xml10_content())?,
            Event::GeneralRef(reference) => {
                builder.append(resolve(&reference)?.encode_utf8(&mut [0; 4]))?;
            }
            Event::DocType(_) => return Err(invalid("document types are not accepted")),
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
            Event::Eof => return builder.finish(),
        }
    }
}

impl Element {
    /// The text of an element that has no elements inside.
    pub(crate) fn leaf_text(&self) -> Result<&str> {
        if self.children.is_empty() {
            Ok(&self.text)
        } else {
            Err(invalid(format!("element has children: name={}", self.name)))
        }
    }
}

/// A view of an element's children that hands each out once, so that duplicates and strangers show.
pub(crate) struct Children<'e> {
    parent: &'e str,
    rest: Vec<&'e Element>,
}

impl<'e> Children<'e> {
    pub(crate) fn of(element: &'e Element) -> Result<Self> {
        if element.children.is_empty() && !element.text.trim().is_empty() {
            return Err(invalid(format!("element has text: name={}", element.name)));
        }
        Ok(Self { parent: &element.name, rest: element.children.iter().collect() })
    }

    pub(crate) fn optional(&mut self, name: &str) -> Result<Option<&'e Element>> {
        let Some(at) = self.rest.iter().position(|child| child.name == name) else {
            return Ok(None);
        };
        let child = self.rest.remove(at);
        if self.rest.iter().any(|other| other.name == name) {
            return Err(invalid(format!("element is repeated: name={name}")));
        }
        Ok(Some(child))
    }

    pub(crate) fn required(&mut self, name: &str) -> Result<&'e Element> {
        let parent = self.parent;
        self.optional(name)?
            .ok_or_else(|| invalid(format!("element is missing: name={name} parent={parent}")))
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self.rest.first() {
            None => Ok(()),
            Some(child) => Err(invalid(format!("element is not known: name={}", child.name))),
        }
    }
}

#[derive(Default)]
struct Builder {
    open: Vec<Element>,
    count: usize,
    elements_max: usize,
    root: Option<Element>,
}

impl Builder {
    fn open(&mut self, start: &BytesStart<'_>) -> Result<()> {
        if self.open.len() == DEPTH_MAX {
            return Err(invalid("elements are nested too deeply"));
        }
        if self.root.is_some() {
            return Err(invalid("the document has more than one root"));
        }
        self.count += 1;
        if self.count > self.elements_max {
            return Err(invalid("the document has too many elements"));
        }
        let name = start.local_name().into_inner().to_owned();
        self.open.push(Element { name, ..Element::default() });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<()> {
        let element = self.open.pop().map(|element| Element { end, ..element });
        let element = element.ok_or_else(|| invalid("an element ends before it starts"))?;
        if !element.children.is_empty() && !element.text.trim().is_empty() {
            return Err(invalid(format!("element mixes text and elements: name={}", element.name)));
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn append(&mut self, text: &str) -> Result<()> {
        if first_not_xml(text).is_some() {
            return Err(invalid("the document has a character that XML does not allow"));
        }
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(invalid("there is text outside of the root")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Element> {
        match self.root {
            Some(root) if self.open.is_empty() => Ok(root),
            _ => Err(invalid("the document is not complete")),
        }
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// A character reference or one of the five named entities; there are no others without a document
/// type.
fn resolve(reference: &BytesRef<'_>) -> Result<char> {
    if let Some(char) = reference.resolve_char_ref().map_err(|error| invalid(error.to_string()))? {
        return Ok(char);
    }
    match reference.as_ref() {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        _ => Err(invalid("the document has an unknown entity")),
    }
}

/// The characters of XML 1.0; others cannot be written back, not even as references.
pub(crate) fn is_xml_char(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// Where the first character is that XML 1.0 does not have.
pub(crate) fn first_not_xml(text: &str) -> Option<usize> {
    // Nearly always there is none, and bytes are looked at many at a time. U+FFFE and U+FFFF begin with 0xEF.
    let is_suspect =
        |byte: u8| (byte < b' ') & !matches!(byte, b'\t' | b'\n' | b'\r') | (byte == 0xEF);
    if !text.bytes().fold(false, |any, byte| any | is_suspect(byte)) {
        return None;
    }
    text.char_indices().find(|(_, char)| !is_xml_char(*char)).map(|(at, _)| at)
}

/// A text that repeats what was sent, of which not everything can stand in a document.
pub(crate) fn only_xml(text: &str) -> Cow<'_, str> {
    match first_not_xml(text) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.replace(|char| !is_xml_char(char), "\u{fffd}")),
    }
}

/// Writes `<name>text</name>`, escaped.
pub(crate) fn write_leaf(out: &mut String, name: &str, text: &str) {
    write_open(out, name);
    out.push_str(&escape(text));
    write_close(out, name);
}

pub(crate) fn write_open(out: &mut String, name: &str) {
    out.extend(["<", name, ">"]);
}

pub(crate) fn write_close(out: &mut String, name: &str) {
    out.extend(["</", name, ">"]);
}

/// Escapes text for an element. A carriage return must be a reference, or readers turn it into a
/// line feed.
pub(crate) fn escape(text: &str) -> String {
    partial_escape(text).replace('\r', "&#13;")
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn assert_invalid<T: std::fmt::Debug>(result: Result<T>, what: &str) {
        let error = result.expect_err(what);
        let expected = (ErrorCode::InvalidXmlDocument, 400);
        assert_eq!((error.code(), error.status()), expected, "{what}");
        assert_eq!(error.message(), "XML specified is not syntactically valid.");
    }

    #[test]
    fn characters_that_xml_does_not_have_are_found() {
        for char in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let expected = (!is_xml_char(char)).then_some(40);
            let text =
                format!("{}{char}{}", "\u{e9}\t".repeat(10) + "0123456789", "a\r\n".repeat(10));
            assert_eq!(first_not_xml(&text), expected, "{char:?}");
        }
    }

    #[test]
    fn the_tree_is_built_from_texts_and_elements() {
        let root = parse(
            b"\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- c --><a xmlns=\"u\">\r\n <p:b k='v'>x&amp;&#x41;<![CDATA[<y>]]></p:b><c/> </a>\n",
        )
        .unwrap();
        assert_eq!(root.name, "a");
        let names: Vec<_> = root.children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
        assert_eq!(root.children[0].text, "x&A<y>");
    }

    #[test]
    fn hostile_and_broken_documents_are_refused() {
        let deep = "<a>".repeat(DEPTH_MAX + 1) + &"</a>".repeat(DEPTH_MAX + 1);
        for text in [
            "",
            "  ",
            "text",
            "<a>",
            "<a></b>",
            "</a>",
            "<a/><b/>",
            "<a/>text",
            "<a>x<b/></a>",
            "<a>&nbsp;</a>",
            "<a>& </a>",
            "<a>&#0;</a>",
            "<a>&#1;</a>",
            "<a>\u{1}</a>",
            "<a>\u{ffff}</a>",
            "<!DOCTYPE a><a/>",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
            "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
            &deep,
        ] {
            assert_invalid(parse(text.as_bytes()), text);
        }
        assert_invalid(parse(b"<a>\xff</a>"), "not UTF-8");
        let allowed = "<a>".repeat(DEPTH_MAX) + &"</a>".repeat(DEPTH_MAX);
        parse(allowed.as_bytes()).unwrap();
        let children = |count| format!("<a>{}</a>", "<b/>".repeat(count));
        parse(children(ELEMENTS_MAX - 1).as_bytes()).unwrap();
        assert_invalid(parse(children(ELEMENTS_MAX).as_bytes()), "too many elements");
    }

    proptest! {
        #[test]
        fn written_text_is_read_back(text in "[\t\n\r -\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]*") {
            let mut out = String::new();
            write_leaf(&mut out, "a", &text);
            prop_assert_eq!(parse(out.as_bytes()).unwrap().text, text);
        }

        #[test]
        fn any_bytes_are_handled(bytes in any::<Vec<u8>>()) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_markup_is_handled(text in "[<>/!?a&;#x\\[\\]\"'= -]{0,40}") {
            let _ = parse(text.as_bytes());
        }
    }
}
