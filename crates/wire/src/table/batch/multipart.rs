//! MIME multipart, as much of it as `$batch` uses: boundaries, parts, header lines. Everything is
//! borrowed.
//!
//! Line ends may be CRLF or a bare LF. Folded header lines and transfer encodings are not read: no
//! client sends them.

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// Bytes in a boundary. RFC 2046 says 70; some slack costs nothing.
const BOUNDARY_LEN_MAX: usize = 200;
/// Header lines in one part; the known clients send at most ten.
pub(super) const HEADERS_MAX: usize = 40;
/// Bytes in one line. The longest legal one is a request line with two full keys, each of 1536
/// bytes of UTF-8 that take three characters when percent-encoded.
pub(super) const LINE_LEN_MAX: usize = 16 * 1024;

/// The answer to a body that cannot be read.
pub(super) fn malformed() -> StorageError {
    ErrorCode::InvalidInput.into()
}

/// The boundary in the value of a `Content-Type` header, if that is `multipart/mixed` and has a
/// usable one.
pub(super) fn boundary(content_type: &str) -> Option<&str> {
    let (media_type, mut rest) = content_type.split_once(';')?;
    if !media_type.trim_ascii().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    loop {
        let (name, value) = rest.split_once('=')?;
        let name = name.trim_start_matches([';', ' ', '\t']).trim_ascii_end();
        let value = value.trim_ascii_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        if name.eq_ignore_ascii_case("boundary") {
            let value = value.trim_ascii_end();
            return (1..=BOUNDARY_LEN_MAX).contains(&value.len()).then_some(value);
        }
        rest = after;
    }
}

/// The parts of a multipart body, without the text before the first delimiter and after the last.
pub(super) struct Parts<'a, 'b> {
    body: &'a [u8],
    boundary: &'b [u8],
    /// Where the next line starts that has not been looked at.
    line: usize,
    /// Where the current part starts; none before the first delimiter and after the last.
    start: Option<usize>,
    is_closed: bool,
}

impl<'a, 'b> Parts<'a, 'b> {
    pub(super) fn new(body: &'a [u8], boundary: &'b str) -> Self {
        let boundary = boundary.as_bytes();
        let mut parts = Self { body, boundary, line: 0, start: None, is_closed: false };
        parts.next_delimiter();
        parts
    }

    /// True once the closing delimiter was seen. Without it the body may have lost its end.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Moves behind the next delimiter and gives the place where the line with it starts.
    ///
    /// A delimiter is a line, so lines are looked at one by one. Searching for the boundary would find it where it
    /// overlaps itself or the dashes, and miss it where it stands.
    fn next_delimiter(&mut self) -> Option<usize> {
        while self.line < self.body.len() {
            let start = self.line;
            let rest = &self.body[start..];
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            self.line += length;
            if let Some(delimiter) = Delimiter::read(&rest[..length], self.boundary) {
                self.is_closed = delimiter == Delimiter::Closing;
                self.start = (!self.is_closed).then_some(self.line);
                return Some(start);
            }
        }
        None
    }
}

impl<'a> Iterator for Parts<'a, '_> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.start?;
        let Some(end) = self.next_delimiter() else {
            self.start = None;
            return Some(&self.body[start..]);
        };
        // The last line end belongs to the delimiter.
        let part = &self.body[start..end];
        let part = part.strip_suffix(b"\n").unwrap_or(part);
        Some(part.strip_suffix(b"\r").unwrap_or(part))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    Opening,
    Closing,
}

impl Delimiter {
    /// Reads a line with its end: two dashes, the boundary, two more dashes if it is the last, and blanks.
    fn read(line: &[u8], boundary: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
        let (rest, delimiter) = match rest.strip_prefix(b"--") {
            Some(rest) => (rest, Self::Closing),
            None => (rest, Self::Opening),
        };
        let blanks = rest.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        matches!(&rest[blanks..], b"" | b"\n" | b"\r\n").then_some(delimiter)
    }
}

/// Takes the next line off the text, without its end.
pub(super) fn take_line<'a>(text: &mut &'a [u8]) -> Result<&'a str> {
    let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
    if end > LINE_LEN_MAX {
        return Err(malformed());
    }
    let line = &text[..end];
    *text = text.get(end + 1..).unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|error| malformed().caused_by(error))?;
    Ok(line.strip_suffix('\r').unwrap_or(line))
}

