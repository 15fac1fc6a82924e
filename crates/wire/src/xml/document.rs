//! A small XML reader and writer: the tree of elements and texts, nothing else.
//!
//! The documents of this service are a few hundred bytes, so a tree costs nothing and lets elements
//! come in any order. Attributes and comments carry no meaning here and are dropped.

use quick_xml::escape::partial_escape;

use super::reader::{DocumentReader, Part};
use super::syntax::is_blank;
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// Deeper than any document of the service (4 levels), and shallow enough to bound the stack of
/// open elements.
const DEPTH_MAX: usize = 8;

/// More than any document of the service has (five CORS rules, and all else, are some sixty), so that a large body of
/// empty elements does not become a much larger tree.
const ELEMENTS_MAX: usize = 1000;

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
    let mut builder = Builder { elements_max, ..Builder::default() };
    let mut reader = DocumentReader::new(body)?;
    while let Some(part) = reader.next()? {
        match part {
            Part::Start(name) => builder.open(name)?,
            Part::End => builder.close(reader.position())?,
            Part::Text(text) => builder.append(|element| element.push_str(&text)),
            Part::Char(char) => builder.append(|element| element.push(char)),
        }
    }
    builder.root.ok_or_else(|| invalid("the document has no root"))
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
        if element.children.is_empty() && !is_blank_text(&element.text) {
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
    fn open(&mut self, name: &str) -> Result<()> {
        if self.open.len() == DEPTH_MAX {
            return Err(invalid("elements are nested too deeply"));
        }
        self.count += 1;
        if self.count > self.elements_max {
            return Err(invalid("the document has too many elements"));
        }
        self.open.push(Element { name: name.to_owned(), ..Element::default() });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<()> {
        let element = self.open.pop().map(|element| Element { end, ..element });
        let element = element.ok_or_else(|| invalid("an element ends before it starts"))?;
        if !element.children.is_empty() && !is_blank_text(&element.text) {
            return Err(invalid(format!("element mixes text and elements: name={}", element.name)));
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn append(&mut self, push: impl FnOnce(&mut String)) {
        if let Some(element) = self.open.last_mut() {
            push(&mut element.text);
        }
    }
}

fn is_blank_text(text: &str) -> bool {
    text.chars().all(is_blank)
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
/// line feed; the library writes it in decimal, the service in hexadecimal digits.
pub(crate) fn escape(text: &str) -> String {
    partial_escape(text).replace("&#13;", "&#xD;")
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::reader::tests::MALFORMED;
    use super::*;

    pub(crate) fn assert_invalid<T: std::fmt::Debug>(result: Result<T>, what: &str) {
        let error = result.expect_err(what);
        let expected = (ErrorCode::InvalidXmlDocument, 400);
        assert_eq!((error.code(), error.status()), expected, "{what}");
        assert_eq!(error.message(), "XML specified is not syntactically valid.");
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
        for text in MALFORMED.into_iter().chain(["<a>x<b/></a>", "<a>\u{a0}<b/></a>", &deep]) {
            assert_invalid(parse(text.as_bytes()), text);
        }
        let allowed = "<a>".repeat(DEPTH_MAX) + &"</a>".repeat(DEPTH_MAX);
        parse(allowed.as_bytes()).unwrap();
        let children = |count| format!("<a>{}</a>", "<b/>".repeat(count));
        parse(children(ELEMENTS_MAX - 1).as_bytes()).unwrap();
        assert_invalid(parse(children(ELEMENTS_MAX).as_bytes()), "too many elements");
    }

    #[test]
    fn a_carriage_return_is_written_as_a_reference() {
        let mut out = String::new();
        write_leaf(&mut out, "a", "b\r\nc\td&#13;<>\"'");
        assert_eq!(out, "<a>b&#xD;\nc\td&amp;#13;&lt;&gt;\"'</a>");
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
