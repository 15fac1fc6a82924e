//! The body of Put and Update Message: `<QueueMessage><MessageText>...</MessageText></QueueMessage>`.
//!
//! The text is any sequence of the characters of XML, and is kept as it is: never trimmed, never decoded further. What
//! is not well-formed is told with its place, as clients meet it when they send binary data as text.

use super::message::TEXT_BYTES_MAX;
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::xml::reader::{DocumentReader, Part};

/// The largest body: a text of the largest size in which every byte is written as a reference of six or so.
pub const BODY_BYTES_MAX: usize = 512 * 1024;
/// A document has two levels. What is inside of unknown siblings is skipped, and may not be deep.
const DEPTH_MAX: usize = 8;

const ROOT: &str = "QueueMessage";
const TEXT: &str = "MessageText";

/// Reads the text of a message.
///
/// # Errors
/// 400 `InvalidXmlDocument`; 413 `RequestBodyTooLarge` for a text of more than [`TEXT_BYTES_MAX`] bytes.
pub fn read(body: &[u8]) -> Result<String> {
    let mut reader = DocumentReader::new(body)?;
    let mut message = Builder::default();
    while let Some(part) = reader.next()? {
        match part {
            Part::Start(name) => message.open(name)?,
            Part::End => message.close(),
            Part::Text(text) => message.append(&text)?,
            Part::Char(char) => message.append(char.encode_utf8(&mut [0; 4]))?,
        }
    }
    message.text.ok_or_else(|| meaningless("there is no MessageText"))
}

/// A text of more bytes than a message may have.
pub fn too_large() -> StorageError {
    let limit = const { TEXT_BYTES_MAX };
    StorageError::new(ErrorCode::RequestBodyTooLarge).element("MaxLimit", limit.to_string())
}

#[derive(Default)]
struct Builder {
    depth: usize,
    /// Whether the element at depth two is the text.
    in_text: bool,
    text: Option<String>,
}

impl Builder {
    fn open(&mut self, name: &str) -> Result<()> {
        match self.depth {
            0 if name != ROOT => return Err(meaningless("the root is not QueueMessage")),
            1 if name == TEXT && self.text.is_some() => {
                return Err(meaningless("there is more than one MessageText"));
            }
            1 if name == TEXT => {
                self.in_text = true;
                self.text = Some(String::new());
            }
            _ if self.in_text => return Err(meaningless("there are elements in MessageText")),
            DEPTH_MAX.. => return Err(meaningless("elements are nested too deeply")),
            _ => {}
        }
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth < 2 {
            self.in_text = false;
        }
    }

    /// Takes characters; those beside the text mean nothing.
    fn append(&mut self, characters: &str) -> Result<()> {
        if self.in_text {
            let text = self.text.get_or_insert_default();
            if text.len() + characters.len() > TEXT_BYTES_MAX {
                return Err(too_large());
            }
            text.push_str(characters);
        }
        Ok(())
    }
}

