//! `$batch`: the first line is the Content-Type, the rest the body. If the Content-Type is `!`, the rest is not a
//! body but choices from which one is written, with boundaries that overlap and line ends that are mixed, and what
//! was written must be what is read.

use tavola_wire::table::batch::request::{OPERATIONS_MAX, PARTS_MAX};
use tavola_wire::table::batch::response::Outcome;
use tavola_wire::table::batch::{BatchRequest, BatchWriter, Operation, Part, PartResponse};
use tavola_wire::table::if_match::IfMatch;
use tavola_wire::table::negotiate::{MetadataLevel, Preference};
use tavola_wire::verb::Verb;

use crate::input::assert_refusal;

const ACCOUNT: &str = "acct";

pub fn run(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let Ok(content_type) = std::str::from_utf8(&data[..end]) else { return };
    let body = data.get(end + 1..).unwrap_or_default();
    match content_type {
        "!" => written(body),
        _ => read(content_type, body),
    }
}

fn read(content_type: &str, body: &[u8]) {
    let batch = match BatchRequest::parse(content_type, body) {
        Ok(batch) => batch,
        Err(error) => return assert_refusal(&error),
    };
    assert!((1..=PARTS_MAX).contains(&batch.parts.len()));
    for part in &batch.parts {
        operations(part).iter().for_each(operation);
    }
    if let Some(boundary) = plain_boundary(content_type) {
        divided(&batch, body, boundary);
    }
}

fn operations<'p, 'a>(part: &'p Part<'a>) -> &'p [Operation<'a>] {
    match part {
        Part::Single(operation) => std::slice::from_ref(operation),
        Part::Changeset(changeset) => &changeset.operations,
    }
}

/// What the server does with an operation next.
fn operation(operation: &Operation<'_>) {
    assert!(!operation.raw_url.is_empty());
    assert_eq!(operation.body, operation.body.trim_ascii());
    let _ = operation.resource(ACCOUNT).map_err(|error| assert_refusal(&error));
    let _ = operation.query().map_err(|error| assert_refusal(&error));
    let _ = IfMatch::parse(operation.if_match).map_err(|error| assert_refusal(&error));
    let _ =
        MetadataLevel::negotiate(None, operation.accept).map_err(|error| assert_refusal(&error));
    // Its id is echoed, which must not break the answer apart.
    let mut writer = BatchWriter::new("id");
    let preference_applied = operation.prefer.and_then(Preference::parse);
    let outcome = Outcome::Deleted;
    let content_id = operation.content_id;
    writer.changeset("set", [PartResponse { content_id, preference_applied, outcome }]);
    let answer = String::from_utf8(writer.finish()).expect("an answer is text");
    let echoed = answer.lines().filter(|line| line.starts_with("Content-ID: ")).count();
    assert_eq!(echoed, usize::from(operation.content_id.is_some()), "{answer}");
}

/// The parts are where a reading line by line finds them, and every operation is in its own.
fn divided(batch: &BatchRequest<'_>, body: &[u8], boundary: &str) {
    let (texts, _) = split(body, boundary);
    assert_eq!(texts.len(), batch.parts.len(), "{boundary:?}");
    for (part, text) in batch.parts.iter().zip(texts) {
        let Part::Changeset(changeset) = part else {
            assert!(is_within(&operations(part)[0], text));
            continue;
        };
        let (content_type, rest) = content_type(text);
        let Some(boundary) = content_type.and_then(plain_boundary) else { continue };
        let (texts, is_closed) = split(rest, boundary);
        if changeset.exceeds_limit {
            assert!(texts.len() > OPERATIONS_MAX);
        } else {
            assert!(is_closed, "half a changeset is none");
            assert_eq!(texts.len(), changeset.operations.len());
        }
        for (operation, text) in changeset.operations.iter().zip(texts) {
            assert!(is_within(operation, text));
        }
    }
}

fn is_within(operation: &Operation<'_>, text: &[u8]) -> bool {
    let range = text.as_ptr_range();
    let is_inside = |inner: &[u8]| {
        let inner = inner.as_ptr_range();
        range.start <= inner.start && inner.end <= range.end
    };
    is_inside(operation.raw_url.as_bytes())
        && (operation.body.is_empty() || is_inside(operation.body))
}

/// The boundary of a Content-Type that is written in the usual ways.
fn plain_boundary(content_type: &str) -> Option<&str> {
    let value = content_type.strip_prefix("multipart/mixed; boundary=")?;
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let boundary = quoted.unwrap_or(value);
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b';' && byte != b'"';
    boundary.bytes().all(is_plain).then_some(boundary)
}

/// The Content-Type among the headers of a part, and what follows them.
fn content_type(mut text: &[u8]) -> (Option<&str>, &[u8]) {
    let mut found = None;
    while !text.is_empty() {
        let end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
        let (line, rest) = text.split_at(end);
        text = rest;
        let line = std::str::from_utf8(line).expect("headers are text").trim_ascii_end();
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-type") {
            found.get_or_insert(value.trim_ascii());
        }
    }
    (found, text)
}

