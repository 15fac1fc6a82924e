//! Writes the multipart response of `$batch`, to the byte as the service does.
//!
//! Clients split these texts at literals and match headers with regular expressions, so the order
//! and case of headers, the number of empty lines and the prefixes of the boundaries are all part
//! of the protocol (wire reference 9.2 to 9.4). Identifiers come from the caller: nothing here is
//! random.

use crate::table::negotiate::Preference;

const BATCH: &str = "batchresponse_";
const CHANGESET: &str = "changesetresponse_";

/// The response to one operation.
#[derive(Clone, Copy, Debug)]
pub struct PartResponse<'a> {
    /// Echoed when the operation had one among its own headers.
    pub content_id: Option<&'a str>,
    /// What the operation preferred, on inserts and on their failures.
    pub preference_applied: Option<Preference>,
    pub outcome: Outcome<'a>,
}

/// How one operation ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// An insert that returns nothing.
    Inserted {
        location: &'a str,
        etag: &'a str,
    },
    /// An insert that returns what it stored.
    InsertedWithContent {
        content_type: &'a str,
        location: &'a str,
        etag: &'a str,
        body: &'a [u8],
    },
    /// An update, merge or upsert.
    Updated {
        etag: &'a str,
    },
    Deleted,
    /// The query of a batch that has no changeset; a point query has an ETag.
    Queried {
        content_type: &'a str,
        etag: Option<&'a str>,
        body: &'a [u8],
    },
    /// The one operation that failed, in place of all others.
    Failed {
        status: u16,
        /// False for the errors of the front end, such as `TableNotFound`, which lack
        /// `Cache-Control`.
        no_cache: bool,
        content_type: &'a str,
        body: &'a [u8],
    },
}

/// Collects the body of a response.
#[derive(Debug)]
pub struct BatchWriter<'a> {
    batch_id: &'a str,
    out: Vec<u8>,
}

impl<'a> BatchWriter<'a> {
    /// Starts a response whose boundary ends with this GUID.
    pub fn new(batch_id: &'a str) -> Self {
        assert!(is_token(batch_id), "a boundary is made of visible characters");
        Self { batch_id, out: Vec::with_capacity(1024) }
    }

    /// The value of the response's `Content-Type`.
    pub fn content_type(&self) -> String {
        ["multipart/mixed; boundary=", BATCH, self.batch_id].concat()
    }