/// A document that is well-formed and no message; the reason goes to the log.
fn meaningless(reason: &'static str) -> StorageError {
    StorageError::new(ErrorCode::InvalidXmlDocument).caused_by(reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::push_text;
    use super::*;

    fn document(text: &str) -> String {
        format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
    }

    /// Section 4.2: what clients were seen to write.
    #[test]
    fn every_variation_is_read() {
        for (body, expected) in [
            (
                "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>a&lt;b&gt; &amp; c</MessageText></QueueMessage>",
                "a<b> & c",
            ),
            (
                "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><QueueMessage><MessageText>&quot;&apos;</MessageText></QueueMessage>",
                "\"'",
            ),
            ("<QueueMessage>\r\n  <MessageText>x</MessageText>\r\n</QueueMessage>", "x"),
            ("\u{feff}<QueueMessage><MessageText /></QueueMessage>", ""),
            (
                "\u{feff}<?xml version=\"1.0\"?><QueueMessage><MessageText></MessageText></QueueMessage>",
                "",
            ),
            ("<QueueMessage><MessageText>&amp;lt;</MessageText></QueueMessage>", "&lt;"),
            (
                "<QueueMessage a='&lt;&#65;>' b=\"'\"><\u{e9}.-1/><MessageText>]]&gt;]] ></MessageText></QueueMessage>",
                "]]>]] >",
            ),
            (
                "<QueueMessage xmlns=\"u\"><a><b/>t</a><p:MessageText k='v'><![CDATA[<y>]]>&#65;&#x42;</p:MessageText><!-- c --></QueueMessage>",
                "<y>AB",
            ),
            (
                "<QueueMessage><MessageText> a\r\nb\rc&#13;&#xD;\n </MessageText></QueueMessage>",
                " a\nb\nc\r\r\n ",
            ),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap(), expected, "{body}");
        }
    }

    fn told(body: impl AsRef<[u8]>) -> String {
        let error = read(body.as_ref()).unwrap_err();
        let elements: Vec<_> = error.elements().map(|(_, text)| text).collect();
        format!("{} {}", error.code().as_str(), elements.join(" ")).trim_end().to_owned()
    }

    #[test]
    fn faults_of_form_are_told_with_their_place() {
        let at = |line: u32, position: u32| {
            format!("InvalidXmlDocument {line} {position} Error parsing Xml content")
        };
        // The text begins behind 27 characters.
        assert_eq!(told(document("ab\u{1}")), at(1, 30));
        assert_eq!(told(document("ab\n\u{ffff}")), at(2, 1));
        assert_eq!(told(document("a&#0;")), at(1, 29));
        assert_eq!(told(document("a&#xFFFE;")), at(1, 29));
        assert_eq!(told(document("a&nbsp;")), at(1, 29));
        assert_eq!(
            told([b"<QueueMessage>\xff".as_slice(), b"</QueueMessage>"].concat()),
            at(1, 15)
        );
        for body in [
            "",
            "text",
            "<QueueMessage>",
            "<QueueMessage></MessageText>",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><QueueMessage/>",
            "<?pi x?><QueueMessage/>",
            "<QueueMessage/>x",
            "<QueueMessage><MessageText>a",
            "<QueueMessage><MessageText>a & b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText>a]]>b</MessageText></QueueMessage>",
            "<QueueMessage a=1><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage a><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage a='1' a='2'><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText a='<'>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText a='&nbsp;'>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText a='&'>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText a='&#1;'>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText 1a='1'>b</MessageText></QueueMessage>",
            "<QueueMessage><1a/><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage><a,b/><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage><!-- a -- b --><MessageText>b</MessageText></QueueMessage>",
            "<![CDATA[ ]]><QueueMessage><MessageText>b</MessageText></QueueMessage>",
            "&#32;<QueueMessage><MessageText>b</MessageText></QueueMessage>",
            "\u{feff}\u{feff}<QueueMessage><MessageText>b</MessageText></QueueMessage>",
            "\u{a0}<QueueMessage><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText>b</MessageText></QueueMessage><![CDATA[]]>",
            "<QueueMessage><MessageText>b</MessageText></QueueMessage><QueueMessage/>",
            "<QueueMessage a='1'b='2'><MessageText>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText \u{d7}='1'>b</MessageText></QueueMessage>",
            "<QueueMessage><MessageText>a&#+65;</MessageText></QueueMessage>",
            "<?xml encoding='utf-8'?><QueueMessage><MessageText>b</MessageText></QueueMessage>",
            "<?xml version='1.0' encoding='utf-16'?><QueueMessage><MessageText>b</MessageText></QueueMessage>",
            "<?xml version='1.0' encoding='iso-8859-1'?><QueueMessage><MessageText>b</MessageText></QueueMessage>",
            "<?xml version='2.0'?><QueueMessage><MessageText>b</MessageText></QueueMessage>",
        ] {
            assert!(told(body).ends_with("Error parsing Xml content"), "{body}: {}", told(body));
        }
    }

    #[test]
    fn documents_that_mean_nothing_are_told_without_a_place() {
        for body in [
            "<Other/>",
            "<queuemessage><MessageText/></queuemessage>",
            "<QueueMessage/>",
            "<QueueMessage><messagetext>a</messagetext></QueueMessage>",
            "<QueueMessage><MessageText>a<b/></MessageText></QueueMessage>",
            "<QueueMessage><MessageText/><MessageText/></QueueMessage>",
        ] {
            assert_eq!(told(body), "InvalidXmlDocument", "{body}");
        }
    }

    #[test]
    fn the_text_is_measured_in_bytes_after_unescaping() {
        for unit in ["a", "\u{e9}", "\u{20ac}", "\u{1F600}", "&amp;"] {
            let bytes = if unit == "&amp;" { 1 } else { unit.len() };
            let full = unit.repeat(TEXT_BYTES_MAX / bytes);
            let rest = "a".repeat(TEXT_BYTES_MAX % bytes);
            let body = document(&format!("{full}{rest}"));
            assert_eq!(read(body.as_bytes()).unwrap().len(), TEXT_BYTES_MAX, "{unit}");
            assert!(body.len() <= BODY_BYTES_MAX);
            let body = document(&format!("{full}{rest}a"));
            assert_eq!(told(body), "RequestBodyTooLarge 65536", "{unit}");
        }
    }

    proptest! {
        #[test]
        fn written_text_is_read_back(text in "[\t\n\r -\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]*") {
            let mut escaped = Vec::new();
            push_text(&mut escaped, &text);
            let body = document(std::str::from_utf8(&escaped).unwrap());
            prop_assert_eq!(read(body.as_bytes()).unwrap(), text);
        }

        #[test]
        fn any_bytes_are_handled(bytes in any::<Vec<u8>>()) {
            let _ = read(&bytes);
        }

        #[test]
        fn any_markup_is_handled(text in "[<>/!?a&;#x\\[\\]\"'= \u{e9}\n-]{0,40}") {
            let _ = read(text.as_bytes());
            let _ = read(document(&text).as_bytes());
        }
    }
}