/// The parts between the lines that are delimiters, those of blanks alone left out, and whether the last delimiter
/// closes.
fn split<'a>(body: &'a [u8], boundary: &str) -> (Vec<&'a [u8]>, bool) {
    let mut parts = Vec::new();
    let mut start = None;
    let mut at = 0;
    let mut is_closed = false;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let line_start = at;
        at += line.len();
        let Some(is_last) = delimiter(line, boundary) else { continue };
        if let Some(start) = start {
            let text = &body[start..line_start.max(start)];
            let text = text.strip_suffix(b"\n").unwrap_or(text);
            parts.push(text.strip_suffix(b"\r").unwrap_or(text));
        }
        start = Some(at);
        if is_last {
            start = None;
            is_closed = true;
            break;
        }
    }
    parts.extend(start.map(|start| &body[start..]));
    parts.retain(|part| !part.trim_ascii().is_empty());
    (parts, is_closed)
}

/// Whether a line with its end is a delimiter, and if so whether the closing one.
fn delimiter(line: &[u8], boundary: &str) -> Option<bool> {
    let line = match line.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => line,
    };
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary.as_bytes())?;
    let (rest, is_last) = rest.strip_prefix(b"--").map_or((rest, false), |rest| (rest, true));
    rest.iter().all(|byte| b" \t".contains(byte)).then_some(is_last)
}

const LINE_ENDS: [&str; 2] = ["\r\n", "\n"];
/// Each contains, continues or is made of others, or of what delimiters are made of.
const BOUNDARIES: [&str; 8] = ["b", "bb", "b-", "b--b", "-", "---", "batch_1", "batch_1_"];
const BODIES: [&str; 8] =
    ["{}", "", "{\"A\":1}", "--", "--b x", "b--", "-- b", "{\"A\":\"--batch_1\"}\r\n\r\n--other--"];
const URLS: [&str; 4] =
    ["/tbl", "/tbl(PartitionKey='p',RowKey='a b')", "http://h/acct/tbl?x", "tbl"];
const METHODS: [(&str, Verb); 5] = [
    ("POST", Verb::Post),
    ("PUT", Verb::Put),
    ("MERGE", Verb::Merge),
    ("PATCH", Verb::Merge),
    ("DELETE", Verb::Delete),
];

/// Writes one changeset by the choices, and expects it back.
fn written(choices: &[u8]) {
    let mut choices = Choices(choices.iter());
    let (outer, inner) = (*choices.pick(&BOUNDARIES), *choices.pick(&BOUNDARIES));
    let mut written = Vec::new();
    let mut set = String::new();
    while written.len() < 5 && choices.is_some() {
        let (method, verb) = *choices.pick(&METHODS);
        let (url, body) = (*choices.pick(&URLS), *choices.pick(&BODIES));
        let lines = [
            &format!("--{inner}{}", choices.pick(&["", " ", "\t "])),
            *choices.pick(&["Content-Type: application/http", "content-type:application/http;x=y"]),
            "",
            &format!("{method} {url} HTTP/1.1"),
            *choices.pick(&["If-Match: *", "if-match:*", "IF-MATCH:  * "]),
            "",
            body,
        ];
        lines.iter().for_each(|line| set.extend([*line, *choices.pick(&LINE_ENDS)]));
        written.push((verb, url, body));
    }
    let mut text = String::new();
    let lines = [
        &format!("--{outer}"),
        &format!("Content-Type: multipart/mixed; boundary=\"{inner}\""),
        "",
    ];
    lines.iter().for_each(|line| text.extend([*line, *choices.pick(&LINE_ENDS)]));
    text.push_str(&set);
    text.extend([&format!("--{inner}--"), *choices.pick(&LINE_ENDS)]);
    text.push_str(&format!("--{outer}--"));

    // A line of a body or of the other boundary may be a delimiter; then there is nothing to expect.
    let is_ambiguous = |line: &[u8], boundary| delimiter(line, boundary).is_some();
    let lines = || text.as_bytes().split_inclusive(|byte| *byte == b'\n');
    let count = |boundary| lines().filter(|line| is_ambiguous(line, boundary)).count();
    if count(outer) != 2 || count(inner) != written.len() + 1 {
        return read(&format!("multipart/mixed; boundary={outer}"), text.as_bytes());
    }
    let batch = BatchRequest::parse(&format!("multipart/mixed; boundary={outer}"), text.as_bytes())
        .unwrap_or_else(|error| panic!("{error}: {text:?}"));
    let [Part::Changeset(changeset)] = &batch.parts[..] else { panic!("{text:?}") };
    let found = changeset.operations.iter().map(|operation| {
        assert_eq!(operation.if_match, Some("*"));
        (operation.verb, operation.raw_url, std::str::from_utf8(operation.body).unwrap())
    });
    assert_eq!(found.collect::<Vec<_>>(), written, "{text:?}");
}

struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn is_some(&self) -> bool {
        !self.0.as_slice().is_empty()
    }

    fn pick<'t, T>(&mut self, choices: &'t [T]) -> &'t T {
        let choice = self.0.next().copied().unwrap_or_default();
        &choices[usize::from(choice) % choices.len()]
    }
}