    /// Writes the answers to a changeset; without any, only its closing boundary.
    pub fn changeset<'p>(
        &mut self,
        changeset_id: &str,
        parts: impl IntoIterator<Item = PartResponse<'p>>,
    ) {
        assert!(is_token(changeset_id), "a boundary is made of visible characters");
        self.text(&["--", BATCH, self.batch_id, "\r\n"]);
        self.text(&[
            "Content-Type: multipart/mixed; boundary=",
            CHANGESET,
            changeset_id,
            "\r\n\r\n",
        ]);
        for part in parts {
            self.text(&["--", CHANGESET, changeset_id, "\r\n"]);
            self.part(&part);
        }
        self.text(&["--", CHANGESET, changeset_id, "--\r\n"]);
    }

    /// Writes the answer to an operation outside a changeset.
    pub fn single(&mut self, part: &PartResponse<'_>) {
        self.text(&["--", BATCH, self.batch_id, "\r\n"]);
        self.part(part);
    }

    /// Closes the response and gives its body.
    pub fn finish(mut self) -> Vec<u8> {
        self.text(&["--", BATCH, self.batch_id, "--\r\n"]);
        self.out
    }

    fn part(&mut self, part: &PartResponse<'_>) {
        self.text(&["Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"]);
        let status = part.outcome.status();
        let mut digits = itoa::Buffer::new();
        self.text(&["HTTP/1.1 ", digits.format(status), " ", reason(status), "\r\n"]);
        if let Some(content_id) = part.content_id {
            self.header("Content-ID", content_id);
        }
        let preference = part.preference_applied.map(Preference::as_str);
        let body = self.outcome(&part.outcome, preference);
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(body);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes the headers of an outcome in the order of the service, and gives the body that
    /// follows them.
    fn outcome<'p>(&mut self, outcome: &Outcome<'p>, preference: Option<&str>) -> &'p [u8] {
        match *outcome {
            Outcome::Inserted { location, etag } => {
                self.common_headers(true, preference);
                self.header("DataServiceVersion", "3.0;");
                self.header("Location", location);
                self.header("DataServiceId", location);
                self.header("ETag", etag);
                &[]
            }
            Outcome::InsertedWithContent { content_type, location, etag, body } => {
                self.header("DataServiceVersion", "3.0;");
                self.header("Content-Type", content_type);
                self.common_headers(true, preference);
                self.header("Location", location);
                self.header("ETag", etag);
                body
            }
            Outcome::Updated { etag } => {
                self.common_headers(true, None);
                self.header("DataServiceVersion", "1.0;");
                self.header("ETag", etag);
                &[]
            }
            Outcome::Deleted => {
                self.common_headers(true, None);
                self.header("DataServiceVersion", "1.0;");
                &[]
            }
            Outcome::Queried { content_type, etag, body } => {
                self.header("DataServiceVersion", "3.0;");
                self.header("Content-Type", content_type);
                self.common_headers(true, None);
                if let Some(etag) = etag {
                    self.header("ETag", etag);
                }
                body
            }
            Outcome::Failed { no_cache, content_type, body, .. } => {
                self.common_headers(no_cache, preference);
                self.header("DataServiceVersion", "3.0;");
                self.header("Content-Type", content_type);
                body
            }
        }
    }

    fn common_headers(&mut self, no_cache: bool, preference: Option<&str>) {
        self.header("X-Content-Type-Options", "nosniff");
        if no_cache {
            self.header("Cache-Control", "no-cache");
        }
        if let Some(preference) = preference {
            self.header("Preference-Applied", preference);
        }
    }

    fn header(&mut self, name: &str, value: &str) {
        debug_assert!(!value.bytes().any(|byte| byte.is_ascii_control()), "{name}: {value:?}");
        self.text(&[name, ": ", value, "\r\n"]);
    }

    fn text(&mut self, pieces: &[&str]) {
        for piece in pieces {
            self.out.extend_from_slice(piece.as_bytes());
        }
    }
}

impl Outcome<'_> {
    fn status(&self) -> u16 {
        match self {
            Self::Inserted { .. } | Self::Updated { .. } | Self::Deleted => 204,
            Self::InsertedWithContent { .. } => 201,
            Self::Queried { .. } => 200,
            Self::Failed { status, .. } => *status,
        }
    }
}

