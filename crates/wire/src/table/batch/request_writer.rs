//! The request of a batch as a client writes it: one changeset, absolute URLs, `Content-Length` in every part.
//!
//! The counterpart of [`BatchRequest`](super::BatchRequest), which reads what every client writes. This writer
//! knows no limits: how many operations fit, and how many bytes, is the caller's to know.

/// One operation of a changeset, on its way out.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingOperation<'a> {
    pub verb: &'a str,
    /// The absolute URL of the table or entity.
    pub url: &'a str,
    /// Names and values, without `Content-Length`.
    pub headers: &'a [(&'a str, &'a str)],
    /// Empty when the operation has no body.
    pub body: &'a [u8],
}

/// Writes the body of a `$batch` request.
#[derive(Debug)]
pub struct BatchRequestWriter {
    id: String,
    body: Vec<u8>,
}

impl BatchRequestWriter {
    /// Starts a batch whose boundaries are made from `id`, which must not occur in any body: a fresh GUID does not.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        let mut body = Vec::with_capacity(1024);
        let head = format!(
            "--batch_{id}\r\nContent-Type: multipart/mixed; boundary=changeset_{id}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        Self { id, body }
    }

    /// The value of the request's `Content-Type` header.
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary=batch_{}", self.id)
    }

    pub fn push(&mut self, operation: &OutgoingOperation<'_>) {
        let OutgoingOperation { verb, url, headers, body } = *operation;
        self.push_lines(&["--changeset_", &self.id.clone(), "\r\n"]);
        self.push_lines(&["Content-Type: application/http\r\n"]);
        self.push_lines(&["Content-Transfer-Encoding: binary\r\n\r\n"]);
        self.push_lines(&[verb, " ", url, " HTTP/1.1\r\n"]);
        for (name, value) in headers {
            self.push_lines(&[name, ": ", value, "\r\n"]);
        }
        self.push_lines(&["Content-Length: ", itoa::Buffer::new().format(body.len()), "\r\n\r\n"]);
        self.body.extend_from_slice(body);
        self.push_lines(&["\r\n"]);
    }

    pub fn finish(mut self) -> Vec<u8> {
        let tail = format!("--changeset_{id}--\r\n--batch_{id}--\r\n", id = self.id);
        self.body.extend_from_slice(tail.as_bytes());
        self.body
    }

    fn push_lines(&mut self, texts: &[&str]) {
        for text in texts {
            self.body.extend_from_slice(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchRequest, Part};
    use super::*;

    #[test]
    fn the_server_reads_what_the_client_writes() {
        let mut writer = BatchRequestWriter::new("7e3b");
        let content_type = writer.content_type();
        writer.push(&OutgoingOperation {
            verb: "POST",
            url: "http://127.0.0.1:10002/devstoreaccount1/people",
            headers: &[("Content-Type", "application/json"), ("Prefer", "return-no-content")],
            body: br#"{"PartitionKey":"p","RowKey":"1"}"#,
        });
        writer.push(&OutgoingOperation {
            verb: "DELETE",
            url: "http://127.0.0.1:10002/devstoreaccount1/people(PartitionKey='p',RowKey='2')",
            headers: &[("If-Match", "*")],
            body: b"",
        });
        let body = writer.finish();
        let request = BatchRequest::parse(&content_type, &body).unwrap();
        let [Part::Changeset(changeset)] = &request.parts[..] else { panic!("{request:?}") };
        let [insert, delete] = &changeset.operations[..] else { panic!("{changeset:?}") };
        assert_eq!(insert.body, br#"{"PartitionKey":"p","RowKey":"1"}"#);
        assert!(delete.body.is_empty());
        assert_eq!(delete.if_match, Some("*"));
    }
}
