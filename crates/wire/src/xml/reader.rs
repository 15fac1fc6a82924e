//! Reads a document part by part, and only one that is well-formed.
//!
//! The library finds the parts and leaves open much of what XML 1.0 demands of them and of their order; that is checked
//! here and in [`syntax`](super::syntax). No document type and no processing instruction is taken. Namespaces are not
//! resolved, and attributes are checked and dropped.

use std::borrow::Cow;

use memchr::memmem;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::syntax::{first_not_xml, is_blank, is_declaration, local_name, resolve, tag_name};
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// What bodies of the live service start with.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// An element begins; its name without a prefix.
    Start(&'t str),
    End,
    /// A text or a piece of one, with one kind of line ends.
    Text(Cow<'t, str>),
    /// What a reference stands for.
    Char(char),
}

#[derive(Debug)]
pub(crate) struct DocumentReader<'t> {
    text: &'t str,
    reader: Reader<&'t [u8]>,
    /// Elements that are open.
    depth: usize,
    has_root: bool,
    /// Whether the last part was the start of an element that ends at once.
    is_empty: bool,
}

impl<'t> DocumentReader<'t> {
    /// # Errors
    /// 400 `InvalidXmlDocument` for what is not UTF-8 or has characters that XML does not have.
    pub(crate) fn new(body: &'t [u8]) -> Result<Self> {
        let text = std::str::from_utf8(body).map_err(|error| {
            let valid = std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default();
            malformed(without_mark(valid), usize::MAX, "it is not UTF-8")
        })?;
        let text = without_mark(text);
        if let Some(at) = first_not_xml(text) {
            return Err(malformed(text, at, "it has a character that XML does not have"));
        }
        // The library would skip another one.
        if text.starts_with(BYTE_ORDER_MARK) {
            return Err(malformed(text, 0, "it has two byte order marks"));
        }
        let reader = Reader::from_str(text);
        Ok(Self { text, reader, depth: 0, has_root: false, is_empty: false })
    }

    /// Where what follows the last part begins: bytes from the start, a byte order mark not counted.
    pub(crate) fn position(&self) -> usize {
        offset(self.reader.buffer_position())
    }

