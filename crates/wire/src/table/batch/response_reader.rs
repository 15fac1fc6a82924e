//! The response of a batch as a client reads it: the counterpart of [`BatchWriter`](super::BatchWriter).
//!
//! Services differ in blank lines and header order, so the reader goes by structure alone: the outer boundary, the
//! boundary of the changeset, and in each part a status line, headers and a body.

use super::multipart::{Parts, boundary, malformed, take_headers, take_line};
use crate::error::Result;

/// What one operation was answered with; a failed changeset has one part only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReply<'a> {
    pub status: u16,
    pub etag: Option<&'a str>,
    pub body: &'a [u8],
}

/// Reads the parts of all changesets, in order.
///
/// # Errors
/// A malformed body; the code says nothing to a client.
pub fn read_response<'a>(content_type: &str, body: &'a [u8]) -> Result<Vec<PartReply<'a>>> {
    let outer = boundary(content_type).ok_or_else(malformed)?;
    let mut replies = Vec::new();
    for mut part in Parts::new(body, outer) {
        let mut inner = None;
        take_headers(&mut part, |name, value| {
            if name.eq_ignore_ascii_case("Content-Type") {
                inner = boundary(value);
            }
            Ok(())
        })?;
        match inner {
            Some(inner) => {
                for mut reply in Parts::new(part, inner) {
                    take_headers(&mut reply, |_, _| Ok(()))?;
                    replies.push(read_part(reply)?);
                }
            }
            None => replies.push(read_part(part)?),
        }
    }
    Ok(replies)
}

fn read_part(mut part: &[u8]) -> Result<PartReply<'_>> {
    let line = take_line(&mut part)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.filter(|_| line.starts_with("HTTP/")).ok_or_else(malformed)?;
    let mut etag = None;
    take_headers(&mut part, |name, value| {
        if name.eq_ignore_ascii_case("ETag") {
            etag = Some(value);
        }
        Ok(())
    })?;
    Ok(PartReply { status, etag, body: part })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT_TYPE: &str = "multipart/mixed; boundary=batchresponse_1";

    /// The shape of the reference, sections 9.2 and 9.4.
    fn response(parts: &[&str]) -> String {
        let mut text = "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n".to_owned();
        for part in parts {
            text += "--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
            text += part;
        }
        text + "--changesetresponse_2--\r\n--batchresponse_1--\r\n"
    }

    #[test]
    fn every_operation_has_its_reply() {
        let text = response(&[
            "HTTP/1.1 204 No Content\r\nDataServiceVersion: 3.0;\r\nETag: W/\"a\"\r\n\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nDataServiceVersion: 1.0;\r\n\r\n\r\n",
        ]);
        let replies = read_response(CONTENT_TYPE, text.as_bytes()).unwrap();
        assert_eq!(replies.len(), 2);
        assert_eq!((replies[0].status, replies[0].etag), (204, Some("W/\"a\"")));
        assert_eq!((replies[1].status, replies[1].etag), (204, None));
    }

    #[test]
    fn a_failure_has_one_part_with_a_body() {
        let text = response(&[
            "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n{\"odata.error\":{}}\r\n",
        ]);
        let replies = read_response(CONTENT_TYPE, text.as_bytes()).unwrap();
        assert_eq!(replies.len(), 1);
        assert_eq!((replies[0].status, replies[0].body), (409, &b"{\"odata.error\":{}}"[..]));
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let body = b"--batchresponse_1\r\n\r\nnothing\r\n--batchresponse_1--\r\n";
        assert!(read_response(CONTENT_TYPE, body).is_err());
        assert!(read_response("application/json", b"{}").is_err());
    }
}
