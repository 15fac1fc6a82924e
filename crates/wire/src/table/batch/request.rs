//! Reads the body of `$batch` into operations that borrow from it.
//!
//! Accepts what the clients really send (wire reference 9.1): either line end, header names in any
//! case, an extra blank line before the body, `Content-Length` or none, absolute and relative URLs,
//! encoded or not. The length of a body is where the next boundary stands, since some clients count
//! characters instead of bytes. A changeset without its closing boundary is refused: half of it
//! must not be executed as if it were the whole.

use super::multipart::{self, Parts, malformed};
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::table::ResourcePath;
use crate::uri::QueryString;
use crate::uri::address::split_inner_url;
use crate::verb::Verb;

/// Operations in one changeset.
pub const OPERATIONS_MAX: usize = 100;
/// Parts in one batch. One is useful, a second changeset is answered with an error, more is
/// nonsense.
pub const PARTS_MAX: usize = 16;
/// Characters in a `Content-ID` that is echoed; clients send small numbers.
const CONTENT_ID_LEN_MAX: usize = 256;

/// The parts of a batch, in their order; there is at least one.
#[derive(Debug)]
pub struct BatchRequest<'a> {
    pub parts: Vec<Part<'a>>,
}

/// One part directly under the boundary of the batch.
#[derive(Debug)]
pub enum Part<'a> {
    Changeset(Changeset<'a>),
    /// An operation outside any changeset, which only a query may be.
    Single(Operation<'a>),
}

/// Operations that are executed together or not at all.
#[derive(Debug, Default)]
pub struct Changeset<'a> {
    /// At most [`OPERATIONS_MAX`]; none is legal.
    pub operations: Vec<Operation<'a>>,
    /// There were more, which makes the changeset illegal; what followed was not read.
    pub exceeds_limit: bool,
}

/// One request inside a batch.
#[derive(Clone, Debug)]
pub struct Operation<'a> {
    /// The verb after `X-HTTP-Method`.
    pub verb: Verb,
    /// The URL as written: absolute or relative, encoded or not.
    pub raw_url: &'a str,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub prefer: Option<&'a str>,
    pub accept: Option<&'a str>,
    pub content_type: Option<&'a str>,
    /// The `Content-ID` among the headers of the request itself, which the response echoes. The one
    /// among the headers of the MIME part is not echoed and not kept.
    pub content_id: Option<&'a str>,
    /// The JSON text, without the blanks around it.
    pub body: &'a [u8],
}

impl<'a> BatchRequest<'a> {
    /// Reads a body by the boundary in the request's `Content-Type`.
    ///
    /// # Errors
    /// 400 `InvalidInput` when it is not `multipart/mixed`, cannot be read, or has no part; the
    /// errors of [`Verb::resolve`].
    pub fn parse(content_type: &str, body: &'a [u8]) -> Result<Self> {
        let boundary = multipart::boundary(content_type).ok_or_else(malformed)?;
        let mut parts = Vec::with_capacity(1);
        for part in Parts::new(body, boundary).filter(|part| !is_blank(part)) {
            if parts.len() == PARTS_MAX {
                return Err(malformed());
            }
            parts.push(Part::parse(part)?);
        }
        match parts.is_empty() {
            true => Err(malformed()),
            false => Ok(Self { parts }),
        }
    }
}

impl<'a> Part<'a> {
    fn parse(mut text: &'a [u8]) -> Result<Self> {
        let content_type = take_content_type(&mut text)?;
        match content_type.and_then(multipart::boundary) {
            Some(boundary) => Changeset::parse(text, boundary).map(Self::Changeset),
            None => Operation::parse(content_type, text).map(Self::Single),
        }
    }
}

impl<'a> Changeset<'a> {
    fn parse(text: &'a [u8], boundary: &str) -> Result<Self> {
        let mut changeset = Self::default();
        let mut parts = Parts::new(text, boundary);
        for mut part in parts.by_ref().filter(|part| !is_blank(part)) {
            if changeset.operations.len() == OPERATIONS_MAX {
                changeset.exceeds_limit = true;
                return Ok(changeset);
            }
            let content_type = take_content_type(&mut part)?;
            changeset.operations.push(Operation::parse(content_type, part)?);
        }
        match parts.is_closed() {
            true => Ok(changeset),
            false => Err(malformed()),
        }
    }