/// Takes header lines off the text up to the empty line, and shows each to `visit`.
pub(super) fn take_headers<'a>(
    text: &mut &'a [u8],
    mut visit: impl FnMut(&'a str, &'a str) -> Result<()>,
) -> Result<()> {
    for _ in 0..=HEADERS_MAX {
        let line = match text.is_empty() {
            true => return Ok(()),
            false => take_line(text)?,
        };
        if line.is_empty() {
            return Ok(());
        }
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(malformed());
        }
        visit(name, value.trim_ascii())?;
    }
    Err(malformed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts<'a>(body: &'a str, boundary: &str) -> (Vec<&'a str>, bool) {
        let mut parts = Parts::new(body.as_bytes(), boundary);
        let texts = parts.by_ref().map(|part| std::str::from_utf8(part).unwrap()).collect();
        (texts, parts.is_closed())
    }

    #[test]
    fn boundaries_of_content_types() {
        for (value, expected) in [
            ("multipart/mixed; boundary=batch_1", Some("batch_1")),
            ("multipart/mixed;charset=\"utf-8\";boundary=changeset_1", Some("changeset_1")),
            ("Multipart/Mixed; charset=\"a;boundary=no\"; Boundary=\"a b\"", Some("a b")),
            ("multipart/mixed; boundary = x ; charset=utf-8", Some("x")),
            ("multipart/mixed", None),
            ("multipart/mixed; boundary=", None),
            ("multipart/mixed; boundary=\"open", None),
            ("multipart/mixed; charset=utf-8", None),
            ("multipart/form-data; boundary=x", None),
            ("application/json", None),
            ("", None),
        ] {
            assert_eq!(boundary(value), expected, "{value}");
        }
        assert_eq!(boundary(&format!("multipart/mixed; boundary={}", "x".repeat(201))), None);
    }

    #[test]
    fn parts_are_divided_at_lines() {
        assert_eq!(parts("--b\r\none\r\n--b\r\ntwo\r\n--b--", "b"), (vec!["one", "two"], true));
        assert_eq!(parts("--b\none\n--b\ntwo\n--b--\n", "b"), (vec!["one", "two"], true));
        assert_eq!(parts("pre\r\n--b \r\none\r\n\r\n--b-- \r\npost", "b"), (vec!["one\r\n"], true));
        assert_eq!(parts("--b\r\n--b--", "b"), (vec![""], true));
        assert_eq!(parts("--b\r\n\r\n--b--", "b"), (vec![""], true));
        assert_eq!(parts("--b--", "b"), (vec![], true));
        assert_eq!(parts("--b\r\none", "b"), (vec!["one"], false));
        assert_eq!(parts("--b\r\nx --b\r\n--bb\r\n-b\r\n--b--", "b").0, ["x --b\r\n--bb\r\n-b"]);
        assert_eq!(parts("nothing", "b"), (vec![], false));
    }

    #[test]
    fn boundaries_may_overlap_themselves_and_the_dashes() {
        for boundary in ["-", "--", "---", "-----", "b--b", "--b", "bb", "aXaXa"] {
            let body = format!("--{boundary}\r\none\r\n--{boundary}\r\ntwo\r\n--{boundary}--\r\n");
            assert_eq!(parts(&body, boundary), (vec!["one", "two"], true), "{boundary}");
        }
        // Neither a longer nor a shorter boundary is this one.
        let body = "--bb\r\n--bbb\r\n--b\r\n-- bb\r\n --bb\r\n--bb--";
        assert_eq!(parts(body, "bb"), (vec!["--bbb\r\n--b\r\n-- bb\r\n --bb"], true));
        let body = "--b\nx\r--b\n--b\r--b--\r\n--b--\n";
        assert_eq!(parts(body, "b"), (vec!["x\r--b\n--b\r--b--"], true));
    }

    #[test]
    fn lines_and_headers_are_bounded() {
        let long = "a".repeat(LINE_LEN_MAX + 1);
        assert!(take_line(&mut long.as_bytes()).is_err());
        let many = "A: b\r\n".repeat(HEADERS_MAX + 1);
        assert!(take_headers(&mut many.as_bytes(), |_, _| Ok(())).is_err());
        let most = "A: b\r\n".repeat(HEADERS_MAX);
        assert!(take_headers(&mut most.as_bytes(), |_, _| Ok(())).is_ok());
        for bad in ["no colon\r\n", ": x\r\n", " folded: x\r\n", "a b: c\r\n"] {
            assert!(take_headers(&mut bad.as_bytes(), |_, _| Ok(())).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn splitting_never_panics(body in "(--|b|\r|\n| |x){0,40}", boundary in "[b-]{1,3}") {
            let text = parts(&body, &boundary).0.concat();
            prop_assert!(text.len() <= body.len());
        }

        #[test]
        fn written_parts_come_back(texts in proptest::collection::vec("[a-z\r\n-]{0,20}", 0..5)) {
            let mut body = String::new();
            for text in &texts {
                body.push_str(&format!("--BOUNDARY\r\n{text}\r\n"));
            }
            body.push_str("--BOUNDARY--\r\n");
            let (found, is_closed) = parts(&body, "BOUNDARY");
            prop_assert!(is_closed);
            prop_assert_eq!(found, texts);
        }
    }
}