    /// The next part; `None` at the end of a whole document.
    ///
    /// # Errors
    /// 400 `InvalidXmlDocument` with its place for what is not well-formed.
    pub(crate) fn next(&mut self) -> Result<Option<Part<'t>>> {
        if std::mem::take(&mut self.is_empty) {
            self.depth -= 1;
            return Ok(Some(Part::End));
        }
        loop {
            let start = self.position();
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let at = offset(self.reader.error_position());
                    return Err(malformed(self.text, at, &error.to_string()));
                }
            };
            let markup = self.text.get(start..self.position()).unwrap_or_default();
            let part = match event {
                Event::Start(_) => self.open(start, markup, "<", ">")?,
                Event::Empty(_) => {
                    self.is_empty = true;
                    self.open(start, markup, "<", "/>")?
                }
                Event::End(_) => {
                    // The library has compared it with its start.
                    self.depth -= 1;
                    Part::End
                }
                Event::Text(_) if self.depth == 0 && !markup.contains(|char| !is_blank(char)) => {
                    continue;
                }
                Event::Text(text) if self.depth > 0 && !has_end_of_section(markup) => {
                    Part::Text(text.xml10_content())
                }
                Event::CData(text) if self.depth > 0 => Part::Text(text.xml10_content()),
                Event::GeneralRef(_) if self.depth > 0 => {
                    let name = markup.strip_prefix('&').and_then(|name| name.strip_suffix(';'));
                    let char = name.and_then(resolve);
                    Part::Char(char.ok_or_else(|| self.fault(start, "a reference means nothing"))?)
                }
                Event::Decl(_) if start == 0 && is_whole_declaration(markup) => continue,
                Event::Comment(_) if is_comment(markup) => continue,
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                    return Err(self.fault(start, "there is text where none may be"));
                }
                Event::Decl(_) | Event::Comment(_) | Event::DocType(_) | Event::PI(_) => {
                    return Err(self.fault(start, "there is markup that is not taken"));
                }
                Event::Eof if self.depth > 0 || !self.has_root => {
                    return Err(self.fault(self.text.len(), "it is not complete"));
                }
                Event::Eof => return Ok(None),
            };
            return Ok(Some(part));
        }
    }

    fn open(&mut self, start: usize, markup: &'t str, from: &str, to: &str) -> Result<Part<'t>> {
        if self.depth == 0 && self.has_root {
            return Err(self.fault(start, "there is more than one root"));
        }
        let content = markup.strip_prefix(from).and_then(|content| content.strip_suffix(to));
        let name = content.and_then(tag_name);
        let name = name.ok_or_else(|| self.fault(start, "a tag is malformed"))?;
        self.has_root = true;
        self.depth += 1;
        Ok(Part::Start(local_name(name)))
    }

    fn fault(&self, at: usize, reason: &str) -> StorageError {
        malformed(self.text, at, reason)
    }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Found many bytes at a time: a text may be long.
fn has_end_of_section(text: &str) -> bool {
    memmem::find(text.as_bytes(), b"]]>").is_some()
}

fn is_whole_declaration(markup: &str) -> bool {
    let content = markup.strip_prefix("<?xml").and_then(|content| content.strip_suffix("?>"));
    content.is_some_and(is_declaration)
}

fn is_comment(markup: &str) -> bool {
    let content = markup.strip_prefix("<!--").and_then(|content| content.strip_suffix("-->"));
    content.is_some_and(|content| !content.contains("--") && !content.ends_with('-'))
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// A document that is not well-formed, with the place of the fault; the reason goes to the log.
fn malformed(text: &str, at: usize, reason: &str) -> StorageError {
    let error = fault_at(line_and_position(text, at), "Error parsing Xml content");
    error.caused_by(format!("the document is not well-formed: {reason}"))
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

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Documents that are not well-formed, or have what is not taken.
    pub(crate) const MALFORMED: [&str; 58] = [
        "",
        "  ",
        "text",
        "<a>",
        "<a></b>",
        "<a></ a>",
        "<a></a b='c'>",
        "</a>",
        "<a/></a>",
        "<a/><b/>",
        "<a/>text",
        "<a/>\u{a0}",
        "\u{a0}<a/>",
        "\u{feff}\u{feff}<a/>",
        "<a/>\u{feff}",
        // What is no text outside of the root, blank as it may be.
        "<![CDATA[]]><a/>",
        "<![CDATA[ ]]><a/>",
        "<a/><![CDATA[ ]]>",
        "&#32;<a/>",
        "<a/>&#x20;",
        "&amp;<a/>",
        // References.
        "<a>&nbsp;</a>",
        "<a>& </a>",
        "<a>&</a>",
        "<a>&amp</a>",
        "<a>&;</a>",
        "<a>&#;</a>",
        "<a>&#0;</a>",
        "<a>&#1;</a>",
        "<a>&#xD800;</a>",
        "<a>&#X41;</a>",
        "<a>&#+65;</a>",
        // Characters.
        "<a>\u{1}</a>",
        "<a>\u{ffff}</a>",
        "<a>]]></a>",
        // Tags.
        "<a b='c'd='e'/>",
        "<a b/>",
        "<a b=c/>",
        "<a b='c' b='d'/>",
        "<a b='<'/>",
        "<1a/>",
        "< a/>",
        "<a,b/>",
        "<a/ >",
        // Declarations.
        " <?xml version='1.0'?><a/>",
        "<?xml?><a/>",
        "<?xml version='1.1'?><a/>",
        "<?xml encoding='utf-8'?><a/>",
        "<?xml version='1.0'encoding='utf-8'?><a/>",
        "<?xml version='1.0' encoding='utf-16'?><a/>",
        "<?xml version='1.0' encoding='iso-8859-1'?><a/>",
        "<?xml version='1.0'?><?xml version='1.0'?><a/>",
        "<a><?xml version='1.0'?></a>",
        // Other markup.
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        "<?pi x?><a/>",
        "<a/><!-- b -- c -->",
        "<a><!-- b ---></a>",
    ];

    fn read(text: &str) -> Result<String> {
        let mut reader = DocumentReader::new(text.as_bytes())?;
        let mut out = String::new();
        while let Some(part) = reader.next()? {
            match part {
                Part::Start(name) => out.extend(["<", name, ">"]),
                Part::End => out.push('/'),
                Part::Text(text) => out.push_str(&text),
                Part::Char(char) => out.push(char),
            }
        }
        Ok(out)
    }

    #[test]
    fn documents_are_read_part_by_part() {
        for (text, expected) in [
            ("<a/>", "<a>/"),
            ("<a></a >\r\n", "<a>/"),
            ("\u{feff}<?xml version='1.0' encoding='UTF-8'?>\n<a />\n", "<a>/"),
            ("<!----><!-- - --><a>b<c/>d</a><!-- e\u{e9} -->", "<a>b<c>/d/"),
            ("<a b='>' c = \"'&#65;\">x</a>", "<a>x/"),
            ("<p:a xmlns:p='u'><q:b/></p:a>", "<a><b>//"),
            ("<a>&lt;&#65;<![CDATA[<b>&amp;]]> ]] > \u{feff}</a>", "<a><A<b>&amp; ]] > \u{feff}/"),
            ("<a>b\r\nc\rd&#13;<![CDATA[\r\n]]></a>", "<a>b\nc\nd\r\n/"),
            ("<\u{e9}\u{b7}-.1/>", "<\u{e9}\u{b7}-.1>/"),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_refused_with_its_place() {
        for text in MALFORMED {
            let error = read(text).expect_err(text);
            assert_eq!(error.code(), ErrorCode::InvalidXmlDocument, "{text}");
            let elements: Vec<_> = error.elements().collect();
            assert_eq!(elements[2], ("Reason", "Error parsing Xml content"), "{text}");
        }
        assert!(DocumentReader::new(b"<a>\xff</a>").is_err());
        assert!(DocumentReader::new(b"\xff\xfe<\0a\0/\0>\0").is_err(), "UTF-16");
        let place = |text: &str| {
            let error = read(text).unwrap_err();
            let place: Vec<_> = error.elements().take(2).map(|(_, text)| text.to_owned()).collect();
            place.join(":")
        };
        assert_eq!(place("<a>\n  <b c='d'e='f'/></a>"), "2:3");
        assert_eq!(place("\u{feff}<a/>\u{1F600}"), "1:5");
        assert_eq!(place("<a>\u{1F600}&nbsp;</a>"), "1:6");
    }

    proptest! {
        #[test]
        fn any_markup_is_handled(text in "[<>/!?a&;#x\\[\\]\"'= \u{e9}\n-]{0,40}") {
            let _ = read(&text);
            let _ = read(&format!("<a>{text}</a>"));
        }

        #[test]
        fn any_bytes_are_handled(bytes in any::<Vec<u8>>()) {
            if let Ok(mut reader) = DocumentReader::new(&bytes) {
                while let Ok(Some(_)) = reader.next() {}
            }
        }
    }
}