    /// The error of a changeset that exceeds the limit. It is reported at index 99.
    pub fn limit_error() -> StorageError {
        StorageError::with_detail(
            ErrorCode::InvalidInput,
            "The batch request operation exceeds the maximum 100 changes per change set.",
        )
    }
}

impl<'a> Operation<'a> {
    /// Reads an `application/http` part from behind its MIME headers.
    fn parse(content_type: Option<&str>, text: &'a [u8]) -> Result<Self> {
        let is_http = |value| crate::table::negotiate::is_media_type(value, "application/http");
        if !content_type.is_none_or(is_http) {
            return Err(malformed());
        }
        let mut text = text.trim_ascii_start();
        let (method, raw_url) = split_request_line(multipart::take_line(&mut text)?)?;
        let mut operation = Self {
            verb: Verb::Get,
            raw_url,
            if_match: None,
            if_none_match: None,
            prefer: None,
            accept: None,
            content_type: None,
            content_id: None,
            body: &[],
        };
        let mut x_http_methods = [None; 2];
        multipart::take_headers(&mut text, |name, value| {
            operation.set_header(&mut x_http_methods, name, value)
        })?;
        operation.verb = Verb::resolve(method, x_http_methods.into_iter().flatten())?;
        operation.body = text.trim_ascii();
        Ok(operation)
    }

    fn set_header(
        &mut self,
        x_http_methods: &mut [Option<&'a str>; 2],
        name: &str,
        value: &'a str,
    ) -> Result<()> {
        let is = |expected: &str| name.eq_ignore_ascii_case(expected);
        let header = if is("If-Match") {
            &mut self.if_match
        } else if is("If-None-Match") {
            &mut self.if_none_match
        } else if is("Prefer") {
            &mut self.prefer
        } else if is("Accept") {
            &mut self.accept
        } else if is("Content-Type") {
            &mut self.content_type
        } else if is("Content-ID") && is_content_id(value) {
            &mut self.content_id
        } else if is("X-HTTP-Method") {
            let [first, second] = x_http_methods;
            if first.is_none() { first } else { second }
        } else {
            return Ok(());
        };
        // A condition that is given twice has no meaning that could be guessed safely.
        if header.is_some() && (is("If-Match") || is("If-None-Match")) {
            return Err(malformed());
        }
        header.get_or_insert(value);
        Ok(())
    }

    /// The resource that the URL names, for a batch that was sent to `account`.
    ///
    /// # Errors
    /// As [`ResourcePath::parse`].
    pub fn resource(&self, account: &str) -> Result<ResourcePath<'a>> {
        ResourcePath::parse(split_inner_url(self.raw_url, account).0, account)
    }

    /// The options of the URL, of which `$format` and those of a query count.
    ///
    /// # Errors
    /// As [`QueryString::parse`].
    pub fn query(&self) -> Result<QueryString<'a>> {
        QueryString::parse(split_inner_url(self.raw_url, "").1)
    }
}

/// Takes the MIME headers of a part off and gives the only one that matters.
fn take_content_type<'a>(text: &mut &'a [u8]) -> Result<Option<&'a str>> {
    let mut content_type = None;
    multipart::take_headers(text, |name, value| {
        if name.eq_ignore_ascii_case("Content-Type") {
            content_type.get_or_insert(value);
        }
        Ok(())
    })?;
    Ok(content_type)
}

/// Splits at the first and the last blank, since a URL that was not encoded may hold blanks itself.
fn split_request_line(line: &str) -> Result<(&str, &str)> {
    let (method, rest) = line.trim_ascii_end().split_once(' ').ok_or_else(malformed)?;
    let (url, version) = rest.rsplit_once(' ').ok_or_else(malformed)?;
    let url = url.trim_ascii();
    match version.starts_with("HTTP/") && !url.is_empty() {
        true => Ok((method, url)),
        false => Err(malformed()),
    }
}

/// Only what is safe to write into a response header is echoed.
fn is_content_id(value: &str) -> bool {
    (1..=CONTENT_ID_LEN_MAX).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