/// The message of an error inside a changeset: the position of the operation goes before it.
pub fn indexed_message(index: usize, message: &str) -> String {
    [itoa::Buffer::new().format(index), ":", message].concat()
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;

    const BATCH_ID: &str = "6f1e3e5c-5a57-4f05-8c3b-1d9b3f6f7a10";
    const CHANGESET_ID: &str = "0c2bcb5f-6a51-4a3d-9f5e-7a9a3f3f0b22";
    const LOCATION: &str = "https://acct.table.core.windows.net/t(PartitionKey='p',RowKey='1')";
    const ETAG: &str = "W/\"datetime'2017-11-10T02%3A43%3A36.2754988Z'\"";
    const JSON: &str = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";

    fn part(outcome: Outcome<'_>) -> PartResponse<'_> {
        PartResponse { content_id: None, preference_applied: None, outcome }
    }

    fn changeset(parts: &[PartResponse<'_>]) -> String {
        let mut writer = BatchWriter::new(BATCH_ID);
        writer.changeset(CHANGESET_ID, parts.iter().copied());
        String::from_utf8(writer.finish()).unwrap()
    }

    /// The expected text, with LF and short boundaries for the eye.
    fn expected(text: &str) -> String {
        text.replace('\n', "\r\n").replace("<batch>", BATCH_ID).replace("<set>", CHANGESET_ID)
    }

    #[test]
    fn the_recorded_success() {
        // Wire reference 9.2.
        let insert = PartResponse {
            content_id: Some("1"),
            preference_applied: Some(Preference::ReturnNoContent),
            outcome: Outcome::Inserted { location: LOCATION, etag: ETAG },
        };
        let update =
            part(Outcome::Updated { etag: "W/\"datetime'2017-11-10T02%3A43%3A36.0846584Z'\"" });
        let text = "\
--batchresponse_<batch>
Content-Type: multipart/mixed; boundary=changesetresponse_<set>

--changesetresponse_<set>
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
Content-ID: 1
X-Content-Type-Options: nosniff
Cache-Control: no-cache
Preference-Applied: return-no-content
DataServiceVersion: 3.0;
Location: https://acct.table.core.windows.net/t(PartitionKey='p',RowKey='1')
DataServiceId: https://acct.table.core.windows.net/t(PartitionKey='p',RowKey='1')
ETag: W/\"datetime'2017-11-10T02%3A43%3A36.2754988Z'\"


--changesetresponse_<set>
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 1.0;
ETag: W/\"datetime'2017-11-10T02%3A43%3A36.0846584Z'\"


--changesetresponse_<set>--
--batchresponse_<batch>--
";
        assert_eq!(changeset(&[insert, update]), expected(text));
        let content_type = BatchWriter::new(BATCH_ID).content_type();
        assert_eq!(content_type, format!("multipart/mixed; boundary=batchresponse_{BATCH_ID}"));
    }

    #[test]
    fn an_insert_that_returns_content_and_a_delete() {
        let insert = PartResponse {
            preference_applied: Some(Preference::ReturnContent),
            ..part(Outcome::InsertedWithContent {
                content_type: JSON,
                location: LOCATION,
                etag: ETAG,
                body: b"{\"RowKey\":\"1\"}",
            })
        };
        let text = "\
--batchresponse_<batch>
Content-Type: multipart/mixed; boundary=changesetresponse_<set>

--changesetresponse_<set>
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 201 Created
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
X-Content-Type-Options: nosniff
Cache-Control: no-cache
Preference-Applied: return-content
Location: https://acct.table.core.windows.net/t(PartitionKey='p',RowKey='1')
ETag: W/\"datetime'2017-11-10T02%3A43%3A36.2754988Z'\"

{\"RowKey\":\"1\"}
--changesetresponse_<set>
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 1.0;


--changesetresponse_<set>--
--batchresponse_<batch>--
";
        assert_eq!(changeset(&[insert, part(Outcome::Deleted)]), expected(text));
    }

    #[test]
    fn the_recorded_failure() {
        // Wire reference 9.4.
        let message = indexed_message(3, ErrorCode::EntityAlreadyExists.message());
        assert_eq!(message, "3:The specified entity already exists.");
        let failure = PartResponse {
            preference_applied: Some(Preference::ReturnNoContent),
            ..part(Outcome::Failed {
                status: 409,
                no_cache: true,
                content_type: JSON,
                body: b"{\"odata.error\":{}}",
            })
        };
        let text = "\
--batchresponse_<batch>
Content-Type: multipart/mixed; boundary=changesetresponse_<set>

--changesetresponse_<set>
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 409 Conflict
X-Content-Type-Options: nosniff
Cache-Control: no-cache
Preference-Applied: return-no-content
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8

{\"odata.error\":{}}
--changesetresponse_<set>--
--batchresponse_<batch>--
";
        assert_eq!(changeset(&[failure]), expected(text));
    }

    #[test]
    fn an_empty_changeset_has_only_its_closing_boundary() {
        // Wire reference 9.5.
        let text = "\
--batchresponse_<batch>
Content-Type: multipart/mixed; boundary=changesetresponse_<set>

--changesetresponse_<set>--
--batchresponse_<batch>--
";
        assert_eq!(changeset(&[]), expected(text));
    }

    #[test]
    fn a_single_query_stands_under_the_batch() {
        // Wire reference 9.3.
        let mut writer = BatchWriter::new(BATCH_ID);
        writer.single(&part(Outcome::Queried {
            content_type: JSON,
            etag: Some(ETAG),
            body: b"{\"RowKey\":\"1\"}",
        }));
        let text = "\
--batchresponse_<batch>
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 200 OK
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
X-Content-Type-Options: nosniff
Cache-Control: no-cache
ETag: W/\"datetime'2017-11-10T02%3A43%3A36.2754988Z'\"

{\"RowKey\":\"1\"}
--batchresponse_<batch>--
";
        assert_eq!(String::from_utf8(writer.finish()).unwrap(), expected(text));
    }

    #[test]
    fn every_status_of_the_service_has_a_reason() {
        for code in ErrorCode::ALL {
            assert_ne!(reason(code.status()), "Error", "{code:?}");
        }
    }
}
