//! MIME multipart, as much of it as `$batch` uses: boundaries, parts, header lines. Everything is
//! borrowed.
//!
//! Line ends may be CRLF or a bare LF. Folded header lines and transfer encodings are not read: no
//! client sends them.

use memchr::memmem::{self, FindIter};

use crate::error::{ErrorCode, Result, StorageError};

/// Bytes in a boundary. RFC 2046 says 70; some slack costs nothing.
const BOUNDARY_LEN_MAX: usize = 200;
/// Header lines in one part; the known clients send at most ten.
pub const HEADERS_MAX: usize = 40;
/// Bytes in one line. The longest legal one is a request line with two full keys, each of 1536
/// bytes of UTF-8 that take three characters when percent-encoded.
pub const LINE_LEN_MAX: usize = 16 * 1024;

/// The answer to a body that cannot be read.
pub fn malformed() -> StorageError {
    ErrorCode::InvalidInput.into()
}

/// The boundary in the value of a `Content-Type` header, if that is `multipart/mixed` and has a
/// usable one.
pub fn boundary(content_type: &str) -> Option<&str> {
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
pub struct Parts<'a, 'b> {
    body: &'a [u8],
    boundary: &'b [u8],
    candidates: FindIter<'a, 'b>,
    /// Where the current part starts; none before the first delimiter and after the last.
    start: Option<usize>,
    is_closed: bool,
}

impl<'a, 'b> Parts<'a, 'b> {
    pub fn new(body: &'a [u8], boundary: &'b str) -> Self {
        let boundary = boundary.as_bytes();
        let candidates = memmem::find_iter(body, boundary);
        let mut parts = Self { body, boundary, candidates, start: None, is_closed: false };
        parts.next_delimiter();
        parts
    }

    /// True once the closing delimiter was seen. Without it the body may have lost its end.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Moves behind the next delimiter and gives the place where the text before it ends.
    fn next_delimiter(&mut self) -> Option<usize> {
        loop {
            let at = self.candidates.next()?;
            let Some(delimiter) = delimiter(self.body, at, at + self.boundary.len()) else {
                continue;
            };
            self.is_closed = delimiter.is_last;
            self.start = (!delimiter.is_last).then_some(delimiter.line_end);
            return Some(delimiter.text_end);
        }
    }
}

impl<'a> Iterator for Parts<'a, '_> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.start?;
        let end = self.next_delimiter().unwrap_or_else(|| {
            self.start = None;
            self.body.len()
        });
        // Two delimiters on adjacent lines share one line end.
        Some(self.body.get(start..end).unwrap_or_default())
    }
}

struct Delimiter {
    /// Where the text before it ends, without its last line end.
    text_end: usize,
    /// Where the line after it starts.
    line_end: usize,
    is_last: bool,
}

/// Checks that a boundary stands alone on its line, behind two dashes.
fn delimiter(body: &[u8], boundary_start: usize, boundary_end: usize) -> Option<Delimiter> {
    let before = body[..boundary_start].strip_suffix(b"--")?;
    if !before.is_empty() && !before.ends_with(b"\n") {
        return None;
    }
    let rest = &body[boundary_end..];
    let (rest, is_last) = match rest.strip_prefix(b"--") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let padding = rest.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let rest = &rest[padding..];
    let after = match rest {
        [] => rest,
        [b'\n', after @ ..] | [b'\r', b'\n', after @ ..] => after,
        _ => return None,
    };
    let text = before.strip_suffix(b"\n").unwrap_or(before);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    Some(Delimiter { text_end: text.len(), line_end: body.len() - after.len(), is_last })
}

/// Takes the next line off the text, without its end.
pub fn take_line<'a>(text: &mut &'a [u8]) -> Result<&'a str> {
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
pub fn take_headers<'a>(
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
